"""Locks and permits with owners: one operation after another, and who an owner is."""

from __future__ import annotations

from typing import Any

import pytest

from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import ModelError, Operation, Outcome, load

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def told(client: str | None = None, fence: int | None = None) -> dict[str, Any]:
    said: dict[str, Any] = {} if client is None else {"client": client}
    return said if fence is None else said | {"fence": fence}


def a(
    process: int, client: str | None = None, fence: int | None = None, outcome: Outcome = OK
) -> tuple[Any, ...]:
    return process, "acquire", told(client, fence), outcome


def r(process: int, client: str | None = None, outcome: Outcome = OK) -> tuple[Any, ...]:
    return process, "release", told(client), outcome


CASES: list[tuple[str, dict[str, Any], list[tuple[Any, ...]], bool]] = [
    ("mutex", {}, [a(0), r(1)], True),
    ("owner-aware-mutex", {}, [a(0), r(0), a(1), r(1)], True),
    ("owner-aware-mutex", {}, [a(0), r(1)], False),
    ("owner-aware-mutex", {}, [r(0)], False),
    ("owner-aware-mutex", {}, [a(0), a(1)], False),
    ("owner-aware-mutex", {}, [a(0), a(0)], False),
    ("owner-aware-mutex", {}, [a(0), a(1, outcome=FAIL), r(0)], True),
    ("owner-aware-mutex", {}, [a(0), r(0, outcome=FAIL), a(1)], False),
    ("owner-aware-mutex", {}, [a(0), r(0, outcome=INFO), a(1)], True),
    ("owner-aware-mutex", {}, [a(0, outcome=INFO), a(1)], True),
    ("owner-aware-mutex", {}, [a(0, outcome=INFO), r(0), a(1)], True),
    ("owner-aware-mutex", {}, [a(0, outcome=INFO), r(1)], False),
    # Clients with names: process 3 is the next of client n1.
    ("owner-aware-mutex", {}, [a(0, "n1"), r(3, "n1")], True),
    ("owner-aware-mutex", {}, [a(0, "n1"), r(0, "n2")], False),
    ("owner-aware-mutex", {}, [a(0, "n1"), r(0)], True),
    ("owner-aware-mutex", {}, [a(0, outcome=INFO), r(1, "n2")], True),
    ("owner-aware-mutex", {}, [a(1, "n1"), r(1, "n1"), a(1, outcome=INFO), r(2, "n2")], False),
    ("owner-aware-mutex", {}, [a(0, outcome=INFO), r(1, "n2"), r(1, "n2")], False),
    ("reentrant-mutex", {}, [a(0), a(0), r(0), r(0), a(1)], True),
    ("reentrant-mutex", {}, [a(0), a(0), r(0), a(1)], False),
    ("reentrant-mutex", {}, [a(0), a(0), a(0)], False),
    ("reentrant-mutex", {"limit": 3}, [a(0), a(0), a(0)], True),
    ("reentrant-mutex", {"limit": 0}, [a(0), a(0), a(0), a(0)], True),
    ("reentrant-mutex", {}, [a(0), a(1)], False),
    ("reentrant-mutex", {}, [a(0, fence=2), r(0), a(1, fence=1)], True),
    ("fenced-mutex", {}, [a(0, fence=1), r(0), a(1, fence=2), r(1)], True),
    ("fenced-mutex", {}, [a(0, fence=2), r(0), a(1, fence=2)], False),
    ("fenced-mutex", {}, [a(0, fence=2), r(0), a(1, fence=1)], False),
    ("fenced-mutex", {}, [a(0, fence=2), r(0), a(1), r(1), a(0, fence=3)], True),
    ("fenced-mutex", {}, [a(0, fence=2), r(0), a(1, fence=0), r(1), a(0, fence=2)], False),
    ("fenced-mutex", {}, [a(0, fence=2), a(0, fence=2)], False),
    ("fenced-mutex", {}, [a(0, fence=5, outcome=INFO), r(0), a(1, fence=1)], True),
    ("reentrant-fenced-mutex", {}, [a(0, fence=1), a(0, fence=1), r(0), r(0), a(1, fence=2)], True),
    ("reentrant-fenced-mutex", {}, [a(0, fence=1), a(0, fence=2)], False),
    ("reentrant-fenced-mutex", {}, [a(0, fence=1), a(0), r(0), r(0), a(1, fence=1)], False),
    ("reentrant-fenced-mutex", {}, [a(0), a(0, fence=1), r(0), r(0), a(1, fence=2)], True),
    ("reentrant-fenced-mutex", {}, [a(1, fence=3), r(1), a(0), a(0, fence=3)], False),
    ("reentrant-fenced-mutex", {}, [a(0, fence=1)] * 3, False),
    ("reentrant-fenced-mutex", {"limit": 3}, [a(0, fence=1)] * 3, True),
    ("semaphore", {}, [a(0), a(1), r(0), a(2)], True),
    ("semaphore", {}, [a(0), a(1), a(2)], False),
    ("semaphore", {"permits": 3}, [a(0), a(1), a(2)], True),
    ("semaphore", {}, [a(0), r(1)], False),
    ("semaphore", {}, [a(0), a(0), r(0), r(0)], True),
    ("semaphore", {}, [a(0), r(0), r(0)], False),
    ("semaphore", {}, [a(0), a(1, outcome=INFO), a(2)], True),
    ("semaphore", {}, [a(0), a(1, outcome=INFO), a(2), r(1)], False),
    ("semaphore", {}, [a(0, "n1"), r(5, "n1"), r(5, "n1")], False),
]


