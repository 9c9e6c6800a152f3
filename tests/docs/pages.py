"""Texts as those see them who refer to them: a Markdown page, and the prose of a Python module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_ANCHOR = re.compile(r'<a id="(?P<id>[\w.-]+)"></a>')
_HEADING = re.compile(r"^(?P<level>#{1,6}) (?P<text>.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"(?P<number>\d+(?:\.\d+)*)\.? ")
_ITEM = re.compile(r"^(?P<number>\d+)\. ", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_BRACKETS = frozenset("()[]{}")
_TOKEN = re.compile(
    r"""(?:\b[rbfu]{1,2})?(?:\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"|#[^\n]*|[()\[\]{}]",
    re.DOTALL | re.IGNORECASE,
)
"""A string of Python's, a comment, or a bracket. Python's own tokenizer takes three times as long."""
_SIGN = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Page:
    """A Markdown page, as far as others refer to it."""

    text: str

    @cached_property
    def unfenced(self) -> str:
        """The text with blocks of code blanked, character for character."""
        return _FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), self.text)

    @cached_property
    def headings(self) -> tuple[str, ...]:
        return tuple(found["text"] for found in _HEADING.finditer(self.unfenced))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Anchors that are written out, in order."""
        return tuple(found["id"] for found in _ANCHOR.finditer(self.unfenced))

    @cached_property
    def anchors(self) -> frozenset[str]:
        """All that a link can go to: written anchors, and those that GitHub makes of headings."""
        made: dict[str, int] = {}
        for heading in self.headings:
            slug = re.sub(r"[^\w\- ]", "", _ANCHOR.sub("", heading).lower().strip()).replace(" ", "-")
            made[slug] = made.get(slug, -1) + 1
            if made[slug]:
                made[f"{slug}-{made[slug]}"] = 0
        return frozenset((*made, *self.ids))

    @cached_property
    def sections(self) -> frozenset[str]:
        """Numbers of headings, and of the items of the numbered list below each: a step of it."""
        found = set()
        parts = _HEADING.split(self.unfenced)
        for heading, body in zip(parts[2::3], parts[3::3], strict=True):
            if numbered := _NUMBERED.match(heading):
                number = numbered["number"]
                found |= {number, *(f"{number}.{item['number']}" for item in _ITEM.finditer(body))}
        return frozenset(found)

    def has_heading(self, text: str) -> bool:
        plain = text.replace("`", "").casefold()
        return any(_NUMBERED.sub("", each, 1).replace("`", "").casefold() == plain for each in self.headings)


def prose_of_python(source: str) -> str:
    """Comments, docstrings, and strings that name a page of ``docs/``; all else is blank, sign for sign."""
    kept, upto, depth = [], 0, 0
    for token in _TOKEN.finditer(source):
        text = token[0]
        if text in _BRACKETS:
            depth += 1 if text in "([{" else -1
            continue
        # A string at the beginning of a line, and in no brackets, is a statement: it documents something.
        starts = not depth and not source[source.rfind("\n", 0, token.start()) + 1 : token.start()].strip()
        if text.startswith("#") or starts or "docs/" in text:
            kept += [_SIGN.sub(" ", source[upto : token.start()]), text.replace("#", " ")]
            upto = token.end()
    return "".join((*kept, _SIGN.sub(" ", source[upto:])))
