"""A run of paper: what stands still after healing is looked at, recorded and judged, and a run in which
everything moves is not made longer."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.harness.doubles import PARTITIONS, Stage, rows
from wrackline.harness.run.judge import judge
from wrackline.harness.run.liveness.look import Look, NoReport
from wrackline.harness.run.liveness.promises import PROMISES, Stall, When
from wrackline.history.model import LIVENESS

ISR = "under-replicated"


def looks(run_dir: Path) -> list[dict[str, Any]]:
    return [orjson.loads(row["extra"]) for row in rows(run_dir) if row["f"] == LIVENESS]


@pytest.fixture
def behind(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A replica leaves the ISR when the main phase begins."""
    monkeypatch.setattr(
        "wrackline.harness.run.live.live.Nemesis.start",
        lambda _self: setattr(stage.system, "isr", (1, 3)),
        raising=False,
    )
    return stage


def meanings(run_dir: Path) -> dict[str, str]:
    """The meaning of each anomaly of liveness that was found."""
    names = {one.name for one in PROMISES}
    every = judge([run_dir])[0].verdict["anomalies"]
    return {one["anomaly"]: one["meaning"] for one in every if one["count"] and one["anomaly"] in names}


def test_a_run_in_which_everything_moves_has_one_look_at_each_promise(stage: Stage) -> None:
    outcome = stage.run()
    asked = [one.name for one in PROMISES if one.when is not When.FAULT and not one.by_broker]
    kept = Counter(one["promise"] for one in looks(outcome.run_dir) if one.get("kept"))
    assert kept == Counter(asked)
    assert all(one["look"] <= 3 for one in looks(outcome.run_dir))
    assert meanings(outcome.run_dir) == {}


def test_a_replica_that_never_rejoins_is_a_violation(behind: Stage) -> None:
    outcome = behind.run("contract.liveness.rejoin_s=1.5s")
    mine = [one for one in looks(outcome.run_dir) if one["promise"] == ISR]
    assert {one["subject"] for one in mine} == {f"log-{number} on n2" for number in range(PARTITIONS)}
    assert len(mine) > 3 * PARTITIONS
    assert {one["bound_s"] for one in mine} == {1.5}
    assert max(one["look"] for one in mine) <= 8, "it waits no longer than its bound"
    assert meanings(outcome.run_dir) == {ISR: "violation"}


def test_a_replica_whose_node_is_down_is_none(behind: Stage) -> None:
    behind.system.pids["n2"] = None
    outcome = behind.run("contract.liveness.rejoin_s=1s")
    assert {one["excuse"] for one in looks(outcome.run_dir) if one["promise"] == ISR} == {
        "n2 does not run: the log of n2 ends here"
    }
    assert meanings(outcome.run_dir) == {ISR: "allowed", "failed-start": "violation"}


def test_a_replica_that_rejoins_within_its_bound_is_none(behind: Stage) -> None:
    threading.Timer(4.0, lambda: setattr(behind.system, "isr", (1, 2, 3))).start()
    outcome = behind.run("contract.liveness.rejoin_s=60s")
    mine = [one for one in looks(outcome.run_dir) if one["promise"] == ISR]
    assert [one["kept"] for one in mine][-1]
    assert meanings(outcome.run_dir) == {}


def test_an_answer_that_we_cannot_read_is_a_note_and_no_finding(
    behind: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though there is something that stands still."""

    def unreadable(look: Look) -> Iterator[Stall]:
        raise NoReport(f"n2: malformed answer about {len(look.partitions)} partitions")
        yield

    every = tuple(replace(one, stalls=unreadable) if one.name == ISR else one for one in PROMISES)
    monkeypatch.setattr("wrackline.harness.run.liveness.watch.PROMISES", every)
    outcome = behind.run("contract.liveness.rejoin_s=1s")
    why = f"n2: malformed answer about {PARTITIONS} partitions"
    assert {one["error"] for one in looks(outcome.run_dir) if one["promise"] == ISR} == {why}
    verdict = judge([outcome.run_dir])[0].verdict
    assert f"{ISR}: nobody could tell: {why}" in str(verdict["conditions"])
    assert meanings(outcome.run_dir) == {}
