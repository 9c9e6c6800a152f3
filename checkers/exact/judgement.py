"""The result of a search for an order of operations, as data."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum


class Answer(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """A limit was reached first: nobody's proof."""


@dataclass(frozen=True, slots=True)
class End:
    """One way in which the operations before ``Part.stuck`` can be placed, and where that leads. Numbers are
    places of operations in the history."""

    state: Hashable
    in_words: str
    """The state, as the model describes it."""
    placed: tuple[int, ...]
    """The operations that were open when ``stuck`` returned and already have their place."""
    waiting: tuple[int, ...]
    """Those of them that have none yet, with ``stuck`` first. Those of unknown outcome are not among them."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the object. Numbers are places of operations in the history."""

    key: Hashable
    """What the model's ``partition`` answers for its operations."""
    answer: Answer
    operations: int
    """How many operations the part has, without those that could be left out."""
    why: str = ""
    """Of UNKNOWN: which limit was reached, and how far the search had come."""
    order: tuple[int, ...] = ()
    """VALID: an order of the operations that the model allows. Else the longest one that was found from the
    beginning. Operations of unknown outcome are in it only where they were needed."""
    state: str = ""
    """The state after ``order``, as the model describes it."""
    stuck: int | None = None
    """INVALID: the first operation to return that has a place in no order, as the narrowed model has it."""
    ends: tuple[End, ...] = ()
    """INVALID: the states in which ``stuck`` is refused, a few of them; ``ends_found`` says of how many."""
    ends_found: int = 0
    configurations: int = 0
    """How many the search looked at."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a search: part by part, where the model divides the object."""

    parts: tuple[Part, ...]
    """In the order of their first operations."""

    @property
    def answer(self) -> Answer:
        """INVALID if any part is; else UNKNOWN if any part is."""
        answers = {part.answer for part in self.parts}
        for answer in (Answer.INVALID, Answer.UNKNOWN):
            if answer in answers:
                return answer
        return Answer.VALID

    @property
    def invalid(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.answer is Answer.INVALID)

    @property
    def unknown(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.answer is Answer.UNKNOWN)
