"""Operations and events: the words in which a run is written down
(docs/architecture.md section 7; docs/anomalies.md).

A *history* is a list of events on one monotonic clock, in the order they were recorded. An operation is an
``invoke`` event and the ``ok``, ``fail`` or ``info`` event of the same process that follows it. A process
acts one operation at a time and is never used again after an ``info``.

What the columns hold, by ``f`` (the kind of operation):

==========  ==================================================================================================
send        ``records`` on both events: what is sent; on completion each with its own outcome in ``offset``
poll        ok: ``records`` = what the consumer was given. ``extra.positions`` = {"p": next offset} after it;
            "followers" = {"p": broker id} where it is read from a follower, as far as the client says it
assign      a consumer takes partitions: ``extra.positions`` = {"p": start offset}; also after a seek; of one
            that commits for a group without being subscribed: "group" and "member"; "reset" =
            ``auto.offset.reset``, where that is not ``none``
delete      DeleteRecords of ``partition`` below ``offset``; ok: ``extra.low_watermark`` = the answer
end         ok: ``high_watermark`` = the end offset a fresh ListOffsets(latest) answered for ``partition``
read        of the register: ok: ``records`` = the last record written to ``partition``, none where nothing
            was written. ``high_watermark`` = the end offset it rests on, ``value`` = that of its marker, if
            it sent one
rebalance   ok, without an invocation, also in the middle of a poll: a member was given partitions.
            ``extra`` = {"partitions": [..]} (all it has now), and what is known of {"group", "member",
            "generation", "protocol": "eager" | "cooperative" | "consumer", "positions": {"p": start},
            "revoked": [..]}; where it starts without a position, nobody told
subscribe   a consumer joins a group: ``extra`` = {"partitions": [..], "group"}; a share group: also "share" =
            {"limit": of deliveries, "lock_ms", "session_ms", "isolation", "explicit": how it acknowledges}
commit      a consumer commits, in both events: ``extra`` = {"offsets": {"p": next offset}, "group", "member",
            "generation"} (the last two where known)
            ``extra.mode`` = "sync" | "async" where the workload has both
committed   ok: the answer of a fresh OffsetFetch: ``extra`` = {"offsets": {"p": committed offset, -1 for
            none}, "group"}; the last of a group, after healing, are its final committed offsets. "stable":
            true where the request was to require stable offsets
            Of operations of groups ``extra.coordinator`` is the node that answered, where it is known, and
            ``extra.coordinator_by`` says how: "connection" (it was asked on a connection to it), "client"
            (its client took it for the coordinator)
crash       ok, without an invocation: a member of a group ended without leaving it (or was killed): what it
            held is given up without a revoke. Of a share group ``extra.left`` says whether it left
dequeue     of the queue: ok: ``records`` = the record taken from ``partition``, none where the queue was
            empty
acquire     a poll of a member of a share group. ok: ``records`` = what it was given, ``extra`` = {"group",
            "counts": the delivery count of each record (0: nobody told), "since_ns": no record of it was
            acquired before this time, on the clock of ``time_ns``, "renewed": [[partition, offset], ..]
            records that it had already, and renewed the lock of}
acknowledge a member of a share group acknowledges records, in both events: ``extra`` = {"group", "member":
            process of its ``acquire``, "mode": "sync" | "async" | "poll" | "close" (how it is sent), "acks":
            {"accept" | "release" | "reject" | "renew": {"p": [offset, ..]}}}; on completion "acks" has what
            succeeded, "errors" = {name: {"p": [offset, ..]}} what did not; of the rest nobody knows anything
lag         ok: how far a share group is, as the cluster tells: ``extra`` = {"group", "starts": {"p": offset
            from which on records may be delivered}, "lags": {"p": records that are not final, -1: not
            known}}; the last of a group, after healing, is its final one
drain       final read by a fresh consumer, chunk by chunk, one operation a chunk, per partition: ``offset`` =
            log start, ``high_watermark`` = end offset told after healing; ``extra`` = {"positions": {"p":
            next offset}, "asked": it asked for that end itself, "states": of each record, the state that
            an application gave it}, "complete" on the last: it reached the
            end, which had been asked for again, and nothing was behind it; "unreadable" with that:
            [[first, last], ...] offsets that nobody could be given, while those behind them could
replica     one row (``ok``, process REPLICA) per chunk of one replica's own log: ``node``, ``partition``,
            ``offset`` = log start, ``high_watermark`` = its LEO, ``extra`` = {"in_isr", "complete", "hw"},
            in the last one "epochs" too: [leader epoch, first offset] of its own file of them; "log_dirs":
            the log directories of the node that have the partition, where several do
reread      one row (``ok``, process REPLICA; ``info`` with an ``error``: it was not possible) for each
            witness that was asked again by another way, since it lacks what others have: ``partition``,
            ``node`` (none: the final read), ``extra`` = {"lacked": [[first, last], ...] offsets, "found":
            those of them at which the second reader found a record, "witnesses": who has them}
==========  ==================================================================================================

A **transaction** has a number that is unique in the run: ``extra.txn``, in both events of all that belongs
to it. What it sends and how often it polls is drawn before it begins.

- Its sends are one operation ``send``: on the invocation all records it will send, of several partitions, and
  ``extra.transactional_id``. Its polls are one operation ``poll`` of the worker's consumer, which is a
  process of its own. Both are open for as long as the transaction is. With an id it is invoked when its
  producer is ready (``initTransactions`` has returned), so whatever that id had open has ended by then.
- The completions say what was asked for: ``extra.asked`` = "commit" | "abort", and when: ``extra.end_ns``, on
  the clock of ``time_ns`` (absent when neither was asked for). A record of the transaction that a consumer of
  committed records was given before that is a precommitted read.
- Committed (the call returned success): ``send`` is ``ok``, each record has an offset, ``poll`` is ``ok``.
- Aborted (the call returned success): ``send`` is ``fail`` and every record FAILED, also those that had been
  acknowledged; ``error`` says why it was aborted: "aborted" when it was meant to be. ``poll`` is ``ok`` with
  ``extra.aborted`` = "fail": it gave what it gave, and its consumer then goes back (an ``assign``), unless
  the workload leaves it where it is (``RunInfo.rewinds``).
- Anything else leaves it unknown whether the transaction took effect: ``send`` is ``info`` and every record
  UNKNOWN, ``poll`` is ``ok`` with ``extra.aborted`` = "info".
- Offsets that it sends to a group are one operation ``commit``, of a process of its own, since the consumer's
  poll is still open: ``extra`` has besides "txn", on completion "asked" and "end_ns", and "member" = that of
  the consumer's ``assign`` (whose ``extra`` has "group" and "member" too). It is ``ok``, ``fail`` or ``info``
  as the transaction is.

In a history that was imported (wrackline.history.jepsen) an ``assign`` names the partitions that are given up
by it (``extra.revoked``), and the drain is ``extra.derived`` from polls: nothing is known of offsets from its
``high_watermark`` on, where ``extra.unseen`` records were acknowledged.

Of a topic with **keys** (the workload ``compact``) a ``send`` is of one record, and ``key`` is its key on
both events; all records of a transaction have one key. A record followed in its partition by one of the same
key may be gone (``TopicInfo.compacted``); the last of a key may not, unless it is a tombstone (TOMBSTONE),
which deletes the key.

Rows of the nemesis have ``process = NEMESIS``, ``type = info``, ``f`` = the fault's name and ``extra`` =
{"id": "f3", "phase": "begin" | "active" | "undo" | "ended", "targets": ["n1"], "role": "leader(log-0)",
"proved": bool | null, "proof": "...", "lost": {"n1": {"log-0/...log": bytes}}, "lossy": ["n1"]}; the row
``ended`` carries the final proof. A fault without an ``ended`` row was not proved.

Rows of the runner have ``process = CONTROL``, ``type = info``: ``f = phase`` (extra {"phase": "setup" |
"warm" | "main" | "heal" | "drain" | "collect"}), ``f = assignment`` (topic; extra {"assignment": {"0":
[1,2,3]}, "nodes": {"1": "n1"}}) and ``f = cluster`` (metadata, as a broker answered when it was asked,
several times a second: extra {"partitions": [{"topic","partition","leader", "leader_epoch","isr","elr",
"replicas"}]}). What the system itself wrote down of its topic comes in rows at the end, when its files have
been collected; ``extra.at_ns`` is the time of each, on the clock of ``time_ns``:

================  ====================================================================================
partition         a partition as it is from ``at_ns`` on, at every change and at first: ``topic``,
                  ``partition``, ``leader_epoch``, ``node`` (who wrote it down), extra {"at_ns", "place"
                  (where it is written), "leader" (-1: none), "partition_epoch" (-1: there are none),
                  "replicas", "isr", "elr", "last_known_elr", "recovering"}
unclean-recovery  a leader is looked for, or elected, outside of ISR and ELR: extra {"at_ns", "winner"
                  (-1: nobody), "why", "strategy" ("" where it is not told)} and what else is told:
                  "candidates", "missing", "logs" ({node: [last epoch, end]}), "unheard"
chronicle         how whole these rows are: ``topic``, extra {"source", "changes", "missing": a line for
                  each thing that may have happened and is not here}
quorum-log        the history of the controller quorum, by one controller's copy of the metadata log
                  (``node``): extra {"node_id", "start", "end", "epochs": [[epoch, its first offset]],
                  "changes": [{"offset", "epoch", "at_ns", "leader" or "voters": [[id, directory]]}],
                  "problem"}
================  ====================================================================================

So that the judge knows whether the run went as it was meant to:

===========  =========================================================================================
planned      a guided schedule chose its steps: extra {"schedule", "faults": {"g1": "partition", ...}}
follow       what follows the cluster's state (``nemesis.follow``): extra {"phase": "drawn", and the episode;
             "seen", a state for the first time; "reached" or "missed", a pair of state and fault; "coverage",
             at the end: "states", "pairs", "missed", each {name: how often}}
stopped      the clients were told to end, before anything was read back: extra
             {"stuck": names of those that did not; of clients in a rack "followers": how many records
             followers gave, by partition}
clock-leap   the harness's time of day was set: extra {"at_ns", "ahead_ns"}
interrupted  the user asked for an early end: extra {"why"}
liveness     one look at whether a promise of liveness is kept (``checkers/anomalies/liveness.py``): extra
             {"promise": name of the anomaly, "look": number}, and "kept": true, where everything moves (once
             until that changes), "error": why nobody could tell, or, a row for each thing that does not
             move: "kept": false, "subject": its name, "state": what shows it, "still": the part of the state
             by whose change it would have moved, "bound_s": so long it may take, "excuse": why the cluster
             cannot help it. ``topic``, ``partition`` and ``node`` where it has them
collected    extra {"files": {"n1": ["broker.log", ...]}, "missing": {"n2": "why"}}
tier         what went through the remote tier: extra {"copied": segments that it got, "fetched": segments of
             which it gave records, "fetches"}
over         the last row of a run that nobody stopped: its hosts are torn down after it
===========  =========================================================================================

A node or host that nobody stopped and that is gone is a row of the nemesis like any fault's, with ``f =
died``; its ``extra`` has besides "unsure": hosts that may have lost what they had not synced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from wrackline.history.values import dataclass

NEMESIS = -1
CONTROL = -2
REPLICA = -3
LIVENESS = "liveness"
"""``f`` of the runner's rows about promises of liveness."""
PARTITION, UNCLEAN_RECOVERY, CHRONICLE = "partition", "unclean-recovery", "chronicle"
QUORUM_LOG = "quorum-log"
"""``f`` of the runner's rows about what the system wrote down of its topic."""
FOLLOW = "follow"
"""``f`` of the runner's rows about faults that follow the cluster's state."""
ASKER = 1 << 20
"""The process of the questions that a guided schedule asks; those of a workload do not come so far."""
DIED = "died"
"""``f`` of the nemesis's rows about a node or host that is gone, and that nobody had stopped."""
NODE_DIED = "the node died: "
"""Stands in the error of a fault whose undo has started a node, if that node ended by itself before it
listened."""

