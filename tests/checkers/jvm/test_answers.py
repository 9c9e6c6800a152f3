"""What Elle says of transactions comes back as the operations and values of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.columns import Act, TransactionsBuilder
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.models.protocol import Outcome
from wrackline.harness.check.elle import facts, what_is_wrong
from wrackline.harness.jepsen.object_histories import transactions
from wrackline.harness.jepsen.operations import read_operations

HISTORY = """
{:process "a" :type :invoke :f :txn :value [[:append :x true] [:append :x :t]]}
{:process "a" :type :ok :f :txn :value [[:append :x true] [:append :x :t]]}
{:process "b" :type :invoke :f :txn :value [[:r :x nil] [:r :x]]}
{:process "b" :type :ok :f :txn :value [[:r :x [true :t]] [:r :x [:t true]]]}
"""


def test_facts_name_operations_and_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.edn"
    path.write_text(HISTORY)
    asked = transactions(read_operations(path).done, "list-append")
    assert asked.names == {-1: "x", -2: True, -3: "t"}
    said = '{"key" -1, "op" {"operation" 3}, "values" [[-2 -3] [-3 -2]]}'
    told = [0, [["incompatible-order", 1, [[[3], "words", [[], []], said]]]], ["read-committed"]]
    monkeypatch.setattr(Bridge, "_ask", lambda _bridge, what, *_: told if what == "elle" else None)
    found = Bridge(["none"]).serializable("list-append", asked.transactions)
    assert found.answer is Answer.INVALID
    [case] = found.anomalies["incompatible-order"][1]
    assert case.rows == (1,)
    shown = facts(dict(case.facts), {1: 1}, lambda number: asked.names.get(number or 0, number))
    assert shown == {"key": "x", "op": {"operation": "T1"}, "values": [[True, "t"], ["t", True]]}
    sentence = what_is_wrong("incompatible-order", shown)
    assert sentence == "[true t] and [t true] were read of key x: neither goes on with the other"


@pytest.mark.parametrize(("at_once", "processes"), [(False, [7, 7]), (True, [0, 1])])
def test_a_process_of_elles_does_one_thing_at_a_time(
    monkeypatch: pytest.MonkeyPatch, at_once: bool, processes: list[int]
) -> None:
    """Elle pairs the events of a process by their order, and would take one for another's completion."""
    asked: list[Any] = []

    def answer(_bridge: Bridge, what: str, arguments: Any, *_: Any) -> Any:
        asked[:] = arguments
        return [1, [], []] if what == "elle" else None

    monkeypatch.setattr(Bridge, "_ask", answer)
    builder = TransactionsBuilder()
    for inv in (1, 2) if at_once else (1, 5):
        builder.add(7, inv, inv + 3, Outcome.OK, [(Act.WRITE, 0, inv)])
    assert Bridge(["none"]).serializable("rw-register", builder.build()).answer is Answer.VALID
    assert processes in [one.tolist() for one in asked if isinstance(one, np.ndarray)]
