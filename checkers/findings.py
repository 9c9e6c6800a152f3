"""Findings and the verdict: what the judge says, in the one schema every checker and the report share."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

FINDINGS = pa.schema(
    [
        pa.field("test_id", pa.string(), nullable=False),
        pa.field("anomaly", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64()),
        # history indexes of the events that prove it, smallest first, at most 8
        pa.field("operations", pa.list_(pa.int64()), nullable=False),
        # e.g. tail | middle | unknown offset for lost-write
        pa.field("where", pa.string()),
        pa.field("explanation", pa.string(), nullable=False),
        # from the first of what it rests on to the last, in nanoseconds from the start of the run; without an
        # end it lasts until that of the run. What happened then may excuse it
        pa.field("since_ns", pa.int64()),
        pa.field("until_ns", pa.int64()),
    ]
)


FAULTS_IN_FORCE: Final = " These faults were in force %s: %s%s."
NO_FAULT_IN_FORCE: Final = " No fault was in force %s."
"""How an explanation goes on after its sentence: when, which faults, and how many more."""


def sentence_of(explanation: str) -> str:
    """The sentence alone, without a full stop."""
    for clause in (FAULTS_IN_FORCE, NO_FAULT_IN_FORCE):
        explanation = explanation.partition(f".{clause.partition('%')[0]}")[0]
    return explanation.removesuffix(".")


class Meaning(StrEnum):
    """The meaning that a contract gives an anomaly."""

    VIOLATION = "violation"
    ALLOWED = "allowed"
    EXPECTED = "expected"
    NOT_APPLICABLE = "n/a"


WORST_FIRST = (Meaning.VIOLATION, Meaning.EXPECTED, Meaning.ALLOWED, Meaning.NOT_APPLICABLE)


class Verdict(StrEnum):
    PASS = "pass"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    INFRASTRUCTURE = "infrastructure"
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"


EXIT_CODES = {
    Verdict.PASS: 0,
    Verdict.REPRODUCED: 0,
    Verdict.VIOLATION: 1,
    Verdict.NOT_REPRODUCED: 1,
    Verdict.INCONCLUSIVE: 3,
    Verdict.INFRASTRUCTURE: 4,
}
