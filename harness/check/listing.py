"""``wrackline check --list``: what can be asked, what each means, and Jepsen's name of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import known, maker
from wrackline.checkers.models.protocol import ModelError
from wrackline.harness.jepsen.object_histories import ELLE_MODELS

_ELLE = {
    "list-append": ("Lists that transactions append to and read: which orders are possible?", "append"),
    "rw-register": ("Registers that transactions write and read: which orders are possible?", "wr"),
}
_KINDS = {
    "model": "Models: is there an order of the operations, in keeping with time, that the object allows?",
    "checker": "Checkers: a rule over the operations, at any size; not about their order as a whole.",
    "Elle": "Transactions: are they as consistent as they should be? By our own check, else by Elle.",
}


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    kind: str
    """model, checker, Elle."""
    meaning: str
    """One sentence."""
    jepsen: str = ""
    """Jepsen's name, or Knossos'; empty where neither has it."""
    operations: tuple[str, ...] = ()
    """What it knows; empty for any."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Its arguments (--set), with what they are by default."""
    cannot_see: str = ""


def listed() -> list[Listed]:
    """All that can be asked by name."""
    result = [_listed(name) for name in known()]
    return result + [
        Listed(name, "Elle", _ELLE[name][0], f"jepsen.tests.cycle.{_ELLE[name][1]}/checker")
        for name in ELLE_MODELS
    ]


def _listed(name: str) -> Listed:
    try:
        made_by = maker(name)
    except ModelError as error:  # what others installed may be broken
        return Listed(name, "model", str(error))
    parameters = inspect.signature(made_by).parameters.values()
    return Listed(
        name,
        "checker" if inspect.isclass(made_by) and issubclass(made_by, Checker) else "model",
        _first_sentence(inspect.getdoc(made_by) or ""),
        getattr(made_by, "jepsen", ""),
        tuple(getattr(made_by, "operations", ())),
        {one.name: one.default for one in parameters if one.default is not one.empty},
        getattr(made_by, "cannot_see", ""),
    )


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence, dot, _ = paragraph.partition(". ")
    return sentence + dot.strip()


def lines() -> Iterator[str]:
    """The same for people."""
    every = listed()
    for kind, title in _KINDS.items():
        yield title
        for one in every:
            if one.kind == kind:
                yield from _lines(one)
        yield ""
    yield "One of your own is FILE.py:CLASS."


def _lines(one: Listed) -> Iterator[str]:
    yield f"  {one.name}" + (f" ({one.jepsen})" if one.jepsen else "")
    yield f"      {one.meaning}"
    if one.operations:
        yield "      operations: " + ", ".join(f":{f}" for f in one.operations)
    if one.settings:
        yield "      --set " + " ".join(
            f"{name}={orjson.dumps(value, default=str).decode()}" for name, value in one.settings.items()
        )
    if one.cannot_see:
        yield f"      cannot see {one.cannot_see}"
