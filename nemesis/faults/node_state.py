"""States of a node's process by the steps that describe it: none runs while a fault lasts, or one is
stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from wrackline.nemesis.faults.outputs import carried_out
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    DescribeNode,
    FaultContext,
    ProbeLog,
    StartNode,
    StepResult,
    Target,
)

NOBODY = "None"
STOPPED = "T"
_STAT = re.compile(r"^\d+ \(.*\) (\S) ", re.DOTALL)


def process_state(stat: str) -> str | None:
    """The state letter of ``/proc/PID/stat`` (T: stopped); None when the process is gone or a zombie."""
    result = _STAT.match(stat.strip())
    return None if result is None or result[1] in "ZX" else result[1]


def looks_at(targets: Iterable[Target]) -> tuple[DescribeNode, ...]:
    """One look at each target's node."""
    return tuple(DescribeNode(one.host, one.node_id) for one in targets)


def while_down(context: FaultContext, do: Iterable[Step], probe: Iterable[Step] = ()) -> Commands:
    """The steps of a fault that takes its nodes down: they are looked at all the time, and start on undo."""
    looks = looks_at(context.targets)
    start = tuple(StartNode(one.host, one.node_id) for one in context.targets)
    return Commands(tuple(do), start, (*probe, *looks), watch=looks)


def nodes_seen(dones: Sequence[StepResult]) -> dict[str, str]:
    """Host -> ``PID STATE``, or ``None``, of each node that could be looked at."""
    return {done.step.host: done.output.strip() for done in carried_out(dones, DescribeNode)}


def not_down(context: FaultContext, probe_log: ProbeLog) -> str:
    """When a target's node was seen to run while the fault lasted, or was not looked at; empty when every
    node was down from beginning to end."""
    return _flaw(
        context, probe_log, lambda seen, _: None if seen == NOBODY else f"runs as {seen}, and is not gone"
    )


def not_stopped(context: FaultContext, probe_log: ProbeLog) -> str:
    """The same of processes that must be there in state T, the same ones from beginning to end."""

    def flaw(seen: str, one: Target) -> str | None:
        expected = f"{one.pid} {STOPPED}"
        return None if seen == expected else f"was seen as {seen}, not as {expected} (stopped)"

    return _flaw(context, probe_log, flaw)


def _flaw(context: FaultContext, probe_log: ProbeLog, wrong: Callable[[str, Target], str | None]) -> str:
    ends = (probe_log.active, probe_log.final)
    if probe_log.undo and not probe_log.final:
        return "nobody looked at its end"
    for look in probe_log.looks:
        seen = nodes_seen(look.done)
        for one in context.targets:
            who = f"node {one.node_id} on {one.host}"
            if one.host not in seen:
                if look.done in ends:
                    return f"{who} could not be looked at {look.when}"
            elif why := wrong(seen[one.host], one):
                return f"{who} {why}, {look.when}"
    return ""
