"""Faults of what a host has too little of: processor time and memory, up to the kernel's killing the node
for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.node_state import not_down, while_down
from wrackline.nemesis.faults.outputs import last, throughout
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    ProbeLog,
    Proof,
    Shell,
    Target,
)

_PROGRAM = Path(__file__).with_name("pressure_program.py")
_TICKS = re.compile(r"^(\d+) (\d+) (\d+)$")
"""Processor time of the burners, and ours since the host began, in ticks; ticks a second."""
LEAST_SHARE = 0.2
"""Of what they ask for the burners must get so much: the others want the processors, too."""
MOST_OF_AVAILABLE = 80
"""Percent of a host's available memory that may be taken; more would be an OOM kill of anybody."""
GROUP_BYTES = 32 * 2**20
"""What the group has in which the kernel runs out of memory: little, and nobody else's."""


def _run(target: Target, *arguments: object) -> str:
    return f"exec {programs.python_command(target.python, _PROGRAM, *arguments)}"


def _be_nice(nice: int) -> str:
    """Returns the command that sets the shell's niceness, also towards other sessions, such as the node's:
    where the kernel groups tasks by session (sched(7), autogroup), a task's own niceness counts inside its
    group alone."""
    return f"renice -n {nice} -p $$ >/dev/null; echo {nice} 2>/dev/null >/proc/$$/autogroup || true"


