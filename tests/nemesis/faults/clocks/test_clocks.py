"""Clocks jump, jump to and fro, and run too fast: the program that moves them, what is proved, and the clock
of a JVM."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.nemesis.doubles import FakeFleet, FakeSystem, Recorded, context
from tests.systems.kafka.conftest import cluster
from wrackline.fleets.base import Result
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.executor import StepExecutor
from wrackline.nemesis.faults.clocks import clock_program, clocks
from wrackline.nemesis.faults.clocks.clocks import ClockDriftSpec, ClockJumpSpec, ClockStrobeSpec, MovedClock
from wrackline.nemesis.faults.host_steps import OwnKernel, ReadClock
from wrackline.nemesis.faults.steps import FaultError, ProbeLog, StepResult
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import TopicSpec
from wrackline.systems.jvm import faketime
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.kafka.system import KafkaSystem
from wrackline.systems.wrackline.spec import WracklineSpec

needs_libfaketime = pytest.mark.skipif(
    not list(Path("/").glob(faketime.LIBRARIES.lstrip("/"))),
    reason="there is no libfaketime on this machine: `./wrack setup` installs it",
)


def moving(file: Path, *arguments: str) -> subprocess.Popen[str]:
    program = Path(str(clock_program.__file__)).read_text()
    command = [sys.executable, "-I", "-S", "-c", program, str(file), *arguments]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "moved\n"
    return started


def seen(file: Path, number: int) -> list[float]:
    """So many values of the file, one after another, each other than the one before."""
    values: list[float] = []
    deadline = time.monotonic() + 20
    while len(values) < number:
        assert time.monotonic() < deadline, values
        value = float(file.read_text())
        if not values or value != values[-1]:
            values.append(value)
        time.sleep(0.005)
    return values


@pytest.mark.parametrize(
    "arguments", [("jump", "60", "1"), ("strobe", "-5", "0.05"), ("drift", "0.5", "0.05")]
)
def test_the_program_moves_a_clock_and_sets_it_right_when_it_ends(
    tmp_path: Path, arguments: Sequence[str]
) -> None:
    file = tmp_path / "clock"
    started = moving(file, *arguments)
    match arguments[0]:
        case "jump":
            assert float(file.read_text()) == 60
        case "strobe":
            assert set(seen(file, 4)) == {-5, 0}
        case "drift":
            values = seen(file, 5)
            assert values == sorted(values)
            assert values[0] < 5
    started.terminate()
    assert started.wait(10) == 0
    assert float(file.read_text()) == 0


@needs_libfaketime
def test_a_process_under_libfaketime_has_the_time_that_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    started = moving(file, "jump", "300", "1")
    try:
        command = faketime.NOW.replace(faketime.CLOCK_FILE, str(file))
        ahead_s = int(subprocess.check_output(["sh", "-c", command])) / 1e9 - time.time()
        assert ahead_s == pytest.approx(300, abs=2)
    finally:
        started.terminate()
        started.wait(10)


def probe_log(active: str, final: str, control: str) -> ProbeLog:
    """Each: ``AT AHEAD`` of one reading or several."""

    def read(said: str) -> list[StepResult]:
        numbers = said.split()
        lines = [f"{at} {ahead} 0.010" for at, ahead in zip(numbers[::2], numbers[1::2], strict=True)]
        return [StepResult(ReadClock("n1", "date"), "\n".join(lines))]

    return ProbeLog(
        active=read(active), final=read(final), undo=[StepResult(OwnKernel("n1"))], control=read(control)
    )


def proved(fault: MovedClock, active: str, final: str, control: str) -> bool:
    return fault.prove(context("n1"), probe_log(active, final, control)).proved


def test_a_jump_is_measured_against_the_clock_as_it_is_otherwise() -> None:
    jump = MovedClock("jump", False, 60)
    assert proved(jump, "10 60.01", "14 60.02", "15 0.01")
    assert proved(jump, "10 60.2", "14 60.2", "15 0.2")
    assert not proved(jump, "10 60.01", "14 0.02", "15 0.01"), "somebody set it right"
    assert not proved(jump, "10 0.01", "14 60.02", "15 0.01")
    assert not proved(jump, "10 60.01", "14 60.02", "15 60.01"), "it was not undone"
    assert not jump.prove(context("n1"), ProbeLog()).proved


def test_a_strobe_is_seen_in_both_places_and_a_drift_by_what_it_gains() -> None:
    strobe, drift = MovedClock("strobe", False, 5, 0.5), MovedClock("drift", False, 0.2)
    assert proved(strobe, "1 5.0 2 0.0 3 5.0", "4 0.0 5 5.0", "6 0.0")
    assert not proved(strobe, "1 5.0 2 5.0 3 5.0", "4 0.0 5 5.0", "6 0.0")
    assert proved(drift, "10 0.02", "20 2.02", "21 0.0")
    assert not proved(drift, "10 0.02", "20 0.10", "21 0.0")
    assert not proved(drift, "10 0.02", "20 4.02", "21 0.0")


def test_the_clock_of_all_is_moved_by_nobody() -> None:
    """Not even by a fault that should have been refused before: the hosts' kernel is this machine's."""
    fleet = FakeFleet()
    fleet.answers[clocks.BOOT_ID] = (0, Path(clocks.BOOT_ID).read_text())
    with pytest.raises(FaultError, match="its clock is everybody's"):
        clocks.own_kernel(fleet.remote(fleet.hosts[0]))
    fleet.answers[clocks.BOOT_ID] = (0, "another\n")
    assert clocks.own_kernel(fleet.remote(fleet.hosts[0])) == "another"
    steps = MovedClock("jump", False, 60).commands(context("n1", "n2")).do
    assert [type(step) for step in steps[::2]] == [OwnKernel, OwnKernel]


def test_a_host_s_clock_is_read_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = FakeFleet()
    remote = fleet.remote(fleet.hosts[0])

    def run(command: str, **_: object) -> Result:
        time.sleep(0.02)
        return Result("n1", command, 0, f"{time.time_ns() + 7_000_000_000}\n", "", 0.0)

    monkeypatch.setattr(remote, "run", run)
    lines = clocks.read(remote, ReadClock("n1", "date +%s%N", 3, 0.01)).splitlines()
    assert len(lines) == 3
    for line in lines:
        _, ahead_s, doubt_s = map(float, line.split())
        assert abs(ahead_s - 7) <= doubt_s + 0.001
        assert doubt_s >= 0.01


@pytest.mark.parametrize(
    "spec",
    [
        ClockJumpSpec(fault="clock-jump"),
        ClockStrobeSpec(fault="clock-strobe"),
        ClockDriftSpec(fault="clock-drift"),
    ],
    ids=lambda spec: spec.fault,
)
def test_where_the_clock_is_everybody_s_it_is_refused_with_the_way_out(spec: ClockJumpSpec) -> None:
    fleet, own = NetnsSpec(), KafkaSpec(clock="faketime")
    why = str(spec.refusal(fleet, KafkaSpec()))
    assert "share this machine's kernel" in why
    assert "with clock: node the clock of Apache Kafka's nodes can be moved" in why
    of_node = spec.model_copy(update={"clock": "node", "period_s": 3.0})
    assert of_node.refusal(fleet, own) is None
    assert "not wrackline" in str(of_node.refusal(fleet, WracklineSpec()))
    assert of_node.refusal(fleet, KafkaSpec()) is not None


def appended_ahead_s(system: KafkaSystem) -> float:
    """How far the broker's clock is ahead, by the time that it gives a record."""
    told: list[int] = []
    with system.fleet.entered():
        producer = Producer({"bootstrap.servers": system.bootstrap(), "acks": "all"})
        producer.produce("log", b"x", partition=0, on_delivery=lambda _, one: told.append(one.timestamp()[1]))
        assert producer.flush(60) == 0
    return told[0] / 1000 - time.time()


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
@needs_libfaketime
def test_the_clock_of_a_broker_in_a_jvm_jumps_and_drifts() -> None:
    with cluster(("n1",), ("n1",), faketime=True) as system:
        system.create_topic(TopicSpec("log", 1, 1, {"message.timestamp.type": "LogAppendTime"}), timeout_s=60)
        assert appended_ahead_s(system) == pytest.approx(0, abs=2)
        planned = load(
            {
                "schedule": [
                    {"at_s": 0, "duration_s": 4, "fault": "clock-jump", "clock": "node", "offset_s": 300},
                    {"at_s": 6, "duration_s": 5, "fault": "clock-drift", "clock": "node", "percent": 100},
                    {
                        "at_s": 13,
                        "duration_s": 3,
                        "fault": "clock-strobe",
                        "clock": "node",
                        "offset_s": -100,
                        "period_s": 2.5,
                    },
                ]
            }
        )
        recorded = Recorded()
        nemesis = Nemesis(plan(planned, 1, 30), system.fleet, system, recorded)
        nemesis.start()
        recorded.wait_for(lambda: "active" in recorded.phases("f1"), timeout_s=30)
        assert appended_ahead_s(system) == pytest.approx(300, abs=2)
        recorded.wait_for(lambda: "ended" in recorded.phases("f1"), timeout_s=30)
        assert appended_ahead_s(system) == pytest.approx(0, abs=2)
        assert nemesis.wait(60)
        assert nemesis.stop_and_heal() == []
        for fault_id in ("f1", "f2", "f3"):
            recorded.assert_proved(fault_id)


def test_hands_read_clocks() -> None:
    fleet = FakeFleet()
    fleet.answers["date +%s%N"] = (0, f"{time.time_ns()}\n")
    done = StepExecutor(fleet, FakeSystem(fleet), ()).carry_out(ReadClock("n1", "date +%s%N"))
    assert len(done.output.split()) == 3
