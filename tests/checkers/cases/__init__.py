"""Tiny hand-written histories, named after the anomaly: each bad one shows it, and nothing but what follows
from it."""

from __future__ import annotations

from tests.checkers.cases import base, groups, integrity, loss, order, transactions, visibility
from tests.checkers.cases.base import CASES, Case
from tests.checkers.histories import TOPIC, History
from wrackline.history.model import TopicInfo

_MODULES = (base, loss, integrity, order, transactions, groups, visibility)
"""In the order of docs/anomalies.md."""


def all_cases() -> list[Case]:
    return [
        Case(name, build(History(f"case {name}", topics=(TopicInfo(TOPIC, 2, 3, 2),), **changes)), expected)
        for module in _MODULES
        for name, expected, build, changes in CASES
        if build.__module__ == module.__name__
    ]
