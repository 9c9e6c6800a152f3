"""What is wrong with registers and queues: one culprit after another, and what findings say of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wrackline.checkers.checks.finding import MAX_OPERATIONS, known, seconds
from wrackline.checkers.checks.places import Places
from wrackline.checkers.engine.facts import grouped
from wrackline.checkers.engine.object_facts import Call, Contradiction
from wrackline.checkers.engine.objects.values import REGISTER, RULES
from wrackline.checkers.exact.queue import Rule as QueueRule
from wrackline.checkers.exact.register import Rule as RegisterRule
from wrackline.checkers.inputs.table import rows_of

_TWO_VALUES = RULES.index((REGISTER, RegisterRule.TWO_AT_ONCE)), RULES.index((REGISTER, RegisterRule.INSIDE))


@dataclass(frozen=True, slots=True)
class Culprit:
    """A value that is wrong, with its operations. Columns of those that are not there are None, and so are
    ``ret`` and ``ret_ns`` of one that did not return."""

    rule: RegisterRule | QueueRule
    contradicted: int
    """How many values it contradicts."""
    found: Contradiction[Any]

    @property
    def calls(self) -> list[Call[Any]]:
        """All its operations, each once."""
        return list(dict.fromkeys(call for call in self.found.calls if call.inv is not None))

    @property
    def indexes(self) -> list[int]:
        """The events of the witness: of each operation its completion, or its invocation where there is
        none."""
        return [call.inv if call.ret is None else call.ret for call in self.calls][:MAX_OPERATIONS]

    @property
    def begin_ns(self) -> int:
        """The witness's first event."""
        return min((call.inv_ns for call in self.calls), default=0) or 0

    @property
    def end_ns(self) -> int:
        """... and its last."""
        return max((known(call.ret_ns, call.inv_ns) or 0 for call in self.calls), default=0)


def culprits(at: Places, workload: str) -> Iterator[Culprit]:
    """Each value that is wrong. What intervals of time know of one culprit is taken together; the first says
    by which of the two rules it is called."""
    found = at.contradictions
    found = found.take(np.isin(found.rule, [n for n, (of, _) in enumerate(RULES) if of == workload]))
    first, second = _TWO_VALUES
    family = np.where(found.rule == second, first, found.rule)
    order, starts, _ = grouped(family, found.key, found.order, found.rule)
    family, key = family[order], found.key[order]
    new = np.append(True, (np.diff(family) != 0) | (np.diff(key) != 0))[: len(order)]
    begins = np.flatnonzero(starts & new)
    sizes = np.diff(np.append(begins, len(order)))
    if not len(begins):
        return
    pieces = np.maximum.reduceat(found.pieces[order], begins)
    contradicted = np.add.reduceat(found.contradicted[order], begins)
    whole = np.flatnonzero(sizes >= pieces)
    for number, row in zip(whole.tolist(), rows_of(found.take(order[begins[whole]])), strict=True):
        yield Culprit(RULES[row.rule][1], int(contradicted[number]), row)


def when(ns: int | None) -> str:
    """``12.318 s``; ``the beginning`` for what was there before anything."""
    return seconds(ns) or "the beginning"
