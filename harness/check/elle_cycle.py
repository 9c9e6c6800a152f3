"""A cycle of transactions, from top to bottom, with what makes each come before the next. It is narrow enough
for a phone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from wrackline.pages.svg import Svg

_WIDTH: Final = 380
_LEFT, _RIGHT = 8, 340
_LINE: Final = 15
_BACK: Final = 364
"""Where the last edge goes back up."""
_LETTERS: Final = 50


@dataclass(frozen=True, slots=True)
class Transaction:
    name: str
    """T1, T2, ..."""
    text: str
    """What it did: [append x 1] [r y nil]."""
    tip: str
    """Process, outcome and time, behind the box."""


@dataclass(frozen=True, slots=True)
class Step:
    kind: str
    """ww, wr, rw, realtime or process."""
    sentence: str


def elle_cycle(title: str, transactions: Sequence[Transaction], steps: Sequence[Step]) -> Markup:
    """``steps``: from each transaction to the next; the last leads back to the first."""
    texts = [textwrap.wrap(one.text, _LETTERS - 4)[:4] or [""] for one in transactions]
    words = [textwrap.wrap(f"{one.kind}: {one.sentence}", _LETTERS)[:4] for one in steps]
    boxes = [_LINE * len(lines) + 24 for lines in texts]
    gaps = [_LINE * len(lines) + 22 for lines in words]
    svg = Svg(_WIDTH, sum(boxes) + sum(gaps) + 12, f"{title}: a cycle of transactions", "narrow")
    y, tops = 6.0, []
    for at, (one, lines) in enumerate(zip(transactions, texts, strict=True)):
        tops.append(y)
        svg.rect(_LEFT, y, _RIGHT - _LEFT, boxes[at], "version", tip=f"{one.name}: {one.tip}", rx=5)
        svg.text(_LEFT + 10, y + 17, one.name, "witness-name")
        for n, line in enumerate(lines):
            svg.text(_LEFT + 38, y + 17 + n * _LINE, line)
        y += boxes[at]
        last = at == len(transactions) - 1
        cls = f"edge {'' if steps[at].kind in ('ww', 'wr', 'rw') else 'e-time'}".strip()
        if last:
            middle = tops[0] + boxes[0] / 2
            svg.path([(_LEFT + 22, y), (_LEFT + 22, y + 8), (_BACK, y + 8), (_BACK, middle)], cls)
            svg.path([(_BACK, middle), (_RIGHT + 2, middle)], cls)
            svg.path(
                [(_RIGHT + 9, middle - 4), (_RIGHT + 1, middle), (_RIGHT + 9, middle + 4)], f"{cls} edge-head"
            )
        else:
            foot = y + gaps[at]
            svg.path([(_LEFT + 22, y), (_LEFT + 22, foot)], cls)
            svg.path([(_LEFT + 18, foot - 8), (_LEFT + 22, foot), (_LEFT + 26, foot - 8)], f"{cls} edge-head")
        for n, line in enumerate(words[at]):
            place = f"edge-label {'' if 'e-time' not in cls else 'e-time'}".strip()
            svg.text(_LEFT + 38, y + (24 if last else 20) + n * _LINE, line, place)
        y += gaps[at]
    return svg.markup()