@pytest.mark.parametrize(("name", "settings", "events", "allowed"), CASES)
def test_one_after_another(
    name: str, settings: dict[str, Any], events: list[tuple[Any, ...]], allowed: bool
) -> None:
    history = [
        Operation(
            process,
            f,
            None,
            said if outcome is OK else None,
            2 * at,
            None if outcome is INFO else 2 * at + 1,
            outcome,
        )
        for at, (process, f, said, outcome) in enumerate(events)
    ]
    found = search(history, load(name, **settings), deadline_s=20)
    assert found.answer is (Answer.VALID if allowed else Answer.INVALID)


@pytest.mark.parametrize(
    ("name", "history", "state"),
    [
        ("owner-aware-mutex", [a(0), a(1)], "owner process 0"),
        ("reentrant-mutex", [a(0, "n1"), a(0, "n1"), a(1, "n2")], "owner n1 2 times of 2"),
        ("fenced-mutex", [a(0, fence=3), r(0), a(1, fence=2)], "no owner, highest fence 3"),
        ("fenced-mutex", [a(0, fence=3), a(1, fence=4)], "owner process 0, fence 3"),
        ("fenced-mutex", [a(0, fence=3), r(0), a(1), a(0)], "owner process 1, highest fence 3"),
        ("semaphore", [a(0), a(0), a(1)], "2 of process 0 (of 2)"),
        ("semaphore", [r(0)], "no permits (of 2)"),
    ],
)
def test_a_state_says_who_holds_it(name: str, history: list[tuple[Any, ...]], state: str) -> None:
    done = [
        Operation(process, f, None, said, 2 * at, 2 * at + 1)
        for at, (process, f, said, _) in enumerate(history)
    ]
    [part] = search(done, load(name)).parts
    assert part.ends[0].in_words == state


def test_a_fence_is_a_number() -> None:
    with pytest.raises(ModelError, match=":acquire needs a number as :fence, not x"):
        search([Operation(0, "acquire", None, {"fence": "x"}, 0, 1)], load("fenced-mutex"))


def test_a_lock_without_a_limit_says_how_often_it_is_held() -> None:
    done = [
        Operation(process, "acquire", None, {}, 2 * at, 2 * at + 1) for at, process in enumerate((0, 0, 0, 1))
    ]
    [part] = search(done, load("reentrant-mutex", limit=0)).parts
    assert part.ends[0].in_words == "owner process 0 3 times"
