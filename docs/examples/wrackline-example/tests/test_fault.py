"""The fault, done to a process of this machine in the place of a node."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence

import pytest
from wrackline_example.fault import OneCoreSpec

from wrackline.api import FaultContext, FaultError, ProbeLog, Shell, StepResult, Target


def done(steps: Sequence[object]) -> list[StepResult]:
    """The steps, in a shell of this machine."""

    def one(step: object) -> StepResult:
        assert isinstance(step, Shell)
        result = subprocess.run(
            ["sh", "-c", step.command], capture_output=True, text=True, check=True, timeout=60
        )
        return StepResult(step, result.stdout)

    return [one(step) for step in steps]


@pytest.fixture
def context() -> Iterator[FaultContext]:
    """A process of ours in the place of a node."""
    with subprocess.Popen(["sleep", "300"]) as process:
        yield FaultContext("f1", (Target("n1", "", 1, 9092, "/data", pid=process.pid),), ())
        process.kill()


def test_the_fault_is_done_proved_and_undone(context: FaultContext) -> None:
    fault = OneCoreSpec(fault="one-core", core=0).build()
    commands = fault.commands(context)
    assert not fault.prove(context, ProbeLog()).proved
    done(commands.do)
    during = done(commands.probe)
    assert fault.prove(context, ProbeLog(active=during, final=during)).proved
    done(commands.undo)
    done(commands.undo)
    after = done(commands.control)
    assert fault.prove(context, ProbeLog(active=during, final=during, control=after)).proved
    assert fault.residue(context, ProbeLog(control=after)) == ""
    assert fault.residue(context, ProbeLog(control=during)) != ""
    assert not fault.prove(context, ProbeLog(active=after, final=after)).proved
    assert not fault.prove(context, ProbeLog(active=during, final=during, control=during)).proved


def test_a_node_that_does_not_run_cannot_be_hit() -> None:
    nobody = FaultContext("f1", (Target("n1", "", 1, 9092, "/data"),), ())
    with pytest.raises(FaultError, match="n1 does not run"):
        OneCoreSpec(fault="one-core").build().commands(nobody)
