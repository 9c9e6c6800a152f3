"""The meaning of each anomaly and Jepsen's name for it, as the register of checks has them; and what is
counted besides."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from wrackline.checkers.checks.registry import checks

METRICS: Final = (
    ("unproven-write", "loss", "–", "sends of unknown outcome: how many were read, how many never were"),
    ("group-duplicates", "groups", "–", "deliveries per record to the members of a group"),
    ("transaction-ends", "transactions", "–", "transactions that were asked to end, by transactional id"),
    ("no-progress", "availability", "–", "phases in which clients tried and nothing succeeded"),
)
"""(name, family, nearest name in Jepsen, meaning) of what is counted and is never a violation."""


class Entry(NamedTuple):
    finding: str
    jepsen: str = ""


@cache
def glossary() -> dict[str, Entry]:
    """Returns the entries in the order of docs/anomalies.md."""
    known = [(one.name, one.meaning, one.jepsen) for one in checks()]
    known += [(name, meaning, jepsen) for name, _, jepsen, meaning in METRICS]
    return {name: Entry(_sentence(meaning), jepsen.strip("– ")) for name, meaning, jepsen in known}


def explain(anomaly: str) -> Entry:
    return glossary().get(anomaly, Entry(""))


def rank(anomaly: str) -> int:
    """Returns the anomaly's place in docs/anomalies.md; the report lists anomalies of one meaning in this
    order."""
    names = list(glossary())
    return names.index(anomaly) if anomaly in names else len(names)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."
