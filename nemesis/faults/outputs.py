"""Outputs of the commands of a fault, by host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import ProbeLog, Shell, StepResult, Target


def carried_out(dones: Iterable[StepResult], kind: type[Step]) -> list[StepResult]:
    """Returns the results of the steps of this kind that were carried out, in order."""
    return [done for done in dones if isinstance(done.step, kind) and not (done.error or done.skipped)]


def output_of(dones: Iterable[StepResult], kind: type[Step]) -> str | None:
    """Returns the output of the first step of this kind that was carried out; None when there is none."""
    return next((done.output for done in carried_out(dones, kind)), None)


def commands_on(target: Target, dones: Iterable[StepResult]) -> list[StepResult]:
    """Returns the results of the commands on the target's host, whatever came of them."""
    return [done for done in dones if isinstance(done.step, Shell) and done.step.host == target.host]


def outputs(dones: Iterable[StepResult], target: Target) -> list[str]:
    """Returns the output of each command on the target's host that was carried out, in order."""
    return [done.output for done in carried_out(commands_on(target, dones), Shell)]


def last(dones: Sequence[StepResult], target: Target) -> str:
    """Returns the output of the last command on the target's host that was carried out, without the space
    around it; empty where there was none."""
    return next((said.strip() for said in reversed(outputs(dones, target))), "")


def failed(dones: Sequence[StepResult], target: Target) -> bool:
    """Tells whether a command on the target's host went wrong, so that nobody knows how far it came."""
    return any(done.error for done in commands_on(target, dones))


def throughout(probe_log: ProbeLog, target: Target) -> list[str]:
    """Returns the probe's output at the beginning and, once it was made, at the end."""
    probes = [probe_log.active, probe_log.final] if probe_log.final else [probe_log.active]
    return [last(probe, target) for probe in probes]