@dataclass(frozen=True, slots=True)
class CpuPressure:
    """Programs on the host work without end. Proved by the processor time that they got between two looks."""

    name: ClassVar[str] = "cpu-pressure"
    holds_node: ClassVar[bool] = False

    workers: int = 2
    percent: int = 100
    nice: int = 0

    def commands(self, context: FaultContext) -> Commands:
        burn = tuple(
            Shell(
                one.host,
                programs.start(
                    context.fault_id,
                    "burn",
                    f"{_be_nice(self.nice)}; {_run(one, 'cpu', self.workers, self.percent)}",
                    ready="^burning",
                ),
            )
            for one in context.targets
        )
        return Commands(
            do=burn,
            undo=tuple(Shell(one.host, programs.end(context.fault_id, "burn")) for one in context.targets),
            probe=tuple(self._spent(context.fault_id, one) for one in context.targets),
            control=tuple(self._spent(context.fault_id, one) for one in context.targets),
            lasting=burn,
        )

    @staticmethod
    def _spent(fault_id: str, target: Target) -> Shell:
        """The burners are the program's session."""
        pid = f"{programs.folder(fault_id, 'burn')}/pid"
        return Shell(
            target.host,
            f"pid=$(cat {pid} 2>/dev/null) || {{ echo gone; exit 0; }}; "
            'echo $(cat /proc/[0-9]*/stat 2>/dev/null | sed "s/^[0-9]* (.*) //" | '
            "awk -v session=\"$pid\" '$4 == session { n += $12 + $13 } END { print n + 0 }') "
            "$(awk -v hz=\"$(getconf CLK_TCK)\" '{ print int($1 * hz) }' /proc/uptime) $(getconf CLK_TCK)",
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            looks = [_TICKS.match(said) for said in throughout(probe_log, one)]
            if not all(looks):
                return Proof(False, f"{one.host}: no burner works: {' | '.join(throughout(probe_log, one))}")
            if len(looks) < 2:
                return Proof(False, f"{one.host}: the burners began; what they got shows at the end")
            first, final = ([int(number) for number in look.groups()] for look in looks if look)
            seconds = max(1, final[1] - first[1]) / final[2]
            asked, got = seconds * self.workers * self.percent / 100, (final[0] - first[0]) / final[2]
            text = f"{one.host}: {self.workers} burners used {got:.1f} s of processors in {seconds:.1f} s"
            if got < LEAST_SHARE * asked:
                return Proof(False, f"{text}, less than {LEAST_SHARE:.0%} of what they asked for")
            if probe_log.undo and last(probe_log.control, one) != "gone":
                return Proof(False, f"{text}, and go on after the undo")
            texts.append(text)
        return Proof(True, "; ".join(texts))


class CpuPressureSpec(FaultSpec):
    """Settings of the fault ``cpu-pressure``."""

    makes = CpuPressure
    fault: Literal["cpu-pressure"]
    """Programs beside the node work without end. Hosts in namespaces share the machine's processors with each
    other and with the clients."""
    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """How many."""
    percent: Annotated[int, Field(ge=1, le=100)] = 100
    """How much of its time each works."""
    nice: Annotated[int, Field(ge=-20, le=19)] = 0
    """Their niceness: below zero they go before the node."""


@dataclass(frozen=True, slots=True)
class MemoryPressure:
    """A program on the host holds memory. Proved by what it has in memory at the beginning and at the end,
    and by its being gone afterwards."""

    name: ClassVar[str] = "memory-pressure"
    holds_node: ClassVar[bool] = False

    size_mb: int = 128

    def commands(self, context: FaultContext) -> Commands:
        hold = tuple(self._hold(context.fault_id, one) for one in context.targets)
        look = tuple(self._held(context.fault_id, one) for one in context.targets)
        return Commands(
            do=hold,
            undo=tuple(Shell(one.host, programs.end(context.fault_id, "hold")) for one in context.targets),
            probe=look,
            control=look,
            lasting=hold,
        )

    def _hold(self, fault_id: str, target: Target) -> Shell:
        enough = (
            "room=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo); "
            f"[ {self.size_mb} -le $((room * {MOST_OF_AVAILABLE} / 100)) ] || "
            f'{{ echo "{self.size_mb} MiB are more than {MOST_OF_AVAILABLE} % of the $room MiB that '
            f'{target.host} has left: take less"; exit 1; }}; echo 500 >/proc/self/oom_score_adj; '
        )
        command = enough + _run(target, "memory", self.size_mb)
        return Shell(target.host, programs.start(fault_id, "hold", command, ready="^held", wait_s=30), 45)

    @staticmethod
    def _held(fault_id: str, target: Target) -> Shell:
        pid = f"{programs.folder(fault_id, 'hold')}/pid"
        return Shell(
            target.host,
            f"pid=$(cat {pid} 2>/dev/null) && awk '/^VmRSS:/ {{ print $2 }}' /proc/$pid/status 2>/dev/null "
            "|| echo gone",
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            held = [int(said) // 1024 if said.isdigit() else 0 for said in throughout(probe_log, one)]
            if any(size < self.size_mb for size in held):
                return Proof(False, f"{one.host}: of {self.size_mb} MiB {held} were held")
            if probe_log.undo and last(probe_log.control, one) != "gone":
                return Proof(False, f"{one.host}: the memory is still held after the undo")
            texts.append(f"{one.host}: a program had {' and '.join(map(str, held))} MiB in memory")
        return Proof(True, "; ".join(texts))


class MemoryPressureSpec(FaultSpec):
    """Settings of the fault ``memory-pressure``."""

    makes = MemoryPressure
    fault: Literal["memory-pressure"]
    """A program beside the node holds memory, so that there is less for files. Hosts in namespaces share the
    machine's memory."""
    size_mb: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """How much, in MiB; no more than four fifths of what the host has left."""


@dataclass(frozen=True, slots=True)
class OomKill:
    """The kernel's OOM killer kills the node; on undo it starts.

    The node and a program of ours are put into a small memory group of their own. The program takes more than
    the group has, and of the two the node is the one that the kernel may kill. Nobody else comes to harm.
    Proved by the group's own count of such kills, and by no process of the node being there from then to the
    end.
    """

    name: ClassVar[str] = "oom-kill"
    holds_node: ClassVar[bool] = True

    def commands(self, context: FaultContext) -> Commands:
        return while_down(context, map(self._kill, context.targets))

    def _kill(self, target: Target) -> Shell:
        pid = target.running(self.name)
        return Shell(
            target.host,
            "set -e; root=$(mktemp -d /run/wrackline-memory.XXXXXX); "
            "if mount -t cgroup -o memory none $root 2>/dev/null; "
            "then limit=memory.limit_in_bytes count=memory.oom_control; "
            'elif mount -t cgroup2 none $root && echo +memory >"$root/cgroup.subtree_control"; '
            "then limit=memory.max count=memory.events; "
            f'else rmdir $root; echo "{target.host} has no memory groups (cgroups)" >&2; exit 1; fi; '
            "group=$root/wrackline-$(cat /proc/sys/kernel/random/uuid); mkdir $group; "
            # What is still in the group goes back, else the group could not be removed.
            "trap 'for one in $(cat $group/cgroup.procs); do echo $one >$root/cgroup.procs || true; done "
            "2>/dev/null; rmdir $group; umount $root; rmdir $root' EXIT; "
            f'echo {GROUP_BYTES} >"$group/$limit"; echo 1000 >/proc/{pid}/oom_score_adj; '
            f'echo {pid} >"$group/cgroup.procs"; '
            # It takes memory for one endless line, and is smaller than any node without it.
            "(sh -c 'echo $PPID' >\"$group/cgroup.procs\"; exec tail /dev/zero >/dev/null 2>&1) & hog=$!; "
            f"polls=0; while kill -0 {pid} 2>/dev/null && [ $polls -lt 200 ]; do "
            "polls=$((polls + 1)); sleep 0.05; done; "
            "kill -KILL $hog 2>/dev/null || true; wait $hog 2>/dev/null || true; "
            'grep "^oom_kill " "$group/$count"',
            timeout_s=30,
        )

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            words = last(probe_log.do, one).split()
            kills = int(words[1]) if len(words) == 2 and words[1].isdigit() else 0
            if not kills:
                return Proof(
                    False, f"{one.host}: the kernel counts no OOM kill: {' '.join(words) or 'no answer'}"
                )
            texts.append(f"{one.host}: the OOM killer took process {one.pid} ({kills} by the kernel's count)")
        if flaw := not_down(context, probe_log):
            return Proof(False, f"{'; '.join(texts)}; then {flaw}")
        return Proof(True, "; ".join(texts))


class OomKillSpec(FaultSpec):
    """Settings of the fault ``oom-kill``."""

    makes = OomKill
    fault: Literal["oom-kill"]
    """The kernel runs out of memory in a group that has the node in it, and kills the node."""
