"""The search for an order of operations, over arrays of integers, compiled to native code by numba.

It is the depth-first search of Wing & Gong (*Testing and Verifying Concurrent Objects*, 1993) with the cache
of Lowe (*Testing for Linearizability*, 2017), and with these changes:

- *A configuration is small.* Every operation that returned before the first one that has no place yet (the
  *front*) has a place, so a configuration is the front, the state, and one bit for each operation that is
  open at the front. Operations that are open at the same time have different slots, that is bits.
- *What only looks is placed at once.* A read that fits the state can be moved to here in every order that has
  it later, so nothing else is tried instead.
- *Equal operations are tried once.* Of those that are open, the one that returns first goes first; of those
  of unknown outcome, the one that was invoked first.
- *Fewer unknowns are better.* A configuration is left when one with the same front, places and state was seen
  that had used some of the same operations of unknown outcome and no others: whatever follows the one follows
  the other.

``run`` does not call Python. Where it needs a transition that the table does not have, or more room, it
returns, and is called again with the same arrays: all that it knows is in them.
"""

from __future__ import annotations

from enum import IntEnum

from wrackline.checkers.exact.search.native import Longs, Words, native

UNKNOWN, REFUSE, MANY = -1, -2, -3
"""Values of the table of transitions that are no state: not asked yet, no such step, and MANY - n: any state
of row n of ``many``."""


LOOKS, TIMES = 0, 1
"""Columns of the symbols: whether it only looks, and how many operations have it."""


class Said(IntEnum):
    """The reason why ``run`` returned."""

    PAUSED = 0
    """``BUDGET`` configurations were looked at."""
    VALID = 1
    INVALID = 2
    ASKS = 3
    """The table lacks ``ASKED`` transitions: those of the pairs (state << 32 | symbol) in the first column of
    ``needs``. The second column is for the answers, with which ``run`` begins."""
    FULL = 4
    """``seen`` has no room left."""


class R:
    """Places in the array of registers: what the search knows between two calls of ``run``."""

    MODE, DEPTH, STATE, FRONT, CURSOR, CHOICE, SEEN, BUDGET, ASKED = range(9)
    BEST_DEPTH, BEST_FRONT, BEST_STATE = range(9, 12)
    SAME = 12
    """So many operations at the beginning of ``best`` are those of the stack."""
    TRIED, SIZE = 13, 14


_CLOSE, _LOOK, _TRY, _BACK = 0, 1, 2, 3
FORCED = -1
"""``choice`` of a placement to which there was no alternative."""
OP, STATE, FRONT, CHOICE = 0, 1, 2, 3
"""Columns of the stack: what was placed, and state, front and choice before that."""
# As global integers: what numba compiles may not look into a class.
_PAUSED, _VALID, _INVALID, _ASKS, _FULL = (int(one) for one in Said)
_MODE, _DEPTH, _STATE, _FRONT, _CURSOR, _CHOICE, _SEEN, _BUDGET, _ASKED = range(9)
_BEST_DEPTH, _BEST_FRONT, _BEST_STATE, _SAME, _TRIED = range(9, 14)
_MIX = -7046029254386353131
_MIX2 = -4417276706812531889


@native
def hashed(first: int, words: Longs, count: int) -> int:
    """A hash of ``first`` and the first ``count`` of ``words``."""
    mixed = first * _MIX
    for at in range(count):
        mixed = (mixed ^ words[at]) * _MIX2
        mixed ^= (mixed >> 29) & 0x7FFFFFFFF
    return mixed ^ ((mixed >> 32) & 0xFFFFFFFF)


@native
def _find(keys: Longs, key: int) -> int:
    """The place of ``key``, or the free one where it would be."""
    last = len(keys) - 1
    at = ((key * _MIX) >> 20) & last
    while keys[at] != key and keys[at] != -1:
        at = (at + 1) & last
    return at


@native
def relearn(keys: Longs, values: Words, old_keys: Longs, old_values: Words) -> None:
    """Put a whole table into a larger one."""
    for n in range(len(old_keys)):
        if old_keys[n] != -1:
            at = _find(keys, old_keys[n])
            keys[at] = old_keys[n]
            values[at] = old_values[n]


@native
def rehash(heads: Words, chain: Words, seen: Longs, count: int, words: int) -> None:
    """Put the first ``count`` rows of ``seen`` into a larger ``heads``, which is -1 everywhere."""
    last = len(heads) - 1
    for n in range(count):
        bucket = hashed(seen[n, 0], seen[n, 1:], words) & last
        chain[n] = heads[bucket]
        heads[bucket] = n


