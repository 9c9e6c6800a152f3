"""The properties of an anomaly that decide how its findings are judged. A check says it where it is
registered; contracts and incidents go by it, and hold no list of anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, unique


class Family(StrEnum):
    """Ours, in the order of docs/anomalies.md; each is a module of checkers. Checks from elsewhere say
    others, which come after."""

    LOSS = "loss"
    INTEGRITY = "integrity"
    ORDER = "order"
    VISIBILITY = "visibility"
    CYCLES = "cycles"
    TRANSACTIONS = "transactions"
    GROUPS = "groups"
    SHARE_GROUPS = "share groups"
    REGISTERS = "registers"
    QUEUES = "queues"
    LIVENESS = "liveness"


@unique
class Promise(Enum):
    """The promise that an anomaly breaks. Which contract makes the promise is decided in
    wrackline.checkers.verdict.contracts; the value says it in one line."""

    ALWAYS = "forbidden in every configuration"
    INTACT_FILES = "forbidden in every configuration, unless a fault changed the partition's files"
    ONE_LOG_DIR = (
        "forbidden in every configuration, unless a fault struck the node while it moved a replica to "
        "another log directory, or changed the partition's files"
    )
    NO_ABORTED_READS = "forbidden in every configuration: what has failed or was aborted stays unread"
    NO_LOSS = (
        "forbidden by acks-all (with up to MinISR - 1 lossy shutdowns) and acks-all-flushed (with any "
        "number); allowed by acks-all-unclean once a leader was elected uncleanly, and by acks-1 once "
        "leadership changed; n/a with acks-0"
    )
    LASTING_DELETIONS = (
        "forbidden unless the processes of all replicas were killed after it: a log start is written to disk "
        "once a minute"
    )
    LASTING_OFFSETS = "forbidden where loss is forbidden; else offsets of lost records are used again"
    IDEMPOTENCE = "forbidden with +idempotence; allowed without where a client had a reason to send again"
    CONSUMERS_GET_ALL = (
        "forbidden while committed records must stay; allowed by acks-all-unclean once a leader was elected "
        "uncleanly"
    )
    ISOLATED_WRITES = "reported: transactions do not isolate their writes from each other"
    COMMITTED_READS = "forbidden where consumers read at read_committed; else reported"
    WHOLE_TRANSACTIONS = (
        "forbidden where consumers read at read_committed and loss is forbidden; else reported"
    )
    PROCESSED_INPUT = (
        "forbidden where consumers go back after an abort and committed records must stay; else reported"
    )
    LEADERS_MEMORY = (
        "forbidden; allowed where the leader changed or a fault was in force: locks, and deliveries that "
        "nobody acknowledged, are in the leader's memory"
    )
    LINEARIZABLE_READS = (
        "forbidden with +linearizable-reads; allowed without where the leader changed or a fault was in force"
    )
    CURRENT_COORDINATOR = (
        "forbidden with +linearizable-reads; allowed without: a coordinator that was replaced holds no lease "
        "for reads, and may still answer"
    )
    LIVENESS = (
        "forbidden in every configuration; allowed while a node that it needs does not run, or where a fault "
        "was not undone"
    )
    STARTS = (
        "forbidden in every configuration; allowed where a fault changed bytes of files, or was not undone "
        "for another reason than the death of a node"
    )
    LINEARIZABLE_OBJECTS = (
        "where reads rest on markers, forbidden where loss is forbidden; where they ask for the end, "
        "with +linearizable-reads"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """``meaning``: what it is. ``jepsen``: its nearest name there."""

    name: str
    family: str
    jepsen: str
    meaning: str
    breaks: Promise | None = None
    """None: no contract speaks of it."""
    rests_on_final_read: bool = False
    """A final read that differs from what the system holds would show it, whatever the system did."""
    rests_on_replicas: bool = False
    """Only the replicas' own files show it."""
    right_then_wrong: bool = False
    """What its findings cite was right at the first of the events and wrong at the last."""

    rests_on_acks: bool = False
    """Its findings may contradict nothing but that a record was acknowledged: with acks=1 that proves no more
    than that the leader has it."""

    @property
    def is_loss(self) -> bool:
        """Tells whether the anomaly's findings cite something that was right at the last of the events:
        records were there, and are gone."""
        return self.breaks is Promise.NO_LOSS

    @property
    def rule(self) -> str:
        """When contracts forbid it, in one line."""
        return "no contract speaks of it" if self.breaks is None else self.breaks.value
