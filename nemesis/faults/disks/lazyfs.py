"""Faults of a data folder that is on LazyFS (github.com/dsrhaslab/lazyfs): a file system in user space that
keeps what was not synced to itself, and loses it when it is told to.

Whoever uses it has mounted it on the hosts and named its pipes; what is written to them is LazyFS's own
language.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.disks.power import OURS
from wrackline.nemesis.faults.outputs import last, outputs
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, FaultContext, ProbeLog, Proof, Shell, StartNode, Target
from wrackline.plugins.fields import Lax, Like

ANSWER = "finished::clear-cache"
ANSWER_S = 10
GONE = "Transport endpoint is not connected"
_LOST = re.compile(r"^lost (\d+) (.+)$", re.MULTILINE)
_PATH = r"^/[A-Za-z0-9_./-]+$"
Kind = Literal["clear-cache", "torn-op", "torn-seq"]
Path = Annotated[str, Like(_PATH, "give a whole path, /..., of letters, digits and _ . / -")]


@dataclass(frozen=True, slots=True)
class Lazy:
    """``clear-cache``: the node is killed and LazyFS forgets all that was not synced; on undo the node
    starts. Proved by a file of ours: what was synced of it is there, what was written to it later is gone.

    ``torn-op``, ``torn-seq``: of a later write, or of several, some parts reach the disk, and LazyFS crashes.
    On undo the node is killed, LazyFS is mounted again by the user's command, and the node starts. Proved
    when the folder answered no more at the end, and does after the undo.
    """

    name: ClassVar[str] = "lazyfs"
    holds_node: ClassVar[bool] = True

    kind: Kind
    fifo: str
    folder: str
    completed: str | None = None
    remount: str = ""
    order: str = ""
    """What is written to the pipe, but for ``clear-cache``."""

    def commands(self, context: FaultContext) -> Commands:
        clears = self.kind == "clear-cache"
        return Commands(
            do=tuple(self._clear(one) if clears else self._order(one) for one in context.targets),
            undo=tuple(
                step
                for one in context.targets
                for step in (*(() if clears else self._mounted_again(one)), StartNode(one.host, one.node_id))
            ),
            probe=tuple(self._look(one) for one in context.targets),
            control=tuple(self._look(one) for one in context.targets),
        )

    def _clear(self, target: Target) -> Shell:
        """Prints what the probe file has then, and ``lost BYTES FILE`` for each file that has become
        shorter."""
        probe = f"{self.folder}/{OURS}probe"
        sizes = f"(cd {self.folder} && find . -path '*/{OURS}*' -prune -o -type f -printf '%P %s\\n' | sort)"
        tell = f"echo lazyfs::clear-cache >{self.fifo}"
        wait = f"{tell}; sleep 1"
        if self.completed is not None:
            heard = f"timeout {ANSWER_S} head -n 1 {self.completed}"
            wait = f"{{ {heard} & {tell}; wait; }}"
        kill = f"{programs.killed(target.pid)}; " if target.pid is not None else ""
        return Shell(
            target.host,
            f"[ -p {self.fifo} ] || {{ echo '{target.host} has no pipe {self.fifo}: is LazyFS mounted?' >&2; "
            f"exit 1; }}; {kill}echo synced >{probe} && sync {probe} {self.folder} && "
            f"echo unsynced >>{probe}; "
            f"had=$(mktemp); has=$(mktemp); {sizes} >$had; {wait}; {sizes} >$has; "
            f'echo "probe: $(tr "\\n" " " <{probe})"; rm -f {probe}; '
            "join -a 1 $had $has | awk '$2 > $3 { print \"lost\", $2 - $3, $1 }'; rm -f $had $has",
            timeout_s=60,
        )

    def _order(self, target: Target) -> Shell:
        return Shell(
            target.host,
            f"[ -p {self.fifo} ] || {{ echo '{target.host} has no pipe {self.fifo}: is LazyFS mounted?' >&2; "
            f"exit 1; }}; timeout 5 sh -c {shlex.quote(f'echo {shlex.quote(self.order)} >{self.fifo}')}",
        )

    def _mounted_again(self, target: Target) -> tuple[Step, ...]:
        """Returns the steps that mount the file system again, also where it did not crash: else it would
        later, at a write that nobody counts any more."""
        kill = f"kill -KILL {target.pid} 2>/dev/null; " if target.pid is not None else ""
        mounted = f"ls {self.folder} >/dev/null 2>&1"
        again = f"umount -l {self.folder} 2>/dev/null; {self.remount} || exit 1; "
        wait = f"for i in $(seq 100); do {mounted} && exit 0; sleep 0.1; done; exit 1"
        return (Shell(target.host, f"{kill}{again}{wait}", timeout_s=60),)

    def _look(self, target: Target) -> Shell:
        return Shell(target.host, f"LC_ALL=C ls -d {self.folder}/. 2>&1; true")

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if self.kind == "clear-cache":
            return self._forgotten(context, probe_log)
        lost: dict[str, dict[str, int]] = {one.host: {} for one in context.targets} if probe_log.undo else {}
        for one in context.targets:
            crashed = GONE in last(probe_log.final, one)
            if probe_log.undo and not crashed:
                return Proof(False, f"LazyFS on {one.host} did not crash: the node made no such writes", lost)
        if probe_log.undo and (flaw := self.residue(context, probe_log)):
            return Proof(False, flaw, lost)
        hosts = ", ".join(one.host for one in context.targets)
        if not probe_log.undo:
            return Proof(
                False, f"LazyFS on {hosts} was told: {self.order}; whether it crashed shows at the end"
            )
        return Proof(True, f"LazyFS on {hosts} did {self.order} and crashed; it is mounted again", lost)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        lost = [one.host for one in context.targets if last(probe_log.control, one) != f"{self.folder}/."]
        return f"LazyFS on {', '.join(lost)} is not mounted again" if lost else ""

    def _forgotten(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        lost: dict[str, dict[str, int]] = {}
        texts, proved = [], True
        for one in context.targets:
            said = "\n".join(outputs(probe_log.do, one))
            files = {file: int(size) for size, file in _LOST.findall(said)}
            if files:
                lost[one.host] = files
            probe = re.search(r"^probe: (.*)$", said, re.MULTILINE)
            words = probe[1].split() if probe else []
            answered = self.completed is None or ANSWER in said
            if words != ["synced"] or not answered:
                what = f"of the file of ours {' and '.join(words) or 'nothing'} is there"
                texts.append(f"{one.host}: {what}{'' if answered else ', and LazyFS did not answer'}")
                proved = False
                continue
            counted = f"{sum(files.values())} bytes in {len(files)} files lost"
            texts.append(
                f"{one.host}: {counted}; of a file of ours what was synced is there, the rest is gone"
            )
        return Proof(proved and bool(context.targets), "; ".join(texts), lost)


class LazyfsSpec(FaultSpec):
    """Settings of the fault ``lazyfs``."""

    fault: Literal["lazyfs"]
    """A data folder on LazyFS, which the hosts have mounted themselves, loses what was not synced, or tears a
    write."""
    kind: Kind = "clear-cache"
    """`clear-cache`: the node is killed and what it had not synced is forgotten. `torn-op`: of one write some
    parts reach the disk. `torn-seq`: of several writes without a sync some reach the disk. LazyFS crashes
    after the last two."""
    fifo: Path = "/run/lazyfs/faults.fifo"
    """LazyFS's `fifo_path` on the hosts."""
    completed: Path | None = None
    """LazyFS's `fifo_path_completed` on the hosts, where it has one."""
    folder: Path = "/data/broker"
    """Where LazyFS is mounted on the hosts."""
    remount: str = ""
    """A command for the hosts' shell that mounts LazyFS again after it has crashed."""
    file: Path | None = None
    """Of a torn write: the file, by its whole path in the folder that LazyFS keeps its files in
    (`subdir`)."""
    op: Literal["write"] = "write"
    """Of `torn-seq`: which calls."""
    parts: Annotated[int, Field(ge=2, le=1_000)] = 3
    """Of `torn-op`: into how many parts the write is divided."""
    persist: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1), Lax] = (1,)
    """Of a torn write: which parts, or which writes, reach the disk."""

    @model_validator(mode="after")
    def _torn_writes_have_a_file(self) -> Self:
        if self.kind != "clear-cache" and not (self.file and self.remount):
            raise ValueError(
                f"kind: {self.kind} needs file (whose write) and remount (LazyFS crashes after it)"
            )
        return self

    def build(self) -> Lazy:
        return Lazy(self.kind, self.fifo, self.folder, self.completed, self.remount, self._order())

    def _order(self) -> str:
        """LazyFS's page has an ``occurrence``, too, which its program takes for an unknown attribute."""
        persist = ",".join(map(str, self.persist))
        match self.kind:
            case "torn-op":
                return f"lazyfs::torn-op::file={self.file}::persist={persist}::parts={self.parts}"
            case "torn-seq":
                return f"lazyfs::torn-seq::op={self.op}::file={self.file}::persist={persist}"
        return ""
