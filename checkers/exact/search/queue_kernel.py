"""The search for an order of a FIFO queue's operations whose values repeat, compiled to native code by numba.

A queue is two orders, that in which values go in and that in which they come out, and the n-th of one is the
n-th of the other. So this search does not go through time with the queue's contents as its state: it goes
through the queue, a *pair* of an enqueue and the dequeue of the same value at a time. What it must remember
is which enqueues and which dequeues have their place, in neither case how these were ordered: as many sets as
operations can be open at once, at each length. (``wrackline.checkers.exact.search.kernel`` would remember
every order of concurrent enqueues until the values come out.)

**A pair may be next** when all that certainly happened and has no place yet returns after the invocation that
is placed: enqueues after the enqueue's, dequeues after the dequeue's, and dequeues after the enqueue's. A
sequence of such pairs has an order in time: each operation as early as those before it in the sequence allow.
What certainly happened and has no place at the end are enqueues; they come last.

**An answer "empty"** fits between two pairs if a moment of it is at or after the invocation of all that has a
place (LATEST) and at or before the return of all that has none. Both limits only grow. So what must be known
of the answers that already had a moment is the last upper limit where there was one (QUIET).

**Equal operations are tried once.** Of two enqueues of one value that may be next, the one that returns first
goes first: exchanged, they are allowed wherever the others were. The same holds of dequeues, and of those of
unknown outcome, which never return. Where an answer "empty" still waits, this needs too that the one that
returns first is invoked no later than the other, or than LATEST.
"""

from __future__ import annotations

from wrackline.checkers.exact.search.kernel import Said, covers, hashed, place, take_back
from wrackline.checkers.exact.search.native import Longs, Words, native

NEVER = (1 << 31) - 1
ANY = -1
"""Value of a dequeue of unknown outcome."""


class Q:
    """Places in the array of registers: what the search knows between two calls of ``run``."""

    MODE, DEPTH, PUT_FRONT, GET_FRONT, LATEST, QUIET, CHOICE, SEEN, BUDGET, TRIED, BEST, SIZE = range(12)


_ENTER, _TRY, _BACK = 0, 1, 2
PUT, GET = 0, 1
_PUT, _GET, _CHOICE_AT, _PUT_FRONT_AT, _GET_FRONT_AT, _LATEST_AT, _QUIET_AT = range(7)
"""Columns of the stack: the pair, and what was before it."""
STACK = 7
_PAUSED, _VALID, _INVALID, _FULL = int(Said.PAUSED), int(Said.VALID), int(Said.INVALID), int(Said.FULL)
_MODE, _DEPTH, _PUT_FRONT, _GET_FRONT, _LATEST, _QUIET = range(6)
_CHOICE, _SEEN, _BUDGET, _TRIED, _BEST = range(6, 11)


@native
def _before(table: Longs, event: int) -> int:
    """Returns how many entries of the first column are smaller than ``event``; the column is ascending."""
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) >> 1
        if table[middle, 0] < event:
            low = middle + 1
        else:
            high = middle
    return low


@native
def _beaten(
    ops: Words, links: Words, one: int, value: int, inv: int, back: int, limit: int, bar: int
) -> bool:
    """Tells whether another operation of this value that may be next goes first. ``back``: the place of
    ``one`` among the returns."""
    n = len(ops)
    at = links[n, 0]
    while at != n and ops[at, 0] <= limit:
        if at != one and ops[at, 1] == value and ops[at, 3] < back and ops[at, 0] <= max(inv, bar):
            return True
        at = links[at, 0]
    return False


@native
def _maybe(unknowns: Words, kinds: Words, kind: int, limit: int) -> int:
    """When the next one of this kind of unknown outcome was invoked; -1 where there is none."""
    if kind < 0:
        return -1
    at = kinds[kind, 0] + kinds[kind, 1]
    inv = int(unknowns[at, 0]) if at < kinds[kind + 1, 0] else NEVER
    return inv if inv <= limit and inv != NEVER else -1


