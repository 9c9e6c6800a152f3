"""Readers that were asked again, and what the verdict makes of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.checkers.good_runs import PLACE, decided, good_run
from tests.checkers.histories import TOPIC, History
from wrackline.checkers.findings import Meaning, Verdict
from wrackline.checkers.inputs.final_reads import SecondReading
from wrackline.checkers.inputs.runs import Run, load_run
from wrackline.history.model import REPLICA, Type
from wrackline.history.offsets import Intervals

LACKED: Intervals = [[57, 57]]
HOLDERS = ("n1", "n2", "n3", "clients")
OTHER = (TOPIC, 1)


def asked_again(found: Intervals, *, host: str = "", problem: str = "") -> Run:
    run = good_run()
    run.second = {PLACE: [SecondReading(host, LACKED, found, HOLDERS, problem)]}
    return run


def test_a_slip_of_the_final_read_is_no_loss() -> None:
    result = decided(asked_again(LACKED), lost_write=1, vanished_read=1)
    assert (result["verdict"], result["exit_code"]) == (Verdict.INFRASTRUCTURE, 4)
    assert "the final read of log-0 lacks offset 57" in result["headline"]
    assert "n1, n2, n3 and clients had told of them" in result["headline"]
    assert result["reasons"][1].startswith("1 finding of lost-write is no evidence: a reader slipped")


def test_a_slip_leaves_no_run_that_passes() -> None:
    assert decided(asked_again(LACKED))["verdict"] == Verdict.INFRASTRUCTURE


def test_a_loss_that_the_second_reader_confirms_is_one() -> None:
    result = decided(asked_again([]), lost_write=1)
    assert result["verdict"] == Verdict.VIOLATION
    assert (
        "log-0: n1, n2 and n3 hold offset 57, and the leader gave neither of two readers a record there"
        in result["reasons"]
    )
    assert decided(asked_again([]))["verdict"] == Verdict.PASS  # of a compacted topic, for example


def test_a_loss_stays_one_where_nobody_could_read_again() -> None:
    result = decided(asked_again([], problem="n1 does not know Fetch v4"), lost_write=1)
    assert result["verdict"] == Verdict.VIOLATION
    assert not any("neither of two readers" in one for one in result["reasons"])


def test_a_slip_in_one_partition_excuses_no_other() -> None:
    run = asked_again(LACKED)
    run.second = {OTHER: run.second[PLACE]}
    assert decided(run, lost_write=1)["verdict"] == Verdict.VIOLATION


def test_a_slip_of_the_final_read_excuses_nothing_that_does_not_rest_on_it() -> None:
    result = decided(asked_again(LACKED), phantom=1)
    assert result["verdict"] == Verdict.VIOLATION
    assert any("the final read of log-0 lacks" in one for one in result["reasons"])


def test_a_slip_of_the_reader_of_replicas() -> None:
    run = asked_again(LACKED, host="n2")
    for anomaly in ("lost_on_replica", "replica_divergence"):
        result = decided(run, **{anomaly: 1})
        assert result["verdict"] == Verdict.INFRASTRUCTURE
        assert "the first reader of the log of log-0 on n2 lacks offset 57" in result["headline"]
    assert decided(run, lost_write=1)["verdict"] == Verdict.VIOLATION  # the final read was whole
    assert decided(asked_again([], host="n2"), lost_on_replica=1)["verdict"] == Verdict.VIOLATION


def test_without_the_final_read_no_order_can_be_judged() -> None:
    result = decided(asked_again(LACKED), not_linearizable=1)
    [row] = [one for one in result["anomalies"] if one["anomaly"] == "not-linearizable"]
    assert row["meaning"] == Meaning.NOT_APPLICABLE


def test_what_was_expected_is_not_reproduced_by_a_slip() -> None:
    for found, verdict in ((LACKED, Verdict.INFRASTRUCTURE), ([], Verdict.REPRODUCED)):
        run = asked_again(found)
        run.info = dataclasses.replace(run.info, expected=("lost-write",))
        assert decided(run, lost_write=1)["verdict"] == verdict


def test_they_are_rows_of_the_history(tmp_path: Path) -> None:
    history = History()
    extra = {"lacked": LACKED, "found": [], "witnesses": ["n1"]}
    common = {"topic": TOPIC, "partition": 0, "extra": extra}
    history.event(REPLICA, Type.OK, "reread", **common)
    history.event(REPLICA, Type.INFO, "reread", node="n2", error="no answer", **common)
    assert load_run(history.write(tmp_path / "run")).second == {
        PLACE: [
            SecondReading("", LACKED, [], ("n1",), ""),
            SecondReading("n2", LACKED, [], ("n1",), "no answer"),
        ]
    }
