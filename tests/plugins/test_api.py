"""`wrackline.api` is the one page of public names: each is there, and says what it is."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from wrackline import api

ROOT = Path(__file__).parents[2]
SOURCE = Path(api.__file__).read_text()


def told_of_constants() -> dict[str, str]:
    """Names that the page itself assigns, with the text below each."""
    body = ast.parse(SOURCE).body
    told = {}
    for one, after in zip(body, body[1:], strict=False):
        if isinstance(one, ast.Assign) and isinstance(after, ast.Expr):
            assert isinstance(one.targets[0], ast.Name)
            assert isinstance(after.value, ast.Constant)
            told[one.targets[0].id] = str(after.value.value)
    return told


def test_every_public_name_is_listed_once_in_order() -> None:
    imported = {
        alias.asname or alias.name
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    public = {name for name in imported | set(told_of_constants()) if not name.startswith("_")}
    assert set(api.__all__) == public
    assert len(api.__all__) == len(set(api.__all__))


@pytest.mark.parametrize("name", api.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    thing = getattr(api, name)
    if name in told_of_constants():
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
