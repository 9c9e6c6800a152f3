"""What members of groups said: commits and answers of one partition each, and the partitions that they were
given (wrackline.history.model)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutLog, AboutRun
from wrackline.checkers.inputs.arrays import NEVER

COMMIT, COMMITTED, REBALANCE, SUBSCRIBE = "commit", "committed", "rebalance", "subscribe"
ASSIGN, CRASH = "assign", "crash"
OF_GROUPS = frozenset({COMMIT, COMMITTED, REBALANCE, SUBSCRIBE, ASSIGN, CRASH})
"""Few, compared with records: each is an object."""
_COLUMNS = ("index", "time_ns", "process", "type", "f", "topic", "extra")


@dataclass(frozen=True, slots=True)
class Fence:
    """What proves that a group had come to a generation: older ones can commit nothing from then on."""

    index: int
    ns: int
    generation: int
    process: int
    what: str
    """What the process had done or got by then."""


@dataclass(slots=True, eq=False)
class Operation:
    """A ``commit`` or ``committed`` of one partition."""

    log: AboutLog
    group: str
    offset: int
    """-1 where nothing was committed."""
    process: int
    member: str | None
    generation: int
    """Below 0: nobody told."""
    invoke_index: int
    invoke_ns: int
    complete_index: int
    """NEVER: it did not complete."""
    complete_ns: int
    outcome: str
    """``ok``, ``fail`` or ``info``."""
    in_transaction: bool
    asked: str
    """Which end of its transaction was asked for; empty: it is not on record."""
    is_async: bool
    until: int = NEVER
    """Index until when it may take effect."""
    fence: Fence | None = None
    """What keeps it, where its outcome is unknown, from taking effect later."""
    is_dead: bool = False
    """It never took effect: whoever had fenced its member was not shown it."""

    @property
    def succeeded(self) -> bool:
        return self.outcome == "ok"

    @property
    def may_count(self) -> bool:
        """It took effect, or may have. Of a transaction of which nothing but its abort was asked for it may
        not."""
        return self.outcome != "fail" and self.asked != "abort"

    @property
    def keeps_generation(self) -> bool:
        """It took effect under the generation that it names, or not at all: an asynchronous one may be sent
        later than it is asked for, and the offsets of a transaction become visible when it has ended."""
        return self.generation >= 0 and not self.is_async and not self.in_transaction


@dataclass(slots=True, eq=False)
class Placement:
    """The partitions that a consumer has from then on, by itself or by its group; none after a crash."""

    f: str
    """``rebalance``, ``assign`` or ``crash``."""
    index: int
    ns: int
    process: int
    group: str
    member: str | None
    generation: int
    """Below 0: nobody told."""
    protocol: str | None
    topic: str
    partitions: tuple[int, ...]
    positions: Mapping[int, int]
    """Partition -> where it begins, as far as it is known; below 0 where that is anywhere."""

    @property
    def who(self) -> str:
        """The member's name, where the client knows it."""
        return f"process {self.process}" if self.member is None else self.member


