"""The result of ``wrackline check``, as data: its lines, its JSON and its page are made of this alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.models.protocol import Operation as Read
from wrackline.history.jepsen.ops import NamedProcess
from wrackline.values import Truth, spelt

EXACT, SEARCH, CHECKER, KNOSSOS, ELLE = "exact", "search", "checker", "Knossos", "Elle"
"""Who decided."""
LINEARIZABLE = "linearizable"


@dataclass(frozen=True, slots=True)
class Operation:
    at: int
    """Place of the invocation in the file, from 1: its name."""
    until: int | None
    """Place of the completion; None where nobody knows the outcome."""
    process: Any
    """A number, or what names it."""
    f: str
    argument: Any
    """``:value`` of the invocation."""
    value: Any
    """``:value`` of the completion where it is ok, else of the invocation."""
    outcome: str
    """ok, fail or info."""

    @property
    def words(self) -> str:
        silent = self.value is None and self.argument is None
        return f":{self.f}" if silent else f":{self.f} {shown(self.value)}"

    @property
    def line(self) -> str:
        ends = f" to {self.until}" if self.until is not None else ", never completed"
        return f"process {self.process} {self.words} (operation {self.at}{ends})"

    @property
    def short(self) -> str:
        return f"{self.words} of process {self.process}"


def operation(one: Read) -> Operation:
    until = None if one.ret is None else one.until
    process = one.process.name if isinstance(one.process, NamedProcess) else one.process
    return Operation(one.at, until, process, one.f, one.argument, one.value, str(one.outcome))


def shown(value: Any, most: int = 40) -> str:
    """A value as EDN has it, cut short."""
    match value:
        case None:
            text = "nil"
        case list() | tuple():
            text = "[" + " ".join(shown(one) for one in value[:12]) + (" ...]" if len(value) > 12 else "]")
        case Mapping():
            text = "{" + ", ".join(f"{shown(key)} {shown(one)}" for key, one in value.items()) + "}"
        case frozenset():
            text = "#{" + " ".join(sorted(map(shown, value))) + "}"
        case str() if re.fullmatch(r"[\w.*+!?/-]+", value):
            text = value
        case _:
            text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def plain(value: Any) -> Any:
    """The same as JSON can have it: sets are lists, and keys that are no words or numbers are spelt as in
    EDN."""
    match value:
        case int():
            return value if abs(value) < 1 << 63 else str(value)
        case str() | None:
            return value
        case Truth():
            return bool(value)
        case float():
            return float(value)
        case Mapping():
            return {
                key if isinstance(key, str | int) else spelt(key): plain(one) for key, one in value.items()
            }
        case tuple() | list():
            return [plain(one) for one in value]
        case frozenset():
            return sorted(map(plain, value), key=str)
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return spelt(value)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that an exact check or a checker found: operations that are impossible together, whatever
    the others did."""

    rule: str
    about: str
    """What is wrong, as a clause."""
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class State:
    """The state to which one order of the operations led before the search got stuck."""

    holds: str
    """What the object holds then."""
    placed: tuple[Operation, ...]
    """Of the operations that were open when it got stuck: those that have their place."""
    waiting: tuple[Operation, ...]
    """Those that have none yet, and none can be next."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """The reason why a search found no order."""

    operation: Operation
    """The first to complete that has a place in no order."""
    states: tuple[State, ...]
    """In which the search was then, a few of them."""
    order: tuple[Operation, ...] = ()
    """The end of the longest order that was found, in that order."""


@dataclass(frozen=True, slots=True)
class Link:
    """The reason why one transaction of a cycle comes before the next."""

    kind: str
    """ww, wr, rw, realtime or process."""
    before: int
    after: int
    """Numbers of the transactions in the cycle, from 1: T1, T2, ..."""
    sentence: str
    key: Any = None
    value: Any = None
    """What the first wrote, or read; None for the state before the first write."""
    next_value: Any = None
    """What the second wrote, for ww and rw."""

    @property
    def line(self) -> str:
        return f"T{self.before} < T{self.after} ({self.kind}): {self.sentence}"


@dataclass(frozen=True, slots=True)
class Example:
    transactions: tuple[Operation, ...]
    """T1, T2, ...: of a cycle in its order."""
    links: tuple[Link, ...]
    """Of a cycle; the last leads back to the first. Empty for what is no cycle."""
    sentence: str
    """What is wrong, of what is no cycle; empty where only Elle's own words say it."""
    facts: dict[str, Any]
    """Elle's own data of it; a transaction is {"operation": "T1"}."""
    words: str
    """Elle's own, cut short."""
    names: dict[str, Any]
    """What negative numbers in these words stand for."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    type: str
    """Elle's name: G0, G1c, G-single-item-realtime, lost-update, ..."""
    count: int
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about one object, or about the transactions of a file."""

    key: Any
    """None where the file has one object."""
    answer: Answer
    by: str
    operations: int
    promise: str = LINEARIZABLE
    """What it is, or is not: linearizable, strict-serializable, complete, ..."""
    why: str = ""
    """Of an unknown answer: which limit was reached."""
    problems: tuple[Problem, ...] = ()
    stuck: Stuck | None = None
    anomalies: tuple[Anomaly, ...] = ()
    refuted: tuple[str, ...] = ()
    """Elle: the weakest consistency models that do not hold."""
    around: tuple[Operation, ...] = ()
    """Operations at the time of what is wrong, for the drawing."""
    note: str = ""
    """What else should be known of how it was decided."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What a checker counted and measured, by name; of several, a map."""
    seconds: float = 0.0

    @property
    def name(self) -> str:
        return "history" if self.key is None else f"key {self.key}"


@dataclass(slots=True)
class Judged:
    """One file."""

    file: str
    verdicts: list[Verdict] = field(default_factory=list)
    left_out: int = 0
    """Events of Jepsen's own processes, such as its nemesis."""
    wrong: str = ""
    """Why it could not be judged (to its end), in one line; empty where it could."""


OK, VIOLATION, WRONG_INPUT, UNDECIDED = 0, 1, 2, 3


def exit_code(files: Sequence[Judged]) -> int:
    """Returns the exit code of the worst result: a violation, then a file that could not be judged, then
    an unknown answer."""
    answers = {one.answer for file in files for one in file.verdicts}
    if Answer.INVALID in answers:
        return VIOLATION
    if any(file.wrong for file in files):
        return WRONG_INPUT
    return UNDECIDED if Answer.UNKNOWN in answers else OK
