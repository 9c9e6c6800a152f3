"""A model is the behaviour of an object that one client at a time uses.

A history of many clients is linearizable if there is an order of its operations, in keeping with real time,
that the model allows (Herlihy & Wing, *Linearizability*, 1990). The search for that order
(wrackline.checkers.exact.search) asks a model for one step at a time and keeps the answers in a table, so a
model in plain Python is nearly as fast as one in native code.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, ClassVar, Final, Generic, TypeVar

from wrackline.errors import InputError
from wrackline.values import spelt, value_of


def in_words(value: Any, most: int = 40) -> str:
    """A value as EDN has it, cut short."""
    text = spelt(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def several(values: Iterable[Any], most: int = 5) -> str:
    """``1, 2, 3 and 4 more``."""
    every = list(values)
    more = len(every) - most
    some = ", ".join(in_words(one) for one in every[:most])
    return f"{some} and {more:,} more" if more > 0 else some


class Outcome(StrEnum):
    """The outcome of an operation as its client knows it."""

    OK = "ok"
    """It happened, and its result is known."""
    FAIL = "fail"
    """It certainly did not happen."""
    INFO = "info"
    """Nobody knows: it may have happened, may still happen at any later time, or never."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of one client, from its invocation to its return. Its values are those of
    wrackline.values where it was read from a file.

    ``inv`` and ``ret`` are places in one order of all events, or times of one clock. They bound the operation
    from both sides and belong to it: operations whose bounds touch are concurrent. ``ret`` is None where it
    never returned or where its outcome is unknown."""

    process: int
    f: str
    argument: Any
    """As Jepsen's ``:value`` of the invocation: what to write, ``[old new]``, None of a read."""
    result: Any
    """As Jepsen's ``:value`` of the completion ``:ok``; None where nobody knows it."""
    inv: int
    ret: int | None
    outcome: Outcome = Outcome.OK
    at: int = 0
    """Place of the invocation in its file, from 1; 0 where there is none."""
    until: int | None = None
    """Place of the completion, whatever the outcome; None where there is none."""
    inv_ns: int | None = None
    """``:time`` of the invocation, where the history says it."""
    ret_ns: int | None = None
    """``:time`` of the completion, whatever the outcome."""
    key: Any = None
    """The object, where a history has several (``--independent``)."""
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What else the completion says, by key: ``:link``, ``:position``, ``:error``."""

    @property
    def value(self) -> Any:
        """Returns the value that the operation was about, as far as its client knows: the result where it
        is ok, else the argument."""
        return self.result if self.outcome is Outcome.OK else self.argument


class ModelError(InputError):
    """A model cannot be used, or not for this history. One line: which, what is wrong, how to mend it."""


def unreadable(operation: Operation, needs: str, value: Any, most: int = 40) -> ModelError:
    """The error of a value that a model cannot read, and what the operation needs instead."""
    what = f"{needs}, not {in_words(value, most)}"
    return ModelError(f":{operation.f} needs {what} (process {operation.process})")


@contextmanager
def asked(model: object, what: str) -> Iterator[None]:
    """Wraps the call of a method of a model, which somebody else wrote. Raises ModelError, whatever goes
    wrong there."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        name = type(model).__name__
        raise ModelError(f"model {name}: {what} raised {type(error).__name__}: {error}") from error


class Refused(Enum):
    """The type of ``REFUSED``."""

    REFUSED = "refused"

    def __repr__(self) -> str:
        return "REFUSED"


REFUSED: Final = Refused.REFUSED
"""The answer of a step that the object cannot take: no such object would have shown this."""


S = TypeVar("S", bound=Hashable)
"""What an object holds. Equal states are the same state, so they must be hashable and must not change."""


class OneOf(tuple[S, ...]):
    """The answer of a step that may lead to any of several states: ``OneOf(states)``."""

    __slots__ = ()


class Model(Generic[S]):
    """A sequential object. Subclass it and write ``initial`` and ``step``; everything else has a default.

    A model is asked about each pair of a state and a distinct operation once. So its methods must be pure:
    the same arguments give the same answer, and nothing is changed in place."""

    operations: ClassVar[Mapping[str, str]] = {}
    """The operations that the model knows, each with one line that describes it. Empty: any."""

    puts: ClassVar[Collection[str]] = ()
    """Operations that put something there, of which a completion that is ok says what: a server may have
    added a version to it, or chosen its number. As ``argument`` the model then gets what was put there."""

    failed_tell: ClassVar[bool] = False
    """Whether an operation of outcome FAIL is an observation of the object, as that of a compare-and-set that
    found another value. By default failed operations are left out: they did not happen."""

    names_process: ClassVar[bool] = False
    """Whether ``operation.process`` matters to a step: then equal operations of two processes are not the
    same."""

    jepsen: ClassVar[str] = ""
    """Jepsen's or Knossos' name of it, if it has one."""

    def initial(self) -> S:
        """The state before the first operation."""
        raise NotImplementedError

    def step(self, state: S, operation: Operation) -> S | OneOf[S] | Refused:
        """The state after the operation; ``OneOf(states)`` where it may be any of several; ``REFUSED`` where
        no such object would have answered ``operation.result`` in this state. None is no state.

        Of an operation with the outcome INFO the result is not known (it is None): answer with what it may
        have done. That it may have done nothing at all is taken care of by the search."""
        raise NotImplementedError

    def observes(self, operation: Operation) -> bool:  # noqa: ARG002
        """Tells whether the operation only looks: its step answers with the state it was given, or
        ``REFUSED``, in each state. The search then places it wherever it fits, without trying the rest,
        which saves much time; a model that says so of an operation that changes a state is a ModelError."""
        return False

    def partition(self, operation: Operation) -> Hashable:  # noqa: ARG002
        """The part of the object that the operation is about, as the key of a map. Parts are decided one by
        one (Horn & Kroening's P-compositionality, 2015), each from ``initial()``: the history is linearizable
        if and only if each part is. By default the object is one part."""
        return None

    def narrowed(self, operations: Sequence[Operation]) -> Model[S]:  # noqa: ARG002
        """The model for a part that has these operations and no others. It may answer with one state for all
        that none of the operations can tell apart, now or later: the fewer states, the shorter the search. A
        register need not remember which value it holds if it is none that was read. It may also refuse a step
        after which one of the operations that did happen could have no place any more."""
        return self

    def unknowns(self, operations: Sequence[Operation]) -> Mapping[int, int | None]:  # noqa: ARG002
        """Returns what the other operations of a part tell about those of unknown outcome, which cost the
        search most.

        Keys are places in ``operations``. The value None leaves the operation out: allowed if any order with
        it is also one without it. A number says that the operation did happen, by then at the latest: allowed
        if all orders have it before some operation that returned at this time."""
        return {}

    def describe(self, operation: Operation) -> str:
        """The operation in words."""
        return described(operation)

    def describe_state(self, state: S) -> str:
        """A state in words."""
        return repr(state)


def described(operation: Operation) -> str:
    """``f(argument) -> result``."""
    argument = "" if operation.argument is None else repr(operation.argument)
    if operation.outcome is Outcome.OK:
        return f"{operation.f}({argument}) -> {operation.result!r}"
    return f"{operation.f}({argument}) -> {'failed' if operation.outcome is Outcome.FAIL else 'unknown'}"


frozen = value_of
"""The same value as a hashable one, as a history that is read from a file has it already."""
