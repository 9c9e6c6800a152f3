"""A model is found by its name, in a file, or in a module."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.models import Operation, load
from wrackline.checkers.models.counter import Counter
from wrackline.checkers.models.protocol import ModelError

MINE = """
from dataclasses import dataclass
from wrackline.api import REFUSED, Model

@dataclass(frozen=True)
class Holding:
    most: int

class Light(Model):
    def __init__(self, on=False):
        self.on = on

    def initial(self):
        return self.on

    def step(self, state, operation):
        if operation.f == "look":
            return state if operation.result == state else REFUSED
        return operation.f == "on"

broken = 1 / 1
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_model_of_ones_own_is_loaded_from_its_file(mine: Path) -> None:
    looks = [Operation(0, "look", None, True, 0, 1)]
    assert search(looks, load(f"{mine}:Light")).answer is Answer.INVALID
    assert search(looks, load(f"{mine}:Light", on=True)).answer is Answer.VALID


def test_and_from_a_module_that_can_be_imported(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(mine.parent))
    assert load("mine:Light").initial() is False


def test_a_built_in_one_by_its_name() -> None:
    model = load("counter", initial=3)
    assert isinstance(model, Counter)
    assert model.initial() == 3


@pytest.mark.parametrize(
    ("reference", "wrong"),
    [
        ("conuter", "there is no model 'conuter'; there are adya, "),
        ("{mine}", "names a file but no model in it: say {mine}:NAME"),
        ("{mine}:Lihgt", "there is no Lihgt in {mine}"),
        ("{mine}.py:Light", "cannot be loaded: FileNotFoundError: there is no file {mine}.py"),
        ("no.such:Model", "cannot be loaded: ModuleNotFoundError: No module named 'no'"),
        ("{mine}:Holding", "cannot be made: TypeError: "),
        ("{mine}:broken", "cannot be made: TypeError: 'float' object is not callable"),
        (
            "builtins:dict",
            "is {{}}, no wrackline.api.Model and no wrackline.api.Checker; subclass one of them",
        ),
    ],
)
def test_what_cannot_be_loaded_is_one_clear_line(mine: Path, reference: str, wrong: str) -> None:
    with pytest.raises(ModelError) as refused:
        load(reference.format(mine=mine))
    assert wrong.format(mine=mine) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_setting_that_a_model_does_not_have_is_named(mine: Path) -> None:
    with pytest.raises(ModelError, match="model counter takes no start: "):
        load("counter", start=3)
    with pytest.raises(ModelError, match=r"takes no initial: "):
        load(f"{mine}:Light", initial=0)
