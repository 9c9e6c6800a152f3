"""Which texts and lists are the beginning of one that was seen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any


class Beginnings:
    """Texts are kept sorted: one that is the beginning of others stands right before them. Lists are kept as
    a tree."""

    def __init__(self, values: Iterable[Hashable]) -> None:
        seen = set(values)
        self._texts = sorted(one for one in seen if isinstance(one, str))
        self._others = {one for one in seen if not isinstance(one, str | tuple)}
        self._tree: dict[Hashable, Any] = {}
        for one in seen:
            if isinstance(one, tuple):
                node = self._tree
                for each in one:
                    node = node.setdefault(each, {})

    def has(self, value: Hashable) -> bool:
        """Whether this is one of the values, or the beginning of one."""
        if isinstance(value, str):
            at = bisect_left(self._texts, value)
            return at < len(self._texts) and self._texts[at].startswith(value)
        if not isinstance(value, tuple):
            return value in self._others
        node: Any = self._tree
        for each in value:
            node = node.get(each)
            if node is None:
                return False
        return True
