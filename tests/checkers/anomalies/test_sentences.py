"""Names in the judge's sentences, and the frames that checks are written with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F
from wrackline.checkers.engine.frames import Int, Long, Text, small

from wrackline.checkers.anomalies import evidence
from wrackline.checkers.inputs.table import Table
from wrackline.history.labels import CONSUMERS, NUMBERED_FROM, process_label, value_label
from wrackline.history.model import CORRUPT, FOREIGN, value_of
from wrackline.history.wording import number, seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
VALUES = (0, value_of(3, 607), value_of(3, 607, 2), 5 << 32 | 77, NUMBERED_FROM + 4, CORRUPT, FOREIGN, -9)
PROCESSES = (0, 17, CONSUMERS, CONSUMERS + 3)


@dataclass(frozen=True, slots=True)
class Sentence(Table[Column]):
    text: Text
    value: Long
    process: Int


@pytest.mark.parametrize("imported", [False, True])
def test_sentences_name_values_and_processes_as_the_report_does(spark: SparkSession, imported: bool) -> None:
    rows = small(spark, Sentence, [("", value, process) for value in VALUES for process in PROCESSES])
    c = rows.c
    sentence = evidence.say(
        "Process %s read %s", evidence.process_label(c.process), evidence.value_label(c.value)
    )
    named = evidence._with_names(sentence, F.lit(imported))
    expected = {
        f"Process {process_label(process, imported=imported)} read {value_label(value, imported=imported)}"
        for value in VALUES
        for process in PROCESSES
    }
    assert {text for (text,) in rows.rows.select(named).collect()} == expected


@pytest.mark.parametrize(
    "text", ["no mark", "{", "a {b} c", "{value}", "{value 5", "x {value 99e9} {leader} y\nz"]
)
def test_what_only_looks_like_a_name_stays(spark: SparkSession, text: str) -> None:
    rows = small(spark, Sentence, [(text, 0, 0)])
    [(found,)] = rows.rows.select(evidence._with_names(rows.c.text, F.lit(False))).collect()
    assert found == text


def test_times_that_look_the_same_get_more_digits(spark: SparkSession) -> None:
    rows = small(spark, Sentence, [("", 1_000_000_001, 0), ("", 2_000_000_000, 0)])
    one = F.lit(1_000_000_002)
    found = rows.rows.select(*evidence.apart(rows.c.value, one), evidence.seconds(F.lit(None))).collect()
    assert [tuple(row) for row in found] == [
        ("1.000000001 s", "1.000000002 s", None),
        ("2.000 s", "1.000 s", None),
    ]


def test_offsets_and_times_are_written_as_the_report_writes_them(spark: SparkSession) -> None:
    numbers = (0, 999, 3_309, 12_345_678_901)
    rows = small(spark, Sentence, [("", one, 0) for one in numbers])
    value = rows.c.value
    found = rows.rows.select(evidence.say("%,d", value), evidence.seconds(value * 1_000_000)).collect()
    assert [tuple(row) for row in found] == [(number(one), seconds(one * 1_000_000)) for one in numbers]
    assert found[2][0] == "3,309"
