"""Colours of the page: text and points can be told from what is behind them, in both themes (WCAG 2.1
AA)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import wrackline.harness.report
import wrackline.pages

TEMPLATES: Final = Path(wrackline.harness.report.__file__).parent / "templates"
PAGES: Final = Path(wrackline.pages.__file__).parent / "templates"
LOOK: Final = (PAGES / "look.html.j2").read_text()
STYLE: Final = (TEMPLATES / "style.html.j2").read_text()
TEXT, GRAPHIC = 4.5, 3.0
Colour = tuple[float, ...]


def theme(name: str) -> dict[str, str]:
    """Name of each colour -> ``#rrggbb``."""
    light, dark = re.findall(r":root \{\n(.*?)\}", LOOK, re.DOTALL)[:2]
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    return found | (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark)) if name == "dark" else {})


def rgb(colour: str) -> Colour:
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))


def contrast(one: Colour, other: Colour) -> float:
    def luminance(colour: Colour) -> float:
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def through(colour: Colour, behind: Colour, opacity: float) -> Colour:
    return tuple(opacity * a + (1 - opacity) * b for a, b in zip(colour, behind, strict=True))


def tones(prefix: str) -> set[str]:
    """Colours of the classes that begin so: ``f-`` has those of faults."""
    return set(re.findall(rf"\.{prefix}[\w-]+ {{ --tone: var\(--([\w-]+)\)", STYLE))


def opacity_of(rule: str) -> float:
    found = re.search(re.escape(rule) + r" \{[^}]*stroke-opacity: ([\d.]+)", STYLE)
    assert found is not None, rule
    return float(found[1])


def pairs() -> Iterator[tuple[str, str, float, float]]:
    """(what is seen, what it is seen on, its opacity, the contrast that it needs)."""
    faults, nodes, outcomes = tones("f-"), tones("node-"), {"ok", "fail", "info"}
    assert len(faults) == 6
    assert len(nodes) == 8
    written = {"ink", "soft", "link", "good", "bad", "warn", "info"} | faults
    yield from ((text, back, 1, TEXT) for text in sorted(written) for back in ("page", "card"))
    yield from ((text, "code", 1, TEXT) for text in ("ink", "soft"))
    yield from ((text, "bad-back", 1, TEXT) for text in ("ink", "soft", "bad", "link"))
    yield from (("on-bar", fault, 1, TEXT) for fault in sorted(faults))
    drawn = outcomes | nodes | {"p50", "p99", "worst"}
    yield from ((shape, back, 1, GRAPHIC) for shape in sorted(drawn) for back in ("page", "card"))
    points, bad = opacity_of("svg.chart .dots"), opacity_of("svg.chart .dots.s-fail, svg.chart .dots.s-info")
    yield from ((one, "page", points, GRAPHIC) for one in ("ok", *sorted(nodes)))
    yield from ((one, "page", bad, GRAPHIC) for one in ("fail", "info"))


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_and_points_can_be_told_from_what_is_behind_them(name: str) -> None:
    known = theme(name)
    told = []
    for seen, behind, opacity, least in pairs():
        back = rgb(known[behind])
        found = contrast(through(rgb(known[seen]), back, opacity), back)
        if found < least:
            told.append(f"{seen} on {behind}: {found:.2f}, not {least}")
    assert told == []


def test_the_word_of_each_verdict_can_be_read() -> None:
    colours = re.findall(r"--verdict: (#[0-9a-f]{6})", LOOK)
    assert len(colours) >= 6
    assert [one for one in colours if contrast(rgb(one), rgb("#ffffff")) < TEXT] == []


def test_names_on_bars_have_the_colour_that_is_tested() -> None:
    assert "svg.chart .bar-name { fill: var(--on-bar);" in STYLE
    assert (
        'pen.fillStyle = inside ? tone("on-bar") : ink;'
        in (TEMPLATES / "operations_script.html.j2").read_text()
    )
