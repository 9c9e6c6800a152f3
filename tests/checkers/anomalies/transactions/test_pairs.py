"""The walk of transactions and the cases of its anomalies: each bad one has its anomaly and nothing else
that the walk finds, each good neighbour has nothing."""

from __future__ import annotations

import pytest

from tests.checkers.anomalies.transactions.walked import walked
from wrackline.checkers.anomalies.transactions import TRANSACTIONS
from wrackline.checkers.cases.language import parse
from wrackline.checkers.checks.registry import checks
from wrackline.proving.pairs import PAIRS, anomaly_of

MINE = {one.name for one in checks() if one.walk is TRANSACTIONS}
OF_TRANSACTIONS = {name: texts for name, texts in PAIRS.items() if "txn" in "".join(texts)}


@pytest.mark.parametrize("chunk", [1, None])
@pytest.mark.parametrize("name", OF_TRANSACTIONS)
def test_the_bad_case_has_it_and_the_good_one_nothing(name: str, chunk: int | None) -> None:
    bad, good = (parse(text) for text in OF_TRANSACTIONS[name])
    found = {row["anomaly"] for row in walked(bad.info, bad.events, chunk)}
    if anomaly_of(name) in MINE:
        assert found == {anomaly_of(name)}
    else:
        assert found <= {anomaly_of(name)}
    assert walked(good.info, good.events, chunk) == []


def test_every_anomaly_of_the_walk_has_a_case() -> None:
    assert {anomaly_of(name) for name in OF_TRANSACTIONS} >= MINE
