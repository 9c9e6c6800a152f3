"""The injector and the runner undo every fault whatever fails, and write it down, on a fleet in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nemesis.doubles import NODES, FakeFleet, FakePower, FakeSystem, Recorded
from wrackline.fleets.base import Host
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.canary import CanaryLoss
from wrackline.nemesis import inject, restoration
from wrackline.nemesis import stage as stages
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.host_steps import DropPageCache
from wrackline.nemesis.faults.network import tcp_probe
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.processes.processes import Kill, Pause
from wrackline.nemesis.faults.steps import Fault, StepResult, TcpProbe
from wrackline.nemesis.heal import NemesisError
from wrackline.nemesis.inject import injected
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.nemesis.stage import Hold, Stage

LISTING = "       1       60 DROP       0    --  *      *       1.2.3.4    0.0.0.0/0     /* {} */\n"
ALL_PHASES = ["begin", "active", "undo", "ended"]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "UNDO_PAUSE_S", 0.0)
    monkeypatch.setattr(restoration, "WAIT_S", 0.0)


@pytest.fixture
def stage(fleet: FakeFleet, system: FakeSystem, recorded: Recorded) -> Iterator[Stage]:
    stage = Stage(fleet, system, recorded)
    yield stage
    stage.close()


async def hold(stage: Stage, fault: Fault, *hosts: str, fault_id: str = "f1", body: Any = None) -> None:
    async with injected(stage, fault, fault_id=fault_id, hosts=hosts, role="one") as injection:
        if body is not None:
            await body(injection)


def commands(fleet: FakeFleet, part: str) -> list[str]:
    return [host for host, command in fleet.commands if part in command]


def test_a_fault_is_done_probed_undone_and_written_down(
    stage: Stage, fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    asyncio.run(hold(stage, Kill(), "n1", "n3"))
    killed = sorted((host, command.split(";")[0]) for host, command in fleet.commands if "KILL" in command)
    assert killed == [("n1", "kill -KILL 101 2>/dev/null"), ("n3", "kill -KILL 103 2>/dev/null")]
    assert sorted(system.calls) == [("start", 1), ("start", 3)]
    assert recorded.phases("f1") == ALL_PHASES
    ended = recorded.ended("f1")
    assert (ended["proved"], ended["targets"], ended["role"], ended["lossy"]) == (
        True,
        ["n1", "n3"],
        "one",
        [],
    )
    assert all(event.process == -1 and event.f == "kill" for event in recorded.events)


def test_an_exception_in_the_body_undoes_the_fault(
    stage: Stage, system: FakeSystem, recorded: Recorded
) -> None:
    async def crash(_: object) -> None:
        raise RuntimeError("the body broke")

    with pytest.raises(RuntimeError, match="the body broke"):
        asyncio.run(hold(stage, Kill(), "n1", body=crash))
    assert system.calls == [("start", 1)]
    assert recorded.phases("f1") == ALL_PHASES


def test_a_cancelled_body_undoes_the_fault_to_the_end(
    stage: Stage, system: FakeSystem, recorded: Recorded
) -> None:
    async def cancelled() -> None:
        async def forever(_: object) -> None:
            await asyncio.sleep(60)

        task = asyncio.ensure_future(hold(stage, Kill(), "n1", body=forever))
        while "active" not in recorded.phases("f1"):
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert system.calls == [("start", 1)]
    assert recorded.phases("f1") == ALL_PHASES


def test_a_fault_that_fails_half_way_is_undone_everywhere_and_not_proved(
    stage: Stage, fleet: FakeFleet, recorded: Recorded
) -> None:
    fleet.answers["iptables-restore"] = lambda host: (1, "") if host == "n3" else (0, "")
    seen: list[str | None] = []

    async def look(injection: inject.Injection) -> None:
        seen.append(injection.failure)

    asyncio.run(hold(stage, Partition(), "n1", body=look))
    assert "n3: `iptables-restore" in str(seen[0])
    assert sorted(commands(fleet, "iptables -w 5 -X WRACK-f1")) == ["c1", "n1", "n2", "n3"]
    ended = recorded.ended("f1")
    assert ended["proved"] is False
    assert "iptables-restore" in str(ended["error"])


def test_a_node_that_does_not_run_cannot_be_killed_and_that_is_said(
    stage: Stage, system: FakeSystem, recorded: Recorded
) -> None:
    del system.pids[1]
    asyncio.run(hold(stage, Kill(), "n1"))
    ended = recorded.ended("f1")
    assert ended["proved"] is False
    assert ended["error"] == "kill: node 1 on n1 does not run"
    assert system.calls == [], "what was not done is not undone"


def test_undo_is_tried_again_until_it_works(stage: Stage, fleet: FakeFleet, recorded: Recorded) -> None:
    tries: dict[str, int] = {}

    def flaky(host: str) -> tuple[int, str]:
        tries[host] = tries.get(host, 0) + 1
        return (1, "") if host == "n2" and tries[host] < 3 else (0, "")

    fleet.answers["iptables -w 5 -X"] = flaky
    asyncio.run(hold(stage, Partition(), "n1"))
    assert tries == {"n1": 1, "n2": 3, "n3": 1, "c1": 1}
    assert "error" not in recorded.ended("f1")


def test_an_undo_that_never_works_is_written_down(
    stage: Stage, system: FakeSystem, recorded: Recorded
) -> None:
    system.refuse = {1}
    asyncio.run(hold(stage, Kill(), "n1"))
    assert system.calls == [("start", 1)] * stages.UNDO_TRIES
    assert "n1: n1: will not start (tried 4 times)" in str(recorded.ended("f1")["error"])


def test_what_a_host_without_power_cannot_undo_is_done_when_it_has_power_again(
    stage: Stage, fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    async def overlapping() -> None:
        async def cut_power(_: object) -> None:
            power.append(
                asyncio.ensure_future(hold(stage, PowerCut(), "n1", fault_id="f2", body=until_released))
            )
            while "active" not in recorded.phases("f2"):
                await asyncio.sleep(0.001)

        async def until_released(_: object) -> None:
            await released.wait()

        released = asyncio.Event()
        power: list[asyncio.Future[None]] = []
        await hold(stage, Partition(), "n1", fault_id="f1", body=cut_power)
        assert "n1" not in commands(fleet, "-X WRACK-f1"), "it has no power"
        released.set()
        await power[0]

    asyncio.run(overlapping())
    assert commands(fleet, "-X WRACK-f1").count("n1") == 1
    assert system.calls[-1] == ("start", 1)
    ended = recorded.ended("f2")
    assert ended["lossy"] == ["n1"]
    assert ended["lost"] == {"n1": {"broker/log-0/00.log": 512}}


def test_a_pause_leaves_a_process_that_died_meanwhile_alone(stage: Stage, fleet: FakeFleet) -> None:
    asyncio.run(hold(stage, Pause(), "n1"))
    assert [command for _, command in fleet.commands if "CONT" in command] == [
        "kill -CONT 101 2>/dev/null || true"
    ]


def run_plan(fleet: FakeFleet, system: FakeSystem, recorded: Recorded, *faults: dict[str, Any]) -> list[str]:
    spec = load({"schedule": [{"at_s": 0.0, "duration_s": 0.1, **fault} for fault in faults]})
    nemesis = Nemesis(plan(spec, 1, 10.0), fleet, system, recorded, topics=("log",))
    nemesis.start()
    assert nemesis.wait(10)
    return nemesis.stop_and_heal()


def test_roles_are_resolved_when_the_fault_is_injected(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    assert run_plan(fleet, system, recorded, {"fault": "kill", "target": "leader(log-0)"}) == []
    assert recorded.ended("f1")["targets"] == ["n2"]
    assert recorded.ended("f1")["role"] == "leader(log-0)"


def test_two_faults_that_take_nodes_do_not_take_the_same(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    faults = [{"fault": "kill", "target": "one", "at_s": at_s, "duration_s": 1.0} for at_s in (0.0, 0.1, 0.2)]
    assert run_plan(fleet, system, recorded, *faults) == []
    hosts = [recorded.ended(one)["targets"] for one in ("f1", "f2", "f3")]
    assert sorted(map(str, hosts)) == ["['n1']", "['n2']", "['n3']"]


def test_a_role_that_stays_vacant_is_a_fault_not_proved_and_the_run_goes_on(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.nemesis.runner.RESOLVE_TIMEOUT_S", 0.1)
    run_plan(
        fleet, system, recorded, {"fault": "kill", "target": "leader(log-9)"}, {"fault": "kill", "at_s": 0.3}
    )
    assert recorded.phases("f1") == ["begin", "ended"]
    missed = recorded.ended("f1")
    assert missed["proved"] is False
    assert "knows no partition log-9" in str(missed["error"])
    recorded.assert_proved("f2")


def test_stopping_undoes_what_is_under_way_and_begins_nothing_more(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    spec = load({"schedule": [{"at_s": at_s, "duration_s": 30, "fault": "kill"} for at_s in (0, 20)]})
    nemesis = Nemesis(plan(spec, 1, 60.0), fleet, system, recorded)
    nemesis.start()
    recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=30)
    assert nemesis.stop_and_heal(timeout_s=30) == []
    assert recorded.phases("f1") == ALL_PHASES
    assert recorded.phases("f2") == []
    assert nemesis.stop_and_heal() == []


def test_healing_repairs_whatever_it_finds_and_says_so(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    fleet.power.off = {"n2"}
    del system.pids[3]
    fleet.answers["iptables -w 5 -t"] = lambda host: (0, "WRACK-f4\n" if host == "n1" else "")
    fleet.answers["cut -d"] = lambda host: (0, "T\n" if host == "c1" else "S\n")
    repairs = Nemesis(plan(load({}), 1, 1.0), fleet, system, recorded).stop_and_heal()
    assert repairs == [
        "n2: power on",
        "n1: chain WRACK-f4 removed",
        "n3: node 3 was down (the log of n3 ends here), started",
        "c1: process 201 woken up",
    ]


def test_what_cannot_be_healed_is_an_error(fleet: FakeFleet, system: FakeSystem, recorded: Recorded) -> None:
    del system.pids[3]
    system.refuse = {3}
    with pytest.raises(NemesisError, match="could not be healed: n3: n3: will not start"):
        Nemesis(plan(load({}), 1, 1.0), fleet, system, recorded).stop_and_heal()


def test_a_guided_schedule_that_gets_nowhere_is_healed_and_not_proved(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    """Nobody is ever elected in a cluster that stands still."""
    spec = load({"guided": {"name": "b01-truncate-to-hw", "at_s": 0, "deadline_s": 0.2}})
    for name in ("n1>n3", "n2>n3"):
        fleet.answers["-L WRACK"] = (0, LISTING.format(name))
    nemesis = Nemesis(plan(spec, 1, 10.0), fleet, system, recorded, topics=("log",))
    nemesis.start()
    assert nemesis.wait(10)
    assert nemesis.stop_and_heal() == []
    assert recorded.phases("g1") == recorded.phases("g2") == ALL_PHASES
    assert recorded.ended("g2")["targets"] == ["n2"], "the leader"
    assert recorded.ended("g0")["proved"] is False
    assert "waited 0.2 s for: node 1 leads (log-0); last seen" in str(recorded.ended("g0")["error"])
    assert {one.node_id for one in NODES} == set(system.pids)
    [steps] = [event.extra for event in recorded.events if event.f == "planned"]
    assert steps == {
        "schedule": "b01-truncate-to-hw",
        "faults": {"g1": "partition", "g2": "kill", "g3": "kill"},
    }


def test_it_is_known_which_node_is_held_by_which_fault(stage: Stage) -> None:
    seen: list[Hold] = []

    async def look(_: object) -> None:
        seen.extend([stage.hold_of("n1"), stage.hold_of("n2")])

    asyncio.run(hold(stage, Kill(), "n1", body=look))
    assert seen == [Hold(1, "f1"), Hold(0, None)]
    assert stage.hold_of("n1") == Hold(1, None)
    asyncio.run(hold(stage, Partition(), "n1"))  # its node stays its own master
    assert stage.hold_of("n1") == Hold(1, None)


class PaperCanaries:
    """Notes what it is asked, in the fleet's own list of commands."""

    def __init__(self, fleet: FakeFleet) -> None:
        self._fleet = fleet

    def start(self, host: Host, disk: int = 1) -> None:  # noqa: ARG002
        self._fleet.commands.append((host.name, "canary started"))

    def wait_witness(self, host: Host, *, disk: int | None = None) -> None:  # noqa: ARG002
        assert self._fleet.power.is_on(host), "before the cut: afterwards it can report nothing"
        self._fleet.commands.append((host.name, "canary waited for"))

    def after(
        self,
        host: Host,
        decided_ns: int | None = None,
        *,
        disk: int | None = None,  # noqa: ARG002
    ) -> CanaryLoss:
        assert decided_ns == 0, "as the power switch of paper says"
        self._fleet.commands.append((host.name, "canary looked at"))
        return CanaryLoss(host.name, before_bytes=800, last_reported=50, reach_s=4.9)


