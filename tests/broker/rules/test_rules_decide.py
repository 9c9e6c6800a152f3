"""Every method of a rule decides by what it is given. What decides nothing is a field of ``Switches``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from wrackline.broker.defects import REGISTRY
from wrackline.broker.model.switches import Switches
from wrackline.broker.rules.profile import profile

ROOT = Path(__file__).parents[3]
RULES = ROOT / "broker" / "rules"
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def undecided(source: str) -> Iterator[str]:
    """Methods whose body is a constant, or gives back the only thing that it was given."""
    for kind in ast.walk(ast.parse(source)):
        if isinstance(kind, ast.ClassDef):
            for method in kind.body:
                if isinstance(method, ast.FunctionDef) and _decides_nothing(method):
                    yield f"{kind.name}.{method.name}"


def _decides_nothing(method: ast.FunctionDef) -> bool:
    given = [arg.arg for arg in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)]
    body = [node for node in method.body if not _is_text(node)]
    used = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
    if used.isdisjoint(given):
        return True
    match body:
        case [ast.Return(value=ast.Name(id=name))]:
            return [arg for arg in given if arg != "self"] == [name]
    return False


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@pytest.mark.parametrize("file", sorted(RULES.rglob("[a-z]*.py")), ids=lambda file: file.stem)
def test_no_method_of_a_rule_is_a_constant(file: Path) -> None:
    assert list(undecided(file.read_text(encoding="utf-8"))) == []


def test_the_scan_notices_what_it_looks_for() -> None:
    source = """
class Rules:
    def constant(self): return True
    def words(self, fact: int): "It decides nothing."; return Eligible((), ())
    def nothing(self, fact): ...
    def echo(self, state): return state
    def chooses(self, mine, theirs): return mine
    def decides(self, fact): return fact > 3
    @property
    def reads(self): return self.fact
"""
    assert list(undecided(source)) == ["Rules.constant", "Rules.words", "Rules.nothing", "Rules.echo"]


def docstrings() -> dict[str, str]:
    """Of the fields of ``Switches``, as the source has them."""
    tree = ast.parse((ROOT / "broker" / "model" / "switches.py").read_text(encoding="utf-8"))
    [kind] = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    found = {}
    for node, after in zip(kind.body, kind.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_text(after):
            assert isinstance(after, ast.Expr)
            found[node.target.id] = ast.literal_eval(after.value)
    return found


def turned_by(name: str) -> dict[str, bool]:
    return dict(getattr(REGISTRY[name], "flips", {}))


@pytest.mark.parametrize("switch", [field.name for field in fields(Switches)])
def test_a_switch_says_what_it_means_and_which_bug_or_profile_turns_it(switch: str) -> None:
    text = docstrings()[switch]
    codes = [code.lower() for code in re.findall(r"\b[BCHKRZ]\d\d?\b", text)]
    assert codes or re.search(r"docs/protocol.md 2\.1[35]\b", text)
    assert [code for code in codes if f'id="{code}"' not in PROTOCOL] == []
    right = getattr(Switches(), switch)
    bugs = [name for name in REGISTRY if turned_by(name).get(switch) is (not right)]
    assert [name for name in bugs if f"``{name}``" not in text] == []
    older = [
        name for name in ("kraft35", "kip101", "zk08") if getattr(profile(name).switches, switch) is not right
    ]
    assert [name for name in older if name not in text] == []
    assert bugs or older, "nobody turns it"


@pytest.mark.parametrize("name", [name for name in REGISTRY if turned_by(name)])
def test_a_defect_turns_switches_that_are_there(name: str) -> None:
    right = {switch: getattr(Switches(), switch) for switch in turned_by(name)}
    overrides = any(callable(member) for member in vars(REGISTRY[name]).values())
    assert overrides or turned_by(name) != right
