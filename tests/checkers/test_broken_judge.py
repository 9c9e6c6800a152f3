"""A check that raises, or another step of the judge, is named with its module; the history is not blamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.checkers.histories import History
from wrackline.checkers.checks import registry
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.places import Places
from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.marks import Mark, Marks
from wrackline.checkers.inputs.broken import JudgeBroken, part_of_the_judge
from wrackline.checkers.inputs.table import Bools, Ints
from wrackline.harness.cli.main import main

A, B = 160, 176


def losing(folder: Path) -> Path:
    h = History("run").phase("main").send(1, (A, 0)).send(1, (B, 1)).assign(2, 0).poll(2, (0, A), (1, B))
    h.end(3, 2).phase("drain").drain((0, A, 0)).replicas((0, A, 0)).account()
    return h.write(folder)


def raising(*_: Any, **__: Any) -> Any:
    raise AttributeError("nobody is called that")


def among_findings(at: Places) -> Iterator[Finding]:
    """Raises when the second finding is asked for."""
    find = registry._CHECKS["vanished-read"].find
    assert find is not None
    yield from find(at)
    raise ValueError(f"no sense in {len(at.rows)} rows")


def mark_that_raises(rows: Candidate[Ints]) -> Bools:
    raise ValueError(f"no room for {len(rows)} rows")


def with_check(name: str, find: Callable[..., Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def spoil(patch: pytest.MonkeyPatch) -> None:
        patch.setitem(registry._CHECKS, name, replace(registry._CHECKS[name], find=find))

    return spoil


def with_step(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def spoil(patch: pytest.MonkeyPatch) -> None:
        from wrackline.checkers import analysis

        patch.setattr(analysis, name, raising)

    return spoil


def with_condition(patch: pytest.MonkeyPatch) -> None:
    from wrackline.checkers.verdict.conditions import conditions

    patch.setitem(conditions.CONDITIONS, "asked rate reached before the first fault", raising)


def with_explanation(patch: pytest.MonkeyPatch) -> None:
    from wrackline.checkers.explain import step

    patch.setattr(step, "explanations", raising)


def with_mark(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(registry._MARKS, "lost", Mark("lost", mark_that_raises))
    registry.marks.cache_clear()


HERE = __name__
ANALYSIS = "wrackline.checkers.analysis"
BROKEN: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = {
    "a check": (with_check("lost-write", raising), f"check lost-write ({HERE})", "AttributeError"),
    "a check among its findings": (
        with_check("lost-write", among_findings),
        f"check lost-write ({HERE})",
        "no sense",
    ),
    "a mark": (with_mark, f"check lost-write: mark lost ({HERE})", "ValueError: no room for"),
    "a condition": (
        with_condition,
        "the verdict (wrackline.checkers.verdict.conditions.conditions)",
        "AttributeError",
    ),
    "the contract": (
        with_step("contract_for"),
        f"the contract ({ANALYSIS})",
        "AttributeError",
    ),
    "the incidents": (
        with_step("incidents_of"),
        f"the incidents ({ANALYSIS})",
        "AttributeError",
    ),
    "the metrics": (with_step("loads"), f"the metrics ({ANALYSIS})", "AttributeError"),
    "the explanations": (
        with_explanation,
        "the explanations (wrackline.checkers.explain.step)",
        "AttributeError",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_what_raises_is_named_and_the_history_is_not_blamed(
    engine: str,
    what: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    assert "lost-write" in registry.names()
    spoil, named, raised = BROKEN[what]
    run_dir = losing(tmp_path / "run")
    with monkeypatch.context() as patch:
        spoil(patch)
        with pytest.raises(SystemExit) as ended:
            main(["analyze", str(run_dir), "--engine", engine])
    registry.marks.cache_clear()
    error = capsys.readouterr().err
    told = [line for line in error.splitlines() if "is broken" in line]
    assert ended.value.code == 4
    assert len(told) == 1
    assert named in told[0]
    assert raised in told[0]
    assert "history makes no sense" not in told[0]
    assert "restore it from a copy" not in told[0]


def test_a_mark_that_raises_says_where_it_is() -> None:
    marks = Marks([Mark("late", mark_that_raises)])
    with pytest.raises(JudgeBroken, match=rf"mark late \({HERE}\) is broken: ValueError: no room for 0 rows"):
        marks.at_places(Candidate[Ints].unknown(0))


def test_files_that_cannot_be_read_are_not_the_judges_fault() -> None:
    with pytest.raises(OSError, match="gone"), part_of_the_judge("the incidents"):
        raise OSError("gone")
