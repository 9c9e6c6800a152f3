"""What is installed and was not looked for is said by name, and the run cannot pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkers.histories import History
from wrackline.checkers.analysis import analyze
from wrackline.checkers.checks import installed as sources
from wrackline.checkers.checks import registry
from wrackline.checkers.checks.installed import installed
from wrackline.checkers.checks.registry import names, not_looked_for

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "wrackline-example"
A, B = 160, 176
LOST = ("lost-write", "vanished-read", "lost-committed", "not-linearizable")
CONDITION = "every installed check was made"


def losing(test_id: str) -> History:
    """A record is acknowledged and read, and gone in the end."""
    h = History(test_id).phase("main").send(1, (A, 0)).send(1, (B, 1)).assign(2, 0).poll(2, (0, A), (1, B))
    return h.end(3, 2).phase("drain").drain((0, A, 0)).replicas((0, A, 0)).account()


def without(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Takes checks out of the register, and keeps its order when they are put back."""
    patch.setattr(registry, "_CHECKS", {n: one for n, one in registry._CHECKS.items() if n not in names})


def test_everything_that_is_installed_is_registered() -> None:
    assert set(installed()) == set(names())
    assert not_looked_for() == ()


@pytest.mark.parametrize("name", names())
def test_a_check_that_is_not_registered_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, name)
    assert not_looked_for() == (name,)


def test_checks_whose_marks_nobody_sets_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._MARKS, "lost")
    assert not_looked_for() == ("lost-write",)


def test_the_checks_of_packages_of_others_are_read_like_ours() -> None:
    declared = [name for file in EXAMPLE.rglob("*.py") for name in sources._declared(file)]
    assert declared == ["slow-write"]


def test_with_checks_taken_out_a_run_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [whole] = analyze([losing("whole").write(tmp_path / "whole")])
    assert whole["verdict"] == "violation"
    assert whole["checks"] == {"looked_for": list(names()), "not_looked_for": []}
    assert {one["name"]: one["ok"] for one in whole["conditions"]}[CONDITION]
    without(monkeypatch, *LOST)
    told: list[str] = []
    [poor] = analyze([losing("poor").write(tmp_path / "poor")], progress=told.append)
    assert set(poor["checks"]["not_looked_for"]) == set(LOST)
    assert not set(poor["checks"]["looked_for"]) & set(LOST)
    [condition] = [one for one in poor["conditions"] if one["name"] == CONDITION]
    assert not condition["ok"]
    assert all(name in condition["detail"] for name in LOST)
    assert poor["verdict"] not in ("pass", "reproduced")
    assert any(line.startswith("not looked for: ") for line in told)
