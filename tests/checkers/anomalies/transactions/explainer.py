"""An explainer of tiny histories with transactions: whether correct coordinators and logs may show them.

It shares no line with the judge, and knows no anomaly. It follows every course that a correct system may take
between two events, and keeps those that give what was seen: records are appended in the order of the final
read; a transaction takes effect at one moment in all partitions and in its group, after its commit was asked
for and before the next one of its transactional id begins; the coordinator may abort it at any moment before
(a timeout), and does so where nobody had asked for its commit when the next one begins. Readers are given
what lies below the first record of an open transaction, and answers of committed offsets wait for
transactions whose commit was asked for (both read_committed).

``drawn`` runs such a system by chance and writes down what its clients see; ``spoiled`` changes that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.checkers.histories import info
from wrackline.history.model import (
    CONTROL,
    FAILED,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
    value_of,
)

TOPIC, GROUP = "log", "g"
STEP_NS = 1_000
Place = tuple[int, int]
"""A partition and an offset."""


@dataclass(frozen=True)
class Txn:
    number: int
    id: str
    """Empty: it is not on record."""
    process: int
    values: tuple[tuple[int, int], ...]
    """(partition, value)."""
    offset: int | None = None
    """What it commits for the group in partition 0."""


@dataclass(frozen=True)
class Seen:
    """Something that a client sees, or does. ``what``: begin, offsets, ask, end, poll, answer-asked, answer,
    commit-asked, commit; in the order in which it happens."""

    what: str
    txn: int = -1
    asked: str | None = None
    type: str = ""
    given: tuple[tuple[int, int, int], ...] = ()
    """(partition, offset, value) that a poll gave; of a transaction's poll before its end is asked for."""
    who: int = 0
    told: int = -1


@dataclass(frozen=True)
class Told:
    """A history: transactions, plain sends (acknowledged before all else), what was seen, and the final
    read."""

    txns: tuple[Txn, ...]
    seen: tuple[Seen, ...]
    final: tuple[tuple[tuple[int, int], ...], ...]
    """For each partition its (offset, value), complete."""


# --- explaining


@dataclass(frozen=True)
class _State:
    appended: tuple[int, ...]
    """For each partition how many records of the final read are there."""
    fates: tuple[str, ...]
    """For each transaction: none, open, asked, committed, aborted."""
    commits: tuple[str, ...]
    """For each plain commit: none, asked, done."""
    offset: int = -1
    reads: frozenset[int] = frozenset()
    """Whose answers were read and are on their way."""


