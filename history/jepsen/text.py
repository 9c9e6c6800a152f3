"""EDN and JSON as Jepsen writes them: operations in, operations out.

An operation is a plain dict here: keys and keywords are strings (``"type": "ok"``), a process is an int or
``"nemesis"``, vectors are lists, sets are lists.
"""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import orjson

from wrackline.history.files import whole_file
from wrackline.history.jepsen.edn import EdnError, forms

Operation = dict[str, Any]

PROGRESS = 2000
DEEPEST = 100
"""Levels of vectors and maps in one operation; Jepsen's have six or so."""
_EXPECTED = "a history.edn of Jepsen's store was expected"
_NOT_EDN = "an EDN history must not end in .json"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class TextError(Exception):
    """The file is not what its ending says. One line: where, what, how to mend it."""


class Keyword(str):
    """A word that is written as a keyword in EDN (``:ok``) and as a string in JSON."""

    __slots__ = ()


def read(path: Path, progress: Callable[[int], None] = lambda _done: None) -> Iterator[Operation]:
    """The operations of a history file, in its order. ``progress`` is called with how many were read.

    ``.json`` holds one array or one object a line; anything else is read as EDN: one vector, or maps one
    after another. Either may be compressed (``.gz``). Raises TextError, OSError."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    zipped = suffixes[-1:] == [".gz"]
    json = (suffixes[:-1] if zipped else suffixes)[-1:] in ([".json"], [".jsonl"])
    try:
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            operations = _read_json(file, path) if json else _read_edn(file, path)
            for done, operation in enumerate(operations, 1):
                if _deeper(operation, DEEPEST):
                    raise TextError(
                        f"{path}: item {done} is nested more than {DEEPEST} deep; that is no operation"
                    )
                if not isinstance(operation, dict):
                    raise TextError(
                        f"{path}: item {done} is no operation (a map with :type, :f, :process) but "
                        f"{operation!r:.60}"
                    )
                yield operation
                if done % PROGRESS == 0:
                    progress(done)
    except (gzip.BadGzipFile, EOFError, zlib.error) as wrong:
        raise TextError(f"{path}: not readable as gzip ({wrong}); is it whole?") from wrong
    except UnicodeDecodeError as wrong:
        raise TextError(
            f"{path}: no text (byte {wrong.start} of a line is no UTF-8); of Jepsen's store give "
            "history.edn, not "
            "test.jepsen"
        ) from wrong


def _deeper(value: Any, most: int) -> bool:
    """Without recursion, which is what this protects."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _read_json(file: BufferedIOBase, path: Path) -> Iterator[Any]:
    text = file.read()
    if not text.strip():
        raise TextError(f"{path}: empty; {_EXPECTED}")
    try:
        if text.lstrip()[:1] == b"[":
            yield from orjson.loads(text)
        else:
            for at, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    try:
                        yield orjson.loads(line)
                    except orjson.JSONDecodeError as wrong:
                        raise TextError(f"{path}, line {at}: no JSON ({wrong}); {_NOT_EDN}") from wrong
    except orjson.JSONDecodeError as wrong:
        raise TextError(f"{path}: no JSON ({wrong}); {_NOT_EDN}") from wrong


def _read_edn(file: BufferedIOBase, path: Path) -> Iterator[Any]:
    any_ = False
    try:
        for form in forms(line.decode("utf-8") for line in file):
            any_ = True
            yield form
    except EdnError as wrong:
        raise TextError(f"{path}, line {wrong.line}: no EDN ({wrong}); {_EXPECTED}") from wrong
    if not any_:
        raise TextError(f"{path}: empty; {_EXPECTED}")


def to_edn(value: Any) -> str:
    """EDN of dicts, lists, strings, numbers and ``Keyword``; keys of dicts that are strings become
    keywords."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case Keyword():
            return f":{value}"
        case str():
            return '"' + value.translate(_ESCAPES) + '"'
        case int() | float():
            return str(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} {to_edn(item)}" for key, item in value.items())
            return "{" + inside + "}"
        case list() | tuple():
            return "[" + " ".join(to_edn(item) for item in value) + "]"
    raise TypeError(f"no EDN for {type(value).__name__}")


def _key(key: Any) -> str:
    return f":{key}" if isinstance(key, str) else to_edn(key)


def to_json(value: Any) -> bytes:
    """JSON of the same; a map's keys become strings."""
    return orjson.dumps(
        value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS, default=_to_str
    )


def _to_str(value: Any) -> str:
    if isinstance(value, Keyword):
        return str.__str__(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def write(
    operations: Iterable[Operation],
    path: Path,
    fmt: str,
    progress: Callable[[int], None] = lambda _done: None,
) -> int:
    """Write a history file, one operation a line: EDN as Jepsen's store does, JSON as one array (elle-cli
    reads no other). Returns the number of operations; where there is none, or it cannot be finished, no file
    is written. Raises OSError."""
    left = iter(operations)
    first = next(left, None)
    if first is None:
        return 0
    with whole_file(path) as part, part.open("wb") as file:
        if fmt == "json":
            file.write(b"[")
        for count, operation in enumerate(itertools.chain([first], left), 1):
            if fmt == "json":
                file.write((b",\n" if count > 1 else b"\n") + to_json(operation))
            else:
                file.write(to_edn(operation).encode() + b"\n")
            if count % PROGRESS == 0:
                progress(count)
        if fmt == "json":
            file.write(b"\n]\n")
    return count