@native
def run(
    regs: Longs,
    ops: Words,
    returns: Words,
    unknowns: Words,
    kinds: Words,
    symbols: Words,
    links: Words,
    mask: Longs,
    stack: Words,
    best: Words,
    heads: Words,
    chain: Words,
    seen: Longs,
    keys: Longs,
    values: Words,
    many: Words,
    needs: Longs,
    words: int,
) -> int:
    """Search on. Returns a ``Said``.

    ops: (n, 4) of what certainly happened, in order of invocation: event of its invocation, symbol, slot,
    place in ``returns``. returns: (r, 2) event and operation. unknowns: (m, 2) event of the invocation,
    symbol, those of one symbol together. kinds: (k + 1, 2) where each symbol begins in ``unknowns``, and how
    many were used. symbols: (s, 2). links: (n + 1, 3)
    next, previous, whether it has a place; row n is both ends. mask: ``words`` words with a bit for each
    slot, and then a bit for each unknown. stack and best: (n + m, 4) and (n + m). seen: (size, 1 + words +
    words of unknowns). many: (rows, width) states, -1 after the last. needs: (size, 2)."""
    n, last_return, kind_count = len(ops), len(returns), len(kinds) - 1
    more = len(mask) - words
    last_head = len(heads) - 1
    mode, depth, state, front = regs[_MODE], regs[_DEPTH], regs[_STATE], regs[_FRONT]
    cursor, choice, count, budget = regs[_CURSOR], regs[_CHOICE], regs[_SEEN], regs[_BUDGET]
    same = regs[_SAME]
    for given in range(regs[_ASKED]):
        at = _find(keys, needs[given, 0])
        keys[at] = needs[given, 0]
        values[at] = needs[given, 1]
    regs[_ASKED] = 0
    said = -1
    if front == last_return:
        said = _VALID
    while said < 0:
        placed = -1
        target = state
        if mode == _CLOSE:
            asked = 0
            at = links[n, 0]
            while at != n and front < last_return and ops[at, 0] < returns[front, 0]:
                after = links[at, 0]
                symbol = ops[at, 1]
                if symbols[symbol, LOOKS] == 1:
                    result = values[_find(keys, (state << 32) | symbol)]
                    if result == UNKNOWN:
                        if asked < len(needs):
                            needs[asked, 0] = (state << 32) | symbol
                            asked += 1
                    elif result == state:
                        stack[depth, OP], stack[depth, STATE] = at, state
                        stack[depth, FRONT], stack[depth, CHOICE] = front, FORCED
                        depth += 1
                        front = place(ops, returns, links, mask, at, front)
                at = after
            if front == last_return:
                said = _VALID
            elif asked > 0:
                regs[_ASKED] = asked
                said = _ASKS
            else:
                mode = _LOOK
        elif mode == _LOOK:
            budget -= 1
            first = (state << 32) | front
            bucket = hashed(first, mask, words) & last_head
            row = heads[bucket]
            while row != -1:
                if seen[row, 0] == first and covers(seen, row, mask, words, more):
                    break
                row = chain[row]
            if row != -1:
                mode = _BACK
            elif count == len(seen):
                said = _FULL
            elif budget < 0:
                said = _PAUSED
            else:
                seen[count, 0] = first
                for word in range(words + more):
                    seen[count, 1 + word] = mask[word]
                chain[count] = heads[bucket]
                heads[bucket] = count
                count += 1
                mode = _TRY
                cursor, choice = links[n, 0], 0
        elif mode == _TRY:
            end = returns[front, 0]
            # Those that certainly happened, in order of invocation ...
            while cursor < n and placed < 0:
                if ops[cursor, 0] > end:
                    cursor = n
                    choice = 0
                    break
                symbol = ops[cursor, 1]
                if choice > 0 or symbols[symbol, TIMES] == 1 or not _later(ops, links, cursor, end):
                    result = values[_find(keys, (state << 32) | symbol)]
                    if result == UNKNOWN:
                        regs[_ASKED] = _ask(ops, links, keys, values, needs, state, cursor, end)
                        said = _ASKS
                        break
                    if result >= 0 and choice == 0:
                        placed, target = cursor, result
                    elif result <= MANY and choice < many.shape[1] and many[MANY - result, choice] >= 0:
                        placed, target = cursor, many[MANY - result, choice]
                if placed < 0:
                    cursor = links[cursor, 0]
                    choice = 0
            # ... and then those that may have.
            while said < 0 and placed < 0 and cursor < n + kind_count:
                kind = cursor - n
                next_one = kinds[kind, 0] + kinds[kind, 1]
                if next_one < kinds[kind + 1, 0] and unknowns[next_one, 0] < end:
                    symbol = unknowns[next_one, 1]
                    result = values[_find(keys, (state << 32) | symbol)]
                    if result == UNKNOWN:
                        needs[0, 0] = (state << 32) | symbol
                        regs[_ASKED] = 1
                        said = _ASKS
                        break
                    if result >= 0 and result != state and choice == 0:
                        placed, target = cursor, result
                    elif result <= MANY and choice < many.shape[1] and many[MANY - result, choice] >= 0:
                        placed, target = cursor, many[MANY - result, choice]
                if placed < 0:
                    cursor += 1
                    choice = 0
            if placed >= 0:
                stack[depth, OP], stack[depth, STATE] = placed, state
                stack[depth, FRONT], stack[depth, CHOICE] = front, choice
                depth += 1
                state = target
                if placed < n:
                    front = place(ops, returns, links, mask, placed, front)
                else:
                    bit = kinds[placed - n, 0] + kinds[placed - n, 1]
                    kinds[placed - n, 1] += 1
                    mask[words + (bit >> 6)] |= 1 << (bit & 63)
                mode = _CLOSE
                if front == last_return:
                    said = _VALID
            elif said < 0:
                mode = _BACK
        else:
            if front > regs[_BEST_FRONT] or (front == regs[_BEST_FRONT] and depth > regs[_BEST_DEPTH]):
                regs[_BEST_FRONT], regs[_BEST_DEPTH], regs[_BEST_STATE] = front, depth, state
                for at in range(same, depth):
                    best[at] = stack[at, OP]
                same = depth
            forced = True
            while forced and depth > 0:
                depth -= 1
                placed = stack[depth, OP]
                state, choice = stack[depth, STATE], stack[depth, CHOICE]
                forced = choice == FORCED
                if placed < n:
                    take_back(ops, returns, links, mask, placed, stack[depth, FRONT], front)
                    front = stack[depth, FRONT]
                else:
                    kinds[placed - n, 1] -= 1
                    bit = kinds[placed - n, 0] + kinds[placed - n, 1]
                    mask[words + (bit >> 6)] &= ~(1 << (bit & 63))
            same = min(same, depth)
            if forced:
                said = _INVALID
            else:
                cursor = placed
                choice += 1
                mode = _TRY
    if said == _VALID:
        for at in range(same, depth):
            best[at] = stack[at, OP]
        regs[_BEST_FRONT], regs[_BEST_DEPTH], regs[_BEST_STATE] = front, depth, state
        same = depth
    regs[_TRIED] += regs[_BUDGET] - budget
    regs[_MODE], regs[_DEPTH], regs[_STATE], regs[_FRONT] = mode, depth, state, front
    regs[_CURSOR], regs[_CHOICE], regs[_SEEN], regs[_BUDGET], regs[_SAME] = (
        cursor,
        choice,
        count,
        budget,
        same,
    )
    return said


