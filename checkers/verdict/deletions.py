"""The deletions of a run: records that are gone since a log does not begin at offset 0 any more, and the
setting that explains this. The topic is made by the run, so each of its logs begins there.

What lies below the log start was deleted and not lost (Kafka: the leader's log start is the log's, and its
followers take it over). A deletion that the configuration explains is allowed; of another nobody knows what
it took, and a log that lost its beginning looks the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.wording import partition_name

BY_AGE = {
    "retention.ms": 1,
    "log.retention.ms": 1,
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
}
"""Settings that delete what is older -> milliseconds of their unit."""
BY_SIZE = ("retention.bytes", "log.retention.bytes")


@dataclass(frozen=True, slots=True)
class Deletion:
    """The records deleted from the beginning of one partition."""

    place: Place
    below: int
    """The largest log start that anybody told: the leader, or a replica's own files."""
    who: str
    """Who told it."""
    setting: str
    """The setting that explains it, or that clients asked for it; empty: nothing does."""

    def __str__(self) -> str:
        why = self.setting or f"by the word of {self.who}; no setting of topic or brokers explains it"
        return f"{partition_name(self.place)} below offset {self.below:,} ({why})"


def deletions(run: Run) -> list[Deletion]:
    """Returns the deletions, in the order of partitions."""
    result = []
    for place in sorted({*run.final, *run.replicas}):
        final = run.final.get(place)
        starts = [("its leader", final.deleted_below)] if final is not None else []
        starts += [
            (f"the files of {host}", one.log_start)
            for host, one in sorted(run.replicas.get(place, {}).items())
            if not one.tiered
        ]
        who, below = max(starts, key=lambda one: one[1], default=("", 0))
        if below > 0:
            result.append(Deletion(place, below, who, _setting(run, place, below)))
    return result


def _setting(run: Run, place: Place, below: int) -> str:
    requested = run.deletions.get(place, 0)
    if requested >= below:
        return f"DeleteRecords of the clients, up to {requested:,}"
    settings: Mapping[str, str] = next(
        (topic.deletion for topic in run.info.topics if topic.name == place[0]), {}
    )
    return ", ".join(
        f"{name}={value}" for name, value in settings.items() if _deletes(name, value, run.end_ns)
    )


def _deletes(name: str, value: str, lasted_ns: int) -> bool:
    """Tells whether the setting can have deleted records in a run that lasted so long. Of -1 nothing is
    ever deleted."""
    try:
        limit = int(value)
    except ValueError:
        return False
    if name in BY_AGE:
        return 0 <= limit * BY_AGE[name] * 1_000_000 < lasted_ns
    return name in BY_SIZE and limit >= 0
