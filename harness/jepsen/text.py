"""EDN and JSON as Jepsen writes them: operations in, operations out.

An operation is a plain dict here: keys and keywords are strings (``"type": "ok"``), a process is an int or
``"nemesis"``, vectors are lists, sets are lists. Reading is the library's work (edn_format; orjson); it makes about four
thousand operations of EDN a second, so large files are read by several processes.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import edn_format
import orjson

Operation = dict[str, Any]

LINES_A_TASK = 2000
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class TextError(Exception):
    """The file is not what its ending says. One line: where, what, how to mend it."""


class Keyword(str):
    """A word that is written as a keyword in EDN (``:ok``) and as a string in JSON."""

    __slots__ = ()


class _JepsenOp(edn_format.TaggedElement):  # type: ignore[misc]
    """``#jepsen.history.Op{...}``, as newer versions print an operation: the map in it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return edn_format.dumps(self.value)  # type: ignore[no-any-return]


for _tag in ("jepsen.history.Op", "knossos.op.Op"):
    edn_format.add_tag(_tag, _JepsenOp)


def read(path: Path, progress: Callable[[int], None] = lambda _done: None) -> Iterator[Operation]:
    """The operations of a history file, in its order. ``progress`` is told how many were read.

    ``.json`` holds one array or one object a line; anything else is read as EDN: one vector, or maps one after
    another. Raises TextError, OSError."""
    operations = _read_json(path) if path.suffix == ".json" else _read_edn(path)
    for done, operation in enumerate(operations, 1):
        if not isinstance(operation, dict):
            raise TextError(
                f"{path}: item {done} is no operation (a map with :type, :f, :process) but {operation!r:.60}"
            )
        yield operation
        if done % LINES_A_TASK == 0:
            progress(done)


def _read_json(path: Path) -> Iterator[Any]:
    text = path.read_bytes()
    try:
        if text.lstrip()[:1] == b"[":
            yield from orjson.loads(text)
        else:
            yield from (orjson.loads(line) for line in text.splitlines() if line.strip())
    except orjson.JSONDecodeError as wrong:
        raise TextError(f"{path}: no JSON ({wrong}); an EDN history must not end in .json") from wrong


def _read_edn(path: Path) -> Iterator[Any]:
    """Jepsen writes one operation a line, so lines are shared out; any other shape is read in one piece."""
    with path.open(encoding="utf-8") as file:
        first = next((line for line in file if line.strip()), "")
    if not first.strip():
        raise TextError(f"{path}: empty; a history.edn of Jepsen's store was expected")
    if not _whole(first):
        yield from _parse_text(path.read_text(encoding="utf-8"), path)
        return
    with path.open(encoding="utf-8") as file:
        tasks = _tasks(file)
        head = list(itertools.islice(tasks, 2))
        if len(head) < 2:  # small: another process would cost more than it saves
            for lines in head:
                yield from _parse_lines(lines, path)
            return
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            pending = [pool.submit(_parse_lines, lines, path) for lines in head]
            for lines in tasks:
                pending.append(pool.submit(_parse_lines, lines, path))
                if len(pending) > 16:
                    yield from pending.pop(0).result()
            for task in pending:
                yield from task.result()


def _whole(line: str) -> bool:
    """Is this line a whole operation by itself?"""
    if not line.lstrip().startswith(("{", "#")):
        return False
    try:
        return isinstance(plain(edn_format.loads(line)), dict)
    except (edn_format.EDNDecodeError, NotImplementedError):
        return False


def _tasks(file: Iterable[str]) -> Iterator[list[tuple[int, str]]]:
    numbered = ((at, line) for at, line in enumerate(file, 1) if line.strip())
    while chunk := list(itertools.islice(numbered, LINES_A_TASK)):
        yield chunk


def _parse_lines(lines: list[tuple[int, str]], path: Path) -> list[Any]:
    return [_parse_line(line, path, at) for at, line in lines]


def _parse_line(line: str, path: Path, at: int) -> Any:
    try:
        return plain(edn_format.loads(line))
    except (edn_format.EDNDecodeError, NotImplementedError, ValueError) as wrong:
        raise TextError(f"{path}, line {at}: no EDN ({_first_line(wrong)})") from None


def _parse_text(text: str, path: Path) -> list[Any]:
    try:
        found = [plain(form) for form in edn_format.loads_all(text)]
    except (edn_format.EDNDecodeError, NotImplementedError, ValueError) as wrong:
        raise TextError(
            f"{path}: no EDN ({_first_line(wrong)}); is it a history.edn of Jepsen's store?"
        ) from None
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _first_line(wrong: Exception) -> str:
    return (str(wrong).splitlines() or [type(wrong).__name__])[0][:120]


def plain(form: Any) -> Any:
    """EDN as the library gives it -> dicts, lists, strings, numbers."""
    match form:
        case _JepsenOp():
            return plain(form.value)
        case edn_format.Keyword() | edn_format.Symbol():
            return form.name
        case str() | int() | float() | None:
            return form
        case Mapping():
            return {plain(key): plain(value) for key, value in form.items()}
        case set() | frozenset():
            return sorted((plain(item) for item in form), key=repr)
        case edn_format.TaggedElement():
            return str(form)
        case Iterable():
            return [plain(item) for item in form]
    return str(form)


def to_edn(value: Any) -> str:
    """EDN of dicts, lists, strings, numbers and ``Keyword``; keys of dicts that are strings become keywords."""
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


def write(operations: Iterable[Operation], path: Path, fmt: str) -> int:
    """Write a history file, one operation a line: EDN as Jepsen's store does, JSON as one array (elle-cli reads no
    other). Returns the number of operations. Raises OSError."""
    count = 0
    with path.open("wb") as file:
        if fmt == "json":
            file.write(b"[")
        for operation in operations:
            if fmt == "json":
                file.write((b",\n" if count else b"\n") + to_json(operation))
            else:
                file.write(to_edn(operation).encode() + b"\n")
            count += 1
        if fmt == "json":
            file.write(b"\n]\n")
    return count
