"""Changes of each partition over time, from the log in which the cluster itself writes changes down.

KRaft's metadata log has records of changes (docs/protocol.md 5.4): a PartitionChangeRecord names what is new,
raises the partition epoch by one, and the leader epoch when it names a leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wrackline.kafka_client.model import Voter

NO_LEADER = -1
UNCHANGED = -2
RECOVERING = 1


@dataclass(frozen=True, slots=True)
class Change:
    """A partition, as it is from ``at_ns`` on. Replicas are node ids."""

    at_ns: int
    """When it was written down, in nanoseconds since 1970 by the clock of ``host``."""
    host: str
    place: str
    """Where it is written down: "offset 117" of the metadata log."""
    topic: str
    partition: int
    leader: int
    """-1: none."""
    leader_epoch: int
    partition_epoch: int
    """-1: the system has none."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False
    """Its leader was elected uncleanly, and has not reported yet that this is over."""


@dataclass(frozen=True, slots=True)
class UncleanRecovery:
    """A step of an unclean recovery: a leader is looked for, or elected, outside of ISR and ELR."""

    at_ns: int
    host: str
    topic: str
    partition: int
    winner: int
    """-1: nobody is elected (yet)."""
    why: str
    """In the system's words, or ours where it says nothing."""
    strategy: str = ""
    """Empty: the source does not tell."""
    details: Mapping[str, Any] | None = None
    """What else the source tells: candidates, who was missing, how far their logs reached."""


@dataclass(frozen=True, slots=True)
class Chronicle:
    """All that was told of one topic."""

    source: str
    """What it was read from."""
    changes: tuple[Change, ...] = ()
    """In their order; the first of a partition is its creation."""
    recoveries: tuple[UncleanRecovery, ...] = ()
    missing: tuple[str, ...] = ()
    """What may have happened and is not here, a line each; empty: this is everything."""


@dataclass(frozen=True, slots=True)
class QuorumChange:
    """A control record of a metadata log: somebody leads from here on, or others vote."""

    offset: int
    """Of a snapshot's: the last that it stands for."""
    epoch: int
    at_ns: int
    leader: int | None = None
    voters: tuple[Voter, ...] | None = None


@dataclass(frozen=True, slots=True)
class QuorumLog:
    """The history of the controller quorum, as one controller's copy of the metadata log has it."""

    node_id: int
    host: str
    start: int
    end: int
    epochs: tuple[tuple[int, int], ...]
    """(epoch, the offset from which batches have it), in the order of the log."""
    changes: tuple[QuorumChange, ...]
    problem: str = ""
    """What was wrong with the files; what came before it is here."""


class MetadataLog:
    """Follows records of a metadata log, as mappings with Kafka's names in snake case and the record's name
    as ``type``, and gives the changes of one topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._ids: set[str] = set()
        self._known: dict[int, Change] = {}
        self.changes: list[Change] = []

    def take(self, record: Mapping[str, Any], at_ns: int, host: str, offset: int) -> Change | None:
        """The change that the record is of this topic, if it is one. Raises KeyError for a record that lacks
        a field, or that changes a partition which was never created."""
        match record["type"]:
            case "TopicRecord" if record["name"] == self._topic:
                self._ids.add(str(record["topic_id"]))
                self._known.clear()
            case "PartitionRecord" if str(record["topic_id"]) in self._ids:
                return self._took(_created(record, self._topic, at_ns, host, offset))
            case "PartitionChangeRecord" if str(record["topic_id"]) in self._ids:
                known = self._known[record["partition_id"]]
                return self._took(_changed(known, record, at_ns, host, offset))
        return None

    def _took(self, change: Change) -> Change:
        self._known[change.partition] = change
        self.changes.append(change)
        return change


def _created(record: Mapping[str, Any], topic: str, at_ns: int, host: str, offset: int) -> Change:
    return Change(
        at_ns=at_ns,
        host=host,
        place=f"offset {offset}",
        topic=topic,
        partition=record["partition_id"],
        leader=record["leader"],
        leader_epoch=record["leader_epoch"],
        partition_epoch=record["partition_epoch"],
        replicas=tuple(record["replicas"]),
        isr=tuple(record["isr"]),
        elr=tuple(record["elr"]),
        last_known_elr=tuple(record["last_known_elr"]),
        recovering=record["leader_recovery_state"] == RECOVERING,
    )


def _changed(known: Change, record: Mapping[str, Any], at_ns: int, host: str, offset: int) -> Change:
    """Each field of the record that is None leaves what there was."""
    leads, state = record["leader"] != UNCHANGED, record["leader_recovery_state"]

    def newer(name: str, kept: tuple[int, ...]) -> tuple[int, ...]:
        return kept if record[name] is None else tuple(record[name])

    return replace(
        known,
        at_ns=at_ns,
        host=host,
        place=f"offset {offset}",
        leader=record["leader"] if leads else known.leader,
        leader_epoch=known.leader_epoch + int(leads),
        partition_epoch=known.partition_epoch + 1,
        replicas=newer("replicas", known.replicas),
        isr=newer("isr", known.isr),
        elr=newer("elr", known.elr),
        last_known_elr=newer("last_known_elr", known.last_known_elr),
        recovering=known.recovering if state is None else state == RECOVERING,
    )
