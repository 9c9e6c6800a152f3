"""A small SVG writer: elements in, escaped markup out. Colours live in the page's style sheet, by class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup

from wrackline.history.wording import printable

Number = float | int


def _text(value: Number) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _tenths(value: int) -> str:
    """``0.3`` as ``.3``, ``-4.0`` as ``-4``."""
    whole, rest = divmod(abs(value), 10)
    text = f"{whole or ''}.{rest}" if rest else str(whole)
    return f"-{text}" if value < 0 else text


def _line(points: Sequence[tuple[Number, Number]]) -> str:
    return "M" + "L".join(f"{_text(x)} {_text(y)}" for x, y in points)


class Svg:
    """One drawing, in user units; the page scales it to the width there is."""

    def __init__(
        self, width: Number, height: Number, label: str, cls: str = "", *, desc: str = "", points: str = ""
    ) -> None:
        """``desc``: how to read it, for those who do not see it; ``points``: name of the table of the page's
        data that has the operations behind its points."""
        self.width, self.height = width, height
        self._root = ElementTree.Element(
            "svg",
            {
                "viewBox": f"0 0 {_text(width)} {_text(height)}",
                "role": "img",
                "aria-label": printable(label, 300),
                "class": f"chart {cls}".strip(),
            }
            | ({"data-points": points} if points else {}),
        )
        self._parent = self._root
        if desc:
            ElementTree.SubElement(self._root, "desc").text = printable(desc, 600)

    @contextmanager
    def link(self, href: str, name: str) -> Iterator[None]:
        """Makes what is drawn within the context a link of this name. A drawing with links is no single
        image to those who do not see it."""
        self._root.set("role", "group")
        self._parent = ElementTree.SubElement(
            self._root, "a", {"href": printable(href, 200), "aria-label": printable(name, 300)}
        )
        try:
            yield
        finally:
            self._parent = self._root

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, cls: str, *, tip: str = "", rx: Number = 0
    ) -> None:
        attributes = {"x": x, "y": y, "width": max(width, 0), "height": max(height, 0)}
        self._add("rect", attributes | ({"rx": rx} if rx else {}), cls, tip)

    def line(self, x1: Number, y1: Number, x2: Number, y2: Number, cls: str) -> None:
        self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2}, cls)

    def circle(
        self, x: Number, y: Number, radius: Number, cls: str, *, tip: str = "", href: str = ""
    ) -> None:
        inside = ElementTree.SubElement(self._root, "a", {"href": href}) if href else None
        self._add("circle", {"cx": x, "cy": y, "r": radius}, cls, tip, inside)

    def path(self, points: Sequence[tuple[Number, Number]], cls: str, *, closed: bool = False) -> None:
        """A polyline, or with ``closed`` a filled shape."""
        self._path(_line(points) + ("Z" if closed else "") if points else "", cls)

    def paths(self, lines: Sequence[Sequence[tuple[Number, Number]]], cls: str) -> None:
        """Many polylines of one class in one element; one of a single point is a dot."""
        self._path("".join(_line(line) + ("" if len(line) > 1 else "h0") for line in lines), cls)

    def columns(self, boxes: Sequence[tuple[Number, Number, Number, Number]], cls: str) -> None:
        """Many (x, y, width, height) boxes of one class in one element."""
        drawn = [
            f"M{_text(x)} {_text(y)}h{_text(w)}v{_text(h)}h{_text(-w)}z"
            for x, y, w, h in boxes
            if w > 0 and h > 0
        ]
        self._path("".join(drawn), cls)

    def dots(self, points: Sequence[tuple[Number, Number]], cls: str) -> None:
        """Many round points of one class in one element; the class's ``stroke-width`` is their size."""
        self.strokes([(x, y, y) for x, y in points], cls)

    def strokes(self, lines: Sequence[tuple[Number, Number, Number]], cls: str) -> None:
        """Many upright (x, y from, y to) lines of one class in one element."""
        drawn, at = [], (0, 0)
        for line in lines:  # each from where the last one ended: thousands of them take half the room
            x, y, to = (round(one * 10) for one in line)
            down = _tenths(y - at[1])
            drawn.append(f"m{_tenths(x - at[0])}{'' if down[0] == '-' else ' '}{down}")
            drawn.append("h0" if y == to else f"v{_tenths(to - y)}")
            at = x, to
        self._path("".join(drawn), cls)

    def text(self, x: Number, y: Number, content: str, cls: str = "", *, anchor: str = "start") -> None:
        element = self._add("text", {"x": x, "y": y}, cls)
        if anchor != "start":
            element.set("text-anchor", anchor)
        element.text = printable(content, 200)

    def markup(self) -> Markup:
        return Markup(ElementTree.tostring(self._root, encoding="unicode", short_empty_elements=False))

    def _path(self, drawn: str, cls: str) -> None:
        if drawn:
            ElementTree.SubElement(self._root, "path", {"class": cls, "d": drawn})

    def _add(
        self,
        tag: str,
        numbers: dict[str, Number],
        cls: str,
        tip: str = "",
        inside: ElementTree.Element | None = None,
    ) -> ElementTree.Element:
        parent = self._parent if inside is None else inside
        element = ElementTree.SubElement(parent, tag, {name: _text(n) for name, n in numbers.items()})
        if cls:
            element.set("class", cls)
        if tip:
            ElementTree.SubElement(element, "title").text = printable(tip, 600)
        return element


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from data to drawing units; ``log`` takes the logarithm first."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(max(value, self.low)), math.log10(low), math.log10(high)
        if high == low:
            return self.start
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten) from ``low`` to ``high``."""
    span = high - low
    if span <= 0:
        return [low]
    rough = span / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def text_width(content: str, em: float = 11.0) -> float:
    """A generous guess of how wide a label is drawn."""
    return len(content) * em * 0.6


def letters_in(width: float, em: float = 11.0) -> int:
    """Returns how many letters have room in the width, as ``text_width`` counts."""
    return int(width / text_width(" ", em))
