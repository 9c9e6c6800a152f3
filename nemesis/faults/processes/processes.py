"""Faults of a node's process: killed, stopped for a while, restarted cleanly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.node_state import looks_at, not_down, not_stopped, while_down
from wrackline.nemesis.faults.outputs import carried_out, last
from wrackline.nemesis.faults.spec import UnprivilegedSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    ProbeLog,
    Proof,
    Shell,
    StartNode,
    StopNode,
    Target,
)

CLEAN_FILE = ".kafka_cleanshutdown"
"""Kafka's own name, at the top of a data directory or one folder below."""


@dataclass(frozen=True, slots=True)
class Kill:
    """kill -9; on undo the node is started again. What was written stays in the page cache.

    Proved when no process of the node was there from beginning to end, whoever may start it."""

    name: ClassVar[str] = "kill"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        kills = [Shell(one.host, programs.killed(one.running(self.name))) for one in context.targets]
        return while_down(context, kills)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if flaw := not_down(context, probe_log):
            return Proof(False, flaw)
        return Proof(True, f"process {_pids(context.targets)} is gone{_restarted(probe_log)}")


@dataclass(frozen=True, slots=True)
class Pause:
    """SIGSTOP; on undo SIGCONT. The node wakes up believing no time has passed."""

    name: ClassVar[str] = "pause"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        pids = {one.host: one.running(self.name) for one in context.targets}
        # Waited for: a process that waits for its disk stops only when the disk has answered.
        stop = (
            "kill -STOP {0}; for i in $(seq 250); do "
            "grep -q '^State:.T' /proc/{0}/status && break; sleep 0.02; done"
        )
        return Commands(
            do=tuple(Shell(host, stop.format(pid)) for host, pid in pids.items()),
            # Gone meanwhile (killed, power cut): nothing to wake up.
            undo=tuple(Shell(host, f"kill -CONT {pid} 2>/dev/null || true") for host, pid in pids.items()),
            probe=looks_at(context.targets),
            watch=looks_at(context.targets),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if flaw := not_stopped(context, probe_log):
            return Proof(False, flaw)
        return Proof(True, f"process {_pids(context.targets)} in state T (stopped) from beginning to end")


@dataclass(frozen=True, slots=True)
class Restart:
    """Clean stop; on undo the node is started again."""

    name: ClassVar[str] = "restart"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        for one in context.targets:
            one.running(self.name)
        find = "find {0.data_dir} -maxdepth 2 -name {1}"
        return while_down(
            context,
            (StopNode(one.host, one.node_id) for one in context.targets),
            (Shell(one.host, find.format(one, CLEAN_FILE)) for one in context.targets),
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        unclean = [
            one.host
            for one in context.targets
            if CLEAN_FILE not in last(probe_log.active, one) and one.is_broker
        ]
        if unclean or any(done.error for done in probe_log.do):
            return Proof(False, f"no clean shutdown of {', '.join(unclean) or 'every target'}")
        if flaw := not_down(context, probe_log):
            return Proof(False, flaw)
        return Proof(True, f"process {_pids(context.targets)} shut down cleanly{_restarted(probe_log)}")


def _pids(targets: Iterable[Target]) -> str:
    return ", ".join(f"{one.pid} on {one.host}" for one in targets)


def _restarted(probe_log: ProbeLog) -> str:
    started = {done.step.host: done.output for done in carried_out(probe_log.undo, StartNode)}
    return "".join(f"; {host} runs again as {pid}" for host, pid in sorted(started.items()))


class KillSpec(UnprivilegedSpec):
    """Settings of the fault ``kill``."""

    makes = Kill
    fault: Literal["kill"]
    """The process is killed."""


class PauseSpec(UnprivilegedSpec):
    """Settings of the fault ``pause``."""

    makes = Pause
    fault: Literal["pause"]
    """The process is stopped, and goes on afterwards."""


class RestartSpec(UnprivilegedSpec):
    """Settings of the fault ``restart``."""

    makes = Restart
    fault: Literal["restart"]
    """The process is asked to end, and is started again."""
