"""The parts of this package, tried out without a host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from wrackline_example.fault import OneCoreSpec
from wrackline_example.workload import ReadersSpec

from wrackline.api import Done, Scene, Shell, Target, Trail, anomalies_in, load, rehearse

SPECIFICATION = Path(__file__).parents[1] / "everything.yaml"


def done(steps: Sequence[object]) -> list[Done]:
    """The steps, in a shell of this machine."""

    def one(step: object) -> Done:
        assert isinstance(step, Shell)
        said = subprocess.run(
            ["sh", "-c", step.command], capture_output=True, text=True, check=True, timeout=60
        )
        return Done(step, said.stdout)

    return [one(step) for step in steps]


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A process of ours in the place of a node."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield Scene("f1", (Target("n1", "", 1, 9092, "/data", pid=process.pid),), ())
        process.kill()


def test_the_fault_is_done_proved_and_undone(scene: Scene) -> None:
    fault = OneCoreSpec(fault="one-core", core=0).build()
    commands = fault.commands(scene)
    assert not fault.prove(scene, Trail()).proved
    done(commands.do)
    during = done(commands.probe)
    assert fault.prove(scene, Trail(active=during, final=during)).proved
    done(commands.undo)
    done(commands.undo)
    after = done(commands.control)
    assert fault.prove(scene, Trail(active=during, final=during, control=after)).proved
    assert not fault.prove(scene, Trail(active=after, final=after)).proved
    assert not fault.prove(scene, Trail(active=during, final=during, control=during)).proved


def test_both_kinds_of_operations_are_done_and_recorded() -> None:
    events = rehearse(ReadersSpec(rate=200, writers=2, readers=3))
    assert {(event["f"], event["type"]) for event in events} >= {("send", "ok"), ("poll", "ok")}


def test_a_slow_write_is_found_and_a_quick_one_is_not() -> None:
    slow, quick = "p: (a | c: from 0 | p: a@0) | final a@0", "p: a@0 | c: from 0 | final a@0"
    assert anomalies_in(slow, quick, step_s=0.3) == [{"slow-write": 1}, {}]


def test_the_specification_names_a_part_at_every_door() -> None:
    spec = load(SPECIFICATION)
    assert (spec.fleet.kind, spec.system.kind) == ("netns-xfs", "small-segments")
    assert spec.workload == ReadersSpec(duration_s=14, rate=60, readers=3)
    assert spec.nemesis.schedule[0].inject == OneCoreSpec(fault="one-core", target="leader(log-0)")
    assert spec.contract.expected == ("slow-write",)
