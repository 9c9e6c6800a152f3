"""YAML as specifications are written in it: small, flat, and each key once."""

from __future__ import annotations

import codecs
import re
from collections.abc import Hashable
from typing import Any

import yaml

MOST_BYTES = 1_000_000
"""A specification has some thousand; whatever has more is another file."""
MOST_VALUES = 100_000
"""With aliases followed: a file of a hundred lines can stand for millions."""
DEEPEST = 50


_TAG = r"the tag '\1' is none that a specification takes: take it out, or quote what is text"


class NotYaml(ValueError):
    """The text cannot be read. One line: where, what is wrong."""


class _Loader(yaml.SafeLoader):
    """Rejects a key that is there twice: YAML's own answer, to take the last one, hides a mistake. Reads
    `1e3` as the number that it is in YAML 1.2, and so in editors; PyYAML alone takes it for text."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError) as error:
            if not isinstance(node, yaml.ScalarNode):
                raise
            kind = node.tag.rpartition(":")[2]
            raise yaml.MarkedYAMLError(
                problem=f"{node.value[:40]!r} is read as {kind} and is none: quote it where it is text",
                problem_mark=node.start_mark,
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(
                    problem="a key must be a word or a number; are there too many braces?",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} is there twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def decoded(content: bytes) -> str:
    """The text of a file. Raises NotYaml."""
    if len(content) > MOST_BYTES:
        raise NotYaml(f"more than {MOST_BYTES:,} bytes: no specification is so long; is this the right file?")
    if content.startswith(_WIDE):
        raise NotYaml("the text is UTF-16 or UTF-32: save it as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotYaml(
            f"line {line}: byte {content[error.start]:#04x} is not UTF-8: save it as UTF-8"
        ) from error


_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


def read(text: str) -> Any:
    """The value that the text stands for. Raises NotYaml."""
    if len(text) > MOST_BYTES:
        raise NotYaml(f"more than {MOST_BYTES:,} bytes: no specification is so long; is this the right file?")
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise NotYaml(
            f"line {line}: the character U+{ord(text[error.position]):04X} is none of a text: take it out"
        ) from error
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node, {}, 0)
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        raise NotYaml(_line(error)) from error
    except RecursionError as deep:
        raise NotYaml(f"nested more than {DEEPEST} deep: a bracket is too many, or never closed") from deep
    finally:
        loader.dispose()


def _check_size(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """Returns how many values a node stands for, aliases followed. Raises NotYaml, and RecursionError where
    it is nested too deep, or within itself."""
    if id(node) in known:
        return known[id(node)]
    if depth > DEEPEST:
        raise RecursionError
    below = [child for pair in node.value for child in pair] if isinstance(node, yaml.MappingNode) else ()
    below = node.value if isinstance(node, yaml.SequenceNode) else below
    size = 1 + sum(_check_size(child, known, depth + 1) for child in below)
    if size > MOST_VALUES:
        where = f"line {node.start_mark.line + 1}"
        raise NotYaml(f"{where}: with its aliases followed it has more than {MOST_VALUES:,} values")
    known[id(node)] = size
    return size


def _line(wrong: yaml.YAMLError) -> str:
    """Describes where and what is wrong, in words of ours where the library's do not say how to mend it."""
    if not isinstance(wrong, yaml.MarkedYAMLError) or wrong.problem_mark is None:
        return "not YAML: " + " ".join(str(wrong).split())
    problem = wrong.problem or "not YAML"
    for pattern, words, begins in _WORDS:
        if match := re.search(pattern, problem):
            mark = (wrong.context_mark if begins else None) or wrong.problem_mark
            return f"line {mark.line + 1}, column {mark.column + 1}: {match.expand(words)}"
    mark = wrong.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


_WORDS = (
    (r"'\\t' that cannot start", "a tab: YAML is indented with spaces only", False),
    (r"character '(.)' that cannot start", r"no value begins with '\1': quote it", False),
    (r"found another document", "a second document begins: one file holds one; take the rest out", False),
    (r"constructor for the tag '(?:tag:yaml\.org,2002:)?([^']*)'", _TAG, False),
    (r"undefined alias '(.*)'", r"'*\1' refers to nothing: quote it where it is text", False),
    (
        r"mapping values are not allowed",
        "a second ':' in one line: quote the value, or mend the indent",
        False,
    ),
    (r"expected the node content", "a value is missing, or a bracket is never closed", False),
    (r"unexpected end of stream", "a quote that begins here is never closed", True),
    (r"expected ',' or '[\]}]'", "a bracket that begins here is never closed, or lacks a comma", True),
    (r"could not find expected ':'", "a key without a ':' behind it", True),
    (r"expected <block end>", "indented unlike the lines above it", False),
)
"""Problem of the library's -> what to say, and whether it is said of the place where the thing begins."""
