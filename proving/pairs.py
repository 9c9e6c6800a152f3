"""The pairs of cases in ``pairs.txt``: for every anomaly one that has it, and its nearest neighbour that has
not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_PAIR = re.compile(r"(.+)\nbad   (.+(?:\n      .+)*)\ngood  (.+(?:\n      .+)*)")
_WORKLOADS = ("register", "queue")


def _read(text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Raises ValueError for a block that is no pair."""
    for block in re.split(r"\n{2,}", text.strip()):
        if block.startswith("#"):
            continue
        match = _PAIR.fullmatch(block)
        if match is None:
            raise ValueError(f"pairs.txt: this is no pair of cases:\n{block}")
        name, bad, good = match.groups()
        yield name, (bad.replace("\n      ", " | "), good.replace("\n      ", " | "))


def anomaly_of(name: str) -> str:
    return name.split()[0].rstrip(",")


def rule_of(name: str) -> str:
    """The rule that a pair of registers or queues is of."""
    return name.split(" ", 1)[1].partition(",")[0]


_EVERY = dict(_read(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")))
PAIRS = {name: texts for name, texts in _EVERY.items() if anomaly_of(name) not in _WORKLOADS}
"""Anomaly, where it has several forms with which: (bad, good)."""
OBJECT_PAIRS = {name: texts for name, texts in _EVERY.items() if anomaly_of(name) in _WORKLOADS}
"""The same of registers and queues, by workload and rule."""