@dataclass
class _World:
    told: Told
    plain: tuple[int, ...]
    """The offsets of the plain commits, by their number."""
    waiting: dict[int, int] = field(default_factory=dict)
    """Who has asked what is committed -> what will be the answer."""

    def explained(self) -> bool:
        told = self.told
        start = _State((0,) * len(told.final), ("none",) * len(told.txns), ("none",) * len(self.plain))
        states = {start}
        for seen in told.seen:
            answers = [one.told for one in told.seen if one.what == "answer" and one.who == seen.who]
            if seen.what == "answer-asked" and answers:
                self.waiting[seen.who] = answers[0]
            states = {
                after for state in self._closure(states) if (after := self._see(state, seen)) is not None
            }
            if seen.what == "answer":
                del self.waiting[seen.who]
            if not states:
                return False
        return any(self._ends(state) for state in self._closure(states))

    def _closure(self, states: set[_State]) -> set[_State]:
        found, fresh = set(states), list(states)
        while fresh:
            for after in self._courses(fresh.pop()):
                if after not in found:
                    found.add(after)
                    fresh.append(after)
        return found

    def _owner(self, value: int) -> int | None:
        return next((n for n, t in enumerate(self.told.txns) if value in [v for _, v in t.values]), None)

    def _courses(self, state: _State) -> Iterator[_State]:
        """What may happen without anybody seeing it."""
        for p, log in enumerate(self.told.final):
            if state.appended[p] < len(log):
                owner = self._owner(log[state.appended[p]][1])
                if owner is None or state.fates[owner] in ("open", "asked"):
                    yield replace(state, appended=_set(state.appended, p, state.appended[p] + 1))
        for n, txn in enumerate(self.told.txns):
            if state.fates[n] in ("open", "asked"):
                yield replace(state, fates=_set(state.fates, n, "aborted"))
            if state.fates[n] == "open" and self._silent(n):
                yield replace(state, fates=_set(state.fates, n, "asked"))
            if state.fates[n] == "asked" and all(self._has(state, p, v) for p, v in txn.values):
                offset = state.offset if txn.offset is None else txn.offset
                yield replace(state, fates=_set(state.fates, n, "committed"), offset=offset)
        for n, fate in enumerate(state.commits):
            if fate == "asked":
                yield replace(state, commits=_set(state.commits, n, "done"), offset=self.plain[n])
        for who, told in self.waiting.items():
            pending = any(
                fate == "asked" and txn.offset is not None
                for fate, txn in zip(state.fates, self.told.txns, strict=True)
            )
            if not pending and state.offset == told and who not in state.reads:
                yield replace(state, reads=state.reads | {who})

    def _has(self, state: _State, partition: int, value: int) -> bool:
        return value in [v for _, v in self.told.final[partition][: state.appended[partition]]]

    def _silent(self, n: int) -> bool:
        """Whether its commit may have been asked for without a word on record: it never completed, or no
        transactional id tells that the client writes down what it asks for."""
        end = next((one for one in self.told.seen if one.what == "end" and one.txn == n), None)
        return end is None or (end.asked is None and not self.told.txns[n].id)

    def _see(self, state: _State, seen: Seen) -> _State | None:
        fates = state.fates
        match seen.what:
            case "begin":
                mine = self.told.txns[seen.txn]
                for n, other in enumerate(self.told.txns):
                    if mine.id and other.id == mine.id and fates[n] == "asked":
                        return None  # its end is waited for
                    if mine.id and other.id == mine.id and fates[n] == "open":
                        fates = _set(fates, n, "aborted")
                return replace(state, fates=_set(fates, seen.txn, "open"))
            case "ask":
                if not any(one.what == "end" and one.txn == seen.txn for one in self.told.seen):
                    return state  # nobody wrote it down
                if not self._shown(state, seen.given):
                    return None
                if seen.asked == "commit" and fates[seen.txn] == "open":
                    return replace(state, fates=_set(fates, seen.txn, "asked"))
                if seen.asked == "abort" and fates[seen.txn] == "open":
                    return replace(state, fates=_set(fates, seen.txn, "aborted"))
                return state
            case "end":
                wanted = {"ok": "committed", "fail": "aborted"}.get(seen.type)
                return state if wanted is None or fates[seen.txn] == wanted else None
            case "poll":
                return state if self._shown(state, seen.given) else None
            case "answer":
                return replace(state, reads=state.reads - {seen.who}) if seen.who in state.reads else None
            case "commit-asked":
                return replace(state, commits=_set(state.commits, seen.who, "asked"))
            case "commit":
                done = state.commits[seen.who] == "done"
                return state if done or seen.type != "ok" else None
        return state

    def _shown(self, state: _State, given: tuple[tuple[int, int, int], ...]) -> bool:
        for p, offset, value in given:
            log = self.told.final[p][: state.appended[p]]
            if (offset, value) not in log:
                return False
            below = [self._owner(v) for o, v in log if o <= offset]
            if any(owner is not None and state.fates[owner] != "committed" for owner in below):
                return False
        return True

    def _ends(self, state: _State) -> bool:
        """Whether the final read would be this."""
        for n, txn in enumerate(self.told.txns):
            there = [v in [held for _, held in self.told.final[p]] for p, v in txn.values]
            if state.fates[n] == "committed" and not all(there):
                return False
            if state.fates[n] != "committed" and any(there):
                return False
        return all(state.appended[p] == len(log) for p, log in enumerate(self.told.final))


