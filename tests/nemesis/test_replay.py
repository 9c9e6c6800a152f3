"""What happened in one run becomes a schedule for another, and what cannot is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.history.faults import Happened, happened
from wrackline.history.model import CONTROL, NEMESIS, Event, RunInfo, TopicInfo, Type
from wrackline.history.store.files import write_history
from wrackline.history.store.folder import HistoryError
from wrackline.nemesis.faults.network.partitions import Direction, Partition, Shape
from wrackline.nemesis.inject import settings_of
from wrackline.nemesis.replay import Stage, carried_over
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load

INFO = RunInfo("t1", "made", 1, "1970", "wrackline", "log", "all", False, topics=(TopicInfo("log", 1, 3, 2),))

STAGE = Stage(("n1", "n2", "n3"), ("c1",))


def row(at_s: float, f: str, extra: dict[str, object], process: int = NEMESIS) -> Event:
    return Event(process, Type.INFO, f, extra=extra, index=int(at_s * 10), time_ns=int(at_s * 1e9))


def fault(at_s: float, phase: str, **more: object) -> Event:
    return row(at_s, "partition", {"id": "f1", "phase": phase, "targets": ["n2"], "role": "one", **more})


def written(folder: Path, *events: Event) -> Path:
    write_history(folder, INFO, events)
    return folder


def test_what_was_in_force_is_read_back_with_times_from_the_main_phase(tmp_path: Path) -> None:
    how = settings_of(Partition(Shape.ISOLATE, controllers=False, direction=Direction.OUT))
    died = row(4.0, "died", {"id": "d1", "phase": "begin", "targets": ["n3"]})
    run = written(
        tmp_path,
        row(1.0, "phase", {"phase": "warm"}, CONTROL),
        row(2.0, "phase", {"phase": "main"}, CONTROL),
        fault(3.0, "begin", how=how),
        fault(3.2, "active"),
        died,
        fault(6.5, "undo"),
        row(7.0, "kill", {"id": "f2", "phase": "begin", "targets": ["n1"], "how": {}}),
        row(7.5, "kill", {"id": "f2", "phase": "ended", "targets": ["n1"]}),
    )
    assert happened(run) == [Happened("f1", "partition", ("n2",), 1.0, 3.5, how)]
    [given], left_out = carried_over(happened(run), STAGE)
    assert left_out == []
    assert (
        given.items()
        >= {
            "at_s": 1.0,
            "duration_s": 3.5,
            "fault": "partition",
            "target": "n2",
            "shape": "isolate",
            "controllers": False,
            "direction": "out",
        }.items()
    )
    [again] = plan(load({"schedule": [given]}), 1, 30.0).faults
    assert again.spec.build() == Partition(Shape.ISOLATE, controllers=False, direction=Direction.OUT)


def test_a_run_without_a_main_phase_has_nothing_to_do_again(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no main phase"):
        happened(written(tmp_path, fault(1.0, "begin"), fault(2.0, "active")))


def test_what_the_simulator_did_is_done_with_the_faults_of_real_hosts() -> None:
    faults = [
        Happened("f0", "controller-power", ("c1",), 1.0, 0.05),
        Happened("f1", "cut-one-way", ("n1",), 2.0, 1.0, {"pairs": [["n1", "n3"]], "one_way": True}),
        Happened("f2", "isolate", ("n2",), 3.0, 1.0, {"pairs": [["n2", "n1"], ["n2", "n3"]]}),
        Happened("f3", "move-leader", ("n2",), 4.0, 1.0, {"leader_was": "n1"}),
        Happened("f4", "min-isr", (), 5.0, 1.0, {"min_isr": 1}),
        Happened("f5", "reassign", (), 6.0, 1.0),
    ]
    schedule, left_out = carried_over(faults, STAGE, stretch=2.0)
    said = [{key: value for key, value in one.items() if not key.endswith("_s")} for one in schedule]
    assert said == [
        {"fault": "power-cut", "target": "c1"},
        {"fault": "partition", "shape": "link", "target": "n1,n3", "direction": "out"},
        {"fault": "partition", "shape": "link", "target": "n2,n1"},
        {"fault": "partition", "shape": "link", "target": "n2,n3"},
        {"fault": "transfer-leadership", "target": "n1"},
        {"fault": "change-config", "configs": {"min.insync.replicas": 1}},
    ]
    assert [(one["at_s"], one["duration_s"]) for one in schedule[:2]] == [(2.0, 0.2), (4.0, 2.0)]
    assert left_out == ["f5 reassign at 6 s: there is no such fault on real hosts"]
    assert len(plan(load({"schedule": schedule}), 1, 60.0).faults) == 6


def test_messages_that_were_held_are_held_where_they_are_asked_for() -> None:
    def held(message: str, **more: object) -> dict[str, object]:
        faults = [Happened("f1", "hold", ("n2",), 1.0, 1.0, {"message": message, **more})]
        [given], _ = carried_over(faults, STAGE)
        [planned] = plan(load({"schedule": [given]}), 1, 60.0).faults
        return planned.spec.model_dump(mode="json", include={"target", "apis", "what", "do", "peers"})

    hold = {"do": "hold", "peers": ["n2"]}
    assert held("FetchRequest") == {"target": "n1,n3", "apis": ["Fetch"], "what": "request", **hold}
    assert held("AlterPartitionResponse") == {
        "target": "c1",
        "apis": ["AlterPartition"],
        "what": "answer",
        **hold,
    }
    assert held("ProduceResponse") == {
        "target": "n2",
        "apis": ["Produce"],
        "what": "answer",
        "do": "hold",
        "peers": ["client"],
    }
