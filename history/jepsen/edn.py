"""A reader of EDN, a line at a time: what Jepsen's store prints, at the speed a long history needs.

Values are those of wrackline.values. Tags are passed over: ``#jepsen.history.Op{...}`` is the map in it,
``#inst "..."`` the string, ``#error {...}`` a map; so any record or exception that is printed readably can be
read. Symbols are keywords, characters strings, ratios and decimals floats. Where a file is one vector or
list, its items are given one by one, so memory does not grow with the file.

The usual library makes four thousand operations a second and stops at tags it does not know; this makes fifty
thousand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, Final

from wrackline.values import DEEPEST, FALSE, TRUE, Keyword, Map, NestedTooDeep, Text, real

_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|[\[\](){}]|#\{|#_|;[^\n]*|\\(?:u[0-9a-fA-F]{4}|[A-Za-z]+|.)|[^\s,\[\](){}";\\]+|["\\]',
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CHARACTERS: Final = {
    "newline": "\n",
    "space": " ",
    "tab": "\t",
    "return": "\r",
    "formfeed": "\f",
    "backspace": "\b",
}
_WORDS: Final[dict[str, Any]] = {
    "nil": None, "true": TRUE, "false": FALSE,
    "##NaN": real(float("nan")), "##Inf": float("inf"), "##-Inf": float("-inf"),
}  # fmt: skip
_OPENS: Final = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_CLOSES: Final = frozenset("])}")
_LONGEST_STRING: Final = 1 << 20
_DISCARD: Final = object()
"""Stands where ``#_`` was, until the form comes that it takes away."""


_OF_OPERATIONS: Final = {
    f":{word}": Keyword(word)
    for word in ("process", "type", "f", "time", "index", "value", "invoke", "ok", "fail", "info")
}


def keyword(word: str) -> Keyword:
    """The keyword that the reader gives for one of an operation's own words."""
    return _OF_OPERATIONS[f":{word}"]


class EdnError(ValueError):
    """The text is no EDN. ``line`` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def forms(lines: Iterable[str]) -> Iterator[Any]:
    """The top-level forms of a text, or the items of the one vector or list that it is. Raises EdnError,
    NestedTooDeep."""
    reader = _Reader()
    pending, began = "", 0
    for number, line in enumerate(lines, 1):
        text = pending + line if pending else line
        tokens = _TOKEN.findall(text)
        if '"' in tokens:  # a string that goes on in the next line
            began = began or number
            if len(text) > _LONGEST_STRING:
                raise EdnError(began, "a string that begins here has no end")
            pending = text
            continue
        pending, began = "", 0
        yield from reader.take(tokens, number)
    if pending:
        raise EdnError(began, "a string that begins here has no end")
    reader.end()


class _Reader:
    def __init__(self) -> None:
        self._open: list[tuple[str, list[Any], int]] = []
        """What was opened and not closed: its token, its items, the line."""
        self._inside = ""
        """The bracket that ends the vector or list that the file is."""
        self._began = False
        self._line = 0
        self._discards = 0
        self._top: list[Any] = []
        """Discards that wait for a form at the top."""
        self._keywords = dict(_OF_OPERATIONS)
        self._space = ""
        """The namespace of the keys of the map that comes next: of #:db{:a 1}, "db"."""
        self._spaces: dict[int, str] = {}
        """Level of an open map -> that of its keys."""

    def take(self, tokens: Iterable[str], line: int) -> Iterator[Any]:
        self._line = line
        opened, keywords = self._open, self._keywords
        for token in tokens:
            first = token[0]
            if first == ":":
                value: Any = keywords.get(token) or keywords.setdefault(token, Keyword(token[1:]))
            elif token in _OPENS:
                if not opened and not self._began and token in "[(":
                    self._inside = _OPENS[token]
                else:
                    opened.append((token, [], line))
                    if self._space:
                        self._spaces[len(opened)], self._space = self._space, ""
                    if len(opened) > DEEPEST:
                        raise NestedTooDeep
                self._began = True
                continue
            elif first in _CLOSES:
                if not opened and token == self._inside:
                    self._inside = ""
                    continue
                value = self._closed(token)
            elif first in ";#":
                if token == "#_":
                    self._discards += 1
                    (opened[-1][1] if opened else self._top).append(_DISCARD)
                    continue
                if not token.startswith("##"):
                    self._space = token[2:] if token.startswith("#:") else ""
                    continue  # a comment, or a tag
                value = self._atom(token)
            else:
                value = self._atom(token)
            self._began = True
            if self._discards and self._taken_away(opened[-1][1] if opened else self._top):
                continue
            if opened:
                opened[-1][1].append(value)
            else:
                yield value

    def _taken_away(self, items: list[Any]) -> bool:
        if not items or items[-1] is not _DISCARD:
            return False
        items.pop()
        self._discards -= 1
        return True

    def _closed(self, token: str) -> Any:
        if not self._open:
            raise EdnError(self._line, f"{token} closes nothing")
        opener, items, line = self._open.pop()
        if _OPENS[opener] != token:
            raise EdnError(self._line, f"{token} where {_OPENS[opener]} must close what line {line} opens")
        if opener == "#{":
            return frozenset(items)
        if opener != "{":
            return tuple(items)
        if len(items) % 2:
            raise EdnError(self._line, f"a map with {len(items)} forms: keys and values must come in pairs")
        keys = items[::2]
        space = self._spaces.pop(len(self._open) + 1, None)
        if space is not None:
            keys = [_within(space, key) for key in keys]
        return Map(zip(keys, items[1::2], strict=True))

    def _atom(self, token: str) -> Any:
        first = token[0]
        if first == '"':
            text = token[1:-1]
            return Text(_ESCAPE.sub(_unescaped, text) if "\\" in text else text)
        if first in "-+0123456789":
            return _number(token)
        if first == "\\":
            if len(token) == 1:
                raise EdnError(self._line, "a backslash that stands alone")
            name = token[1:]
            coded = len(name) == 5 and name[0] == "u"
            return Text(chr(int(name[1:], 16)) if coded else _CHARACTERS.get(name, name))
        return _WORDS[token] if token in _WORDS else Keyword(token)

    def end(self) -> None:
        if self._open or self._inside:
            line = self._open[0][2] if self._open else self._line
            raise EdnError(self._line, f"the file ends within what line {line} begins; was it cut off?")


def _within(space: str, key: Any) -> Any:
    """The key of a map that is written with a namespace; _ is that of keys that have none."""
    if not isinstance(key, Keyword) or "/" in key:
        return Keyword(key[2:]) if isinstance(key, Keyword) and key.startswith("_/") else key
    return Keyword(f"{space}/{key}")


def _number(token: str) -> Any:
    """A number, or the symbol that begins like one."""
    try:
        return int(token)
    except ValueError:
        pass
    for reading in _READINGS:
        try:
            return reading(token)
        except (ValueError, ZeroDivisionError):
            continue
    return Keyword(token)


_READINGS: Final[tuple[Callable[[str], Any], ...]] = (
    lambda text: real(float(text)),
    lambda text: int(text.removesuffix("N")),
    lambda text: real(float(text.removesuffix("M"))),
    lambda text: real(float(Fraction(text))),
)


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    return chr(int(what[1:], 16)) if len(what) == 5 else _ESCAPES.get(what, what)