def _set(row: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    return (*row[:at], value, *row[at + 1 :])


def explained(told: Told, plain: tuple[int, ...]) -> bool:
    """``plain``: offsets of the commits that are of no transaction, by their number."""
    return _World(told, plain).explained()


# --- drawing


class _System:
    """A correct one, acting by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.logs: list[list[tuple[int, int, int]]] = [[] for _ in range(self.chance.randint(1, 2))]
        """(offset, value, transaction; -1 for none)."""
        self.ends = [0] * len(self.logs)
        self.seen: list[Seen] = []
        self.fates: list[str] = []
        self.asked: list[str | None] = []
        self.ended: set[int] = set()
        self.asking: dict[int, int | None] = {}
        """Who asks what is committed -> what was read."""
        self.offset = -1
        self.plain: list[int] = []
        self.done: list[str] = []
        self.askers = 0
        ids = self.chance.choice([("x",), ("x", "y"), ("x", ""), ("",), ("x", "x", "y")])
        self.txns: list[Txn] = []
        for n in range(self.chance.randint(1, 4)):
            places = [self.chance.randrange(len(self.logs)) for _ in range(self.chance.randint(1, 2))]
            values = tuple((p, value_of(n, at)) for at, p in enumerate(places))
            offset = self.chance.choice([None, n + 1, n + 1, 2])
            self.txns.append(Txn(n, self.chance.choice(ids), n, values, offset))
        for at in range(self.chance.randint(0, 2)):
            self._append(self.chance.randrange(len(self.logs)), value_of(50, at), -1)

    def run(self) -> Told:
        begun = 0
        for _ in range(self.chance.randint(6, 40)):
            if begun < len(self.txns) and self.chance.random() < 0.3:
                self._begin(begun)
                begun += 1
            else:
                acts = (self._write, self._write, self._ask, self._decide, self._end, self._poll, self._group)
                self.chance.choice(acts)()
        for n in range(len(self.fates)):
            if self.fates[n] in ("open", "asked"):
                self._settle(n)
        self.txns = self.txns[:begun]
        final = tuple(
            tuple((o, v) for o, v, n in log if n < 0 or self.fates[n] == "committed") for log in self.logs
        )
        return Told(tuple(self.txns), tuple(self.seen), final)

    def _append(self, partition: int, value: int, txn: int) -> None:
        self.logs[partition].append((self.ends[partition], value, txn))
        self.ends[partition] += 1

    def _lacks(self, n: int) -> list[tuple[int, int]]:
        return [(p, v) for p, v in self.txns[n].values if v not in [held for _, held, _ in self.logs[p]]]

    def _settle(self, n: int) -> None:
        commits = self.fates[n] == "asked" and not self._lacks(n) and self.chance.random() < 0.7
        self.fates[n] = "committed" if commits else "aborted"
        offset = self.txns[n].offset
        if commits and offset is not None:
            self.offset = offset

    def _begin(self, n: int) -> None:
        for other in range(n):
            if (
                self.txns[n].id
                and self.txns[other].id == self.txns[n].id
                and self.fates[other] in ("open", "asked")
            ):
                self._settle(other)
        self.fates.append("open")
        self.asked.append(None)
        self.seen.append(Seen("begin", n))
        if self.txns[n].offset is not None:
            self.seen.append(Seen("offsets", n))

    def _some(self, *fates: str) -> int | None:
        some = [n for n, fate in enumerate(self.fates) if fate in fates and n not in self.ended]
        return self.chance.choice(some) if some else None

    def _write(self) -> None:
        n = self._some("open")
        if n is not None and self._lacks(n):
            self._append(*self._lacks(n)[0], n)

    def _ask(self) -> None:
        n = self._some("open", "open", "aborted")
        if n is None or self.asked[n] is not None:
            return
        asked = "abort" if self._lacks(n) or self.chance.random() < 0.3 else "commit"
        given = self._stable() if self.chance.random() < 0.5 else ()
        self.asked[n] = asked
        self.seen.append(Seen("ask", n, asked=asked, given=given))
        if self.fates[n] == "open":
            self.fates[n] = "asked" if asked == "commit" else "aborted"

    def _decide(self) -> None:
        n = self._some("asked", "asked", "open")
        if n is not None and (self.fates[n] == "asked" or self.chance.random() < 0.1):
            self._settle(n)

    def _end(self) -> None:
        n = self._some("open", "asked", "committed", "aborted")
        if n is None or (self.asked[n] is None and self.chance.random() < 0.7):
            return
        kind = "info"
        if self.chance.random() < 0.7 and self.fates[n] == "committed":
            kind = "ok"
        elif self.chance.random() < 0.7 and self.fates[n] == "aborted" and self.asked[n] == "abort":
            kind = "fail"
        self.ended.add(n)
        self.seen.append(Seen("end", n, type=kind, asked=self.asked[n]))

    def _stable(self) -> tuple[tuple[int, int, int], ...]:
        found = []
        for p, log in enumerate(self.logs):
            fates = ["committed" if n < 0 else self.fates[n] for _, _, n in log]
            open_ = [at for at, fate in enumerate(fates) if fate in ("open", "asked")]
            below = zip(log[: min(open_, default=len(log))], fates, strict=False)
            visible = [(p, o, v) for (o, v, _), fate in below if fate == "committed"]
            if visible and self.chance.random() < 0.7:
                begin = self.chance.randrange(len(visible))
                found += visible[begin : begin + self.chance.randint(1, 3)]
        return tuple(found)

    def _poll(self) -> None:
        if given := self._stable():
            self.seen.append(Seen("poll", given=given))

    def _group(self) -> None:
        act = self.chance.random()
        if act < 0.25:
            self.plain.append(self.chance.randint(0, 5))
            self.done.append("asked")
            self.seen.append(Seen("commit-asked", who=len(self.plain) - 1))
        elif act < 0.5:
            some = [n for n, done in enumerate(self.done) if done in ("asked", "done")]
            if some:
                n = self.chance.choice(some)
                if self.done[n] == "asked":
                    self.done[n], self.offset = "done", self.plain[n]
                else:
                    self.done[n] = "told"
                    self.seen.append(Seen("commit", who=n, type=self.chance.choice(["ok", "ok", "info"])))
        elif act < 0.75:
            self.asking[self.askers] = None
            self.seen.append(Seen("answer-asked", who=self.askers))
            self.askers += 1
        elif self.asking:
            who = self.chance.choice(sorted(self.asking))
            told = self.asking[who]
            pending = any(f == "asked" and self.txns[n].offset is not None for n, f in enumerate(self.fates))
            if told is not None:
                self.seen.append(Seen("answer", who=who, told=told))
                del self.asking[who]
            elif not pending:
                self.asking[who] = self.offset


def drawn(seed: int) -> tuple[Told, tuple[int, ...]]:
    """A history that a correct system gave, and the offsets of its plain commits."""
    system = _System(seed)
    return system.run(), tuple(system.plain)


def spoiled(told: Told, seed: int) -> tuple[str, Told]:
    """The history with a change, which may have made it impossible, and what was changed."""
    chance = random.Random(seed)
    seen, txns, final = list(told.seen), list(told.txns), [list(log) for log in told.final]
    how = chance.choice(("type", "asked", "order", "final", "told", "id", "given", "order"))
    at = chance.randrange(len(seen)) if seen else 0
    ends = [n for n, one in enumerate(seen) if one.what == "end"]
    match how:
        case "type" if ends:
            at = chance.choice(ends)
            seen[at] = replace(seen[at], type=chance.choice(["ok", "fail", "info"]))
        case "asked" if ends:
            at = chance.choice(ends)
            asked = chance.choice(["commit", "abort"])
            seen = [
                replace(s, asked=asked) if s.txn == seen[at].txn and s.what in ("ask", "end") else s
                for s in seen
            ]
        case "order" if len(seen) > 1:
            one = seen.pop(at)
            others = [n for n in range(len(seen) + 1) if n != at]
            fit = [n for n in others if in_order(replace(told, seen=(*seen[:n], one, *seen[n:])))]
            seen.insert(chance.choice(fit or [at]), one)
        case "final":
            places = [(p, n) for p, log in enumerate(final) for n in range(len(log))]
            hidden = [(p, v) for t in txns for p, v in t.values if v not in [held for _, held in final[p]]]
            if hidden and chance.random() < 0.5:
                p, v = chance.choice(hidden)
                final[p].append(((final[p][-1][0] if final[p] else -1) + 1, v))
            elif places:
                p, n = chance.choice(places)
                if final[p][n][1] < value_of(50, 0):
                    del final[p][n]
        case "told":
            told_at = [n for n, one in enumerate(seen) if one.what == "answer"]
            if told_at:
                at = chance.choice(told_at)
                seen[at] = replace(seen[at], told=chance.randint(-1, 5))
        case "id" if txns:
            at = chance.randrange(len(txns))
            txns[at] = replace(txns[at], id=chance.choice(["x", "y", ""]))
        case "given":
            polls = [n for n, one in enumerate(seen) if one.what == "poll"]
            every = [(p, o, v) for p, log in enumerate(final) for o, v in log]
            if polls and every:
                at = chance.choice(polls)
                seen[at] = replace(seen[at], given=(chance.choice(every),))
    return how, Told(tuple(txns), tuple(seen), tuple(map(tuple, final)))


def in_order(told: Told) -> bool:
    """Whether every client still does one thing after another."""
    steps = {
        "begin": 0,
        "offsets": 1,
        "ask": 2,
        "end": 3,
        "answer-asked": 0,
        "answer": 1,
        "commit-asked": 0,
        "commit": 1,
    }
    last: dict[tuple[str, int], int] = {}
    for one in told.seen:
        if one.what == "poll":
            continue
        who = ("txn", one.txn) if one.txn >= 0 else ("a" if "answer" in one.what else "c", one.who)
        if steps[one.what] <= last.get(who, -1) or (steps[one.what] and who not in last):
            return False
        last[who] = steps[one.what]
    asked = {one.txn for one in told.seen if one.what == "ask"}
    begun = {one.txn for one in told.seen if one.what == "begin"}
    ends = [one for one in told.seen if one.what == "end"]
    return begun == {t.number for t in told.txns} and all(
        (one.txn in asked) == (one.asked is not None) for one in ends
    )


# --- as events


def events_of(told: Told, plain: tuple[int, ...]) -> tuple[RunInfo, list[Event]]:
    """The history as the recorder would have written it."""
    topics = (TopicInfo(TOPIC, len(told.final), 3, 2, contiguous=False),)
    about = info("tiny", workload="txn", topics=topics, isolation="read_committed")
    events: list[Event] = []
    asked: dict[int, dict[str, Any]] = {}
    given: dict[int, tuple[tuple[int, int, int], ...]] = {}
    offsets = {(p, v): o for p, log in enumerate(told.final) for o, v in log}

    def add(now: int, process: int, kind: str, f: str, **columns: Any) -> None:
        topic = columns.pop("topic", TOPIC)
        events.append(
            Event(
                process,
                Type(kind),
                f,
                topic=topic,
                index=len(events),
                time_ns=now * STEP_NS + len(events),
                **columns,
            )
        )

    def offset_of(txn: Txn, partition: int, value: int, kind: str) -> int:
        code = {"fail": FAILED, "info": UNKNOWN}.get(kind)
        return offsets.get((partition, value), 90 + txn.number) if code is None else code

    for phase in ("setup", "main"):
        add(0, CONTROL, "info", "phase", topic=None, extra={"phase": phase})
    for at, (place, offset) in enumerate(sorted(offsets.items())):
        if place[1] >= value_of(50, 0):
            record = Record(place[0], offset, place[1])
            add(0, 50 + at, "invoke", "send", partition=place[0], records=(record._replace(offset=UNKNOWN),))
            add(0, 50 + at, "ok", "send", partition=place[0], records=(record,))
    has_poll = {one.txn: bool(one.given) for one in told.seen if one.what == "ask"}
    for now, one in enumerate(told.seen, 1):
        mine = next((t for t in told.txns if t.number == one.txn), None)
        match one.what:
            case "begin" if mine is not None:
                named = {"transactional_id": mine.id} if mine.id else {}
                records = tuple(Record(p, UNKNOWN, v) for p, v in mine.values)
                add(now, mine.process, "invoke", "send", records=records, extra={"txn": mine.number, **named})
                if has_poll.get(mine.number):
                    add(now, 100 + mine.process, "invoke", "poll", extra={"txn": mine.number})
            case "offsets" if mine is not None:
                extra = {"txn": mine.number, "group": GROUP, "offsets": {"0": mine.offset}}
                add(now, 200 + mine.process, "invoke", "commit", extra=extra)
            case "ask":
                asked[one.txn] = {"asked": one.asked, "end_ns": now * STEP_NS + len(events)}
                given[one.txn] = one.given
            case "end" if mine is not None:
                extra = {"txn": mine.number, **asked.get(mine.number, {})}
                if any(s.what == "offsets" and s.txn == mine.number for s in told.seen[:now]):
                    said = {**extra, "group": GROUP, "offsets": {"0": mine.offset}}
                    add(now, 200 + mine.process, one.type, "commit", extra=said)
                if has_poll.get(mine.number):
                    undone = {} if one.type == "ok" else {"aborted": one.type}
                    got = tuple(Record(*record) for record in given[mine.number])
                    add(now, 100 + mine.process, "ok", "poll", records=got, extra={**extra, **undone})
                records = tuple(Record(p, offset_of(mine, p, v, one.type), v) for p, v in mine.values)
                error = None if one.type == "ok" else "aborted"
                add(now, mine.process, one.type, "send", records=records, extra=extra, error=error)
            case "poll":
                add(now, 300, "invoke", "poll")
                add(now, 300, "ok", "poll", records=tuple(Record(*record) for record in one.given))
            case "answer-asked":
                add(now, 400 + one.who, "invoke", "committed", extra={"group": GROUP})
            case "answer":
                extra = {"group": GROUP, "offsets": {"0": one.told}}
                add(now, 400 + one.who, "ok", "committed", extra=extra)
            case "commit-asked" | "commit":
                kind = "invoke" if one.what == "commit-asked" else one.type
                extra = {"group": GROUP, "offsets": {"0": plain[one.who]}}
                add(now, 500 + one.who, kind, "commit", extra=extra)
    now = len(told.seen) + 1
    add(now, CONTROL, "info", "phase", topic=None, extra={"phase": "drain"})
    for p, log in enumerate(told.final):
        end = log[-1][0] + 1 if log else 0
        columns = {"partition": p, "offset": 0, "high_watermark": end}
        add(now, 900 + p, "invoke", "drain", partition=p)
        extra = {"positions": {str(p): end}, "asked": True, "complete": True}
        add(
            now,
            900 + p,
            "ok",
            "drain",
            records=tuple(Record(p, o, v) for o, v in log),
            extra=extra,
            **columns,
        )
    return about, events
