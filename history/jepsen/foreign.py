"""Histories of other checkers as operations of Jepsen's: what Porcupine and etcd's robustness tests write,
and the transactions of dbcop and PolySI.

Porcupine's ``[]Operation`` as JSON
    ``{"ClientId": 0, "Input": .., "Call": 1, "Output": .., "Return": 2}``, in an array or one after another.
    An input has an operation (``get``, ``put``, ``append``, ``delete``, ``read``, ``write``, ``cas``, or 0,
    1, 2 for get, put, append), a value and maybe a key: with one it is for ``kv``, else for a register.
    What has not returned has no ``Return``, or 0, or the largest int64. ``[]Event`` is read too.
etcd's ``client-N/operations.json``
    The same with etcd's requests, for ``kv``: puts, deletes and reads of a key. Of a transaction each key is
    an operation; that it compares revisions is not looked at. Reads of several keys or of an old revision are
    left out. A history is the folder of all clients.
PolySI's text
    ``r(key,value,session,transaction)`` and ``w(..)``, one a line; 0 is what each key holds at first.
dbcop's text
    ``[x:=1 y==2 z==?]`` is a transaction that writes 1 to x, reads 2 of y and finds no z; with ``!`` behind
    it, one that did not commit. ``---`` begins another session.
dbcop's JSON
    Sessions of ``{"events": [..], "committed": true}``, alone or as ``data``; also as the version of 2019
    writes them.

Neither PolySI nor dbcop says when a transaction was: all are concurrent, and each is a process of its own.
What a session did in which order is looked at where transactions are to keep it
(strong-session-serializable).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wrackline.values import Keyword, Map, Text, spelt

_NEVER: Final = (1 << 63) - 1
_POLYSI: Final = re.compile(r"([rw])\((-?\d+),(-?\d+),(-?\d+),(-?\d+)\)")
_DBCOP_LINE: Final = re.compile(r"(?:\s*\[[^\]]*\]!?)+\s*")
_DBCOP_TXN: Final = re.compile(r"\[([^\]]*)\](!?)")
_DBCOP_EVENT: Final = re.compile(r"(\w+)(?::=(\d+)|==(\d+|\?))")
_DBCOP: Final = re.compile(r"\s*(?:\[\s*\w+(?::=|==)|//)")
_OPERATION: Final = ("op", "operation", "type", "f", "kind", "method")
"""Names of the field that says what an input does."""
_NUMBERED: Final = ("get", "put", "append")
_WORDS: Final = {
    "get": "get", "read": "get", "put": "put", "write": "put", "set": "put", "append": "append",
    "delete": "delete", "cas": "cas",
}  # fmt: skip
_OF_A_REGISTER: Final = {"get": "read", "put": "write", "cas": "cas"}


CLIENTS: Final = "client-*/operations.json"
"""The files of one history of etcd's, below its folder."""


class TransactionName(Text):
    """SESSION/NUMBER, the name of a process that does one transaction of a session."""

    session: int


class ForeignError(ValueError):
    """The file is none of these. ``str`` says where and why."""


@dataclass(frozen=True, slots=True)
class _Call:
    """An operation with its times; ``end`` is None where it has not returned."""

    client: Any
    begin: int
    end: int | None
    kind: str
    """ok, fail or info."""
    f: str
    argument: Any
    result: Any


# --- which is it?


def of_json(items: Iterator[Any]) -> Iterator[Any]:
    """The same items, or the operations that they stand for. Raises ForeignError."""
    first = next(items, None)
    names = _named(first).keys() if isinstance(first, Map) and "process" not in first else set()
    if names >= {"call", "input"}:
        return _in_time(_calls([first, *items]))
    if names >= {"kind", "id", "value"}:
        return _in_time(_calls(_of_events([first, *items])))
    if isinstance(first, Map) and "params" in first and isinstance(first.get("data"), tuple):
        return _concurrent(_sessions(first["data"]))
    if isinstance(first, tuple) and all(isinstance(one, Map) and "events" in one for one in first):
        return _concurrent(_sessions([first, *items]))
    return items if first is None else itertools.chain([first], items)


