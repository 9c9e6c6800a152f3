"""Names that a reader may have meant instead of one that there is not."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

MOST_SHOWN: Final = 3
MOST_LISTED: Final = 16
"""Names that stand in one line; of more the reader is told who lists them."""
_ALIKE: Final = 0.65
"""From this likeness on, 0 to 1, two names are near."""
_BESIDE: Final = 0.12
"""How much less alike than the nearest a name may be that is shown beside it."""


def near(given: str, known: Iterable[str]) -> list[str]:
    """Returns at most three of the names, the nearest first; empty where none is near."""
    given, known = given.lower(), list(known)
    result = difflib.get_close_matches(given, known, n=MOST_SHOWN, cutoff=_ALIKE)
    if not result:  # ``b01`` for ``b01-truncate-to-hw``
        return [name for name in known if given and given in name.lower()][:MOST_SHOWN]
    likeness = [difflib.SequenceMatcher(None, name, given).ratio() for name in result]
    return [name for name, alike in zip(result, likeness, strict=True) if alike >= likeness[0] - _BESIDE]


def nearest(given: str, known: Iterable[str]) -> str:
    """``; did you mean 'x' or 'y'?``, or nothing."""
    result = [repr(name) for name in near(given, known)]
    *others, last = result or [""]
    before = f"{', '.join(others)} or " if others else ""
    return f"; did you mean {before}{last}?" if result else ""


def instead_of(given: str, known: Collection[str], listed: str = "", *, are: str = "known here:") -> str:
    """Returns the end of an error on an unknown name: what may have been meant, and which names there are.
    ``listed``: who lists them, where they are too many for a line. ``are``: what stands before them."""
    hint = nearest(given, known)
    if len(known) <= MOST_LISTED or not (hint or listed):
        return f"{hint or ';'} {are} {', '.join(known) or 'none'}" + (f"; {listed}" if listed else "")
    return f"{hint}{'' if hint else ';'} {listed}" if listed else hint
