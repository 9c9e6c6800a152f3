"""What each model allows: one operation after another, as one client would do them."""

from __future__ import annotations

from typing import Any

import pytest

from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Model, ModelError, Operation, Outcome, known, load
from wrackline.checkers.models.loading import load_decider

OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO
Row = tuple[Any, ...]
"""f, argument, result (of an operation without one, nothing), outcome (OK, if nothing)."""

WITH_OWNERS = ("owner-aware-mutex", "reentrant-mutex", "fenced-mutex", "reentrant-fenced-mutex", "semaphore")
"""test_locks.py has more of these."""

ALLOWED: list[tuple[str, dict[str, Any], list[Row]]] = [
    ("register", {}, [("read", None, None), ("write", 1), ("read", None, 1), ("read", None, 1)]),
    ("register", {"initial": 0}, [("read", None, 0), ("write", [1, 2]), ("read", None, [1, 2])]),
    ("register", {}, [("write", 1, None, FAIL), ("read", None, None)]),
    ("register", {}, [("write", 1, None, INFO), ("read", None, None), ("read", None, 1)]),
    ("cas-register", {"initial": 1}, [("cas", [1, 2]), ("cas", [2, 3]), ("read", None, 3)]),
    ("cas-register", {"initial": 1}, [("cas", [1, 2], None, FAIL), ("read", None, 1)]),
    ("cas-register", {}, [("cas", [1, 2], None, INFO), ("write", 1), ("read", None, 2)]),
    ("strict-cas-register", {"initial": 1}, [("cas", [2, 3], None, FAIL), ("read", None, 1)]),
    ("strict-cas-register", {}, [("write", 1), ("cas", [1, 2]), ("read", None, 2)]),
    ("mutex", {}, [("acquire", None), ("release", None), ("acquire", None)]),
    ("counter", {}, [("add", 2), ("add", -3), ("read", None, -1), ("add-and-get", 2, [2, 1])]),
    (
        "counter",
        {"initial": 5},
        [("read", None, 5), ("add", 1, None, INFO), ("read", None, 5), ("read", None, 6)],
    ),
    ("set", {}, [("read", None, []), ("add", "b"), ("add", "a"), ("add", "a"), ("read", None, ["a", "b"])]),
    ("set", {}, [("add", 1), ("remove", 1), ("remove", 2), ("read", None, [])]),
    ("kv", {}, [("get", ["x", None], ["x", None]), ("put", ["x", 1]), ("get", ["x", None], ["x", 1])]),
    ("kv", {}, [("put", ["x", 1]), ("delete", ["x", None]), ("get", ["x", None], ["x", None])]),
    (
        "kv",
        {"initial": ""},
        [("append", ["x", "ab"]), ("append", ["x", "c"]), ("get", ["x", None], ["x", "abc"])],
    ),
    ("kv", {}, [("append", ["x", 1]), ("append", ["x", 2]), ("get", ["x", None], ["x", [1, 2]])]),
    ("kv", {}, [("put", ["x", 1]), ("cas", ["x", [1, 2]]), ("get", ["x", None], ["x", 2])]),
    (
        "multi-register",
        {"initial": 0},
        [("txn", [["r", "x", None], ["w", "x", 1]], [["r", "x", 0], ["w", "x", 1]])],
    ),
    (
        "multi-register",
        {"initial": {"x": 1}},
        [("txn", [["r", "x", None], ["r", "y", None]], [["r", "x", 1], ["r", "y", None]])],
    ),
    ("multi-register", {}, [("txn", [["w", "x", 1], ["r", "x", None]], [["w", "x", 1], ["r", "x", 1]])]),
    (
        "multi-register",
        {},
        [("txn", [["write", "x", 1], ["read", "x", None]], [["write", "x", 1], ["read", "x", 1]])],
    ),
    ("bank", {}, [("transfer", {"from": 0, "to": 1, "amount": 4}), ("read", None, {0: 6, 1: 14, 2: 10})]),
    (
        "bank",
        {"initial": {0: 1}},
        [("transfer", {"from": 0, "to": 1, "amount": 1}, None, INFO), ("read", None, {0: 1})],
    ),
    (
        "bank",
        {"initial": 0, "negative": True},
        [("transfer", {"from": 0, "to": 1, "amount": 4}), ("read", None, {0: -4})],
    ),
    (
        "fifo-queue",
        {},
        [("dequeue", None, None), ("enqueue", 1), ("enqueue", 2), ("dequeue", None, 1), ("dequeue", None, 2)],
    ),
    (
        "fifo-queue",
        {},
        [
            ("dequeue", None, "empty"),
            ("enqueue", 1),
            ("dequeue", None, None, INFO),
            ("dequeue", None, "empty"),
        ],
    ),
    (
        "unordered-queue",
        {},
        [("enqueue", 1), ("enqueue", 1), ("enqueue", 2), ("dequeue", None, 2), ("dequeue", None, 1)],
    ),
    (
        "log",
        {},
        [
            ("end", None, 0),
            ("append", "a", [0, "a"]),
            ("append", "a", [None, "a"]),
            ("append", "b", None, INFO),
            ("read", None, [[0, "a"], [1, "a"]]),
            ("end", None, 2),
            ("read", None, [[2, "b"]]),
            ("append", None, [3, None]),
            ("read", None, [[3, None]]),
            ("read", None, []),
        ],
    ),
    (
        "unordered-queue",
        {},
        [
            ("enqueue", 1),
            ("enqueue", 2),
            ("dequeue", None, None, INFO),
            ("dequeue", None, 1),
            ("dequeue", None, None),
        ],
    ),
]
ALLOWED += [
    (name, {}, [("acquire", None, {"client": "a"}), ("release", None, {"client": "a"})])
    for name in WITH_OWNERS
]

