"""Tiny histories of one group and one partition, and whether a coordinator can have answered so: by trying
all that it may have done in between. It shares nothing with the walk but the words of Kafka's protocol.

``classic``: a commit takes effect under the generation that it was sent in, and no other. ``consumer``
(KIP-848): as long as its member has the partition, by an assignment that is no newer than the member's epoch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from wrackline.history.model import Event, Type

NOBODY = -1
Kind = Literal["join", "told", "commit", "ok", "fail", "info", "ask", "answer"]
Place = tuple[int, int | None, frozenset[int], frozenset[int]]
"""(number of generations that have begun, committed offset, commits that took effect, answers that were
read)."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind
    member: str = ""
    generation: int = NOBODY
    """NOBODY: it is not on record."""
    offset: int | None = None
    """Committed, answered, or where a member begins; None: nobody told, and of an answer: nothing."""
    number: int = NOBODY
    """Of the commit or question."""
    owns: bool = True
    is_async: bool = False


def can_be(steps: Sequence[Step], protocol: str) -> bool:
    """Whether some order of hidden moments explains every answer."""
    return _Search(steps, protocol).succeeds()


class _Search:
    def __init__(self, steps: Sequence[Step], protocol: str) -> None:
        self._steps, self._is_classic = steps, protocol != "consumer"
        told = [one for one in steps if one.kind == "told" and (self._is_classic or one.owns)]
        commits = [one for one in steps if one.kind == "commit"]
        known = {one.generation for one in (told + commits if self._is_classic else told)}
        self._generations = sorted(known - {NOBODY})
        self._owner = {one.generation: one.member for one in told}
        self._known_later = {
            one.number: {
                t.generation for t in told if t.member == one.member and t.generation > one.generation
            }
            for one in commits
        }
        ended = {one.number for one in steps if one.kind in ("ok", "fail", "info")}
        self._never = {one.number for one in commits} - ended

    def succeeds(self) -> bool:
        places: set[Place] = {(0, None, frozenset(), frozenset())}
        pending: dict[int, Step] = {}
        open_: dict[int, Step] = {}
        joined: set[str] = set()
        joins = {one.member for one in self._steps if one.kind == "join"}
        for at, step in enumerate(self._steps):
            # What is asked for here is read somewhere before.
            if step.kind == "join":
                joined.add(step.member)
            starts = {
                later: one
                for later, one in enumerate(self._steps)
                if later >= at
                and one.kind == "told"
                and one.offset is not None
                and (one.member in joined or one.member not in joins)
            }
            places = self._closed(places, pending, open_, starts)
            if step.kind == "commit":
                pending[step.number] = step
            elif step.kind == "ask":
                answer = next(
                    (s for s in self._steps if s.kind == "answer" and s.number == step.number), None
                )
                if answer is not None:
                    open_[1_000 + step.number] = answer
            else:
                places = {place for place in places if self._allows(place, at, step)}
            if step.kind in ("ok", "fail"):
                del pending[step.number]
            elif step.kind == "answer":
                del open_[1_000 + step.number]
            if not places:
                return False
        return True

    def _allows(self, place: Place, at: int, step: Step) -> bool:
        begun, _, applied, read = place
        if step.kind == "told":
            has_begun = step.generation == NOBODY or step.generation in self._generations[:begun]
            if not self._is_classic and not step.owns:
                has_begun = True
            return has_begun and (step.offset is None or at in read)
        if step.kind == "answer":
            return 1_000 + step.number in read
        if step.kind == "ok":
            return step.number in applied
        return step.kind != "fail" or step.number not in applied

    def _closed(
        self,
        places: set[Place],
        pending: dict[int, Step],
        open_: dict[int, Step],
        starts: dict[int, Step],
    ) -> set[Place]:
        found: set[Place] = set()
        todo = [self._reading(place, open_, starts) for place in places]
        while todo:
            place = todo.pop()
            if place in found:
                continue
            found.add(place)
            begun, _, applied, read = place
            if begun < len(self._generations):
                todo.append(self._reading((begun + 1, *place[1:]), open_, starts))
            for number, one in pending.items():
                if number not in applied and self._accepts(one, begun):
                    after = (begun, one.offset, applied | {number}, read)
                    todo.append(self._reading(after, open_, starts))
        return found

    def _accepts(self, one: Step, begun: int) -> bool:
        if one.generation == NOBODY:
            return True
        now = self._generations[begun - 1] if begun else NOBODY
        may_be_sent_later = one.is_async or one.number in self._never
        if not self._is_classic:
            is_owner = now != NOBODY and self._owner[now] == one.member
            return is_owner and (now <= one.generation or may_be_sent_later)
        later = self._known_later[one.number] if may_be_sent_later else set()
        return now == one.generation or now in later

    def _reading(self, place: Place, open_: dict[int, Step], starts: dict[int, Step]) -> Place:
        """To have read what will be answered is never too early."""
        begun, value, applied, read = place
        fresh = {number for number, one in open_.items() if one.offset == value}
        for at, one in starts.items():
            is_begun = one.generation == NOBODY or one.generation in self._generations[:begun]
            # Where nothing is committed a member begins where its client likes.
            if is_begun and (value is None or one.offset == value):
                fresh.add(at)
        return begun, value, applied, read | fresh