@native
def covers(seen: Longs, row: int, mask: Longs, words: int, more: int) -> bool:
    """Tells whether a row of ``seen`` has the places of ``mask`` and no unknown that ``mask`` has not."""
    for word in range(words):
        if seen[row, 1 + word] != mask[word]:
            return False
    for word in range(words, words + more):  # noqa: SIM110 (numba compiles no generator)
        if seen[row, 1 + word] & ~mask[word] != 0:
            return False
    return True


@native
def _ask(
    ops: Words, links: Words, keys: Longs, values: Words, needs: Longs, state: int, first: int, end: int
) -> int:
    """Asks for the step of ``first``, and for those of the operations after it too unless it is the first
    of all: a search that comes back for the second will want the others. Returns how many are asked."""
    n, asked = len(ops), 0
    at = first
    while at != n and ops[at, 0] < end and asked < len(needs):
        pair = (state << 32) | ops[at, 1]
        if values[_find(keys, pair)] == UNKNOWN:
            needs[asked, 0] = pair
            asked += 1
        if first == links[n, 0]:
            break
        at = links[at, 0]
    return asked


@native
def _later(ops: Words, links: Words, one: int, end: int) -> bool:
    """Tells whether an open operation of the same symbol returns earlier."""
    n = len(ops)
    at = links[n, 0]
    while at != n and ops[at, 0] < end:
        if ops[at, 1] == ops[one, 1] and ops[at, 3] < ops[one, 3]:
            return True
        at = links[at, 0]
    return False


@native
def place(ops: Words, returns: Words, links: Words, mask: Longs, one: int, front: int) -> int:
    """Give an operation its place; returns the front after that."""
    links[links[one, 1], 0] = links[one, 0]
    links[links[one, 0], 1] = links[one, 1]
    links[one, 2] = 1
    mask[ops[one, 2] >> 6] |= 1 << (ops[one, 2] & 63)
    while front < len(returns) and links[returns[front, 1], 2] == 1:
        slot = ops[returns[front, 1], 2]
        mask[slot >> 6] &= ~(1 << (slot & 63))
        front += 1
    return front


@native
def take_back(ops: Words, returns: Words, links: Words, mask: Longs, one: int, old: int, front: int) -> None:
    """Undo ``place``, which had moved the front from ``old`` to ``front``."""
    for passed in range(old, front):
        slot = ops[returns[passed, 1], 2]
        mask[slot >> 6] |= 1 << (slot & 63)
    mask[ops[one, 2] >> 6] &= ~(1 << (ops[one, 2] & 63))
    links[one, 2] = 0
    links[links[one, 1], 0] = one
    links[links[one, 0], 1] = one
