"""EDN and JSON as Jepsen writes them: operations in, operations out.

An operation that is read is a ``Map`` (wrackline.values); one that is written is a plain dict, whose keys are
strings and whose keywords are ``Keyword``.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from wrackline.errors import InputError
from wrackline.history.jepsen.edn import EdnError, forms
from wrackline.history.jepsen.foreign import CLIENTS, ForeignError, of_json, text_reader
from wrackline.history.store.folder import whole_file
from wrackline.values import DEEPEST, Keyword, Map, NestedTooDeep, Truth, is_flat, spelt, value_of

Operation = dict[str, Any]

PROGRESS = 2000
_EXPECTED = "a history.edn of Jepsen's store was expected"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LONG = re.compile(rb"\d{20}")
"""orjson reads an integer beyond 64 bits as a float, which has no room for all of its digits."""
_EDN = re.compile(rb"\s*[\[(]?\s*(?:\{\s*:|[#;])")
_JSON = re.compile(r'\s*(?:\[\s*)?\{\s*"[^"]*"\s*:(?:\s*["\d\[{-]|\s+[tfn])')
_SPACE = re.compile(r"[\s,]*")


class TextError(InputError):
    """The file is not what its ending says. One line: where, what, how to mend it."""


def read(path: Path, progress: Callable[[int], None] = lambda _done: None) -> Iterator[Operation]:
    """The operations of a history file, in its order. ``progress`` is called with how many were read.

    ``.json`` and ``.jsonl`` hold one array, or objects one after another; anything else is EDN: one vector,
    or maps one after another. Texts and JSON of other checkers are known by how they begin
    (wrackline.history.jepsen.foreign), gzip by its content. A folder is a history of etcd's. Raises
    TextError, OSError."""
    if path.is_dir():
        yield from _of_clients(path)
        return
    json_ = path.name.lower().removesuffix(".gz").endswith((".json", ".jsonl"))
    try:
        with path.open("rb") as raw:
            file = _unpacked(raw, path)
            operations = of_json(_read_json(file.read(), path)) if json_ else _read_text(file, path)
            if path.match(CLIENTS) and len(list(path.parents[1].glob(CLIENTS))) > 1:
                raise TextError(f"{path}: one client of several; give the folder of all: {path.parents[1]}")
            for done, operation in enumerate(operations, 1):
                if not isinstance(operation, Map):
                    raise TextError(f"{path}: item {done} {_no_operation(operation)}")
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
    except ForeignError as wrong:
        raise TextError(f"{path}: {wrong}") from wrong
    except NestedTooDeep as wrong:
        raise TextError(f"{path}: nested more than {DEEPEST} deep; that is no operation") from wrong


def _of_clients(folder: Path) -> Iterator[Operation]:
    """The operations of all clients of a history of etcd's."""

    def items() -> Iterator[Any]:
        for path in sorted(folder.glob(CLIENTS)):
            yield from _read_json(path.read_bytes(), path)

    try:
        yield from of_json(items())
    except ForeignError as error:
        raise TextError(f"{folder}: {error}") from error


def _no_operation(item: Any) -> str:
    of_store = (
        "" if isinstance(item, tuple | dict) else "; of Jepsen's store give history.edn, not history.txt"
    )
    return f"is no operation (a map with :type, :f, :process) but {spelt(item):.60}{of_store}"


def _unpacked(raw: BufferedReader, path: Path) -> BinaryIO:
    """The text behind gzip and a byte order mark."""
    file = cast(BufferedReader, gzip.GzipFile(fileobj=raw)) if raw.peek(2)[:2] == _GZIP else raw
    begin = file.peek(3)[:3]
    if begin[:2] in _UTF16:
        raise TextError(
            f"{path}: UTF-16, which nobody reads here; write it as UTF-8: iconv -f UTF-16 -t UTF-8"
        )
    if begin == _MARK:
        file.read(3)
    return file


def _read_json(text: bytes, path: Path) -> Iterator[Any]:
    if not text.strip():
        raise TextError(f"{path}: empty; {_EXPECTED}")
    if text.lstrip()[:1] == b"[":
        try:
            result = value_of((_exactly if _LONG.search(text) else orjson.loads)(text))
        except ValueError as error:
            raise TextError(f"{path}: no JSON ({error}); {_why(text)}") from error
        yield from result
    else:
        yield from _from_lines(text, path)


def _from_lines(text: bytes, path: Path) -> Iterator[Any]:
    """One value a line, or values over several lines one after another."""
    read_line = _exactly if _LONG.search(text) else orjson.loads
    for at, line in enumerate(text.splitlines(), 1):
        if line and not line.isspace():
            try:
                result = read_line(line)
            except ValueError as error:
                if at == 1 or line.strip() == b"{":
                    yield from _one_after_another(text, path)
                    return
                raise TextError(f"{path}, line {at}: no JSON ({error}); {_why(text)}") from error
            flat = type(result) is dict and is_flat(result.values())
            yield Map(result) if flat else value_of(result)


def _why(text: bytes) -> str:
    """Returns what may be wrong with a text that is no JSON."""
    return "an EDN history must not end in .json" if _EDN.match(text) else "was it cut off?"


def _exactly(text: bytes) -> Any:
    """Reads JSON with all digits of its integers. Raises ValueError."""
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _one_after_another(text: bytes, path: Path) -> Iterator[Any]:
    """Objects over several lines each."""
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    whole = text.decode("utf-8")
    at = 0
    while (at := _space(whole, at)) < len(whole):
        try:
            result, at = decoder.raw_decode(whole, at)
        except ValueError as error:
            where = error.pos if isinstance(error, json.JSONDecodeError) else at
            line = 1 + whole.count("\n", 0, where)
            raise TextError(f"{path}, line {line}: no JSON ({error}); {_why(text)}") from error
        yield value_of(result)


def _space(text: str, at: int) -> int:
    result = _SPACE.match(text, at)
    return result.end() if result else at


def _read_text(file: BinaryIO, path: Path) -> Iterator[Any]:
    lines = (line.decode("utf-8") for line in file)
    before = []
    for line in lines:
        before.append(line)
        if line.strip():
            break
    whole = itertools.chain(before, lines)
    first = before[-1] if before else ""
    if _JSON.match(first):
        return of_json(_read_json("".join(whole).encode(), path))
    reader = text_reader(first)
    return _read_edn(whole, path) if reader is None else reader(whole)


def _read_edn(lines: Iterable[str], path: Path) -> Iterator[Any]:
    any_ = False
    try:
        for form in forms(lines):
            any_ = True
            yield form
    except EdnError as error:
        raise TextError(f"{path}, line {error.line}: no EDN ({error}); {_EXPECTED}") from error
    if not any_:
        raise TextError(f"{path}: empty; {_EXPECTED}")


def to_edn(value: Any) -> str:
    """EDN of dicts, lists, strings, numbers and ``Keyword``; keys of dicts that are strings become
    keywords."""
    match value:
        case None:
            return "nil"
        case bool() | Truth():
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
        case frozenset():
            return "#{" + " ".join(sorted(map(to_edn, value))) + "}"
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
