"""Faults of the bytes in a node's files: one is flipped, the last are cut off, older ones are back.

Nothing of it is undone: what a file has lost stays lost. The judge is told which file of which host it was.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.disks.power import OURS
from wrackline.nemesis.faults.node_state import looks_at, not_down
from wrackline.nemesis.faults.outputs import failed, last, outputs
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    ProbeLog,
    Proof,
    Shell,
    StartNode,
    Target,
)
from wrackline.plugins.fields import SECONDS, Like

_CHANGED = re.compile(r"^changed (\d+) (.+)$", re.MULTILINE)
"""What the commands print: so many bytes of a file, by its path below the data disk."""
_PATTERN = r"^[A-Za-z0-9_.*?/\[\]!-]+$"
COPIES = f"{OURS}chunks"
Files = Annotated[
    str, Like(_PATTERN, "give a path below the data disk; * and ? stand for any characters, without spaces")
]


def _found(target: Target, files: str) -> str:
    """Prints size and path of each file of the pattern that has bytes; those of the cluster's own topics only
    where the pattern names them."""
    inner = "" if "__" in files else "-not -path '*/__*' "
    return (
        f"find {target.data_dir} -path '*/{OURS}*' -prune -o -type f -size +0 "
        f"-path '{target.data_dir}/{files}' {inner}-printf '%s %p\\n' | sort -k 2"
    )


def _largest(target: Target, files: str, segment: str) -> str:
    """Sets ``size`` and ``file``: of the pattern's files the largest that is the last by name in its folder
    (``open``: Kafka appends to it), or that is not (``closed``)."""
    awk = (
        '{ folder = $2; sub("/[^/]*$", "", folder); '
        'if (NR > 1 && (folder == at) == (kind == "closed")) print before; before = $0; at = folder } '
        'END { if (NR && kind == "open") print before }'
    )
    return (
        f"set -- $({_found(target, files)} | awk -v kind={segment} '{awk}' | sort -k 1,1nr | head -n 1); "
        f'[ $# -eq 2 ] || {{ echo "{target.host} has no {segment} file {files}" >&2; exit 1; }}; '
        "size=$1 file=$2; "
    )


@dataclass(frozen=True, slots=True)
class Changed(ABC):
    """Bytes on a node's disk are changed. The node is killed before it, unless it is to go on running; on
    undo it starts, if it does not run.

    Proved when what was read back afterwards is what it should be then, and the node, unless it is to go on
    running, was down from beginning to end.
    """

    holds_node: ClassVar[bool] = True

    files: str = "*/*-*/*.log"
    running: bool = False

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def script(self, target: Target) -> str:
        """Prints a line ``changed BYTES PATH`` for each file whose bytes are others than before."""

    def before(self, target: Target) -> tuple[Step, ...]:  # noqa: ARG002
        """Returns the steps that are done while the node still runs."""
        return ()

    def tidied(self, target: Target) -> tuple[Step, ...]:  # noqa: ARG002
        """Returns the steps that are done on undo, before the node starts."""
        return ()

    def commands(self, context: FaultContext) -> Commands:
        return Commands(
            do=tuple(step for one in context.targets for step in (*self.before(one), self._change(one))),
            undo=tuple(
                step
                for one in context.targets
                for step in (*self.tidied(one), StartNode(one.host, one.node_id))
            ),
            probe=() if self.running else looks_at(context.targets),
            watch=() if self.running else looks_at(context.targets),
        )

    def _change(self, target: Target) -> Shell:
        if self.running:
            target.running(self.name)
        kill = "" if self.running or target.pid is None else f"{programs.killed(target.pid)}; "
        return Shell(target.host, kill + self.script(target), timeout_s=60)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        damaged: dict[str, Mapping[str, int]] = {}
        texts, proved = [], bool(context.targets)
        for one in context.targets:
            said = "\n".join(outputs(probe_log.do, one))
            if files := {path: int(size) for size, path in _CHANGED.findall(said) if int(size)}:
                damaged[one.host] = files
                texts.append(f"{one.host}: {self.told(files, last(probe_log.do, one))}")
                continue
            if failed(probe_log.do, one):  # nobody knows how far it came
                damaged[one.host] = {}
            texts.append(f"{one.host}: no byte was changed: {said.strip() or 'no answer'}")
            proved = False
        if not self.running and (flaw := not_down(context, probe_log)):
            proved, texts = False, [*texts, flaw]
        return Proof(proved, "; ".join(texts), damaged=damaged)

    def told(self, files: Mapping[str, int], said: str) -> str:  # noqa: ARG002
        """Describes what was changed; ``said``: what the script printed last."""
        return f"{sum(files.values())} bytes of {', '.join(sorted(files))} are others"


class _Report:
    """A piece of a script: prints how many bytes were changed, by the path below the data disk."""

    @staticmethod
    def line(target: Target, count: str) -> str:
        return f'echo "changed {count} ${{file#{target.data_dir}/}}"'


@dataclass(frozen=True, slots=True)
class BitFlip(Changed):
    """One bit of a file is the other one."""

    name: ClassVar[str] = "bit-flip"

    segment: str = "open"
    permille: int = 500
    bit: int = 0

    def script(self, target: Target) -> str:
        read = 'od -An -tu1 -N1 -j "$at" "$file" | tr -d " "'
        on_disk = (
            'dd if="$file" bs=4096 skip=$((at / 4096)) count=1 iflag=direct status=none | '
            'od -An -tu1 -N1 -j $((at % 4096)) | tr -d " "'
        )
        return (
            _largest(target, self.files, self.segment)
            + f'at=$(((size - 1) * {self.permille} / 1000)); sum() {{ head -c "$size" "$file" | sha256sum | '
            f"cut -c 1-16; }}; before=$(sum); was=$({read}); new=$((was ^ {1 << self.bit})); "
            'printf "\\\\$(printf %03o "$new")" | '
            'dd of="$file" bs=1 seek="$at" conv=notrunc,fsync status=none; '
            'dd if="$file" iflag=nocache count=0 status=none; '
            f"is=$({on_disk}); after=$(sum); "
            'echo "byte $at of $size in $file was $was, is $is on the disk; SHA-256 $before, then $after"; '
            f'[ "$is" = "$new" ] && [ "$before" != "$after" ] && {_Report.line(target, "1")}'
        )

    def told(self, files: Mapping[str, int], said: str) -> str:  # noqa: ARG002
        return said.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Truncate(Changed):
    """The last bytes of a file are cut off."""

    name: ClassVar[str] = "truncate"

    segment: str = "open"
    cut_bytes: int = 4_096

    def script(self, target: Target) -> str:
        return (
            _largest(target, self.files, self.segment)
            + f'cut={self.cut_bytes}; [ "$cut" -lt "$size" ] || cut=$size; '
            'truncate -s $((size - cut)) "$file" && sync "$file"; now=$(stat -c %s "$file"); '
            'echo "$file had $size bytes, has $now"; '
            f'[ "$now" -lt "$size" ] && {_Report.line(target, "$((size - now))")}'
        )

    def told(self, files: Mapping[str, int], said: str) -> str:  # noqa: ARG002
        return said.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class RollBack(Changed):
    """Files are copied when the fault begins, and later are as they were then: whole, or every other
    chunk."""

    name: ClassVar[str] = "roll-back"

    age_s: float = 3.0
    chunk_kb: int | None = None

    def before(self, target: Target) -> tuple[Step, ...]:
        copies = f"{target.data_dir}/{COPIES}"
        copy = (
            f"rm -rf {copies}; mkdir {copies} && cd {target.data_dir} && {_found(target, self.files)} | "
            f'while read -r size file; do cp --parents -p "${{file#{target.data_dir}/}}" {copies} || exit 1; '
            f'done; [ -n "$(ls {copies})" ] || '
            f"{{ echo '{target.host} has no file {self.files}' >&2; exit 1; }}"
        )
        return (
            Shell(target.host, copy, timeout_s=60),
            Shell(target.host, f"sleep {self.age_s:g}", timeout_s=self.age_s + 15),
        )

    def tidied(self, target: Target) -> tuple[Step, ...]:
        return (Shell(target.host, f"rm -rf {target.data_dir}/{COPIES}*"),)

    def script(self, target: Target) -> str:
        """A file that is gone meanwhile stays gone: nobody would look at it."""
        copies = f"{target.data_dir}/{COPIES}"
        back = 'cp "$copy" "$file"'
        if self.chunk_kb is not None:
            size = self.chunk_kb * 1024
            back = (
                f'for n in $(seq 0 2 $((($(stat -c %s "$copy") - 1) / {size}))); do dd if="$copy" of="$file" '
                f"bs={size} skip=$n seek=$n count=1 conv=notrunc status=none; done"
            )
        return (
            f"cd {copies} && find . -type f | sed 's|^./||' | while read -r copy; do "
            f'file={target.data_dir}/$copy; [ -e "$file" ] || continue; cp -p "$file" {copies}.now; {back}; '
            f'sync "$file"; dd if="$file" iflag=nocache count=0 status=none; '
            f'had=$(stat -c %s {copies}.now) has=$(stat -c %s "$file"); '
            f'differ=$(cmp -l {copies}.now "$file" 2>/dev/null | wc -l); '
            "count=$((differ + (had > has ? had - has : has - had))); "
            f"[ $count -eq 0 ] || {_Report.line(target, '$count')}; done"
        )


class BytesSpec(FaultSpec):
    """Settings that faults of bytes share."""

    files: Files = "*/*-*/*.log"
    """Whose bytes: a pattern for paths below the data disk, `*` for anything. The cluster's own topics, whose
    names begin with two underscores, only where the pattern has two."""
    running: bool = False
    """Do it while the node runs. Else it is killed before, and started when the fault ends."""


class BitFlipSpec(BytesSpec):
    """Settings of the fault ``bit-flip``."""

    makes = BitFlip
    fault: Literal["bit-flip"]
    """One bit of a file on the node's disk is flipped."""
    segment: Literal["open", "closed"] = "open"
    """Of the files, the largest that is the last in its folder, as the segment is that a log appends to; or
    the largest of the others."""
    permille: Annotated[int, Field(ge=0, le=1000)] = 500
    """Where: 0 is the first byte of the file, 1000 the last."""
    bit: Annotated[int, Field(ge=0, le=7)] = 0
    """Which bit of the byte; 0 is the least."""


class TruncateSpec(BytesSpec):
    """Settings of the fault ``truncate``."""

    makes = Truncate
    fault: Literal["truncate"]
    """A file on the node's disk loses its last bytes."""
    segment: Literal["open", "closed"] = "open"
    """Of the files, the largest that is the last in its folder, as the segment is that a log appends to; or
    the largest of the others."""
    cut_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] = 4_096
    """So many bytes; all where the file has fewer."""


class RollBackSpec(BytesSpec):
    """Settings of the fault ``roll-back``."""

    makes = RollBack
    fault: Literal["roll-back"]
    """Files on the node's disk are as they were some time ago."""
    age_s: Annotated[float, Field(ge=0.1, le=600), SECONDS] = 3.0
    """How long ago: they are copied when the fault begins, and put back so much later."""
    chunk_kb: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Put back the first chunk of this size, the third and so on, and leave the others and what the file has
    grown by. Without it the file is put back whole."""

    @property
    def begins_s(self) -> float:
        return self.age_s