REFUSED: list[tuple[str, dict[str, Any], list[Row]]] = [
    *[(name, {}, [("release", None, {"client": "a"})]) for name in WITH_OWNERS],
    ("register", {}, [("write", 1), ("write", 2), ("read", None, 1)]),
    ("register", {"initial": 0}, [("read", None, None)]),
    ("cas-register", {}, [("write", 1), ("cas", [2, 3])]),
    ("cas-register", {"initial": 1}, [("cas", [1, 2]), ("read", None, 1)]),
    ("strict-cas-register", {"initial": 1}, [("cas", [1, 3], None, FAIL)]),
    ("mutex", {}, [("acquire", None), ("acquire", None)]),
    ("mutex", {}, [("release", None)]),
    ("counter", {}, [("add", 2), ("read", None, 1)]),
    ("counter", {}, [("add-and-get", 2, [2, 3])]),
    ("set", {}, [("add", 1), ("add", 2), ("read", None, [1])]),
    ("set", {}, [("add", 1), ("remove", 1), ("read", None, [1])]),
    ("kv", {}, [("put", ["x", 1]), ("get", ["x", None], ["x", None])]),
    (
        "kv",
        {"initial": ""},
        [("append", ["x", "a"]), ("append", ["x", "b"]), ("get", ["x", None], ["x", "ba"])],
    ),
    ("kv", {}, [("append", ["x", 1]), ("append", ["x", 2]), ("get", ["x", None], ["x", [2, 1]])]),
    ("kv", {}, [("put", ["x", 2]), ("cas", ["x", [1, 2]])]),
    (
        "multi-register",
        {},
        [
            ("txn", [["w", "x", 1], ["w", "y", 1]]),
            ("txn", [["r", "x", None], ["r", "y", None]], [["r", "x", 1], ["r", "y", None]]),
        ],
    ),
    ("bank", {}, [("transfer", {"from": 0, "to": 1, "amount": 11})]),
    ("bank", {}, [("transfer", {"from": 0, "to": 1, "amount": 1}), ("read", None, {0: 9, 1: 10})]),
    ("fifo-queue", {}, [("enqueue", 1), ("enqueue", 2), ("dequeue", None, 2)]),
    ("fifo-queue", {}, [("enqueue", 1), ("dequeue", None, None)]),
    ("unordered-queue", {}, [("enqueue", 1), ("dequeue", None, 1), ("dequeue", None, 1)]),
    ("unordered-queue", {}, [("enqueue", 1), ("dequeue", None, "empty")]),
    ("log", {}, [("append", 1, [0, 1]), ("append", 1, [0, 1])]),
    ("log", {}, [("append", 1, [0, 1]), ("append", 1, [2, 1])]),
    ("log", {}, [("append", 1, [0, 1]), ("read", None, [[0, 2]])]),
    ("log", {}, [("append", 1, [0, 1]), ("read", None, [[0, 1], [1, 1]])]),
    ("log", {}, [("append", 1, None, INFO), ("end", None, 1), ("read", None, [[0, 2]])]),
    ("log", {}, [("append", 1, None, INFO), ("append", 1, [0, 1]), ("append", 2, [1, 2]), ("end", None, 1)]),
]
NAMES = sorted({name for name, _, _ in ALLOWED})
MODELS = sorted(name for name in known() if isinstance(load_decider(name), Model))


def one_client(rows: list[Row]) -> list[Operation]:
    """A client that does one after another; after an unknown outcome another one goes on."""
    history = []
    for n, row in enumerate(rows):
        f, argument, result, outcome = (*row, *(None, OK)[len(row) - 2 :])
        if result is None and isinstance(argument, list) and f not in ("get", "cas"):
            result = argument
        ret = None if outcome is INFO else 2 * n + 1
        history.append(Operation(n, f, argument, result if outcome is OK else None, 2 * n, ret, outcome))
    return history


@pytest.mark.parametrize(("name", "settings", "rows"), ALLOWED)
def test_a_model_allows_what_the_object_does(name: str, settings: dict[str, Any], rows: list[Row]) -> None:
    assert search(one_client(rows), load(name, **settings)).answer is Answer.VALID