class GroupEvents:
    """All that a run says of groups. ``members``: process -> the groups that it named. ``joined``: process ->
    index at which it subscribed first. ``rebalanced``: groups of whose generations something is told.
    ``committing``: log -> groups whose commits succeeded."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self._open: dict[tuple[int, str], Mapping[str, Any]] = {}
        self.members: dict[int, set[str]] = defaultdict(set)
        self.joined: dict[int, int] = {}
        self.commits: dict[str, list[Operation]] = defaultdict(list)
        self.answers: dict[str, list[Operation]] = defaultdict(list)
        self.placements: list[Placement] = []
        self.rebalanced: set[str] = set()
        self.committing: dict[int, set[str]] = defaultdict(set)
        self._members_of: dict[str, set[int]] = defaultdict(set)

    def take(self, batch: pa.RecordBatch) -> list[Placement]:
        """Returns the placements of these events."""
        known = len(self.placements)
        mine = batch.filter(pc.is_in(batch.column("f"), value_set=pa.array(sorted(OF_GROUPS))))
        for row in mine.select(_COLUMNS).to_pylist():
            said = orjson.loads(row["extra"]) if row["extra"] else {}
            row["extra"] = said if isinstance(said, dict) else {}
            self._take(row)
        return self.placements[known:]

    def _take(self, row: Mapping[str, Any]) -> None:
        f, process, said = row["f"], row["process"], row["extra"]
        if f in (COMMIT, REBALANCE, SUBSCRIBE) or (f == ASSIGN and said.get("group") is not None):
            # Who assigns partitions to itself reads for a group only where it says so: its commits may be
            # those of a transaction, and of another process.
            self.members[process].add(group_of(said))
            self._members_of[group_of(said)].add(process)
        if f in (COMMIT, COMMITTED):
            begun = self._open.pop((process, f), None)
            if row["type"] == "invoke":
                self._open[process, f] = row
                self._operation(begun, None)
            else:
                self._operation(begun, row)
        elif f == SUBSCRIBE:
            self.joined.setdefault(process, row["index"])
        elif row["type"] == "ok":
            self._placed(row, said)
            if f == REBALANCE:
                self.rebalanced.add(group_of(said))

    def members_of(self, group: str) -> set[int]:
        return self._members_of[group]

    def _operation(self, begun: Mapping[str, Any] | None, ended: Mapping[str, Any] | None) -> None:
        if begun is None:
            return
        is_commit = begun["f"] == COMMIT
        said = (ended and ended["extra"]) or begun["extra"]
        of = (self.commits if is_commit else self.answers)[group_of(said)]
        for log, offset in self._by_log(begun["topic"], said.get("offsets")):
            if offset >= (0 if is_commit else -1):
                if is_commit and ended and ended["type"] == "ok":
                    self.committing[log.number].add(group_of(said))
                of.append(
                    Operation(
                        log=log,
                        group=group_of(said),
                        offset=offset,
                        process=begun["process"],
                        member=_text(said, "member"),
                        generation=_number(said, "generation"),
                        invoke_index=begun["index"],
                        invoke_ns=begun["time_ns"],
                        complete_index=ended["index"] if ended else NEVER,
                        complete_ns=ended["time_ns"] if ended else NEVER,
                        outcome=ended["type"] if ended else "info",
                        in_transaction=_number(said, "txn") >= 0,
                        asked=_text(said, "asked") or "",
                        is_async=said.get("mode") == "async",
                    )
                )

    def _by_log(self, topic: str | None, by_number: Any) -> Iterator[tuple[AboutLog, int]]:
        for partition, offset in _by_partition(by_number).items():
            if topic is not None and (log := self._about.logs.get((topic, partition))):
                yield log, offset

    def _placed(self, row: Mapping[str, Any], said: Mapping[str, Any]) -> None:
        listed = said.get("partitions") if row["f"] != CRASH else None
        self.placements.append(
            Placement(
                f=row["f"],
                index=row["index"],
                ns=row["time_ns"],
                process=row["process"],
                group=group_of(said),
                member=_text(said, "member"),
                generation=_number(said, "generation"),
                protocol=_text(said, "protocol"),
                topic=row["topic"] or "",
                partitions=tuple(one for one in listed or () if isinstance(one, int)),
                positions=_by_partition(said.get("positions")),
            )
        )

    def finish(self) -> None:
        """Nothing more comes: what is open never completed."""
        for row in self._open.values():
            self._operation(row, None)
        for some in (*self.commits.values(), *self.answers.values()):
            some.sort(key=lambda one: one.invoke_index)


def group_of(said: Mapping[str, Any]) -> str:
    return _text(said, "group") or ""


def _text(said: Mapping[str, Any], name: str) -> str | None:
    value = said.get(name)
    return value if value is None or isinstance(value, str) else str(value)


def _number(said: Mapping[str, Any], name: str) -> int:
    try:
        return int(said[name])
    except (KeyError, TypeError, ValueError):
        return -1


def _by_partition(by_number: Any) -> dict[int, int]:
    """A map of JSON, number -> offset, without what is none."""
    if not isinstance(by_number, dict):
        return {}
    some = ((key, at) for key, at in by_number.items() if key.isdigit() and isinstance(at, int))
    return {int(key): at for key, at in some}
