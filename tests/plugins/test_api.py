"""`wrackline.api` is the one page of public names: each is there, and says what it is."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from wrackline import api

ROOT = Path(__file__).parents[2]
SOURCE = Path(api.__file__).read_text()


def imported_for_editors() -> set[tuple[str, str, str]]:
    """(module, its name there, its public name)."""
    return {
        (str(node.module), alias.name, alias.asname or alias.name)
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wrackline")
        for alias in node.names
    }


def test_every_public_name_is_listed_and_is_what_editors_are_told() -> None:
    homes = {(module, private, public) for public, (module, private) in api._PLACES.items()}
    assert homes == imported_for_editors()
    assert sorted(api.__all__) == sorted(public for _, _, public in homes)
    assert set(api.CONSTANTS) < set(api.__all__)


@pytest.mark.parametrize("former", api._FORMER)
def test_a_former_name_is_what_it_was(former: str) -> None:
    """Faults of others were written with these names; new ones are offered the names of today."""
    assert getattr(api, former) is getattr(api, api._FORMER[former])
    assert former not in api.__all__


def test_a_name_that_is_none_says_where_all_are() -> None:
    with pytest.raises(
        AttributeError, match=r"wrackline\.api has no 'Falt'; `wrackline\.api\.__all__` lists all"
    ):
        _ = api.Falt


def test_names_for_a_fault_load_no_spark_and_names_for_a_mark_no_fleets() -> None:
    """The marks of a check are imported in Spark's workers, where little is installed."""
    fault = "from wrackline.api import FaultSpec, Shell, Proof, Commands, FaultContext, ProbeLog"
    marks = "from wrackline.api import Bools, Candidate, Finding, Ints, Places, bools, check, is_place, mark"
    for names, without in (
        (fault, ("pyspark", "confluent_kafka")),
        (marks, ("fabric", "confluent_kafka", "pydantic")),
    ):
        code = f"import sys; {names}; print([one for one in {without!r} if one in sys.modules])"
        said = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert said.stdout == "[]\n", names


@pytest.mark.parametrize("name", api.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(api, name)
    if name in api.CONSTANTS:
        return
    said = thing.__dict__.get("__doc__") if inspect.isclass(thing) else inspect.getdoc(thing)
    assert said, f"{name} has no docstring"
    assert not said.startswith(f"{name}("), f"{name} has only the docstring that dataclasses make"


def test_the_examples_import_nothing_of_ours_besides_it() -> None:
    files = sorted((ROOT / "docs" / "examples").rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            ours = {module for module in modules if module.partition(".")[0] == "wrackline"}
            assert ours <= {"wrackline.api"}, file
