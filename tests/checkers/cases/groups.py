"""Cases of consumer groups."""

from __future__ import annotations

from tests.checkers.cases.base import A, B, C, case, two
from tests.checkers.histories import History
from wrackline.history.model import Type


def read_by_a_group(h: History) -> History:
    """Two records, given to the only member of a group."""
    return two(h).rebalance(2, 1, p0=0).poll(2, (0, A), (1, B))


@case("good: a group that commits what it was given")
def _(h: History) -> History:
    read_by_a_group(h).commit(2, 1, 1).commit(2, 2, 1).committed(3, 2)
    return h.rebalance(4, 2, p0=2).commit(4, 2, 2).drain((0, A), (1, B))


@case("commit-regression by a commit", commit_regression=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 2, 1).commit(2, 1, 1).drain((0, A), (1, B))


@case("commit-regression seen by a reader", commit_regression=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 1, 1).commit(2, 2, 1).committed(3, 1).drain((0, A), (1, B))


@case("good: a consumer that was put back commits less")
def _(h: History) -> History:
    read_by_a_group(h).commit(2, 2, 1).assign(2, 0).poll(2, (0, A)).commit(2, 1, 1).committed(3, 1)
    return h.drain((0, A), (1, B))


@case("commit-beyond-end", commit_beyond_end=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 3, 1).drain((0, A), (1, B))


@case("group-skip", group_skip=1)
def _(h: History) -> History:
    two(h).send(1, (C, 2)).rebalance(2, 1, p0=0).poll(2, (0, A)).rebalance(2, 2, p0=2).poll(2, (2, C))
    return h.commit(2, 3, 2).drain((0, A), (1, B), (2, C))


@case("zombie-commit", zombie_commit=1)
def _(h: History) -> History:
    read_by_a_group(h).rebalance(4, 2, p0=0).poll(4, (0, A), (1, B))
    return h.commit(2, 2, 1).drain((0, A), (1, B))


@case("good: the commit of a fenced member fails")
def _(h: History) -> History:
    read_by_a_group(h).rebalance(4, 2, p0=0).poll(4, (0, A), (1, B))
    return h.commit(2, 2, 1, kind=Type.FAIL).drain((0, A), (1, B))


@case("forgotten-commit", forgotten_commit=1)
def _(h: History) -> History:
    read_by_a_group(h).commit(2, 1, 1).commit(2, 2, 1).rebalance(4, 2, p0=0)
    return h.drain((0, A), (1, B))


@case("phantom-commit", phantom_commit=1)
def _(h: History) -> History:
    return read_by_a_group(h).commit(2, 1, 1).committed(3, 2).drain((0, A), (1, B))


@case("double-owner", double_owner=1)
def _(h: History) -> History:
    read_by_a_group(h).rebalance(4, 1, p0=0)
    return h.drain((0, A), (1, B))


@case("good: a partition goes from one that crashed to another")
def _(h: History) -> History:
    read_by_a_group(h).event(2, Type.OK, "crash", extra={"group": "g"}).rebalance(4, 1, p0=0)
    return h.drain((0, A), (1, B))
