"""What each checker promises, by trying everything out: slow, and without a line of the checkers.

Each answers whether a history is possible. An operation without a return may have taken effect at any time
after its invocation, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations, permutations, product
from typing import Any

from wrackline.checkers.models.protocol import Operation, Outcome

History = Sequence[Operation]
Possible = Callable[[History], bool]
OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def _ok(history: History, *fs: str) -> list[Operation]:
    return [one for one in history if one.outcome is OK and one.f in fs]


def _may(history: History, *fs: str) -> list[Operation]:
    return [one for one in history if one.outcome is not FAIL and one.f in fs]


def _end(one: Operation) -> float:
    return float("inf") if one.ret is None else one.ret


def _subsets(of: Sequence[Any]) -> Any:
    return chain.from_iterable(combinations(of, size) for size in range(len(of) + 1))


def bank(history: History) -> bool:
    return all(
        sum(read.result.values()) == 30 and all(held >= 0 for held in read.result.values())
        for read in _ok(history, "read")
    )


def ids(history: History) -> bool:
    given = _ok(history, "generate")
    return not any(a.result == b.result for a, b in combinations(given, 2))


def adya(history: History) -> bool:
    return not any(a.argument[0] == b.argument[0] for a, b in combinations(_ok(history, "insert"), 2))


def counter(history: History) -> bool:
    """The bounds are the least and the largest sum of a possible set of additions."""
    adds = _may(history, "add")
    for read in _ok(history, "read"):
        must = [one.argument for one in adds if _end(one) < read.inv]
        may = [one.argument for one in adds if not _end(one) < read.inv and one.inv <= _end(read)]
        sums = [sum(must) + sum(some) for some in _subsets(may)]
        if not min(sums) <= read.result <= max(sums):
            return False
    return True


def _from_somewhere(history: History, add: str) -> bool:
    """Whether each element of each read, once, can have been added by then."""
    for read in _ok(history, "read"):
        if len(set(read.result)) != len(read.result):
            return False
        for value in read.result:
            if not any(one.argument == value and one.inv <= _end(read) for one in _may(history, add)):
                return False
    return True


def final_set(history: History) -> bool:
    reads = sorted(_ok(history, "read"), key=lambda one: (_end(one), one.inv))
    if not reads:
        return True
    last = reads[-1]
    if not _from_somewhere([*_may(history, "add"), last], "add"):
        return False
    return all(one.argument in last.result for one in _ok(history, "add") if _end(one) < last.inv)


def set_full(history: History) -> bool:
    """No element is known to be there, is missed by a later read, and is in no read that ended as that one
    began, or later."""
    return _from_somewhere(history, "add") and not any(
        not any(value in other.result and _end(other) >= read.inv for other in _ok(history, "read"))
        for value, read in _missed(history)
    )


def linearizable_set(history: History) -> bool:
    return _from_somewhere(history, "add") and not list(_missed(history))


def _missed(history: History) -> Any:
    reads = _ok(history, "read")
    for value in {one.argument for one in _may(history, "add")}:
        shows = [_end(one) for one in _ok(history, "add") if one.argument == value]
        shows += [_end(one) for one in reads if value in one.result]
        for read in reads:
            if value not in read.result and any(end < read.inv for end in shows):
                yield value, read


def _outs(history: History) -> list[tuple[Any, Operation]]:
    found = [(one.result, one) for one in _ok(history, "dequeue") if one.result not in (None, "empty")]
    return found + [(value, one) for one in _ok(history, "drain") for value in one.result]


def queue(history: History) -> bool:
    """There is an enqueue of its own for each value that came out."""
    enqueues = _may(history, "enqueue")
    outs = _outs(history)

    def matched(at: int, used: frozenset[int]) -> bool:
        if at == len(outs):
            return True
        value, out = outs[at]
        return any(
            number not in used
            and one.argument == value
            and one.inv <= _end(out)
            and matched(at + 1, used | {number})
            for number, one in enumerate(enqueues)
        )

    return matched(0, frozenset())


def total_queue(history: History) -> bool:
    """Each value came from somewhere, and for each acknowledged one there is a dequeue of its own, known or
    not, if somebody found the queue empty after it."""
    outs = _outs(history)
    for value, out in outs:
        if not any(one.argument == value and one.inv <= _end(out) for one in _may(history, "enqueue")):
            return False
    empty = [one for one in _ok(history, "dequeue") if one.result in (None, "empty")] + _ok(history, "drain")
    gone = [one for one in _ok(history, "enqueue") if any(_end(one) < witness.inv for witness in empty)]
    unknown = [one for one in history if one.outcome is INFO and one.f == "dequeue"]
    if any(one.outcome is INFO and one.f == "drain" for one in history):
        return True

    def matched(at: int, used: frozenset[Any]) -> bool:
        if at == len(gone):
            return True
        takers = [("known", n) for n, (value, _) in enumerate(outs) if value == gone[at].argument]
        takers += [("unknown", n) for n in range(len(unknown))]
        return any(taker not in used and matched(at + 1, used | {taker}) for taker in takers)

    return matched(0, frozenset())


def once_only_queue(history: History) -> bool:
    return total_queue(history) and queue(history)


def long_fork(history: History) -> bool:
    """There is an order of the writes of which each read shows a beginning."""
    written: dict[str, list[Operation]] = {}
    for one in _may(history, "write"):
        written.setdefault(one.argument[0][1], []).append(one)
    reads = _ok(history, "read")
    for read in reads:
        for _, key, value in read.result:
            if value is not None and not any(
                one.argument[0][2] == value and one.inv <= _end(read) for one in written.get(key, ())
            ):
                return False
    return any(all(_is_beginning(read, order) for read in reads) for order in permutations(written))


def _is_beginning(read: Operation, order: Sequence[str]) -> bool:
    shown = {key: value is not None for _, key, value in read.result}
    there = [shown[key] for key in order if key in shown]
    return there == sorted(there, reverse=True)


def causal(history: History) -> bool:
    """Each write of unknown outcome has a moment, or none, so that each read shows the last write."""
    steps = [one for one in history if one.outcome is OK]
    unknown = [one for one in history if one.outcome is INFO and one.f == "write"]
    # A moment is the number of a step before which it takes effect; those of one moment, in any order.
    moments = [[None, *(at for at, step in enumerate(steps) if _end(step) >= one.inv)] for one in unknown]
    for chosen in product(*moments):
        for order in permutations(range(len(unknown))):
            if _chain(steps, [(chosen[n], unknown[n].argument) for n in order]):
                return True
    return False


def _chain(steps: Sequence[Operation], late: Sequence[tuple[int | None, Any]]) -> bool:
    held: Any = 0
    for at, step in enumerate(steps):
        for moment, value in late:
            if moment == at:
                held = value
        if step.f == "write":
            held = step.argument
        elif step.result != held:
            return False
    return True


def causal_reverse(history: History) -> bool:
    """For each read there is an order of the writes, in keeping with time, of which it shows a beginning."""
    if not _from_somewhere([one for one in history if one.f != "read"], "write"):
        return False
    writes = _may(history, "write")
    for read in _ok(history, "read"):
        shown = set(read.result)
        if not all(any(one.argument == v and one.inv <= _end(read) for one in writes) for v in shown):
            return False
        if not any(_shows(shown, order) for order in _in_time(writes)):
            return False
    return True


def _in_time(writes: Sequence[Operation]) -> Any:
    for order in permutations(writes):
        if not any(_end(later) < earlier.inv for earlier, later in combinations(order, 2)):
            yield order


def _shows(shown: set[Any], order: Sequence[Operation]) -> bool:
    beginnings = [{one.argument for one in order[:size]} for size in range(len(order) + 1)]
    return shown in beginnings


def sequential(history: History) -> bool:
    """There are moments of three writes, one after another, and of three reads, the last part first."""
    for read in _ok(history, "read"):
        key, found = read.result
        there = [part is not None for part in reversed(found)]
        if any(there) and not any(
            one.argument == key and one.inv <= _end(read) for one in history if one.f == "write"
        ):
            return False
        if not any(
            there == [at < looked for at, looked in zip(wrote, reversed(looks), strict=True)]
            for wrote in combinations(range(6), 3)
            for looks in [sorted(set(range(6)) - set(wrote))]
        ):
            return False
    return True


def monotonic(history: History) -> bool:
    reads = sorted(_ok(history, "read"), key=lambda one: (_end(one), one.inv))
    for read in reads:
        for earlier, later in combinations(read.result, 2):
            if earlier["val"] == later["val"] or int(earlier["sts"]) > int(later["sts"]):
                return False
        for a, b in permutations(read.result, 2):
            if int(a["sts"]) < int(b["sts"]) and a["val"] > b["val"]:
                return False
    return not reads or all(
        any(row["val"] == one.result["val"] for row in reads[-1].result)
        for one in _ok(history, "add")
        if _end(one) < reads[-1].inv
    )


def lock(limit: int, fenced: bool, permits: int = 0) -> Possible:
    """There is an order of the operations, in keeping with time, that a lock allows, or with ``permits`` a
    semaphore."""

    def possible(history: History) -> bool:
        certain = [one for one in history if one.outcome is OK]
        unknown = [one for one in history if one.outcome is INFO]
        told = [(one.process, one.result["client"]) for one in certain if "client" in one.result]
        for some in _subsets(unknown):
            every = [*certain, *some]
            for whose in product(*[_owners(one, told) for one in every]):
                if _placed([*zip(every, whose, strict=True)], (), (0, 0)):
                    return True
        return False

    def _owners(one: Operation, told: Sequence[tuple[int, Any]]) -> set[Any]:
        """Who may have done it."""
        if one.outcome is OK and "client" in one.result:
            return {one.result["client"]}
        every = {client for process, client in told if process == one.process}
        return every or {client for _, client in told} | {one.process}

    def _placed(left: list[tuple[Operation, Any]], held: tuple[Any, ...], fences: tuple[int, int]) -> bool:
        """``left``: operations with their owners; ``held``: the owners of all holds; ``fences``: (that of the
        hold, or 0, and the highest)."""
        if not left:
            return True
        first = min(_end(one) for one, _ in left)
        for at, (one, mine) in enumerate(left):
            if one.inv > first:
                continue
            after = _after(one, mine, held, fences)
            if after is not None and _placed([*left[:at], *left[at + 1 :]], *after):
                return True
        return False

    def _after(one: Operation, mine: Any, held: tuple[Any, ...], fences: tuple[int, int]) -> Any:
        if one.f == "release":
            if mine not in held:
                return None
            rest = list(held)
            rest.remove(mine)
            return tuple(sorted(rest, key=str)), fences if rest else (0, fences[1])
        if permits:
            return (tuple(sorted([*held, mine], key=str)), fences) if len(held) < permits else None
        if any(other != mine for other in held) or len(held) == limit:
            return None
        told = one.result.get("fence", 0) if one.outcome is OK and fenced else 0
        if told and (told != fences[0] if fences[0] else told <= fences[1]):
            return None
        return (*held, mine), (told or fences[0], max(told, fences[1]))

    return possible
