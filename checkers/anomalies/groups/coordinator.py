"""A group's coordinator, as far as the words of its clients allow one: the generation that it is in, who owns
which partition, how far each was committed, and which commits may still take effect.

*Classic* protocol: all members have the generation of their group. Whoever is told of a later one proves
that commits under older ones are refused from then on. *KIP-848* (``consumer``): each member has an epoch of
its own and goes on with what it keeps, so others' later epochs refuse nothing, except of a partition that has
gone to another member (KIP-1251 looks at the epoch of that assignment alone).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, merge
from itertools import chain
from typing import Any, TypeAlias

from wrackline.checkers.anomalies.groups.answers import Answers
from wrackline.checkers.anomalies.groups.events import GroupEvents, Operation
from wrackline.checkers.anomalies.groups.findings import Findings
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import COMMIT, CRASH, REBALANCE, GroupEvent
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.inputs.table import NEVER

_ALWAYS = -1
_Step: TypeAlias = tuple[int, Callable[[Any], Iterator[Finding]], Any]
"""Index, and who takes what."""


class Moves:
    """Keeps where processes and members were put, whoever put them there."""

    def __init__(self, moves: Sequence[GroupEvent]) -> None:
        self._of: dict[tuple[int | str, int], list[tuple[int, int | None]]] = defaultdict(list)
        for event in moves:
            for log in {*event.logs, *event.offsets} if event.f != CRASH else ():
                for who in _names(event):
                    self._of[who, log].append((event.index, event.offsets.get(log)))

    def before(self, one: Operation, since: int) -> Iterator[tuple[int, int | None]]:
        """(index, start) of those of an operation's process or member after ``since`` and before it was
        invoked; a start of None is not known."""
        for who in _names(one.event):
            some = self._of.get((who, one.log.number), [])
            begin, end = bisect_right(some, since, key=_index), bisect_left(some, one.since, key=_index)
            yield from some[begin:end]


def _names(event: GroupEvent) -> Iterable[int | str]:
    return (event.process,) if event.member is None else (event.process, event.member)


def _index(move: tuple[int, int | None]) -> int:
    return move[0]


@dataclass(slots=True)
class Committed:
    """Keeps what is known of the committed offset of one partition."""

    accounts: dict[int, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    """Offset -> every commit that took effect, or may have."""
    largest: Operation | None = None
    """Of the commits that have succeeded so far."""
    settled: list[Operation] = field(default_factory=list)
    """Of these the ones that whoever asks later must see."""
    farthest: Operation | None = None
    """The largest of the settled ones."""
    latest: Operation | None = None
    """Of the settled ones the one that was invoked last."""
    pending: list[Operation] = field(default_factory=list)
    """Commits of which no later generation has shown whether they have taken effect."""
    owner: GroupEvent | None = None
    """What gave it to its last owner."""

    def accounted(self, offset: int, since: int = _ALWAYS, before: int = NEVER) -> bool:
        """Tells whether a commit of this offset, invoked ``before``, may have taken effect after another
        one that was invoked at ``since``."""
        some = reversed(self.accounts.get(offset, ()))
        return any(one.until > since and one.since < before and not one.is_dead for one in some)

    def succeed(self, one: Operation, *, is_settled: bool) -> None:
        self.largest = _larger(self.largest, one)
        if is_settled:
            self.settle(one)

    def settle(self, one: Operation) -> None:
        self.settled.append(one)
        self.farthest = _larger(self.farthest, one)
        if one.may_count and (self.latest is None or self.latest.since < one.since):
            self.latest = one


def _larger(one: Operation | None, other: Operation) -> Operation:
    """``other`` completed later."""
    return other if one is None or other.offset >= one.offset else one


class Coordinator:
    """Follows the coordinator of one group; ``find`` goes through its events once."""

    def __init__(
        self,
        group: str,
        events: GroupEvents,
        commits: Sequence[Operation],
        answers: Sequence[Operation],
        moves: Moves,
        about: AboutRun,
    ) -> None:
        self._about, self._moves, self._joined = about, moves, events.joined
        self._say = Findings(about)
        self._by_answerer = Answers(group, answers, about)
        self._waits = about.info.isolation == "read_committed"
        self._commits, self._answers = commits, answers
        self._rebalances = [one for one in events.moves if one.f == REBALANCE and one.of == group]
        self._is_classic = all(one.protocol != "consumer" for one in self._rebalances)
        self._reported: dict[str, int] = {}
        """Member -> the latest generation that it is ever told."""
        for rebalance in self._rebalances:
            if rebalance.member is not None:
                self._reported[rebalance.member] = max(
                    rebalance.generation, self._reported.get(rebalance.member, 0)
                )
        self._shown: list[tuple[int, int, Operation]] = []
        """A heap: (index of an answer's completion, place, what it shows to have taken effect)."""
        self._newest: GroupEvent | None = None
        self._holds: dict[int, tuple[int, ...]] = {}
        self._logs: dict[int, Committed] = defaultdict(Committed)

    def find(self) -> Iterator[Finding]:
        self._fence()
        for one in self._commits:
            if one.may_count:
                self._logs[one.log.number].accounts[one.offset].append(one)
        succeeded = sorted((one for one in self._commits if one.succeeded), key=lambda one: one.until)
        steps: list[Iterable[_Step]] = [
            ((one.since, self._commit, one) for one in self._commits if one.may_count),
            ((one.until, self._succeed, one) for one in succeeded),
            ((one.since, self._answer, one) for one in self._answers),
            ((rebalance.index, self._rebalance, rebalance) for rebalance in self._rebalances),
        ]
        for index, take, what in merge(*steps, key=lambda step: step[0]):
            while self._shown and self._shown[0][0] <= index:
                self._settle_shown(heappop(self._shown)[-1])
            yield from take(what)

    def _fence(self) -> None:
        """Sets for each commit of unknown outcome until when it may take effect."""
        rising: list[GroupEvent] = []
        for rebalance in self._rebalances if self._is_classic else ():
            if not rebalance.is_lost and rebalance.generation > (rising[-1].generation if rising else -1):
                rising.append(rebalance)
        for one in self._commits:
            if not one.succeeded and self._is_sent_at_once(one):
                at = bisect_right(rising, one.event.generation, key=lambda rebalance: rebalance.generation)
                if at < len(rising):
                    one.fence, one.until = rising[at], rising[at].index

    def _is_sent_at_once(self, one: Operation) -> bool:
        """Tells whether a commit goes under the generation that it names, and no other."""
        return one.keeps_generation and (one.done is not None or not self._may_be_sent_later(one))

    def _may_be_sent_later(self, one: Operation) -> bool:
        """Tells whether a commit that its client may hold back could go under a later generation: its
        member is not known, or was told of one."""
        return one.event.member is None or self._reported.get(one.event.member, 0) > one.event.generation

    # --- commits

    def _commit(self, one: Operation) -> Iterator[Finding]:
        at = self._logs[one.log.number]
        if one.succeeded and at.largest is not None and self._goes_back(one, at, at.largest):
            yield self._say.regression(one, at.largest, COMMIT)
        newer = self._newer(one, at)
        if newer is not None and one.succeeded:
            yield self._say.zombie(one, newer)
        elif self._is_sent_at_once(one):
            if newer is None:
                at.pending.append(one)
            else:
                one.is_dead, one.fence = True, newer

    def _goes_back(self, one: Operation, at: Committed, before: Operation) -> bool:
        """Tells whether a commit names less than had been committed, and neither its consumer nor the
        group had put it back there in between."""
        if before.offset <= one.offset:
            return False
        for index, start in self._moves.before(one, before.until):
            if start is not None and start <= one.offset:
                return False
            # Where nobody told a position it began at the committed offset, by any commit that may have been
            # the last by then.
            less = (offset for offset in at.accounts if start is None and offset <= one.offset)
            if any(at.accounted(offset, before.since, index) for offset in less):
                return False
        return True

    def _newer(self, one: Operation, at: Committed) -> GroupEvent | None:
        """Returns the event that had fenced the commit's member by then, if any: a later generation; in
        KIP-848 another owner."""
        if one.event.is_async and self._may_be_sent_later(one):
            return None
        newer = self._newest
        if not self._is_classic:
            newer = at.owner if at.owner is not None and at.owner.member != one.event.member else None
        return newer if newer is not None and newer.generation > one.event.generation >= 0 else None

    def _succeed(self, one: Operation) -> Iterator[Finding]:
        """The offsets of a transaction become visible some time after its commit has succeeded, and only
        clients at read_committed wait for that."""
        at, log = self._logs[one.log.number], one.log
        at.succeed(one, is_settled=self._waits or one.event.txn < 0)
        if one in at.pending:
            at.pending.remove(one)
        if log.complete and log.end is not None and one.offset > log.end:
            yield self._say.beyond_end(one)

    # --- answers

    def _answer(self, answer: Operation) -> Iterator[Finding]:
        at = self._logs[answer.log.number]
        commits = at.accounts.get(answer.offset, ())
        is_phantom = answer.offset >= 0 and all(one.since >= answer.until for one in commits)
        if is_phantom:
            yield self._say.phantom(answer)
        since = at.latest.since if at.latest is not None else _ALWAYS
        largest = at.largest if at.farthest is None else _larger(at.largest, at.farthest)
        if largest is not None and largest.offset > answer.offset:
            if not at.accounted(answer.offset, largest.since):
                yield self._less(answer, largest)
        elif answer.offset >= 0 and not is_phantom and not at.accounted(answer.offset, since, answer.until):
            fenced = [(one, one.fence) for one in commits if one.fence is not None]
            if fenced:
                yield self._say.late_zombie(answer, *fenced[-1])
            elif at.latest is not None:
                yield self._less(answer, at.latest)
        self._show(answer, [one for one in commits if one.until > since])

    def _less(self, answer: Operation, before: Operation) -> Finding:
        anomaly, tenure = self._by_answerer.anomaly_of(answer, before)
        return self._say.less(anomaly, answer, before, tenure, self._by_answerer.log)

    def _show(self, answer: Operation, commits: Sequence[Operation]) -> None:
        """An answer that only one commit of unknown outcome accounts for shows that it took effect."""
        some = [one for one in commits if one.since < answer.until and not one.is_dead]
        if len(some) == 1 and not some[0].succeeded and some[0].event.txn < 0:
            heappush(self._shown, (answer.until, len(self._shown), some[0].shown_by(answer)))

    def _settle_shown(self, one: Operation) -> None:
        """Settles a commit that an answer showed: its consumer may have been put back before the answer
        came, so what clients commit after it is not compared with it."""
        at = self._logs[one.log.number]
        at.pending = [other for other in at.pending if other.since != one.since]
        at.settle(one)

    # --- generations

    def _rebalance(self, rebalance: GroupEvent) -> Iterator[Finding]:
        newest = -1 if self._newest is None else self._newest.generation
        if not rebalance.is_lost and rebalance.generation >= newest:
            self._newest = rebalance
        held = self._holds.get(rebalance.process, ())
        self._holds[rebalance.process] = rebalance.logs
        for log in sorted({*rebalance.logs, *rebalance.offsets}):
            is_kept = log in held and rebalance.protocol != "eager"
            start = rebalance.offsets.get(log, -1)
            if start >= 0:
                yield from self._begin(rebalance, self._about.of_number[log], start, is_kept)
            if log in rebalance.logs and not is_kept:
                self._logs[log].owner = rebalance

    def _begin(self, rebalance: GroupEvent, log: AboutLog, start: int, is_kept: bool) -> Iterator[Finding]:
        """``is_kept``: the member had the partition before, and so may begin at a position of its own, that
        no commit need name."""
        at = self._logs[log.number]
        if at.farthest is not None and at.farthest.offset > start:
            behind = [one for one in at.settled if one.offset > start and self._must_be_known(one, rebalance)]
            last = max(behind, key=lambda one: (one.offset, one.until), default=None)
            if last is not None and not at.accounted(start, last.since, rebalance.index):
                yield self._say.start("forgotten-commit", rebalance, log, start, last)
                return
        if is_kept:
            return
        if last := self._passed(rebalance, log, start, at):
            yield self._say.start("uncommitted-start", rebalance, log, start, last)
        else:
            yield from self._settle_fenced(rebalance, log, start, at)

    def _must_be_known(self, one: Operation, rebalance: GroupEvent) -> bool:
        """Tells whether a new owner must know of a commit: made under an older generation, which the group
        has fenced by then, or answered before the new owner subscribed. An asynchronous one may have been
        sent later than it was asked for, under another generation; so may one that never completed."""
        is_older = not one.event.is_async and 0 <= one.event.generation < rebalance.generation
        if one.is_shown and self._may_be_sent_later(one):
            is_older = False
        return is_older or one.until < self._joined.get(rebalance.process, _ALWAYS)

    def _passed(self, rebalance: GroupEvent, log: AboutLog, start: int, at: Committed) -> Operation | None:
        """The last commit that it must know of, where it begins past all of them at an offset that no commit
        may have left. Where what was committed may have been deleted from the log, it begins where its client
        likes."""
        if at.latest is None or at.accounted(start, at.latest.since, rebalance.index):
            return None
        known = [one for one in at.settled if self._must_be_known(one, rebalance)]
        if not known or max(one.offset for one in known) > start:
            return None
        last = max(known, key=lambda one: one.since)
        allowed = chain([start], (offset for offset in at.accounts if offset < log.start))
        return None if any(at.accounted(one, last.since, rebalance.index) for one in allowed) else last

    def _settle_fenced(
        self, rebalance: GroupEvent, log: AboutLog, start: int, at: Committed
    ) -> Iterator[Finding]:
        """Commits that this generation fenced took effect before it began, and its member would have been
        shown them or a later one; or never, and then they must not have succeeded."""
        for one in list(at.pending):
            is_owner = at.owner is not None and at.owner.member == one.event.member
            if one.event.generation >= rebalance.generation or one.event.member == rebalance.member:
                continue
            if not (self._is_classic or is_owner):
                continue
            is_shown = at.accounted(start, one.since, rebalance.index) or one.offset < log.start
            if one.succeeded and is_shown:
                continue
            at.pending.remove(one)
            if one.succeeded:
                yield self._say.zombie(one, rebalance, start)
            elif not is_shown:
                one.is_dead, one.fence = True, rebalance