UNKNOWN = -1
"""``offset`` of a record sent: the outcome is not known, for ever."""
FAILED = -2
"""``offset`` of a record sent: certainly not appended (docs/anomalies.md, *certain failure*)."""
ACKED_WITHOUT_OFFSET = -3
"""``offset`` of a record sent: acknowledged without an offset."""
ABORTED_ON_PURPOSE = "aborted"
"""``error`` of a transaction that was aborted because the workload wanted it so, and not for a failure."""
CRASHED_ON_PURPOSE = "_CRASHED"
"""``error`` of a transaction whose producer was given up before its end, as the workload wanted it."""
ON_PURPOSE = (ABORTED_ON_PURPOSE, CRASHED_ON_PURPOSE)
"""Errors of operations that had the outcome they were meant to have."""
POLLS = ("poll", "acquire")
"""Kinds of operations that give records to consumers; those of ``acquire`` follow on nothing."""
UNASKED = frozenset({"assign", "subscribe", "commit", "committed", "acknowledge", "lag", "drain"})
"""Kinds of operations that no rate asks for: they come along with others. So does what belongs to a
transaction besides its sends."""

MARKER = 15
"""``attempt`` in the value of a record that a read sent to see the log's end for certain; no write, no
enqueue."""

OUTPUT = 14
"""``attempt`` in the value of a record that an application of the run has made of the record that has the
rest of the value (`output_of`)."""
TOMBSTONE = 13
"""``attempt`` in the value of a record that deletes its key: its value is null, and what others have in their
values stands in a header of it."""