@pytest.mark.parametrize(("name", "settings", "rows"), REFUSED)
def test_a_model_refuses_what_the_object_would_not_do(
    name: str, settings: dict[str, Any], rows: list[Row]
) -> None:
    """... and blames the last operation."""
    (part,) = search(one_client(rows), load(name, **settings)).parts
    assert part.answer is Answer.INVALID
    assert part.stuck == len(rows) - 1


def test_every_model_is_tried_both_ways() -> None:
    assert NAMES == sorted({name for name, _, _ in REFUSED}) == MODELS


@pytest.mark.parametrize("name", MODELS)
def test_every_operation_of_a_model_is_tried_and_described(name: str) -> None:
    model = load(name)
    tried = {row[0] for mine, _, rows in ALLOWED if mine == name for row in rows}
    assert tried == set(model.operations)
    assert all(words.startswith(f) for f, words in model.operations.items())
    assert model.describe_state(model.initial())


@pytest.mark.parametrize(
    ("name", "row", "wrong"),
    [
        ("cas-register", ("cas", 1), ":cas needs [old new], not 1 (process 0)"),
        ("counter", ("add", "one"), ":add needs a number, not one (process 0)"),
        ("counter", ("read", None, "one"), ":read needs a number, not one (process 0)"),
        ("counter", ("add-and-get", 1, 2), ":add-and-get needs [n m] when it is ok, not 2 (process 0)"),
        ("counter", ("add-and-get", 1, [1, None]), ":add-and-get needs a number, not nil (process 0)"),
        ("kv", ("put", "x"), ":put needs [key value], not x (process 0, invoked at 0)"),
        ("kv", ("cas", ["x", 1]), ":cas needs [key [old new]], not [x 1]"),
        (
            "multi-register",
            ("txn", [["a", 1]]),
            ":txn needs [[:r k v] [:w k v] ..], not [[a 1]] (process 0)",
        ),
        ("bank", ("transfer", {"from": 1}), ":transfer needs :from, :to and :amount, not {from 1}"),
        ("log", ("append", 1, [1]), ":append needs [offset value], not [1] (process 0)"),
        ("log", ("append", 1, ["a", 1]), ":append needs [offset value], not [a 1] (process 0)"),
        ("log", ("read", None, 7), ":read needs [[offset value] ..], not 7 (process 0)"),
        ("log", ("read", None, [[1]]), ":read needs [[offset value] ..], not [[1]] (process 0)"),
        ("log", ("read", None, [["a", 1]]), ":read needs [[offset value] ..], not [[a 1]] (process 0)"),
        ("bank", ("read", None, 7), ":read needs a map, not 7 (process 0)"),
        (
            "set",
            ("delete", 1),
            "operation 0 of the history: model Set has no 'delete', only add, remove, read",
        ),
    ],
)
def test_what_a_model_cannot_read_is_one_clear_line(name: str, row: Row, wrong: str) -> None:
    with pytest.raises(ModelError) as refused:
        search(one_client([row]), load(name))
    assert str(refused.value) == wrong


class Light(Model[bool]):
    """What the tests below break, one method at a time."""

    def initial(self) -> bool:
        return False

    def step(self, state: bool, operation: Operation) -> Any:
        return state if operation.f == "look" else operation.f == "on"


def none(_self: Light, _state: bool, _operation: Operation) -> Any:
    return None


def a_list(_self: Light, state: bool, _operation: Operation) -> Any:
    return [state]


def an_error(_self: Light, _state: bool, operation: Operation) -> Any:
    return operation.result["by"]


def an_attribute(_self: Light, operation: Operation) -> Any:
    return operation.argument.key


@pytest.mark.parametrize(
    ("method", "broken", "wrong"),
    [
        ("step", none, "model Light: step() gives None; return a state, or REFUSED"),
        ("step", a_list, "model Light: step() gives [False], which is not hashable: unhashable type: 'list'"),
        (
            "step",
            an_error,
            "model Light: step(False, on() -> None) raised TypeError: 'NoneType' object is not subscriptable",
        ),
        (
            "observes",
            lambda _self, _operation: True,
            "model Light: on() -> None only looks, as observes() says, but step() changes False to True",
        ),
        (
            "partition",
            an_attribute,
            "model Light: partition() or observes() raised AttributeError: "
            "'NoneType' object has no attribute 'key'",
        ),
        (
            "narrowed",
            lambda _self, _operations: None,
            "model Light: narrowed() gives None, which is no model",
        ),
        (
            "unknowns",
            lambda _self, _operations: 1 / 0,
            "model Light: unknowns() raised ZeroDivisionError: division by zero",
        ),
        ("initial", lambda _self: None, "model Light: initial() gives None; return a state, or REFUSED"),
    ],
)
def test_a_mistake_in_a_model_is_one_clear_line(
    method: str, broken: Any, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Light, method, broken)
    with pytest.raises(ModelError) as refused:
        search(one_client([("on", None)]), Light())
    assert str(refused.value) == wrong
