"""Operations on a partition's log, collected one by one, as the columns that cross into the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.exact.transactions.columns import NIL
from wrackline.checkers.jvm.calls import SHAPES, Calls, Model

_NAMES = list(SHAPES[Model.LOG])


@dataclass(slots=True)
class LogCalls:
    """The operations that happened to a log, or may have happened. An operation that certainly failed is
    not added, except for its value."""

    _rows: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    _reads: list[tuple[tuple[int, int], Sequence[tuple[int, int]]]] = field(default_factory=list)
    _ours: set[int] = field(default_factory=set)

    def append(self, value: int, inv: int, ret: int = NEVER, offset: int | None = None) -> None:
        """``offset``: where it is, if anybody was told. ``ret`` is NEVER where the outcome is unknown."""
        self._ours.add(value)
        self._rows.append((_NAMES.index("append"), value, NIL if offset is None else offset, inv, ret))

    def failed(self, value: int) -> None:
        """An append that certainly did not happen: nobody else appends this value."""
        self._ours.add(value)

    def read(
        self, records: Sequence[tuple[int, int]], inv: int, ret: int, covered: tuple[int, int] = (0, 0)
    ) -> None:
        """``records``: (offset, value). ``covered``: the range of offsets [from, to) in which it would have
        shown every record there is."""
        self._rows.append((_NAMES.index("read"), len(self._reads), NIL, inv, ret))
        self._reads.append((covered if covered[0] < covered[1] else (0, 0), records))

    def end(self, end_offset: int, inv: int, ret: int) -> None:
        self._rows.append((_NAMES.index("end"), end_offset, NIL, inv, ret))

    def __len__(self) -> int:
        return len(self._rows)

    def build(self, model: Model = Model.LOG, *, start: int = 0) -> Calls:
        """``start``: the log's first offset."""
        flat: list[int] = []
        spans = []
        for covered, records in self._reads:
            begin = len(flat)
            flat += covered
            for offset, value in records:
                flat += (offset, value, int(value not in self._ours))
            spans.append((begin, len(flat)))
        shown = self._shown() if model is Model.SOME_OF_LOG else {}
        rows = []
        for kind, what, place, begun, returned in self._rows:
            match _NAMES[kind]:
                case "read":
                    rows.append((kind, *spans[what], begun, returned))
                case "append" if place == NIL:
                    rows.append((kind, what, shown.get(what, NIL), begun, returned))
                case _:
                    rows.append((kind, what, place, begun, returned))
        f, a, b, inv, ret = (
            np.ascontiguousarray(column) for column in np.array(rows, dtype=np.int64).reshape(-1, 5).T
        )
        return Calls(model, f, a, b, inv, ret, np.array(flat, dtype=np.int64), start)

    def _shown(self) -> dict[int, int]:
        """Value -> the smallest offset at which a read showed it. Among all operations a search finds the
        place of an append by itself; where others append in between, only this tells."""
        result: dict[int, int] = {}
        for _, records in self._reads:
            for offset, value in records:
                result[value] = min(offset, result.get(value, offset))
        return result
