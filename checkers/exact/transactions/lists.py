"""Transactions that append to lists and read them. A list shows who appended before whom, so everything that
follows from what was read is known, and nothing is left to search for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from wrackline.checkers.exact.transactions.answers import Case, Edge, operation
from wrackline.checkers.exact.transactions.rows import Txn
from wrackline.checkers.models.protocol import Outcome

_Elements = tuple[int, ...]


@dataclass(slots=True)
class Lists:
    """The evidence from lists: what was read and appended. Transactions are rows."""

    counts: list[bool]
    """Of each transaction, whether it happened: it is ok, or somebody read what it appended."""
    edges: list[Edge] = field(default_factory=list)
    wrong: list[tuple[str, Case]] = field(default_factory=list)
    repeated: tuple[int, int, _Elements] | None = None
    """(key, element, who appended it): one that several transactions appended, and that was read."""


@dataclass(slots=True)
class _Key:
    reads: list[tuple[int, _Elements]] = field(default_factory=list)
    """Of each that read it: what it held before the transaction."""
    longest: tuple[int, _Elements] = (-1, ())
    """(Who read it, all elements)."""
    appended: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Of each transaction that did not fail, in order."""
    writers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Of each element: who appended it and did not fail."""
    failed: dict[int, int] = field(default_factory=dict)


def lists(txns: Sequence[Txn]) -> Lists:
    result = Lists([one.known for one in txns])
    keys: dict[int, _Key] = defaultdict(_Key)
    for one in txns:
        for mop in one.mops:
            if not mop.writes:
                continue
            if one.outcome is Outcome.FAIL:
                keys[mop.key].failed.setdefault(mop.value, one.row)
            else:
                keys[mop.key].appended[one.row].append(mop.value)
                if one.row not in keys[mop.key].writers[mop.value]:
                    keys[mop.key].writers[mop.value].append(one.row)
    for one in txns:
        if one.known:
            _read(one, keys, result)
    for key, of_key in keys.items():
        _origins(key, of_key, result)
    if not result.wrong and result.repeated is None:
        for key, of_key in keys.items():
            result.edges += _edges(key, of_key, result.counts)
    return result


def _read(one: Txn, keys: dict[int, _Key], found: Lists) -> None:
    before: dict[int, _Elements] = {}
    own: dict[int, _Elements] = defaultdict(tuple)
    for mop in one.mops:
        key, seen = mop.key, mop.elements
        if mop.writes:
            own[key] += (mop.value,)
            continue
        of_key, mine = keys[key], own[key]
        twice = next((element for element, times in Counter(seen).items() if times > 1), None)
        if twice is not None:
            writers = of_key.writers.get(twice, [])
            if len(writers) > 1:
                found.repeated = found.repeated or (key, twice, tuple(writers))
            else:
                found.wrong.append(_wrong("duplicate-elements", one.row, key, seen))
            continue
        base = before.get(key)
        if base is None and seen[len(seen) - len(mine) :] == mine:
            base = seen[: len(seen) - len(mine)]
        if base is None or seen != base + mine:
            expected = [*(base if base is not None else ("...",)), *mine]
            found.wrong.append(_wrong("internal", one.row, key, seen, expected=expected))
            continue
        later = [element for element in base if of_key.writers.get(element) == [one.row]]
        if later:
            found.wrong.append(_wrong("future-read", one.row, key, seen, element=later[0]))
            continue
        before[key] = base
    for key, base in before.items():
        of_key = keys[key]
        of_key.reads.append((one.row, base))
        after = base + tuple(of_key.appended.get(one.row, ()))
        if len(after) > len(of_key.longest[1]):
            of_key.longest = one.row, after


def _origins(key: int, of_key: _Key, found: Lists) -> None:
    """Checks where elements come from, and whether all reads are beginnings of one list."""
    reader, longest = of_key.longest
    place = {element: at for at, element in enumerate(longest)}
    for row, seen in of_key.reads:
        if longest[: len(seen)] != seen:
            facts = {"key": key, "values": [list(seen), list(longest)]}
            found.wrong.append(("incompatible-order", Case((row, reader), "", facts=facts)))
            return
    # Each element is told of the first who read it: the others read the same beginning.
    first = {len(seen): row for row, seen in reversed([*of_key.reads, (reader, longest)])}
    whom = reader
    for at in range(len(longest) - 1, -1, -1):
        whom = first.get(at + 1, whom)
        element = longest[at]
        writers = of_key.writers.get(element, [])
        if len(writers) > 1:
            found.repeated = found.repeated or (key, element, tuple(writers))
        elif writers:
            found.counts[writers[0]] = True
        elif element in of_key.failed:
            writer = operation(of_key.failed[element])
            found.wrong.append(_wrong("G1a", whom, key, longest, element=element, writer=writer))
        else:
            found.wrong.append(_wrong("garbage-read", whom, key, longest, element=element))
    ends = {len(seen): row for row, seen in [*of_key.reads, (reader, longest)]}
    for row, appended in of_key.appended.items():
        places = [place[element] for element in appended if element in place]
        if not places:
            continue
        first_one, last_one = places[0], places[-1]
        split = [end for end in range(first_one + 1, last_one + 1) if ends.get(end, row) != row]
        if [*range(first_one, first_one + len(appended))] != [place.get(element) for element in appended]:
            split = [last_one + 1]
        if split:
            seen, whom = longest[: split[0]], ends.get(split[0], reader)
            found.wrong.append(_wrong("G1b", whom, key, seen, element=seen[-1], writer=operation(row)))


def _edges(key: int, of_key: _Key, counts: Sequence[bool]) -> Iterator[Edge]:
    """Yields the edges between the transactions of a key, as far as they do not follow from the others."""
    _, longest = of_key.longest
    groups: list[tuple[int, int, int]] = []
    """(who appended, first element, last element), in the list's order."""
    ends: dict[int, int] = {0: -1}
    """Length of the list after each group -> its place among them."""
    for at, element in enumerate(longest):
        writer = of_key.writers[element][0]
        if groups and groups[-1][0] == writer:
            groups[-1] = writer, groups[-1][1], element
            del ends[at]
        else:
            groups.append((writer, element, element))
        ends[at + 1] = len(groups) - 1
    for (before, _, last), (after, next_value, _) in pairwise(groups):
        yield Edge("ww", before, after, key, last, next_value)
    known = {writer for writer, _, _ in groups}
    unread = [
        (writer, appended[0])
        for writer, appended in of_key.appended.items()
        if writer not in known and counts[writer]
    ]
    for reader, seen in of_key.reads:
        at = ends[len(seen)]
        value = seen[-1] if seen else None
        if at >= 0 and groups[at][0] != reader:
            yield Edge("wr", groups[at][0], reader, key, value)
        behind = [groups[at + 1][:2]] if at + 1 < len(groups) else unread
        for after, next_value in behind:
            if after != reader:
                yield Edge("rw", reader, after, key, value, next_value)
    if groups:
        before, _, last = groups[-1]
        for after, next_value in unread:
            yield Edge("ww", before, after, key, last, next_value)


def _wrong(kind: str, row: int, key: int, seen: _Elements, **facts: Any) -> tuple[str, Case]:
    said = {"op": operation(row), "mop": ["r", key, list(seen)], **facts}
    rows = [row, *(fact["operation"] for fact in facts.values() if isinstance(fact, dict))]
    return kind, Case(tuple(dict.fromkeys(rows)), "", facts=said)