CORRUPT = -1
"""``value`` of a record read: its payload does not carry a right checksum (details in ``extra.corrupt``)."""
FOREIGN = -2
"""``value`` of a record read: well-formed, but of another run."""


class Type(StrEnum):
    """The type of an event, in Jepsen's words: it begins an operation or says how it ended."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Record(NamedTuple):
    """One record sent or read. ``leader_epoch`` is -1 where the client does not tell it; ``timestamp`` is
    the record's own, in milliseconds since 1970."""

    partition: int
    offset: int
    value: int
    leader_epoch: int = -1
    timestamp: int = -1


@dataclass(frozen=True, slots=True)
class Event:
    """One row of a history. ``index`` and ``time_ns`` (monotonic, from the start of the run) are given by the
    recorder."""

    process: int
    type: Type
    f: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    value: int | None = None
    key: str | None = None
    leader_epoch: int | None = None
    high_watermark: int | None = None
    records: tuple[Record, ...] = ()
    error: str | None = None
    node: str | None = None
    latency_ns: int | None = None
    extra: Mapping[str, Any] | None = None
    index: int = -1
    time_ns: int = -1


def value_of(process: int, counter: int, attempt: int = 0) -> int:
    """The unique value of one attempt to send: below 2**53, so that JSON readers keep it whole."""
    if not (0 <= process < 1 << 21 and 0 <= counter < 1 << 28 and 0 <= attempt < 16):
        raise ValueError(f"process {process}, counter {counter}, attempt {attempt} do not fit in a value")
    return process << 32 | counter << 4 | attempt