# --- histories


def drawn(seed: int, protocol: str) -> list[Step]:
    """What a right coordinator and its clients may do; the same seed gives the same."""
    return _Drawing(random.Random(seed), protocol).steps


class _Drawing:
    def __init__(self, rng: random.Random, protocol: str) -> None:
        self._rng, self._is_classic = rng, protocol != "consumer"
        self.steps: list[Step] = []
        self._generation, self._owner = 0, ""
        self._value: int | None = None
        self._knows: dict[str, int] = {}
        self._stands: dict[str, int] = {}
        self._fetched: dict[str, Step] = {}
        self._wants: set[str] = set()
        self._pending: dict[int, Step] = {}
        self._applied: set[int] = set()
        self._questions: dict[int, int | None] = {}
        self._assigned = 0
        self._number = 0
        if rng.random() < 0.5:
            self.steps += [Step("join", name) for name in "AB"]
        for _ in range(rng.randrange(60, 160)):
            rng.choice(self._moves())()

    def _moves(self) -> list[Callable[[], None]]:
        weights = {
            self._begin: 1,
            self._fetch: 4,
            self._tell: 4,
            self._commit: 3,
            self._apply: 5,
            self._end: 4,
            self._ask: 1,
            self._read: 2,
            self._answer: 2,
        }
        return [move for move, weight in weights.items() for _ in range(weight)]

    def _begin(self) -> None:
        if self._generation < 7:
            self._generation += self._rng.randrange(1, 3)
            self._owner = self._rng.choice("ABC")
            self._wants = {self._owner}
            self._assigned = self._generation
            if self._is_classic and self._rng.random() < 0.3:
                other = self._rng.choice("ABC")
                if other != self._owner:
                    self.steps.append(Step("told", other, self._generation, owns=False))
                    self._knows[other] = self._generation

    def _fetch(self) -> None:
        for name in self._wants & {self._owner}:
            start = None if self._rng.random() < 0.2 else self._value or 0
            self._fetched[name] = Step("told", name, self._generation, start)
        self._wants = set()

    def _tell(self) -> None:
        if self._fetched:
            name = self._rng.choice(sorted(self._fetched))
            told = self._fetched.pop(name)
            self.steps.append(told)
            if told.generation >= self._knows.get(name, 0):
                self._knows[name] = told.generation
                self._stands[name] = told.offset or 0

    def _commit(self) -> None:
        if not self._stands or sum(one.kind == "commit" for one in self.steps) > 4:
            return
        name = self._rng.choice(sorted(self._stands))
        self._stands[name] += self._rng.randrange(0, 3)
        one = Step(
            "commit",
            name,
            self._knows[name] if self._rng.random() < 0.9 else NOBODY,
            self._stands[name],
            self._number,
            is_async=self._rng.random() < 0.15,
        )
        self._number += 1
        self._pending[one.number] = one
        self.steps.append(one)

    def _apply(self) -> None:
        ready = [
            one for one in self._pending.values() if one.number not in self._applied and self._accepts(one)
        ]
        if ready:
            one = self._rng.choice(ready)
            self._value = one.offset
            self._applied.add(one.number)

    def _accepts(self, one: Step) -> bool:
        if one.generation == NOBODY:
            return True
        if self._is_classic:
            return one.generation == self._generation
        return self._owner == one.member and self._assigned <= one.generation

    def _end(self) -> None:
        if self._pending:
            one = self._rng.choice(list(self._pending.values()))
            if self._rng.random() < 0.3:
                if not any(s.kind == "info" and s.number == one.number for s in self.steps):
                    self.steps.append(Step("info", number=one.number))  # and it may take effect later
            elif not any(s.kind == "info" and s.number == one.number for s in self.steps):
                self.steps.append(Step("ok" if one.number in self._applied else "fail", number=one.number))
                del self._pending[one.number]

    def _ask(self) -> None:
        if len(self._questions) < 4:
            self._number += 1
            self._questions[self._number] = NOBODY
            self.steps.append(Step("ask", number=self._number))

    def _read(self) -> None:
        for number, value in self._questions.items():
            if value == NOBODY:
                self._questions[number] = self._value

    def _answer(self) -> None:
        ready = [number for number, value in self._questions.items() if value != NOBODY]
        open_ = [n for n in ready if not any(s.kind == "answer" and s.number == n for s in self.steps)]
        if open_:
            number = self._rng.choice(open_)
            self.steps.append(Step("answer", offset=self._questions[number], number=number))


