"""The requests to the coordinator of transactions and to the coordinators of groups, as a state machine
for each transactional id: which of its transactions are open, which ended, and which may still take
effect.

A transaction begins when its producer is ready (wrackline.history.model). To be ready the producer has asked
the coordinator to end whatever its transactional id had open, and has waited for that (KIP-98,
InitProducerId): so whatever began before it is *settled* by it. What was open then and nobody had asked to
commit is aborted; its producer is fenced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wrackline.checkers.checks.events import COMMIT, COMMITTED, Request
from wrackline.checkers.verdict.measures.metrics import TransactionEnds


@dataclass(slots=True)
class Transaction:
    """Fields of its end are None while that is not on record."""

    number: int
    transactional_id: str | None = None
    """None: it is not on record."""
    process: int = -1
    invoke_index: int | None = None
    invoke_ns: int | None = None
    complete_index: int | None = None
    complete_ns: int | None = None
    type: str | None = None
    asked: str | None = None
    """``commit`` or ``abort``."""
    end_ns: int | None = None
    """When that was asked for."""
    paired: bool = False
    """Its completion follows its invocation in its process."""
    settled_by: Transaction | None = None
    """The next one of its transactional id: since that began it takes effect no more."""
    records: dict[tuple[int, int], int] = field(default_factory=dict)
    """(log, value) -> offset of the acknowledgement, or a code (wrackline.history.model)."""

    @property
    def never_asked(self) -> bool:
        """Tells whether the transaction ended without success, and nobody ever asked for its commit. Where
        the transactional id is on record, so is whatever was asked for."""
        silent = self.asked is None and self.transactional_id is not None
        return self.type == "info" and (self.asked == "abort" or silent)

    @property
    def may_be_committed(self) -> bool:
        return self.type != "fail" and not self.never_asked

    @property
    def fenced_by(self) -> Transaction | None:
        """The transaction whose producer had fenced this one's before anybody asked for its commit."""
        newer = self.settled_by
        if newer is None or newer.invoke_ns is None or self.end_ns is None or self.asked != "commit":
            return None
        return newer if self.end_ns > newer.invoke_ns else None


@dataclass(frozen=True, slots=True)
class SentOffset:
    """An offset that a transaction sends to a group."""

    transaction: Transaction
    commit: Request
    log: int
    offset: int
    commits: list[Request]
    """All of its group in that log that may have taken effect."""
    answers: list[Request]
    """All that the group was told of that log."""

    @property
    def alone(self) -> bool:
        """Says whether nobody else committed it."""
        return sum(one.event.offsets[self.log] == self.offset for one in self.commits) == 1

    @property
    def proofs(self) -> Iterator[Request]:
        """Answers that can only be of this commit."""
        some = self.answers if self.alone else ()
        return (one for one in some if one.event.offsets[self.log] == self.offset)

    def is_accounted(self, told: int) -> bool:
        """Tells whether another commit, of the offset that was told, may have taken effect after this one."""
        return any(
            other is not self.commit
            and other.event.offsets[self.log] == told
            and (other.type != "ok" or other.last_index > self.commit.since)
            for other in self.commits
        )


@dataclass(frozen=True, slots=True)
class Coordinator:
    transactions: Mapping[int, Transaction]
    """By number, in the order in which they began."""
    requests: Sequence[Request]
    """Commits and answers, in the order in which they began."""

    def ends(self) -> dict[str, TransactionEnds]:
        """The metric ``transaction-ends``, by transactional id (empty where it is not on record)."""
        counts: dict[str, list[int]] = {}
        for one in self.transactions.values():
            of_id = counts.setdefault(one.transactional_id or "", [0] * 5)
            kind = {"ok": 2, "fail": 3}.get(one.type or "info", 4)
            for at in (0, 1, kind) if one.end_ns is not None else (0, kind):
                of_id[at] += 1
        return {name: TransactionEnds(*numbers) for name, numbers in counts.items()}

    @property
    def commits(self) -> Iterator[Request]:
        """Yields the commits that may have taken effect."""
        return (one for one in self.requests if one.event.f == COMMIT and one.type != "fail")

    def sent(self) -> Iterator[SentOffset]:
        """The offsets of transactions whose commits may have taken effect."""
        commits = _by_group(self.commits)
        answers = _by_group(one for one in self.requests if one.event.f == COMMITTED and one.type == "ok")
        for one in self.commits:
            if whose := self.transactions.get(one.event.txn):
                for log, offset in one.event.offsets.items():
                    place = one.event.of, log
                    yield SentOffset(whose, one, log, offset, commits[place], answers[place])


def _by_group(some: Iterable[Request]) -> Mapping[tuple[str, int], list[Request]]:
    """Sorts requests by their groups and logs."""
    result: dict[tuple[str, int], list[Request]] = defaultdict(list)
    for one in some:
        for log in one.event.offsets:
            result[one.event.of, log].append(one)
    return result
