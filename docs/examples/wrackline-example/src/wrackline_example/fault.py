"""A fault of the processor: a node has to do with one core."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.api import (
    Commands,
    FaultContext,
    FaultError,
    FaultSpec,
    ProbeLog,
    Proof,
    Shell,
    StepResult,
    Target,
)

ONLINE = "/sys/devices/system/cpu/online"


def _pid(target: Target) -> int:
    if target.pid is None:
        raise FaultError(f"one-core: node {target.node_id} on {target.host} does not run")
    return target.pid


def _pin(target: Target, core: int) -> Shell:
    return Shell(target.host, f"taskset --all-tasks --cpu-list --pid {core} {_pid(target)}")


def _free(target: Target) -> Shell:
    """Idempotent, and no error when the process has ended meanwhile."""
    free = f"taskset --all-tasks --cpu-list --pid $(cat {ONLINE}) {_pid(target)}"
    return Shell(target.host, f"{free} >/dev/null 2>&1 || true")


def _ask(target: Target) -> Shell:
    """The cores that each thread may run on (proc(5)), each list once."""
    status = f"/proc/{_pid(target)}/task/*/status"
    return Shell(target.host, f"sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' {status} | sort -u")


def _outputs(target: Target, done: Iterable[StepResult]) -> list[str]:
    return [" ".join(one.output.split()) for one in done if one.step.host == target.host]


@dataclass(frozen=True, slots=True)
class OneCore:
    """Every thread of the node runs on one core; on undo on all that there are.

    Proved when that is what the kernel says when it begins and before it ends, and no longer after the undo.
    """

    name: ClassVar[str] = "one-core"
    holds_node: ClassVar[bool] = True

    core: int

    def commands(self, context: FaultContext) -> Commands:
        return Commands(
            do=tuple(_pin(one, self.core) for one in context.targets),
            undo=tuple(_free(one) for one in context.targets),
            probe=tuple(_ask(one) for one in context.targets),
            control=tuple(_ask(one) for one in context.targets),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        wanted = str(self.core)
        for one in context.targets:
            during, after = (
                _outputs(one, (*probe_log.active, *probe_log.final)),
                _outputs(one, probe_log.control),
            )
            if not during or set(during) != {wanted}:
                return Proof(False, f"{one.host}: cores {during} were allowed, not {wanted} alone")
            if wanted in after:
                return Proof(False, self.residue(context, probe_log))
        hosts = ", ".join(one.host for one in context.targets)
        return Proof(True, f"every thread of the node on {hosts} was on core {wanted} from beginning to end")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        """What is still there after the undo, by the control steps; empty when nothing is."""
        held = [one.host for one in context.targets if str(self.core) in _outputs(one, probe_log.control)]
        return f"{', '.join(held)}: core {self.core} was the only one after the undo, too" if held else ""


class OneCoreSpec(FaultSpec):
    """What a specification says of it."""

    fault: Literal["one-core"]
    """The node runs on one core."""
    core: Annotated[int, Field(ge=0, le=1023)] = 0
    """Which core, counted from 0."""

    def build(self) -> OneCore:
        return OneCore(self.core)