def test_a_canary_is_waited_for_before_a_cut_and_looked_at_before_it_and_the_node_are_started_again(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    stage = Stage(fleet, system, recorded, canaries=PaperCanaries(fleet))
    asyncio.run(hold(stage, PowerCut(), "n2"))
    stage.close()
    said = [one for one in fleet.commands if "canary" in one[1]]
    assert said == [("n2", "canary waited for"), ("n2", "canary looked at"), ("n2", "canary started")]
    recorded.assert_proved("f1")
    assert "canary: 800 of 800 bytes lost" in str(recorded.ended("f1")["proof"])


def test_a_canary_is_waited_for_before_a_page_cache_is_dropped(
    fleet: FakeFleet, system: FakeSystem, recorded: Recorded
) -> None:
    class DroppingPower(FakePower):
        def drop_page_cache(self, host: Host) -> Cut:
            fleet.commands.append((host.name, "page cache dropped"))
            return Cut(host.name, 0, 1)

    fleet.power = DroppingPower()
    stage = Stage(fleet, system, recorded, canaries=PaperCanaries(fleet))
    [done] = asyncio.run(stage.run([DropPageCache("n2")]))
    stage.close()
    assert not done.error
    assert [said for _, said in fleet.commands] == [
        "canary waited for",
        "page cache dropped",
        "canary looked at",
        "canary started",
    ]


def test_without_a_canary_no_power_cut_is_proved(stage: Stage, recorded: Recorded) -> None:
    asyncio.run(hold(stage, PowerCut(), "n2"))
    ended = recorded.ended("f1")
    assert ended["proved"] is False
    assert "no canary watched it" in str(ended["proof"])
    assert ended["lossy"] == ["n2"]


def test_a_host_that_comes_back_gets_the_rules_of_a_cut_that_lasts_and_of_no_other(
    stage: Stage, fleet: FakeFleet
) -> None:
    async def both(_: Any) -> None:
        await hold(stage, Partition(), "n2", fault_id="f2")
        fleet.commands.clear()
        await hold(stage, PowerCut(), "n1", fault_id="f3")

    asyncio.run(hold(stage, Partition(), "n1", body=both))
    restored = [(host, said) for host, said in fleet.commands if "iptables-restore" in said]
    assert [host for host, _ in restored] == ["n1"]
    assert ":WRACK-f1 " in restored[0][1]


def test_a_host_that_answers_before_it_has_its_rules_again_is_no_leak(
    stage: Stage, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its programs are started after that. (On a busy machine it can be knocked at meanwhile.)"""
    monkeypatch.setattr(tcp_probe, "probe_tcp", lambda *_: "refused 0.001")
    results: list[StepResult] = []

    def probe() -> None:
        results.extend(asyncio.run(stage.run([TcpProbe("n1", "198.18.0.11", 9092)])))

    def restored(_: str) -> tuple[int, str]:
        probe()
        return 0, ""

    async def lose_power(_: Any) -> None:
        fleet.answers["iptables-restore"] = restored
        await hold(stage, PowerCut(), "n1", fault_id="f2")

    asyncio.run(hold(stage, Partition(), "n1", body=lose_power))
    probe()
    assert [(done.skipped, done.output) for done in results] == [(True, ""), (False, "refused 0.001")]
