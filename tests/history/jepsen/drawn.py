"""Reads ``kafka_histories.txt``: histories drawn a line an operation, with what Jepsen's checker and ours say
of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.history.jepsen.words import Op, op

HISTORIES = Path(__file__).with_name("kafka_histories.txt")
_MOP = re.compile(r"\[[^\]]*\]|[^\s\[\]]+")
_KINDS = ("fail", "info")


@dataclass
class Drawn:
    name: str
    jepsen: list[str] = field(default_factory=list)
    ours: Counter[str] = field(default_factory=Counter)
    why: str = ""
    ops: list[Op] = field(default_factory=list)


def histories() -> list[Drawn]:
    found: list[Drawn] = []
    open_: dict[int, Op] = {}
    for line in HISTORIES.read_text().splitlines():
        word, _, rest = line.partition(" ")
        match word:
            case "" | "#":
                continue
            case "==":
                assert not open_, f"{found[-1].name}: {open_} are open"
                found.append(Drawn(rest))
            case "jepsen:":
                found[-1].jepsen = rest.split()
            case "ours:":
                told = [one.rsplit(" ", 1) for one in rest.split(", ") if one]
                found[-1].ours = Counter({name: int(count) for name, count in told})
            case "why:":
                found[-1].why = rest
            case _:
                found[-1].ops += _operations(int(word), rest.split(" "), open_)
    return found


def _operations(process: int, words: list[str], open_: dict[int, Op]) -> Iterator[Op]:
    if words == ["complete"]:
        yield open_.pop(process)
        return
    invoked_only = words[0] == "invoke"
    words = words[invoked_only:]
    kind = words[0] if words[0] in _KINDS else "ok"
    words = words[kind in _KINDS :]
    f, said = words[0], " ".join(words[1:])
    more: dict[str, Any] = {}
    if said.startswith("rebalanced "):
        _, key, said = said.split(" ", 2)
        more["rebalance-log"] = [{"keys": [key]}]
    if said.endswith(" from the beginning"):
        said = said.removesuffix(" from the beginning")
        yield op(process, "invoke", f, said.split(), **{"seek-to-beginning?": True})
        yield op(process, kind, f, said.split(), **{"seek-to-beginning?": True})
        return
    if f in ("assign", "subscribe"):
        asked = done = said.split()
    else:
        mops = _MOP.findall(said)
        asked, done = [_mop(mop, "invoke") for mop in mops], [_mop(mop, kind) for mop in mops]
    yield op(process, "invoke", f, asked)
    completion = op(process, kind, f, done, **more)
    if invoked_only:
        open_[process] = completion
    else:
        yield completion


def _mop(text: str, kind: str) -> list[Any]:
    if text.startswith("["):
        if kind == "invoke":
            return ["poll"]
        given: dict[str, list[list[Any]]] = {}
        for one in text.strip("[]").split():
            key, offset, value = re.split("[@=]", one)
            given.setdefault(key, []).append([None if offset == "nil" else int(offset), _value(value)])
        return ["poll", given]
    key, value, *offset = re.split("[@=]", text)
    if kind == "invoke" or not offset:
        return ["send", key, _value(value)]
    return ["send", key, [int(offset[0]), _value(value)]]


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text
