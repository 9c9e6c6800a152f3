"""What each model allows, and what it says of mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checkers.models.cases import CASES, Case, what_is_said
from wrackline.checkers.exact.search.search import search
from wrackline.checkers.models import Model, ModelError, Operation, known, load
from wrackline.checkers.models.loading import load_decider

MODELS = sorted(name for name in known() if isinstance(load_decider(name), Model))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.asked)
def test_a_model_allows_what_the_object_does(case: Case) -> None:
    assert what_is_said(case) == case.said


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_tried_both_ways_and_describes_its_operations(name: str) -> None:
    said = {case.said.partition(":")[0] for case in CASES if case.model == name}
    assert {"allowed", "refused"} <= said
    model = load(name)
    allowed = (case.history for case in CASES if case.model == name and case.said == "allowed")
    assert {one.f for history in allowed for one in history} == set(model.operations)
    assert all(words.startswith(f) for f, words in model.operations.items())
    assert model.describe_state(model.initial())


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
        search([Operation(0, "on", None, None, 0, 1)], Light())
    assert str(refused.value) == wrong
