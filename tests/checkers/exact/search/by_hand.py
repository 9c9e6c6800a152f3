"""The definition of linearizability, tried out: all orders of a few operations, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wrackline.checkers.models import REFUSED, Model, OneOf, Operation, Outcome

NEVER = 1 << 62


def linearizable(model: Model[Any], history: Sequence[Operation], *, until: int = NEVER) -> bool:
    """Whether an order of what happened (and of some of what may have happened) keeps real time and is one
    that the model allows, part by part. What returned after ``until`` need not have a place."""
    parts: dict[Any, list[Operation]] = {}
    for one in history:
        shows_nothing = one.outcome is Outcome.INFO and model.observes(one)
        if not shows_nothing and (one.outcome is not Outcome.FAIL or model.failed_tell):
            parts.setdefault(model.partition(one), []).append(one)
    return all(_placed(model, part, model.initial(), until) for part in parts.values())


def _placed(model: Model[Any], left: list[Operation], state: Any, until: int) -> bool:
    must = [one for one in left if one.outcome is not Outcome.INFO and (one.ret or 0) <= until]
    if not must:
        return True
    first_return = min(one.ret for one in left if one.outcome is not Outcome.INFO and one.ret is not None)
    for n, one in enumerate(left):
        if one.inv > first_return:
            continue  # something returned before this one was invoked, and must come first
        after = model.step(state, one)
        if after is not REFUSED:
            for each in after if isinstance(after, OneOf) else (after,):
                if _placed(model, left[:n] + left[n + 1 :], each, until):
                    return True
    return False


def is_an_order(model: Model[Any], history: Sequence[Operation], places: Sequence[int]) -> bool:
    """Whether the operations at these places, in this order, keep real time and are what the model allows;
    where a step may lead to several states, to any of them."""
    order = [history[place] for place in places]
    latest = -NEVER
    states = {model.initial()}
    for one in order:
        latest = max(latest, one.inv)
        if one.outcome is not Outcome.INFO and one.ret is not None and one.ret < latest:
            return False
        found = set()
        for state in states:
            after = model.step(state, one)
            if after is not REFUSED:
                found |= set(after) if isinstance(after, OneOf) else {after}
        states = found
    return bool(states) and len(set(places)) == len(places)
