"""YAML as specifications are written in it: small, flat, and each key once."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

MOST_BYTES = 1_000_000
"""A specification has some thousand; whatever has more is another file."""
MOST_VALUES = 100_000
"""With aliases followed: a file of a hundred lines can stand for millions."""
DEEPEST = 50


class NotYaml(ValueError):
    """The text cannot be read. One line: where, what is wrong."""


class _Loader(yaml.SafeLoader):
    """Rejects a key that is there twice: YAML's own answer, to take the last one, hides a mistake. Reads
    `1e3` as the number that it is in YAML 1.2, and so in editors; PyYAML alone takes it for text."""

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


def read(text: str) -> Any:
    """The value that the text stands for. Raises NotYaml."""
    if len(text) > MOST_BYTES:
        raise NotYaml(f"more than {MOST_BYTES:,} bytes: no specification is so long; is this the right file?")
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node, {}, 0)
        return loader.construct_document(node)
    except yaml.YAMLError as wrong:
        raise NotYaml(_line(wrong)) from wrong
    except RecursionError as deep:
        raise NotYaml(f"nested more than {DEEPEST} deep: a bracket is too many, or never closed") from deep
    finally:
        loader.dispose()


def _check_size(node: yaml.Node, known: dict[int, int], depth: int) -> int:
    """How many values a node stands for, aliases followed. Raises NotYaml, and RecursionError where it is
    nested too deep, or within itself."""
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
    if isinstance(wrong, yaml.MarkedYAMLError) and wrong.problem_mark is not None:
        mark = wrong.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {wrong.problem or 'not YAML'}"
    return "not YAML: " + " ".join(str(wrong).split())