@native
def _pair(
    choice: int,
    puts: Words,
    put_links: Words,
    maybe_puts: Words,
    put_kinds: Words,
    put_kind_of: Words,
    put_limit: int,
    gets: Words,
    get_links: Words,
    maybe_gets: Words,
    get_kinds: Words,
    get_kind_of: Words,
    get_limit: int,
    bar: int,
) -> tuple[int, int, int]:
    """The pair of this number that may be next, and the later invocation of its two; -1 if there are fewer.
    An operation is its row, or ``len(ops)`` and its kind."""
    n, m = len(puts), len(gets)
    result = 0
    get = get_links[m, 0]
    while get != m and gets[get, 0] <= get_limit:
        value, inv = gets[get, 1], gets[get, 0]
        if not _beaten(gets, get_links, get, value, inv, gets[get, 3], get_limit, bar):
            put = put_links[n, 0]
            while put != n and puts[put, 0] <= put_limit:
                if puts[put, 1] == value and not _beaten(
                    puts, put_links, put, value, puts[put, 0], puts[put, 3], put_limit, bar
                ):
                    if result == choice:
                        return put, get, max(inv, puts[put, 0])
                    result += 1
                put = put_links[put, 0]
            maybe = _maybe(maybe_puts, put_kinds, put_kind_of[value], put_limit)
            if maybe >= 0 and not _beaten(puts, put_links, -1, value, maybe, n, put_limit, bar):
                if result == choice:
                    return n + put_kind_of[value], get, max(inv, maybe)
                result += 1
        get = get_links[get, 0]
    put = put_links[n, 0]
    while put != n and puts[put, 0] <= put_limit:
        value, inv = puts[put, 1], puts[put, 0]
        if not _beaten(puts, put_links, put, value, inv, puts[put, 3], put_limit, bar):
            known = _maybe(maybe_gets, get_kinds, get_kind_of[value], get_limit)
            if known >= 0 and not _beaten(gets, get_links, -1, value, known, m, get_limit, bar):
                if result == choice:
                    return put, m + get_kind_of[value], max(inv, known)
                result += 1
            kind = get_kind_of[len(get_kind_of) - 1]
            maybe = _maybe(maybe_gets, get_kinds, kind, get_limit)
            if (
                maybe >= 0
                and not (0 <= known <= max(maybe, bar))
                and not _beaten(gets, get_links, -1, value, maybe, m, get_limit, bar)
            ):
                if result == choice:
                    return put, m + kind, max(inv, maybe)
                result += 1
        put = put_links[put, 0]
    return -1, -1, -1


