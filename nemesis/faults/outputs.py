"""Outputs of the commands of a fault, by host."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.nemesis.faults.steps import ProbeLog, Shell, StepResult, Target


def outputs(dones: Sequence[StepResult], target: Target) -> list[str]:
    """Returns the output of each command on the target's host that was carried out, in order."""
    return [
        done.output
        for done in dones
        if isinstance(done.step, Shell) and done.step.host == target.host and not (done.error or done.skipped)
    ]


def last(dones: Sequence[StepResult], target: Target) -> str:
    """Returns the output of the last command on the target's host that was carried out, without the space
    around it; empty where there was none."""
    return next((said.strip() for said in reversed(outputs(dones, target))), "")


def failed(dones: Sequence[StepResult], target: Target) -> bool:
    """Tells whether a command on the target's host went wrong, so that nobody knows how far it came."""
    return any(done.error for done in dones if isinstance(done.step, Shell) and done.step.host == target.host)


def throughout(probe_log: ProbeLog, target: Target) -> list[str]:
    """Returns the probe's output at the beginning and, once it was made, at the end."""
    probes = [probe_log.active, probe_log.final] if probe_log.final else [probe_log.active]
    return [last(probe, target) for probe in probes]
