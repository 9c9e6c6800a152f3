"""Groups the incidents of several partitions by the change of leaders that they came with: a node that is
gone led many, and one that is elected for many lacks the records of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Place
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.sentences import gone, gone_of
from wrackline.checkers.verdict.leadership import Change
from wrackline.checkers.verdict.wording import listed, seconds

WITHIN_NS: Final = 1_000_000_000
"""A node takes the lead of its partitions, or loses it, in one go. What came later came of something else."""
MOST_NAMES: Final = 4


@dataclass(frozen=True, slots=True)
class Loss:
    """An incident that lost records, and the change of leader that it came with."""

    incident: Joined
    change: Change
    place: Place


def together(losses: Sequence[Loss]) -> list[list[Loss]]:
    """Groups of two or more partitions, in the order of time. All of a group have the new leader in common,
    or else the old one."""
    groups: list[list[Loss]] = []
    for one in sorted(losses, key=lambda one: one.change.at_ns):
        recent = takewhile(partial(_is_soon, one), reversed(groups))
        fitting = next((group for group in recent if _is_one(group, one)), None)
        if fitting is None:
            groups.append([one])
        else:
            fitting.append(one)
    return [group for group in groups if len(group) > 1]


def _is_soon(one: Loss, group: Sequence[Loss]) -> bool:
    return one.change.at_ns - group[0].change.at_ns <= WITHIN_NS


def _is_one(group: Sequence[Loss], one: Loss) -> bool:
    if any(one.place == other.place for other in group):
        return False
    return _new_leader([*group, one]) is not None or _old_leader([*group, one]) is not None


def _new_leader(group: Sequence[Loss]) -> str | None:
    return _common({one.change.after.leader for one in group})


def _old_leader(group: Sequence[Loss]) -> str | None:
    return _common({one.change.before.leader for one in group})


def _common(nodes: set[str | None]) -> str | None:
    return next(iter(nodes)) if len(nodes) == 1 else None


def said_of(one: Loss, group: Sequence[Loss]) -> str:
    """``n3 became leader of log-1 and log-2 within the same second, and those partitions lost records
    too.``"""
    others = [other for other in group if other is not one]
    node = _new_leader(group)
    happened = f"{_old_leader(group)} ceased to lead" if node is None else f"{node} became leader of"
    those = "that partition" if len(others) == 1 else "those partitions"
    return f"{happened} {_names(others)} within the same second, and {those} lost records too."


def headline_of(group: Sequence[Loss], meaning: Meaning) -> str:
    """``9 acknowledged records of log-0 and log-1 are gone since n3 became their leader at 15.8 s``."""
    parts = [part for one in group for part in one.incident.parts if part.meaning is meaning]
    node = _new_leader(group)
    when = f"{_old_leader(group)} ceased to lead them" if node is None else f"{node} became their leader"
    lost = gone(parts, _names(group))
    assert lost is not None, "each of a group is a loss"
    return lost.sentence(f" since {when} at {seconds(min(one.change.at_ns for one in group))}")


def is_loss(one: Joined, meaning: Meaning) -> bool:
    """Tells whether the incident lost records, and this loss has the given meaning."""
    return gone_of(one, meaning) is not None


def _names(group: Sequence[Loss]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in sorted(one.place for one in group)]
    if len(names) > MOST_NAMES:
        names[MOST_NAMES - 1 :] = [f"{len(names) - MOST_NAMES + 1} more partitions"]
    return listed(names)