@native
def run(
    regs: Longs,
    puts: Words,
    put_returns: Words,
    put_links: Words,
    maybe_puts: Words,
    put_kinds: Words,
    put_kind_of: Words,
    gets: Words,
    get_returns: Words,
    get_links: Words,
    maybe_gets: Words,
    get_kinds: Words,
    get_kind_of: Words,
    empty: Longs,
    asks: Longs,
    masks: Longs,
    at_word: Words,
    stack: Words,
    best: Words,
    heads: Words,
    chain: Words,
    seen: Longs,
) -> int:
    """Search on. Returns a ``Said``: PAUSED, VALID, INVALID or FULL.

    puts, returns, links, maybe and kinds: as ``wrackline.checkers.exact.search.kernel.run`` has ops, returns,
    links, unknowns and kinds; a symbol is the number of a value. kind_of: of each value the row of kinds, or
    -1, and in the end that of ANY. empty: (x, 2) of the answers "empty" the event of the return, ascending,
    and the latest invocation of those so far. asks: (x, 1) the events of their invocations, ascending. masks:
    words with a bit for each slot of the enqueues, and of the dequeues, and then one for each enqueue, and
    each dequeue, of unknown outcome; at_word: where these four begin, and the end. stack: (pairs, STACK);
    best: (pairs, 2). seen: (size, 2 + words)."""
    n, m, last_get = len(puts), len(gets), len(get_returns)
    words, all_words = at_word[2], at_word[4]
    put_mask, get_mask = masks[: at_word[1]], masks[at_word[1] : words]
    last_head = len(heads) - 1
    last_ask = asks[len(asks) - 1, 0] if len(asks) > 0 else -1
    mode, depth, count, budget = regs[_MODE], regs[_DEPTH], regs[_SEEN], regs[_BUDGET]
    put_front, get_front, latest = regs[_PUT_FRONT], regs[_GET_FRONT], regs[_LATEST]
    quiet, choice = regs[_QUIET], regs[_CHOICE]
    said = -1
    while said < 0:
        put_end = put_returns[put_front, 0] if put_front < len(put_returns) else NEVER
        get_end = get_returns[get_front, 0] if get_front < last_get else NEVER
        if mode == _ENTER:
            before = _before(empty, latest)
            dead = before > 0 and empty[before - 1, 1] > quiet
            now = quiet
            if not dead and len(asks) > 0 and latest <= min(put_end, get_end):
                within = _before(asks, min(put_end, get_end))
                if within > 0:
                    now = max(quiet, asks[within - 1, 0])
            if dead:
                mode = _BACK
            elif get_front == last_get and now >= last_ask:
                said = _VALID
            else:
                first = (put_front << 32) | get_front
                bucket = hashed(first, masks, words) & last_head
                row = heads[bucket]
                while row != -1:
                    if (
                        seen[row, 0] == first
                        and seen[row, 1 + all_words] >= now
                        and covers(seen, row, masks, words, all_words - words)
                    ):
                        break
                    row = chain[row]
                if row != -1:
                    mode = _BACK
                elif count == len(seen):
                    said = _FULL
                elif budget <= 0:
                    said = _PAUSED
                else:
                    budget -= 1
                    seen[count, 0] = first
                    for word in range(all_words):
                        seen[count, 1 + word] = masks[word]
                    seen[count, 1 + all_words] = now
                    chain[count] = heads[bucket]
                    heads[bucket] = count
                    count += 1
                    quiet = now
                    mode = _TRY
                    choice = 0
        elif mode == _TRY:
            bar = NEVER if quiet >= last_ask else latest
            put_limit = min(put_end, get_end)
            put, get, later = _pair(
                choice,
                puts,
                put_links,
                maybe_puts,
                put_kinds,
                put_kind_of,
                put_limit,
                gets,
                get_links,
                maybe_gets,
                get_kinds,
                get_kind_of,
                get_end,
                bar,
            )
            if put < 0:
                mode = _BACK
            else:
                stack[depth, _PUT], stack[depth, _GET], stack[depth, _CHOICE_AT] = put, get, choice
                stack[depth, _PUT_FRONT_AT], stack[depth, _GET_FRONT_AT] = put_front, get_front
                stack[depth, _LATEST_AT], stack[depth, _QUIET_AT] = latest, quiet
                depth += 1
                latest = max(latest, later)
                if put < n:
                    put_front = place(puts, put_returns, put_links, put_mask, put, put_front)
                else:
                    _use(put_kinds, put - n, masks[at_word[2] :], 1)
                if get < m:
                    get_front = place(gets, get_returns, get_links, get_mask, get, get_front)
                else:
                    _use(get_kinds, get - m, masks[at_word[3] :], 1)
                mode = _ENTER
        else:
            if depth > regs[_BEST]:
                regs[_BEST] = depth
                for at in range(depth):
                    best[at, PUT], best[at, GET] = stack[at, _PUT], stack[at, _GET]
            if depth == 0:
                said = _INVALID
            else:
                depth -= 1
                put, get = stack[depth, _PUT], stack[depth, _GET]
                before_put, before_get = stack[depth, _PUT_FRONT_AT], stack[depth, _GET_FRONT_AT]
                if put < n:
                    take_back(puts, put_returns, put_links, put_mask, put, before_put, put_front)
                else:
                    _use(put_kinds, put - n, masks[at_word[2] :], -1)
                if get < m:
                    take_back(gets, get_returns, get_links, get_mask, get, before_get, get_front)
                else:
                    _use(get_kinds, get - m, masks[at_word[3] :], -1)
                put_front, get_front = before_put, before_get
                latest, quiet = stack[depth, _LATEST_AT], stack[depth, _QUIET_AT]
                choice = stack[depth, _CHOICE_AT] + 1
                mode = _TRY
    if said == _VALID:
        regs[_BEST] = depth
        for at in range(depth):
            best[at, PUT], best[at, GET] = stack[at, _PUT], stack[at, _GET]
    regs[_TRIED] += regs[_BUDGET] - budget
    regs[_MODE], regs[_DEPTH], regs[_SEEN], regs[_BUDGET] = mode, depth, count, budget
    regs[_PUT_FRONT], regs[_GET_FRONT], regs[_LATEST] = put_front, get_front, latest
    regs[_QUIET], regs[_CHOICE] = quiet, choice
    return said


@native
def _use(kinds: Words, kind: int, mask: Longs, by: int) -> None:
    """Use the next of this kind of unknown outcome, or give the last one back (``by`` -1)."""
    bit = kinds[kind, 0] + kinds[kind, 1] + min(by, 0)
    kinds[kind, 1] += by
    mask[bit >> 6] ^= 1 << (bit & 63)
