"""Lossy shutdowns: the hosts that lost unsynced bytes of a partition, the times, and the number of such
losses open at once. What a contract tolerates is counted in these (wrackline.checkers.verdict.contracts)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from wrackline.checkers.inputs.runs import Fault, Place, Run
from wrackline.checkers.verdict.wording import partition_name, seconds

TAKE_BYTES = ("power", "drop-page-cache", "read-only", "bit-flip", "truncate", "roll-back")
"""How the names of faults begin that take bytes from a disk."""
TIER = "tier"
"""The fault of the remote tier: what that loses, no host loses."""


@dataclass(frozen=True, slots=True)
class LossyShutdown:
    time_ns: int
    host: str
    fault_id: str
    known: bool = True
    """False: the fault may have lost bytes, but nobody could look."""
    synced: bool = False
    """What had been synced went, too."""

    def __str__(self) -> str:
        proof = "" if self.known else ", not proved"
        also = ", synced ones too" if self.synced else ""
        return f"{self.host} at {seconds(self.time_ns)} ({self.fault_id}{proof}{also})"


def worst_losses(run: Run, place: Place | None) -> list[LossyShutdown]:
    """The lossy shutdowns of a partition (of any, for None) at the time when those of most replicas were open
    at once.

    One is open from when the bytes went until metadata showed the full ISR again, having shown an ISR without
    that replica in between: metadata that has not noticed yet proves nothing."""
    if place is None:
        return max((worst_losses(run, one) for one in run.places), key=_extent, default=[])
    return max((lost for _, _, lost in opened_losses(run, place)), key=_extent, default=[])


def replicas_among(lost: Sequence[LossyShutdown]) -> int:
    """Returns how many replicas have lost something: what one of them loses again the others still have."""
    return len({one.host for one in lost})


def _extent(lost: Sequence[LossyShutdown]) -> tuple[int, int]:
    return replicas_among(lost), len(lost)


def opened_losses(run: Run, place: Place) -> list[tuple[int, int, list[LossyShutdown]]]:
    """(since when, until when, which lossy shutdowns were open), in order of time; times at which none was
    are left out."""
    shutdowns = lossy_shutdowns(run, place)
    samples = run.cluster.get(place, [])
    events: list[tuple[int, int, LossyShutdown | int]] = [(one.time_ns, 1, one) for one in shutdowns]
    events += [(sample.time_ns, 0, number) for number, sample in enumerate(samples)]
    open_now: dict[LossyShutdown, bool] = {}
    sets: list[tuple[int, list[LossyShutdown]]] = []
    for at_ns, _, event in sorted(events, key=lambda one: one[:2]):
        if isinstance(event, LossyShutdown):
            open_now[event] = False
        elif samples[event].full_isr:
            open_now = {one: was_out for one, was_out in open_now.items() if not was_out}
        else:
            for one in open_now:
                out = run.node_id(one.host) not in (None, *samples[event].isr)
                open_now[one] = open_now[one] or out
        if not sets or sets[-1][1] != list(open_now):
            sets.append((at_ns, list(open_now)))
    never = max([run.end_ns, *(at_ns for at_ns, _ in sets)])
    ends = [*(at_ns for at_ns, _ in sets[1:]), never]
    return [(at_ns, end, lost) for (at_ns, lost), end in zip(sets, ends, strict=False) if lost]


def lossy_shutdowns(run: Run, place: Place) -> list[LossyShutdown]:
    """Returns the lossy shutdowns of hosts that held a replica of the partition then, in order of time."""
    result = []
    for fault in run.faults:
        if fault.name == TIER:
            continue
        replicas = _replicas_at(run, place, fault.struck_ns)
        for host, known in _lossy_hosts(fault):
            if replicas and host not in replicas:
                continue
            if not known or _touches(fault, host, place):
                synced = host in fault.damaged
                result.append(LossyShutdown(fault.struck_ns, host, fault.id, known, synced))
    return sorted(result, key=lambda one: (one.time_ns, one.host))


def changed_in_place(run: Run, place: Place | None, faults: Sequence[Fault] | None = None) -> tuple[str, ...]:
    """Hosts on which bytes in files of the partition (of any, for None) were changed or cut off while the
    files stayed in use, by one of these faults (of any, for None). A replica does not look for that: it may
    go on with what it has."""
    if place is None:
        hosts = {host for one in run.places for host in changed_in_place(run, one, faults)}
        return tuple(sorted(hosts))
    return tuple(
        sorted(
            {
                host
                for fault in (run.faults if faults is None else faults)
                for host, files in fault.damaged.items()
                if files and _touches(fault, host, place)
            }
        )
    )


def _replicas_at(run: Run, place: Place, time_ns: int) -> set[str]:
    """Replicas move: the hosts that metadata named last before that moment, and first after it (it may have
    been asked too early to know). Without metadata those of the assignment that was written down last."""
    samples = run.cluster.get(place, [])
    after = bisect_right(samples, time_ns, key=lambda sample: sample.time_ns)
    around = [node for sample in samples[max(after - 1, 0) : after + 1] for node in sample.replicas]
    return {run.host(node) for node in around or run.assignment.get(place, ())}


def _lossy_hosts(fault: Fault) -> list[tuple[str, bool]]:
    """Hosts that lost bytes; of a fault that takes some, and that nobody saw the end of, any target may have,
    and so may a host that died unasked and that nobody could look at."""
    if fault.unsure:
        return [(host, host in fault.lossy) for host in sorted({*fault.lossy, *fault.unsure})]
    if fault.lossy or fault.ended_ns is not None or not fault.name.startswith(TAKE_BYTES):
        return [(host, True) for host in fault.lossy]
    return [(host, False) for host in fault.targets]


def _touches(fault: Fault, host: str, place: Place) -> bool:
    """Tells whether bytes of the partition may be among those lost: files of other partitions alone do not
    count."""
    damaged = fault.damaged.get(host)
    if damaged is not None and not damaged:
        return True  # the whole disk
    files = [path for path, size in {**fault.lost.get(host, {}), **(damaged or {})}.items() if size > 0]
    if not files:
        return True
    folder = partition_name(place)
    return any(folder in path.split("/") or not _of_a_partition(path) for path in files)


def _of_a_partition(path: str) -> bool:
    folders: Sequence[str] = path.split("/")[:-1]
    return any(part.rpartition("-")[2].isdigit() and "-" in part for part in folders)
