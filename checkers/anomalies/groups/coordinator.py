"""A group's coordinator, as far as the words of its clients allow one: the generation that it is in, who owns
which partition, how far each was committed, and which commits may still take effect.

The events of a group are gone through in their order, with the outcome of each operation at hand. What is
committed is a register: a commit takes effect at one moment between its two events, one of unknown outcome at
any later one, or never.

*Classic* protocol: all members have the generation of their group. Whoever is told of a later one proves
that commits under older ones are refused from then on. *KIP-848* (``consumer``): each member has an epoch of
its own and goes on with what it keeps, so others' later epochs refuse nothing, except of a partition that has
gone to another member (KIP-1251 looks at the epoch of that assignment alone).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wrackline.checkers.anomalies.about import AboutLog, AboutRun
from wrackline.checkers.anomalies.finding import Finding
from wrackline.checkers.anomalies.groups.events import (
    CRASH,
    REBALANCE,
    Fence,
    GroupEvents,
    Operation,
    Placement,
)
from wrackline.checkers.anomalies.groups.sentences import Sentences
from wrackline.checkers.inputs.arrays import NEVER

_COMMITTED_ONLY = "read_committed"
_ALWAYS = -1


class Moves:
    """Where processes and members were put, whoever put them there."""

    def __init__(self, about: AboutRun, placements: Sequence[Placement]) -> None:
        self._of: dict[tuple[int | str | None, int], list[tuple[int, int | None]]] = defaultdict(list)
        for one in placements:
            for partition in {*one.partitions, *one.positions} if one.f != CRASH else ():
                if log := about.logs.get((one.topic, partition)):
                    for who in {one.process, one.member} - {None}:
                        self._of[who, log.number].append((one.index, one.positions.get(partition)))

    def between(self, one: Operation, since: int) -> Iterator[tuple[int, int | None]]:
        """(index, start) of those of an operation's process or member after ``since`` and before it was
        invoked; a start of None is not known."""
        for who in {one.process, one.member} - {None}:
            some = self._of.get((who, one.log.number), [])
            yield from some[
                bisect_right(some, since, key=_index) : bisect_left(some, one.invoke_index, key=_index)
            ]


def _index(move: tuple[int, int | None]) -> int:
    return move[0]


@dataclass(slots=True)
class Committed:
    """What is known of the committed offset of one partition."""

    accounts: dict[int, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    """Offset -> every commit that took effect, or may have."""
    largest: Operation | None = None
    """Of the commits that have succeeded so far."""
    settled: list[Operation] = field(default_factory=list)
    """Of these the ones that whoever asks later must see."""
    largest_settled: Operation | None = None
    latest: Operation | None = None
    """Of the settled ones the one that was invoked last."""
    pending: list[Operation] = field(default_factory=list)
    """Commits of which no fence has shown whether they have taken effect."""
    owner: Placement | None = None
    """What gave it to its last owner."""

    def accounted(self, offset: int, since: int = _ALWAYS, before: int = NEVER) -> bool:
        """Whether a commit of this offset, invoked ``before``, may have taken effect after another one that
        was invoked at ``since``."""
        some = reversed(self.accounts.get(offset, ()))
        return any(c.until > since and c.invoke_index < before and not c.is_dead for c in some)

    def succeed(self, one: Operation, *, is_settled: bool) -> None:
        self.largest = _larger(self.largest, one)
        if is_settled:
            self.settled.append(one)
            self.largest_settled = _larger(self.largest_settled, one)
            if one.may_count and (self.latest is None or self.latest.invoke_index < one.invoke_index):
                self.latest = one


def _larger(one: Operation | None, other: Operation) -> Operation:
    """``other`` completed later."""
    return other if one is None or other.offset >= one.offset else one


class Coordinator:
    """Of one group; ``find`` goes through its events once."""

    def __init__(self, group: str, events: GroupEvents, moves: Moves, about: AboutRun) -> None:
        self._about, self._moves, self._joined = about, moves, events.joined
        self._say = Sentences(about)
        self._waits = about.info.isolation == _COMMITTED_ONLY
        self._commits, self._answers = events.commits.get(group, []), events.answers.get(group, [])
        self._rebalances = [one for one in events.placements if one.f == REBALANCE and one.group == group]
        self._is_classic = all(one.protocol != "consumer" for one in self._rebalances)
        self._told: dict[str, int] = {}
        """Member -> the latest generation that it is ever told."""
        self._newest: Placement | None = None
        self._holds: dict[int, set[tuple[str, int]]] = defaultdict(set)
        self._logs: dict[int, Committed] = defaultdict(Committed)
        self._fence()
        for one in self._commits:
            if one.may_count:
                self._logs[one.log.number].accounts[one.offset].append(one)

    def _fence(self) -> None:
        """Until when each commit may take effect."""
        fences: list[Fence] = []
        for told in self._rebalances:
            if told.generation >= 0:
                if told.member is not None:
                    self._told[told.member] = max(told.generation, self._told.get(told.member, 0))
                fences.append(_fence_of(told))
        for one in self._commits:
            if one.succeeded and one.keeps_generation:
                fences.append(
                    Fence(one.complete_index, one.complete_ns, one.generation, one.process, "committed")
                )
        rising: list[Fence] = []
        for fence in sorted(fences, key=lambda one: one.index) if self._is_classic else ():
            if not rising or fence.generation > rising[-1].generation:
                rising.append(fence)
        for one in self._commits:
            if one.succeeded:
                one.until = one.complete_index
            elif one.keeps_generation and (one.complete_index < NEVER or not self._may_be_sent_later(one)):
                at = bisect_right(rising, one.generation, key=lambda fence: fence.generation)
                if at < len(rising):
                    one.fence, one.until = rising[at], rising[at].index
                    one.is_dead = one.until < one.invoke_index

    def _may_be_sent_later(self, one: Operation) -> bool:
        """Whether a commit that its client may hold back could go under a later generation: of whom nobody
        knows, or whose member was told of one."""
        return one.member is None or self._told.get(one.member, 0) > one.generation

    def find(self) -> Iterator[Finding]:
        steps: list[tuple[int, Iterator[Finding]]] = []
        for one in self._commits:
            if one.may_count:
                steps.append((one.invoke_index, self._commit(one)))
            if one.succeeded:
                steps.append((one.complete_index, self._succeed(one)))
        steps += [(one.invoke_index, self._answer(one)) for one in self._answers if one.succeeded]
        steps += [(told.index, self._rebalance(told)) for told in self._rebalances]
        for _, found in sorted(steps, key=lambda step: step[0]):
            yield from found

    # --- commits

    def _commit(self, one: Operation) -> Iterator[Finding]:
        at = self._logs[one.log.number]
        if one.succeeded and at.largest is not None and self._goes_back(one, at, at.largest):
            yield self._say.regression(one, at.largest, "commit")
        newer = self._newer(one, at)
        if newer is not None and one.succeeded:
            yield self._say.zombie(one, newer)
        elif one.keeps_generation:
            at.pending.append(one)

    def _goes_back(self, one: Operation, at: Committed, before: Operation) -> bool:
        """Whether it commits less than had been committed, and neither its consumer nor the group had put it
        back there in between."""
        if before.offset <= one.offset:
            return False
        for index, start in self._moves.between(one, before.complete_index):
            if start is not None and start <= one.offset:
                return False
            # Where nobody told a position it began at the committed offset, by any commit that may have been
            # the last by then.
            if start is None and any(
                at.accounted(offset, before.invoke_index, index)
                for offset in at.accounts
                if offset <= one.offset
            ):
                return False
        return True

    def _newer(self, one: Operation, at: Committed) -> Placement | None:
        """What had fenced its member by then, if anything: a later generation; in KIP-848 another owner."""
        if one.is_async and self._may_be_sent_later(one):
            return None
        newer = self._newest
        if not self._is_classic:
            newer = at.owner if at.owner is not None and at.owner.member != one.member else None
        return newer if newer is not None and newer.generation > one.generation >= 0 else None

    def _succeed(self, one: Operation) -> Iterator[Finding]:
        """The offsets of a transaction become visible some time after its commit has succeeded, and only
        clients at read_committed wait for that."""
        at = self._logs[one.log.number]
        at.succeed(one, is_settled=self._waits or not one.in_transaction)
        if one in at.pending:
            at.pending.remove(one)
        log = one.log
        if log.complete and log.end is not None and one.offset > log.end:
            yield self._say.beyond_end(one)

    # --- answers

    def _answer(self, asked: Operation) -> Iterator[Finding]:
        at = self._logs[asked.log.number]
        commits = at.accounts.get(asked.offset, ())
        is_phantom = all(one.invoke_index >= asked.complete_index for one in commits)
        if asked.offset >= 0 and is_phantom:
            yield self._say.phantom(asked)
        if at.largest is not None and at.largest.offset > asked.offset:
            if not at.accounted(asked.offset, at.largest.invoke_index):
                yield self._say.regression(asked, at.largest, "read")
        elif asked.offset >= 0 and not is_phantom:
            since = at.latest.invoke_index if at.latest is not None else _ALWAYS
            if not at.accounted(asked.offset, since, asked.complete_index):
                late = [one for one in commits if not one.succeeded and one.fence is not None]
                if late:
                    yield self._say.late_zombie(asked, late[-1])
                elif at.latest is not None:
                    yield self._say.regression(asked, at.latest, "read")

    # --- generations

    def _rebalance(self, told: Placement) -> Iterator[Finding]:
        if self._newest is None or told.generation >= self._newest.generation:
            self._newest = told
        held, holds = self._holds[told.process], {(told.topic, one) for one in told.partitions}
        for partition in sorted({*told.partitions, *told.positions}):
            if log := self._about.logs.get((told.topic, partition)):
                is_kept = (told.topic, partition) in held and told.protocol != "eager"
                start = told.positions.get(partition, -1)
                if start >= 0:
                    yield from self._begin(told, log, start, is_kept)
                if partition in told.partitions and not is_kept:
                    self._logs[log.number].owner = told
        self._holds[told.process] = holds

    def _begin(self, told: Placement, log: AboutLog, start: int, is_kept: bool) -> Iterator[Finding]:
        at = self._logs[log.number]
        if at.largest_settled is not None and at.largest_settled.offset > start:
            behind = [one for one in at.settled if one.offset > start and self._must_be_known(one, told)]
            last = max(behind, key=lambda one: (one.offset, one.complete_index), default=None)
            if last is not None and not at.accounted(start, last.invoke_index, told.index):
                yield self._say.forgotten(told, log, start, last)
                return
        if is_kept:  # a position of its own, which no commit need name
            return
        if last := self._uncommitted(told, log, start, at):
            yield self._say.uncommitted(told, log, start, last)
        else:
            yield from self._settle_fenced(told, log, start, at)

    def _must_be_known(self, one: Operation, told: Placement) -> bool:
        """Whether a new owner must know of a commit: made under an older generation, which the group has
        fenced by then, or answered before the new owner subscribed. An asynchronous one may have been sent
        later than it was asked for, under another generation."""
        joined = self._joined.get(told.process, _ALWAYS)
        is_older = not one.is_async and 0 <= one.generation < told.generation
        return is_older or one.complete_index < joined

    def _uncommitted(self, told: Placement, log: AboutLog, start: int, at: Committed) -> Operation | None:
        """The last commit that it must know of, where it begins past all of them at an offset that no commit
        may have left. Where what was committed may have been deleted from the log, it begins where its client
        likes."""
        if at.latest is None or at.accounted(start, at.latest.invoke_index, told.index):
            return None
        known = [one for one in at.settled if self._must_be_known(one, told)]
        if not known or max(one.offset for one in known) > start:
            return None
        last = max(known, key=lambda one: one.invoke_index)
        deleted = [offset for offset in at.accounts if offset < log.start]
        if any(at.accounted(one, last.invoke_index, told.index) for one in (start, *deleted)):
            return None
        return last

    def _settle_fenced(self, told: Placement, log: AboutLog, start: int, at: Committed) -> Iterator[Finding]:
        """Commits that this generation fenced took effect before it began, and its member would have been
        shown them or a later one; or never, and then they must not have succeeded."""
        for one in list(at.pending):
            is_fenced = self._is_classic or (at.owner is not None and at.owner.member == one.member)
            if not is_fenced or one.generation >= told.generation or one.member == told.member:
                continue
            shown = start == one.offset or at.accounted(start, one.invoke_index, told.index)
            if one.succeeded and not shown and one.offset >= log.start:
                yield self._say.zombie(one, told, start)
            elif not one.succeeded and not shown and one.offset >= log.start:
                one.is_dead, one.fence = True, _fence_of(told)
            if not (one.succeeded and shown):
                at.pending.remove(one)


def _fence_of(told: Placement) -> Fence:
    return Fence(told.index, told.ns, told.generation, told.process, "been given partitions")
