"""Faults, phases and the cluster's own history, as the report shows them.

Faults come from the verdict; a run that was never judged still has the nemesis's rows in its history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from wrackline.checkers.inputs.cluster_history import (
    LeaderSpan,
    polled_spans,
)
from wrackline.harness.report.read.files import mapping, rows, texts, whole
from wrackline.history.model import CONTROL, DIED, NEMESIS, Event

_NETWORK: Final = (
    *("partition", "isolate", "cut-off", "halves", "clients", "network", "drop", "connections"),
    *("packets", "messages"),
)
_KINDS: Final = (
    ("power", ("power", "page-cache")),
    ("partition", _NETWORK),
    ("kill", ("kill", "crash", DIED)),
    ("pause", ("pause", "stop", "freeze")),
    ("restart", ("restart", "shutdown")),
)
_FILES_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class HostLoss:
    """The loss of one host in a power cut: (file, bytes), largest first; at most ``_FILES_SHOWN``."""

    host: str
    total: int
    files: tuple[tuple[str, int], ...]
    more: int


@dataclass(frozen=True, slots=True)
class Fault:
    id: str
    name: str
    targets: tuple[str, ...]
    role: str
    begin_ns: int | None
    active_ns: int | None
    undo_ns: int | None
    ended_ns: int | None
    proved: bool
    proof: str
    lossy: tuple[str, ...]
    lost: tuple[HostLoss, ...]
    asked_for: bool = True
    """Whether the nemesis did it; False when a node or host died that no fault had stopped."""
    restored: bool | None = None
    """Whether nothing of it was left after its undo; None: nobody could tell, or nobody looked."""
    restoration: str = ""
    """What was left."""

    @property
    def kind(self) -> str:
        """Partition, power, kill, pause, restart or other; it decides the colour of the band."""
        lower = self.name.lower()
        return next((kind for kind, words in _KINDS if any(word in lower for word in words)), "other")

    @property
    def duration_ns(self) -> int | None:
        if self.begin_ns is None or self.ended_ns is None:
            return None
        return self.ended_ns - self.begin_ns

    @property
    def label(self) -> str:
        return f"{self.id} {self.name} {' '.join(self.targets)}".strip()

    @property
    def told(self) -> str:
        """``proved``, ``not proved``, ``proved, not restored``."""
        restored = ", not restored" if self.restored is False else ""
        return f"{'proved' if self.proved else 'not proved'}{restored}"

    @property
    def lost_bytes(self) -> int:
        return sum(loss.total for loss in self.lost)


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    begin_ns: int
    end_ns: int


def faults_of(verdict: Mapping[str, Any] | None, control: Iterable[Event]) -> tuple[Fault, ...]:
    """The verdict's faults; without a verdict, what the nemesis wrote down."""
    judged = rows(verdict, "faults")
    result = [_from_verdict(row) for row in judged] if judged else _from_history(control)
    return tuple(sorted(result, key=lambda fault: (fault.begin_ns is None, fault.begin_ns or 0, fault.id)))


def _from_verdict(row: Mapping[str, Any]) -> Fault:
    return Fault(
        id=str(row.get("id", "?")),
        name=str(row.get("fault", "?")),
        targets=texts(row, "targets"),
        role=str(row.get("role") or ""),
        begin_ns=whole(row, "begin_ns"),
        active_ns=whole(row, "active_ns"),
        undo_ns=whole(row, "undo_ns"),
        ended_ns=whole(row, "ended_ns"),
        proved=row.get("proved") is True,
        proof=str(row.get("proof") or ""),
        lossy=texts(row, "lossy"),
        lost=_losses(mapping(row, "lost")),
        asked_for=row.get("fault") != DIED,
        restored={True: True, False: False}.get(row.get("restored")),  # type: ignore[arg-type]
        restoration=str(row.get("restoration") or ""),
    )


def _losses(lost: Mapping[str, Any]) -> tuple[HostLoss, ...]:
    losses = []
    for host, files in lost.items():
        sizes = {name: whole(files, name) or 0 for name in files} if isinstance(files, dict) else {}
        largest = sorted(
            ((n, size) for n, size in sizes.items() if size), key=lambda item: (-item[1], item[0])
        )
        shown = tuple(largest[:_FILES_SHOWN])
        losses.append(HostLoss(host, sum(sizes.values()), shown, len(largest) - len(shown)))
    return tuple(losses)


def _from_history(control: Iterable[Event]) -> list[Fault]:
    """One fault per id out of its rows; the last row's words win, and without ``ended`` nothing is proved."""
    merged: dict[str, dict[str, Any]] = {}
    for event in control:
        if event.process != NEMESIS or event.extra is None or "id" not in event.extra:
            continue
        fault = merged.setdefault(str(event.extra["id"]), {"fault": event.f})
        fault.update({key: value for key, value in event.extra.items() if value is not None})
        fault[f"{event.extra.get('phase')}_ns"] = event.time_ns
    for fault in merged.values():
        fault["proved"] = fault.get("proved") is True and "ended_ns" in fault
    return [_from_verdict(fault) for fault in merged.values()]


def phases_of(metrics: Mapping[str, Any] | None, control: Iterable[Event], end_ns: int) -> tuple[Phase, ...]:
    result = [
        Phase(str(row.get("phase", "?")), whole(row, "begin_ns") or 0, whole(row, "end_ns") or end_ns)
        for row in rows(metrics, "phases")
    ]
    if result:
        return tuple(result)
    marks = [e for e in control if e.process == CONTROL and e.f == "phase" and e.extra is not None]
    ends = [mark.time_ns for mark in marks[1:]] + [end_ns for _ in marks[-1:]]
    return tuple(
        Phase(str((mark.extra or {}).get("phase", "?")), mark.time_ns, end)
        for mark, end in zip(marks, ends, strict=True)
    )


CONTROLLER: Final = "controller"


def controller_spans(control: Iterable[Event], nodes: Mapping[str, str], end_ns: int) -> list[LeaderSpan]:
    """Returns the spans of the active controllers, drawn as a partition of one replica; empty where it
    never changed."""

    def as_partition(event: Event) -> Event:
        named = whole(event.extra or {}, "controller")
        node = -1 if named is None else named
        row = {"topic": CONTROLLER, "partition": 0, "leader": node, "isr": [node], "replicas": [node]}
        return replace(event, extra={"partitions": [row]})

    asked = [event for event in control if event.process == CONTROL and event.f == "cluster"]
    spans = polled_spans(map(as_partition, asked), nodes, end_ns).get(f"{CONTROLLER}-0", [])
    return spans if len({span.leader for span in spans}) > 1 else []
