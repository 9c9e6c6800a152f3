"""The walk of transactions on every case that has some: what it finds of each, with ``where``, and nothing
else, however its events come."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.checkers.anomalies.transactions.walked import walked
from tests.checkers.cases import Case, all_cases
from wrackline.checkers.anomalies.transactions import TRANSACTIONS
from wrackline.checkers.checks.registry import checks

MINE = {one.name for one in checks() if one.walk is TRANSACTIONS}
CASES = [case for case in all_cases() if any("txn" in (event.extra or {}) for event in case.events)]


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.info.test_id)
def test_what_is_found_of_a_case(case: Case, chunk: int | None) -> None:
    rows = walked(case.info, case.events, chunk)
    found = Counter(row["anomaly"] for row in rows if row["anomaly"] in MINE)
    assert found == {name: count for name, count in case.expected.items() if name in MINE}
    assert {row["anomaly"] for row in rows} <= {*case.expected}
    assert all(row["where"] == case.where.get(row["anomaly"], row["where"]) for row in rows)


def test_every_anomaly_of_the_walk_has_a_case() -> None:
    assert {name for case in CASES for name in case.expected} >= MINE
