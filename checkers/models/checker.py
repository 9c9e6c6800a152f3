"""A checker is a rule over all operations of an object that needs no search for their order.

A model says how an object behaves, and whether a history fits it is a search. Many questions are smaller: do
all reads show the same sum, did every value that went in come out? Each is a pass over the operations, and a
checker asks it. Those that Jepsen has are in ``wrackline.checkers.jepsen``, a page each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

from wrackline.checkers.models.protocol import ModelError, Operation, asked

Progress: TypeAlias = Callable[[str], None]
"""Is called with a line that says what is being done."""

MOST_OF_RULE = 8
"""So many problems of a rule are told; all are counted."""
_EVERY = 1000
T = TypeVar("T")


class OperationError(ModelError):
    """An operation has a value that the checker cannot read. The text says what it needs."""

    def __init__(self, place: int, why: str) -> None:
        super().__init__(f"operation {place} of the history: {why}")
        self.place = place
        """Of the operation, in what ``check`` was given."""
        self.why = why


@dataclass(frozen=True, slots=True)
class Problem:
    """Operations that break a rule, whatever became of those of unknown outcome."""

    rule: str
    """A few words: "lost", "wrong total"."""
    sentence: str
    operations: tuple[int, ...]
    """Their places in what ``check`` was given."""


@dataclass(slots=True)
class Found:
    """The result of a checker. It is valid without problems, unless ``undecided`` says why nobody can
    tell."""

    problems: list[Problem] = field(default_factory=list)
    """The first of each rule."""
    counts: Counter[str] = field(default_factory=Counter)
    """How many problems each rule has."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What was counted or measured on the way, by name."""
    undecided: str = ""
    progress: Progress = lambda _line: None

    def add(self, rule: str, sentence: str, *operations: int) -> None:
        """Add a problem. The same operation may be given twice and is told once."""
        self.counts[rule] += 1
        if self.counts[rule] <= MOST_OF_RULE:
            self.problems.append(Problem(rule, sentence, tuple(dict.fromkeys(operations))))

    def counted(self, all_of: Sequence[T], what: str) -> Iterator[T]:
        """The same one by one, with a line of progress for each thousand."""
        for number, one in enumerate(all_of):
            if number % _EVERY == 0:
                self.progress(f"{what} {number:,} of {len(all_of):,}")
            yield one


class Checker(ABC):
    """A rule over the operations of an object. Subclass it, write ``judge`` and fill in what stands above it.
    The first sentence of the class's docstring says what the rule means."""

    operations: ClassVar[Mapping[str, str]] = {}
    """The operations that it knows, each with one line that describes it. Others are refused."""
    puts: ClassVar[Collection[str]] = ()
    """Those whose ``:ok`` says what they put there."""
    promise: ClassVar[str] = "in order"
    """What a history without problems is, behind "is" and "is not"."""
    jepsen: ClassVar[str] = ""
    """Jepsen's name of it, if Jepsen has it."""
    cannot_see: ClassVar[str] = ""
    """What may be wrong all the same."""

    def check(self, operations: Sequence[Operation], progress: Progress = lambda _line: None) -> Found:
        """Check all operations of one object, in the order of their invocations. Raises OperationError,
        ModelError."""
        result = Found(progress=progress)
        with asked(self, "judge()"):
            self.judge(operations, result)
        return result

    @abstractmethod
    def judge(self, operations: Sequence[Operation], found: Found) -> None:
        """Add to ``found`` what is wrong with the operations.

        An operation of outcome FAIL did not happen; one of outcome INFO may have, at any time after its
        invocation, and a problem must be one in either case. Raises OperationError."""


def quantiles(values: Iterable[float], points: Sequence[float] = (0, 0.5, 0.95, 0.99, 1)) -> dict[str, float]:
    """The value at each point of the sorted ones, as Jepsen takes it: at the place floor(n × point)."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {f"{point:g}": ordered[min(len(ordered) - 1, int(len(ordered) * point))] for point in points}