def is_tombstone(value: int) -> bool:
    """Tells whether the record of this value deletes its key."""
    return value >= 0 and value & 0xF == TOMBSTONE


def is_marker(value: int) -> bool:
    """Tells whether a read sent the record of this value."""
    return value >= 0 and value & 0xF == MARKER


def parts_of(value: int) -> tuple[int, int, int]:
    """(process, counter, attempt) of a value."""
    return value >> 32, (value >> 4) & 0xFFFFFFF, value & 0xF


def output_of(value: int) -> int:
    """The value of the output that an application makes of an input record."""
    return value & ~0xF | OUTPUT


@dataclass(frozen=True, slots=True)
class TopicInfo:
    name: str
    partitions: int
    replication_factor: int
    min_insync_replicas: int
    contiguous: bool = True
    """False: offsets without a record are no loss (markers of transactions, compaction)."""
    compacted: bool = False
    """Records that a later one of the same key follows may be gone."""
    deletion: Mapping[str, str] = field(default_factory=dict)
    """Settings of the topic and of the brokers by which records are deleted from the log's beginning:
    {"retention.ms": "3000"}; only those that somebody has set."""
    source: str = ""
    """The topic whose records an application of the run turns into this one's; empty: there is none."""


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """The plan of the main phase."""

    duration_s: float
    faults: Mapping[str, str] = field(default_factory=dict)
    """Id of each timed fault -> its name."""
    guided: str = ""
    """The guided schedule, if there is one: its faults are named by the row ``planned``."""
    follows: bool = False
    """Whether faults follow the cluster's state: which, the rows ``follow`` tell."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts on a run that the judge needs besides its events: the configuration its contract rests on.

    Travels in the metadata of the history file, as JSON under the key ``wrackline``.
    """

    test_id: str
    name: str
    seed: int
    started_at: str
    """UTC, ISO 8601."""
    system: str
    """``wrackline`` or ``kafka-x.y.z``."""
    workload: str
    acks: str
    """``0``, ``1`` or ``all``."""
    idempotence: bool
    topics: tuple[TopicInfo, ...]
    profile: str = ""
    defects: tuple[str, ...] = ()
    flush_mode: str = "on-roll"
    unclean_election: bool = False
    recovery_strategy: str = "balanced"
    rate: float = 0.0
    """Operations per second asked for; 0: as fast as possible."""
    concurrency: int = 0
    """How many operations can be under way at a time; 0: not on record."""
    reads: str = ""
    """How reads of the workloads ``register`` and ``queue`` know the log's end: ``marker`` or ``end``."""
    isolation: str = ""
    """``read_committed`` or ``read_uncommitted``: what consumers of transactions asked for; empty: nobody
    said."""
    rack: str = ""
    """Where consumers stand: they are to read from followers there; empty: nowhere."""
    reset: str = ""
    """``auto.offset.reset`` of the consumers; empty: ``none``, or nobody said."""
    rewinds: bool = False
    """After an abort the consumer of a transaction goes back to where that began; False: it does not, or
    nobody said."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Node id (as text) -> host name."""
    expected: tuple[str, ...] = ()
    """Anomalies this run must show (defect runs): the verdict is then ``reproduced`` or not."""
    harness_version: str = ""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Limits for what was measured, by the names of wrackline.checkers.verdict.conditions.thresholds."""
    invariants_bind: bool = False
    """Whether a broken invariant of the brokers' state is a violation."""
    plan: PlanInfo | None = None
    """None: nobody wrote it down (imported, made, or recorded by an older version)."""
    system_kind: str = ""
    """``system.kind`` of the specification; empty: not on record."""
    system_version: str = ""
    """Of the system, where it has one."""
    features: Mapping[str, int] = field(default_factory=dict)
    """Name of a feature -> its finalised level, as the cluster reports them."""
    client: Mapping[str, str | int] = field(default_factory=dict)
    """Of the clients: {"library": "librdkafka" | "java", "version": text, "end_txn_version": 1}. The last
    is the version of EndTxn that client and cluster agree on; only of clients with transactions."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What nobody could look at in this system, and why: ``replicas`` (their own files), ``logs`` of the
    hosts, ``processes``."""
    untested: tuple[str, ...] = ()
    """What no run on such hosts can show, each with the reason."""
    notes: tuple[str, ...] = ()
    """What a reader must know of how the history came about: "interrupted at 12.0 s", "killed: ..."."""

    def to_json(self) -> bytes:
        return orjson.dumps(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> RunInfo:
        """Raises ValueError (from orjson or for missing fields) on text that is no RunInfo."""
        fields = orjson.loads(text)
        try:
            fields["topics"] = tuple(TopicInfo(**topic) for topic in fields["topics"])
            for name in ("defects", "expected", "untested", "notes"):
                fields[name] = tuple(fields.get(name, ()))
            if fields.get("plan") is not None:
                fields["plan"] = PlanInfo(**fields["plan"])
            return cls(**fields)
        except (KeyError, TypeError) as error:
            raise ValueError(f"run information is incomplete: {error}") from error
