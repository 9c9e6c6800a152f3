"""Steps of guided schedules that are neither faults nor waits for the cluster, as the runner does them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from tests.nemesis.doubles import FakeFleet, FakePower, FakeSystem, Recorded, cluster, partition
from wrackline.fleets.base import Disk, Host
from wrackline.history.model import Event, Type
from wrackline.nemesis import runner, stage
from wrackline.nemesis.faults.disks.power import early_witness
from wrackline.nemesis.faults.processes.processes import Kill
from wrackline.nemesis.guided.catalogue import SCHEDULES
from wrackline.nemesis.guided.disks import keep_copy
from wrackline.nemesis.guided.elections import elect_uncleanly
from wrackline.nemesis.guided.steps import (
    Aim,
    AskEnd,
    Await,
    AwaitCheckpoint,
    AwaitGrowth,
    ElectUncleanly,
    Flush,
    GuidedError,
    GuidedStep,
    Heal,
    Inject,
)
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import DeployError, Place


def test_steps_that_look_at_disks_and_a_wait_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What never comes is waited for no longer than it may be, and the schedule goes on."""

    monkeypatch.setattr(stage, "UNDO_PAUSE_S", 0.0)
    fleet, recorded = FakeFleet(), Recorded()
    system = FakeSystem(fleet, cluster(partition(0, leader=2)))

    def steps(aim: Aim) -> Sequence[GuidedStep]:
        del aim
        return (
            Flush(("n1", "n2")),
            Await("nobody leads", "log", (0,), lambda state: state.leader < 0, patience_s=0.1),
            AwaitGrowth("records on n2", "n2", "log", 0),
            AwaitGrowth("records on n3, which gets none", "n3", "log", 0, patience_s=0.1),
            AwaitCheckpoint("a high watermark on n1's disk", "n1", "log", 0),
            AwaitCheckpoint("one on n3's, which never rises", "n3", "log", 0, patience_s=0.1),
            Inject("g1", Kill(), ("n3",), "somebody"),
            Heal(("g1",)),
        )

    monkeypatch.setitem(cast(dict[str, object], SCHEDULES), "power-cut-lossy", steps)
    sizes = iter(range(100, 10_000))

    class Growing(dict[str, tuple[int, str]]):
        def items(self) -> Any:
            def grown(host: str) -> tuple[int, str]:
                return 0, "77\n" if host == "n3" else f"{next(sizes) // 3}\n"

            return {**dict(super().items()), "wc -c": grown, "checkpoint": grown}.items()

    fleet.answers = cast(Any, Growing(fleet.answers))
    spec = load({"guided": {"name": "power-cut-lossy", "at_s": 0, "deadline_s": 5}})
    nemesis = Nemesis(plan(spec, 1, 10.0), fleet, system, recorded, topics=("log",))
    nemesis.start()
    assert nemesis.wait(10)
    nemesis.stop_and_heal()
    assert [host for host, command in fleet.commands if command == "sync -f /data/broker"] == ["n1", "n2"]
    assert recorded.phases("g1") == ["begin", "active", "undo", "ended"]
    looked = [command for host, command in fleet.commands if "wc -c" in command and host == "n2"]
    assert len(looked) > 1
    assert len([host for host, command in fleet.commands if "wc -c" in command and host == "n3"]) > 1
    [first, *more] = [command for host, command in fleet.commands if "checkpoint" in command and host == "n1"]
    assert "'s/^log 0 //p' /data/broker/replication-offset-checkpoint" in first
    assert more
    assert looked[0] == "cat /data/broker/log-0/*.log 2>/dev/null | wc -c"


@pytest.mark.parametrize("put", [True, False], ids=["answered", "cannot be put"])
def test_a_question_is_under_way_while_the_schedule_goes_on(
    monkeypatch: pytest.MonkeyPatch, put: bool
) -> None:
    monkeypatch.setattr(stage, "UNDO_PAUSE_S", 0.0)
    fleet, recorded = FakeFleet(), Recorded()
    system = FakeSystem(fleet, cluster(partition(0, leader=2)))
    question = AskEnd("n2", "n1", "log", 0)

    def steps(aim: Aim) -> Sequence[GuidedStep]:
        del aim
        return (Inject("g1", Kill(), ("n3",), "somebody"), question, Heal(("g1",)))

    def ask(_: object, asked: object, step: AskEnd, record: Callable[[Event], Event]) -> None:
        """Answered when the fault is over, as by a broker that was paused."""
        assert (asked, step) == (system, question)
        recorded.wait_for(lambda: "ended" in recorded.phases("g1"), timeout_s=30)
        if not put:
            raise GuidedError("nobody listens")
        record(Event(process=7, type=Type.OK, f="end"))

    monkeypatch.setitem(cast(dict[str, object], SCHEDULES), "power-cut-lossy", steps)
    monkeypatch.setattr(runner, "ask_end", ask)
    spec = load({"guided": {"name": "power-cut-lossy", "at_s": 0, "deadline_s": 5}})
    nemesis = Nemesis(plan(spec, 1, 10.0), fleet, system, recorded, topics=("log",))
    nemesis.start()
    assert nemesis.wait(10)
    assert ("end" in [event.f for event in recorded.events]) is put
    assert recorded.phases("g0") == ([] if put else ["begin", "ended"]), "it is known that it was not put"
    nemesis.stop_and_heal()


class _Copying(FakePower):
    """A switch that copies disks, and remembers what was left on them by then."""

    def __init__(self, fleet: FakeFleet) -> None:
        super().__init__()
        self._fleet = fleet
        self.copied: list[tuple[str, list[str]]] = []

    def copy_disk(self, host: Host) -> None:
        self.copied.append((host.name, [command for at, command in self._fleet.commands if at == host.name]))

    def swap_disk(self, host: Host, disk: Disk) -> None: ...


def test_the_copy_of_a_disk_has_a_file_by_which_it_is_known() -> None:
    fleet = FakeFleet()
    system = cast(Any, FakeSystem(fleet))
    with pytest.raises(GuidedError, match="n2: fleet fake cannot copy a disk"):
        keep_copy(cast(Any, fleet), system, "n2")
    power = fleet.power = _Copying(fleet)
    keep_copy(cast(Any, fleet), system, "n2")
    assert power.copied == [("n2", [early_witness("/data")])]


class _Asked:
    """An administrator who remembers what was asked, and may be refused."""

    def __init__(self, *, refused: bool = False) -> None:
        self.refused = refused
        self.places: list[Place] = []

    def elect_uncleanly(self, places: Sequence[Place], *, timeout_s: float) -> None:
        assert timeout_s > 0
        if self.refused:
            raise DeployError("log-0: there is nobody")
        self.places += places


def test_a_person_asks_for_a_leader_of_each_partition() -> None:
    system = cast(Any, FakeSystem(FakeFleet()))
    with pytest.raises(GuidedError, match="fake has nobody who could be asked"):
        elect_uncleanly(system, ElectUncleanly("log", (0, 2)))
    system.admin = _Asked()
    elect_uncleanly(system, ElectUncleanly("log", (0, 2)))
    assert system.admin.places == [("log", 0), ("log", 2)]
    system.admin = _Asked(refused=True)
    with pytest.raises(GuidedError, match="no unclean election of log: log-0: there is nobody"):
        elect_uncleanly(system, ElectUncleanly("log", (0,)))
