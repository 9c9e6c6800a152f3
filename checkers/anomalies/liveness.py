"""Liveness (docs/anomalies.md section 6): what stood still for longer than it may, though nothing was wrong
with hosts and nodes any more.

The runner looks at the cluster once a second or more often, and writes down what does not move
(wrackline.history.model, ``liveness``). One that is the same in consecutive looks, from the first to the
last for as long as its bound or longer, has broken its promise. What moves meanwhile, or is excused by then,
begins anew. A crash is a row of its own, and breaks its promise at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from wrackline.checkers.checks.about import AboutRun
from wrackline.checkers.checks.finding import Finding, seconds
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.history.model import LIVENESS

_COLUMNS = ("index", "time_ns", "topic", "partition", "extra")


@dataclass(slots=True)
class _Standstill:
    """One thing that does not move, from look to look."""

    first: dict[str, Any]
    """The event of the first look ..."""
    last: dict[str, Any]
    """... and of the last one so far, each with its ``extra``."""

    @property
    def lasted_ns(self) -> int:
        return int(self.last["time_ns"] - self.first["time_ns"])

    @property
    def is_broken(self) -> bool:
        return self.lasted_ns >= float(self.last["extra"]["bound_s"]) * 1e9

    def goes_on(self, row: dict[str, Any]) -> bool:
        """Tells whether the next look shows the same."""
        before, now = self.last["extra"], row["extra"]
        is_same = (before["still"], bool(before["excuse"])) == (now["still"], bool(now["excuse"]))
        return is_same and int(now["look"]) == int(before["look"]) + 1


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Iterator[Finding]:
    """Goes through the looks of one run."""
    standstills: dict[tuple[str, str], _Standstill] = {}
    for batch in batches:
        for row in batch.select(_COLUMNS).to_pylist():
            row["extra"] = extra = orjson.loads(row["extra"])
            if extra.get("kept") is not False:
                continue
            key = extra["promise"], extra["subject"]
            standstill = standstills.get(key)
            if standstill is not None and standstill.goes_on(row):
                standstill.last = row
                continue
            if standstill is not None:
                yield from _finding(standstill, about)
            standstills[key] = _Standstill(row, row)
    for each in standstills.values():
        yield from _finding(each, about)


def _finding(one: _Standstill, about: AboutRun) -> Iterator[Finding]:
    if not one.is_broken:
        return
    first, last, extra = one.first, one.last, one.last["extra"]
    place = last["topic"], last["partition"]
    excuse = f"; {extra['excuse']}" if extra["excuse"] else ""
    if extra["bound_s"]:
        when = f"from {seconds(first['time_ns'])} to {seconds(last['time_ns'])}, "
        when += f"and {extra['bound_s']:g} s is the most that it may take"
    else:
        when = f"by {seconds(first['time_ns'])}"
    yield Finding(
        anomaly=extra["promise"],
        log=about.logs.get(place),
        operations=[first["index"], last["index"]],
        where="excused" if extra["excuse"] else None,
        sentence=f"{extra['subject']} {_SHOWS[extra['promise']]} {when}: {extra['state']}{excuse}",
        since_ns=first["time_ns"],
        until_ns=last["time_ns"],
    )


_SHOWS = {
    "crash": "ended by a bug of its own",
    "failed-start": "did not run",
    "offline-partition": "had no leader",
    "under-replicated": "was not in the ISR",
    "endless-reassignment": "was being reassigned",
    "unavailable-coordinator": "got no answer",
    "refused-operation": "never succeeded",
    "hanging-transaction": "was neither committed nor aborted",
    "stuck-lso": "had the same last stable offset below its high watermark",
    "late-fencing": "was not fenced",
    "leader-on-failed-disk": "kept a leader whose disk takes no writes",
}
"""Anomaly -> what its subject did, as it stands in a sentence."""

found_by(
    Walk(name="liveness", needs=frozenset({LIVENESS}), reads=frozenset({LIVENESS}), find=find),
    Family.LIVENESS,
    {
        "crash": WalkAnomaly(
            "a node ends by a bug of its own, though its host is well", Promise.INTACT_FILES
        ),
        "failed-start": WalkAnomaly(
            "a node dies whenever it is started, though its host is well", Promise.STARTS
        ),
        "offline-partition": WalkAnomaly(
            "a partition has no leader, though a replica that may lead is there", Promise.LIVENESS
        ),
        "under-replicated": WalkAnomaly(
            "a replica never gets back into the ISR, though its node runs", Promise.LIVENESS
        ),
        "endless-reassignment": WalkAnomaly(
            "a reassignment never ends, though all its replicas are there", Promise.LIVENESS
        ),
        "unavailable-coordinator": WalkAnomaly(
            "a group or a transactional id has no coordinator that answers", Promise.LIVENESS
        ),
        "refused-operation": WalkAnomaly(
            "no operation of a kind that clients try ever succeeds again", Promise.LIVENESS
        ),
        "hanging-transaction": WalkAnomaly(
            "a transaction is neither committed nor aborted", Promise.LIVENESS
        ),
        "stuck-lso": WalkAnomaly(
            "the last stable offset stands still below the high watermark", Promise.LIVENESS
        ),
        "late-fencing": WalkAnomaly(
            "a node that is down leads, or is in an ISR, though another member is well", Promise.LIVENESS
        ),
        "leader-on-failed-disk": WalkAnomaly(
            "a partition keeps a leader whose disk takes no writes", Promise.LIVENESS
        ),
    },
)
