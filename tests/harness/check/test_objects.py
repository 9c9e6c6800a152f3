"""Our answer and Knossos's, side by side."""

from __future__ import annotations

from typing import cast

import pytest

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.jvm.answers import Judgement, State
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Calls
from wrackline.checkers.models.loading import load
from wrackline.checkers.models.protocol import Operation
from wrackline.harness.check.objects import Asking, decide
from wrackline.harness.check.results import Verdict
from wrackline.harness.jepsen.object_histories import Subject


class Referee:
    """Says what it was told to say, in place of Knossos."""

    def __init__(self, says: Judgement) -> None:
        self._says = says

    def linearizable(self, _calls: Calls, *, deadline_s: float) -> Judgement:
        assert deadline_s > 0
        return self._says


def verdict(read: int, says: Judgement, by: str = "both") -> Verdict:
    done = [
        Operation(0, "write", 1, 1, 1, 2, at=1, until=2),
        Operation(0, "read", None, read, 3, 4, at=3, until=4),
    ]
    referee = cast(Bridge, Referee(says))
    model, limits = load("register"), Limits(5, 1 << 28)
    asking = Asking("register", model, by, None, False, limits, lambda: referee, lambda _line: None)
    [found] = decide(Subject(None, done, done), asking)
    return found


VALID, INVALID = Judgement(Answer.VALID), Judgement(Answer.INVALID, row=1)
LATE = Judgement(Answer.UNKNOWN, "no answer within 5 s")


@pytest.mark.parametrize(
    ("read", "says", "answer", "words"),
    [
        (1, VALID, Answer.VALID, "Knossos says valid"),
        (2, INVALID, Answer.INVALID, "Knossos says invalid"),
        (2, LATE, Answer.INVALID, "Knossos says unknown (no answer within 5 s)"),
        (2, VALID, Answer.UNKNOWN, "exact says invalid, Knossos says valid"),
        (1, INVALID, Answer.UNKNOWN, "exact says valid, Knossos says invalid"),
    ],
)
def test_a_disagreement_is_nobodys_proof(read: int, says: Judgement, answer: Answer, words: str) -> None:
    found = verdict(read, says)
    assert found.answer is answer
    assert words in found.note + found.why


def test_knossos_states_are_told_with_the_values_of_the_file() -> None:
    says = Judgement(Answer.INVALID, row=1, states=(State((1,), 1, (0,), (1,)),))
    found = verdict(2, says, by="knossos")
    assert found.stuck is not None
    [state] = found.stuck.states
    assert state.holds == "1"
    assert [one.words for one in state.placed] == [":write 1"]
    assert [one.words for one in state.waiting] == [":read 2"]
