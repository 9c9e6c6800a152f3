"""Times, lists and names of partitions, as all that is said of a verdict has them."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.checkers.inputs.runs import Place


def seconds(time_ns: int) -> str:
    """``14.7 s``: one moment has one number wherever it is said."""
    return f"{time_ns / 1e9:,.1f} s"


def listed(names: Sequence[str]) -> str:
    """``n1``, ``n1 and n2``, ``n1, n2 and n3``; empty for none."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def partition_name(place: Place) -> str:
    """``log-0``."""
    return f"{place[0]}-{place[1]}"