def _named(one: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields by their names, however these are written: ClientId, clientId, client_id."""
    return {str(name).lower().replace("_", ""): value for name, value in one.items()}


def text_reader(line: str) -> Callable[[Iterable[str]], Iterator[Map]] | None:
    """Returns the reader of a text with this first line; None where it is none of these."""
    if _POLYSI.fullmatch(line.strip()):
        return _polysi
    return _dbcop if _DBCOP.match(line) else None


def _why(wrong: Exception) -> str:
    """Returns what is wrong with a part of a file, in words."""
    if isinstance(wrong, KeyError):
        return f"it has no {wrong.args[0]}"
    return str(wrong) if type(wrong) is ValueError else "a field holds something else than is known there"


# --- transactions, of which nobody knows when they were

_Transaction = tuple[int, int, bool, Sequence[tuple[str, Any, Any]]]
"""(session, number, committed, [f key value])"""


def _concurrent(transactions: Iterable[_Transaction]) -> Iterator[Map]:
    every = [(_name(session, number), committed, mops) for session, number, committed, mops in transactions]
    for name, _, mops in every:
        asked = tuple((Keyword(f), key, value if f == "w" else None) for f, key, value in mops)
        yield _event(name, "invoke", "txn", asked)
    for name, committed, mops in every:
        done = tuple((Keyword(f), key, value) for f, key, value in mops)
        yield _event(name, "ok" if committed else "fail", "txn", done)


def _name(session: int, number: int) -> TransactionName:
    name = TransactionName(f"{session}/{number}")
    name.session = session
    return name


def _polysi(lines: Iterable[str]) -> Iterator[Map]:
    transactions: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    for at, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _POLYSI.fullmatch(line.strip())
        if match is None:
            raise ForeignError(f"line {at}: no r(key,value,session,transaction) but {line.strip():.40}")
        f, key, value, *name = match.groups()
        transactions.setdefault((int(name[0]), int(name[1])), []).append((f, int(key), int(value)))
    written = {(key, value) for mops in transactions.values() for f, key, value in mops if f == "w"}
    return _concurrent(
        (
            session,
            number,
            True,
            [(f, key, value if value or (key, 0) in written else None) for f, key, value in mops],
        )
        for (session, number), mops in transactions.items()
    )


def _dbcop(lines: Iterable[str]) -> Iterator[Map]:
    result: list[_Transaction] = []
    session = number = 1
    for at, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.strip("-"):
            session, number = session + 1, 1
        elif text and not text.startswith("//"):
            if not _DBCOP_LINE.fullmatch(text):
                raise ForeignError(f"line {at}: no transactions as [x:=1 y==2] but {text:.40}")
            for inside, aborted in _DBCOP_TXN.findall(text):
                mops = [_dbcop_event(word, at) for word in inside.split()]
                result.append((session, number, not aborted, mops))
                number += 1
    return _concurrent(result)


def _dbcop_event(word: str, at: int) -> tuple[str, Any, Any]:
    match = _DBCOP_EVENT.fullmatch(word)
    if match is None:
        raise ForeignError(f"line {at}: no x:=1, x==1 or x==? but {word:.40}")
    key, written, read = match.groups()
    if written is not None:
        return "w", Text(key), int(written)
    return "r", Text(key), None if read == "?" else int(read)


def _sessions(sessions: Iterable[Any]) -> Iterator[_Transaction]:
    for session, transactions in enumerate(sessions, 1):
        if not isinstance(transactions, tuple):
            raise ForeignError(f"session {session} is no list of transactions but {spelt(transactions):.40}")
        for number, one in enumerate(transactions, 1):
            try:
                committed = bool(one["committed"] if "committed" in one else one["success"])
                mops = [_dbcop_json(event) for event in one["events"]]
            except (KeyError, TypeError, ValueError) as error:
                raise ForeignError(
                    f"transaction {number} of session {session} is none of dbcop's: {_why(error)}"
                ) from error
            yield session, number, committed, [mop for mop in mops if mop is not None]


def _dbcop_json(event: Any) -> tuple[str, Any, Any] | None:
    match event:
        case ("r" | "w" as f, variable, version):
            return str(f), variable, version
        case {"Read": {"variable": variable, **more}}:
            return "r", variable, more.get("version")
        case {"Write": {"variable": variable, "version": version}}:
            return "w", variable, version
        case {"write": writes, "variable": variable, "value": value, "success": success}:
            if not success:
                return None
            return ("w", variable, value) if writes else ("r", variable, value or None)
    raise ValueError(f"{spelt(event):.40} neither reads nor writes")


# --- operations with times


def _in_time(calls: Iterable[_Call]) -> Iterator[Map]:
    """Invocations and completions by their times. At one time invocations come first, for operations that
    touch are concurrent. An operation that never returned is followed by its ``info`` at once."""
    events = []
    for number, call in enumerate(calls):
        events.append((call.begin, 0, number, call))
        if call.end is not None:
            events.append((call.end, 1, number, call))
    names: dict[int, Any] = {}
    busy: dict[Any, int] = {}
    for time, completes, number, call in sorted(events, key=lambda event: event[:3]):
        if completes:
            process = names.pop(number)
            busy.pop(process, None)
            yield _event(
                process, call.kind, call.f, call.result if call.kind == "ok" else call.argument, time
            )
            continue
        process = call.client if call.client not in busy else Text(f"{call.client} ({number})")
        yield _event(process, "invoke", call.f, call.argument, time)
        if call.end is None:
            yield _event(process, "info", call.f, call.argument, time)
        else:
            names[number], busy[process] = process, number


def _calls(items: Iterable[Any]) -> Iterator[_Call]:
    leased: dict[Any, set[Any]] = {}
    for at, one in enumerate(items, 1):
        try:
            fields = _named(one)
            client, asked, said = fields["clientid"], fields["input"], fields.get("output")
            begin, end = fields["call"], fields.get("return")
            if not all(isinstance(time, int | float) for time in (begin, end or 0)):
                raise ValueError("Call and Return are no numbers")
            end = None if end is None or end in (0, _NEVER) or end < begin else end
            of_etcd = isinstance(asked, Map) and isinstance(asked.get("Type"), str) and "LeaseGrant" in asked
            found = _of_etcd(asked, said, leased) if of_etcd else [_plain(asked, said)]
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ForeignError(
                f"operation {at} is none that is known of Porcupine's, {_why(error)}: {spelt(one):.80}"
            ) from error
        for kind, f, argument, result in found:
            unknown = end is None or kind == "info"
            yield _Call(
                client, begin, None if unknown else end, "info" if unknown else kind, f, argument, result
            )


_Found = tuple[str, str, Any, Any]
"""(ok, fail or info; f; argument; result)"""


def _of_events(events: Iterable[Any]) -> Iterator[Any]:
    """Porcupine's ``[]Event`` as operations, whose times are their places."""
    begun: dict[Any, dict[str, Any]] = {}
    for at, one in enumerate(events, 1):
        fields = _named(one) if isinstance(one, Mapping) else {}
        try:
            number, value = fields["id"], fields["value"]
            if fields["kind"] in (True, "return", 1):
                if number not in begun:
                    raise ValueError(f"nothing called {number} before it returns")
                begun[number] |= {"output": value, "return": at}
            else:
                begun[number] = {"clientid": fields.get("clientid", number), "call": at, "input": value}
        except (KeyError, TypeError, ValueError) as error:
            raise ForeignError(f"event {at} is none of Porcupine's: {_why(error)}") from error
    yield from map(Map, begun.values())


def _plain(asked: Any, said: Any) -> _Found:
    """Reads a model in which an input is an operation with a value, and maybe a key."""
    fields = _named(asked)
    word = next((fields[name] for name in _OPERATION if name in fields), None)
    if word is None:
        raise ValueError(f"its input does not name an operation ({_OPERATION[0]})")
    f = dict(enumerate(_NUMBERED)).get(word) if isinstance(word, int) else _WORDS.get(str(word).lower())
    if f is None:
        raise ValueError(f"{word} is none of {', '.join(_WORDS)}")
    value = fields.get("value", fields.get("val"))
    result = said
    if isinstance(said, Mapping):
        shown = _named(said)
        result = shown.get("value", shown.get("val"))
    if "key" not in fields and f not in _OF_A_REGISTER:
        raise ValueError(f"{f} needs a key")
    if "key" not in fields:
        return "ok", _OF_A_REGISTER[f], None if f == "get" else value, result if f == "get" else value
    key = fields["key"]
    if f == "get":
        return "ok", f, (key, None), (key, result)
    return "ok", f, (key, value), (key, value)


def _of_etcd(asked: Map, said: Any, leased: dict[Any, set[Any]]) -> list[_Found]:
    """Returns the operations on single keys in a request of etcd."""
    answer = said if isinstance(said, Mapping) else {}
    unknown = bool(answer.get("Error") or answer.get("Persisted") or answer.get("PartialResponse"))
    if answer.get("ClientError"):
        return []
    match asked["Type"]:
        case "range":
            request = asked["Range"]
            if unknown or request.get("Revision"):
                return []
            return _etcd_read(request, answer["Range"])
        case "txn":
            return _etcd_txn(asked["Txn"], answer.get("Txn"), unknown, leased)
        case "leaseRevoke":
            lease = asked["LeaseRevoke"]["LeaseID"]
            return [("info", "delete", (key, None), None) for key in sorted(leased.get(lease, ()))]
    return []


def _etcd_read(request: Mapping[str, Any], shown: Mapping[str, Any]) -> list[_Found]:
    key = request["Start"]
    if request.get("End"):
        return []
    there = shown.get("KVs") or ()
    return [("ok", "get", (key, None), (key, _etcd_value(there[0]["Value"]) if there else None))]


def _etcd_txn(
    request: Mapping[str, Any], answer: Mapping[str, Any] | None, unknown: bool, leased: dict[Any, set[Any]]
) -> list[_Found]:
    failed = bool(answer and answer.get("Failure"))
    done = request.get("OperationsOnFailure" if failed else "OperationsOnSuccess") or ()
    if unknown:
        done = (*done, *(request.get("OperationsOnFailure") or ()))
    results = (answer or {}).get("Results") or ()
    result: list[_Found] = []
    for place, one in enumerate(done):
        kind = "info" if unknown else "ok"
        match one["Type"]:
            case "put-operation":
                key = one["Put"]["Key"]
                pair = (key, _etcd_value(one["Put"]["Value"]))
                if one["Put"].get("LeaseID"):
                    leased.setdefault(one["Put"]["LeaseID"], set()).add(key)
                result.append((kind, "put", pair, pair))
            case "delete-operation":
                key = one["Delete"]["Key"]
                result.append((kind, "delete", (key, None), (key, None)))
            case "range-operation" if not unknown:
                result += _etcd_read(one["Range"], results[place])
    return result


def _etcd_value(value: Any) -> Any:
    """A long value is kept as its hash alone."""
    if isinstance(value, Mapping):
        return f"hash {value['Hash']}" if value.get("Hash") else value.get("Value", "")
    return value


def _event(process: Any, kind: str, f: str, value: Any, time: int | None = None) -> Map:
    return Map(process=process, type=Keyword(kind), f=Keyword(f), value=value, time=time)