_WEIGHTS = {"answer": 4, "told": 6, "ok": 1, "fail": 2, "info": 2, "commit": 0, "ask": 1, "join": 1}


def disturbed(steps: Sequence[Step], rng: random.Random) -> list[Step]:
    """The same with a word or two changed: a coordinator may be able to do that, or not."""
    found = list(steps)
    for _ in range(rng.randrange(1, 3)):
        if not found:
            break
        at = rng.choice([n for n, one in enumerate(found) for _ in range(_WEIGHTS[one.kind])])
        one = found[at]
        committed = [other.offset for other in found if other.kind == "commit"]
        if one.kind == "answer" or (one.kind == "told" and one.owns and one.offset is not None):
            arbitrary = [0 if one.kind == "told" else None, (one.offset or 0) + 1]
            found[at] = replace(one, offset=rng.choice([*committed * 3, *arbitrary]))
        elif one.kind in ("fail", "info"):
            found[at] = replace(one, kind="ok")
        elif one.kind == "ok":
            found[at] = replace(one, kind=rng.choice(["fail", "info"]))
        elif one.kind == "ask" or one.kind == "join":
            found.pop(at)
            found = [s for s in found if one.kind == "join" or s.kind != "answer" or s.number != one.number]
    return found


def events_of(steps: Sequence[Step], protocol: str) -> Iterator[Event]:
    """As a recorder would have written them; each commit and each question is of a process of its own."""
    commits = {one.number: one for one in steps if one.kind == "commit"}
    answers = {one.number: one for one in steps if one.kind == "answer"}
    for index, step in enumerate(steps):
        extra: dict[str, object] = {"group": "g"}
        kind, f, process = Type.OK, "committed", 200 + step.number
        if step.kind in ("join", "told"):
            process = 1 + "ABC".index(step.member)
            f = "subscribe" if step.kind == "join" else "rebalance"
            extra["partitions"] = [0] if step.owns else []
            if step.kind == "told":
                extra |= {"member": step.member, "generation": step.generation, "protocol": protocol}
                if step.offset is not None:
                    extra["positions"] = {"0": step.offset}
        elif step.number in commits and step.kind in ("commit", "ok", "fail", "info"):
            one = commits[step.number]
            process, f = 100 + step.number, "commit"
            kind = Type.INVOKE if step.kind == "commit" else Type(step.kind)
            extra |= {"member": one.member, "offsets": {"0": one.offset}}
            extra |= {"generation": one.generation} if one.generation != NOBODY else {}
            extra |= {"mode": "async"} if one.is_async else {}
        elif step.kind == "ask":
            kind = Type.INVOKE
        else:
            told = answers[step.number].offset
            extra["offsets"] = {"0": -1 if told is None else told}
        yield Event(process, kind, f, topic="log", extra=extra, index=index, time_ns=index * 1_000_000)
