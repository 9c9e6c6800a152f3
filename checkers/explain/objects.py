"""The reason why a register or a queue has no valid order, from the few operations that its finding cites
(docs/linearizability.md 3.1, 3.3).

A register holds a value from its write to the last read of it, and no other value meanwhile. So the
operations of one value are a block: where one of them came before an operation of another value, all of them
came before all of the other's. A queue gives values out in the order in which they were put in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

from wrackline.checkers.checks.explained_by import By
from wrackline.checkers.explain.citations import TAKES, Cited, is_marker
from wrackline.checkers.explain.edges import in_time
from wrackline.checkers.explain.model import Edge, EdgeKind, Shown
from wrackline.history.wording import value_label


def cycle_of_object(cited: Sequence[Cited], by: By) -> list[Edge]:
    """The edges that prove it, as a cycle; empty where the history is wrong in any order (a value that nobody
    wrote)."""
    puts = {record.value: one for one in cited for record in one.sent if not is_marker(record)}
    takes: dict[int, list[Cited]] = {}
    for one in cited:
        if one.op.f in TAKES and one.read:
            takes.setdefault(one.read[0].value, []).append(one)
    nothing = [one for one in cited if one.took_nothing]
    cycles = _from_the_future(puts, takes)
    if by is By.REGISTER:
        cycles = [*cycles, *_never_written(puts, nothing), *_interleaved(puts, takes)]
    else:
        cycles = [*cycles, *_overtaken(puts, takes), *_not_empty(puts, takes, nothing)]
    return min(cycles, key=len, default=[])


def _from_the_future(puts: dict[int, Cited], takes: dict[int, list[Cited]]) -> list[list[Edge]]:
    return [
        [timed, _edge(put, take, EdgeKind.SEEN, _given(take, value, put), value)]
        for value, put in puts.items()
        for take in takes.get(value, ())
        if (timed := in_time(take, put)) is not None
    ]


def _edge(before: Cited, after: Cited, kind: EdgeKind, sentence: str, value: int) -> Edge:
    """About a value that one of the two put and that the other took, or did not find."""

    def shown(one: Cited) -> Shown:
        return Shown() if one.took_nothing else Shown(value=value)

    return Edge(before.number, after.number, kind, sentence, shown(before), shown(after))


def _given(take: Cited, value: int, put: Cited) -> str:
    verb = "returned" if take.op.f == "read" else "took"
    return f"{take.name} {verb} {value_label(value)}, which {put.name} put there"


def _never_written(puts: dict[int, Cited], nothing: Sequence[Cited]) -> Iterator[list[Edge]]:
    for (value, put), read in product(puts.items(), nothing):
        timed = in_time(put, read)
        if timed is not None:
            sentence = (
                f"{read.name} found nothing written, so it must be before {put.name}, "
                f"which wrote {value_label(value)}"
            )
            yield [timed, _edge(read, put, EdgeKind.UNSEEN, sentence, value)]


def _interleaved(puts: dict[int, Cited], takes: dict[int, list[Cited]]) -> Iterator[list[Edge]]:
    """An operation of one value before one of another, and one of the other before one of the first."""
    blocks = {
        value: [*([puts[value]] if value in puts else []), *takes.get(value, ())] for value in {*puts, *takes}
    }
    for one, other in permutations(blocks, 2):
        there = [e for a, b in product(blocks[one], blocks[other]) if (e := in_time(a, b)) is not None]
        back = [e for b, a in product(blocks[other], blocks[one]) if (e := in_time(b, a)) is not None]
        for forth, home in product(there, back):
            path = [forth, *_held(other, forth.after, home.before, blocks), home]
            yield [*path, *_held(one, home.after, forth.before, blocks)]


def _held(value: int, first: int, last: int, blocks: dict[int, list[Cited]]) -> Iterator[Edge]:
    """Two operations of one value, which the register held all the while from the one to the other."""
    if first != last:
        names = {w.number: w.name for w in blocks[value]}
        sentence = (
            f"{names[first]} and {names[last]} are both of {value_label(value)}: from the one to the other "
            "the register holds it, and no other value"
        )
        yield Edge(first, last, EdgeKind.VALUE, sentence, Shown(value=value), Shown(value=value))


def _overtaken(puts: dict[int, Cited], takes: dict[int, list[Cited]]) -> Iterator[list[Edge]]:
    for earlier, later in permutations(puts, 2):
        went_in = in_time(puts[earlier], puts[later])
        if went_in is None:
            continue
        for first, last in product(takes.get(earlier, ()), takes.get(later, ())):
            timed = in_time(last, first)
            if timed is not None:
                sentence = (
                    f"{went_in.sentence}: so {value_label(earlier)} must come out first, by {first.name}, "
                    f"and {value_label(later)} after it, by {last.name}"
                )
                shown = Shown(value=earlier), Shown(value=later)
                yield [timed, Edge(first.number, last.number, EdgeKind.QUEUE, sentence, *shown)]


def _not_empty(
    puts: dict[int, Cited], takes: dict[int, list[Cited]], nothing: Sequence[Cited]
) -> Iterator[list[Edge]]:
    for (value, put), result in product(puts.items(), nothing):
        went_in = in_time(put, result)
        came_out = [in_time(result, take) for take in takes.get(value, ())]
        if went_in is not None and all(came_out):
            until = (
                f"only {takes[value][0].name} took it, later" if came_out else "no operation had taken it out"
            )
            sentence = (
                f"{result.name} found the queue empty, so {value_label(value)} was not in it yet: {until}"
            )
            yield [went_in, _edge(result, put, EdgeKind.UNSEEN, sentence, value)]
