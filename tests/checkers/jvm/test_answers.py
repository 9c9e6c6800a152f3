"""What Elle says of transactions comes back as the operations and values of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.harness.check.elle import anomalies
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
    facts = '{"key" -1, "op" {"operation" 3}, "values" [[-2 -3] [-3 -2]]}'
    told = [0, [["incompatible-order", 1, [[[3], "words", [[], []], facts]]]], ["read-committed"]]
    monkeypatch.setattr(Bridge, "_ask", lambda _bridge, what, *_: told if what == "elle" else None)
    found = Bridge(["none"]).serializable("list-append", asked.transactions)
    assert found.answer is Answer.INVALID
    [anomaly] = anomalies(found, "list-append", asked.names, asked.done)
    [example] = anomaly.examples
    assert example.sentence == "[true t] and [t true] were read of key x: neither goes on with the other"
    assert [one.process for one in example.transactions] == ["b"]
    shown: Any = example.facts
    assert shown == {"key": "x", "op": {"operation": "T1"}, "values": [[True, "t"], ["t", True]]}
