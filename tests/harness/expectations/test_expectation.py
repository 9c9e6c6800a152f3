"""What comes out of a run is held against what must come out of it, for each kind of suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.expectations.playing import judged
from wrackline.harness.expectations.cases import Case, defects, eras, findings, stories

KINDS: dict[str, Callable[[str], Case]] = {
    "defect": lambda name: defects([name])[0],
    "finding": lambda name: findings([name])[0],
    "story": lambda name: stories([name])[0],
    "era": lambda arm: eras([arm.split()[0]], [arm.split()[1]], checked=False)[0],
}
GAP, PROVED = "threshold longest_gap_s", "every fault proved"


@pytest.mark.parametrize(
    ("kind", "name", "word", "found", "right"),
    [
        ("defect", "trunc-hw", "violation", ("lost-write", "violation", 3), True),
        ("defect", "trunc-hw", "violation", ("lost-write", "allowed", 3), False),
        ("defect", "trunc-hw", "violation", ("lost-write", "violation", 0), False),
        ("defect", "trunc-hw", "violation", ("stale-read", "violation", 2), False),
        ("defect", "trunc-hw", "inconclusive", ("lost-write", "violation", 3), False),
        ("defect", "trunc-hw", "pass", ("lost-write", "violation", 3), False),
        ("defect", "no-offset-not-available", "pass", ("watermark-regression", "allowed", 2), True),
        ("defect", "no-offset-not-available", "pass", ("watermark-regression", "allowed", 0), False),
        ("finding", "b59", "violation", ("lost-write", "violation", 7), True),
        ("finding", "b59", "violation", ("stale-read", "violation", 7), False),
        ("finding", "b59", "pass", ("lost-write", "allowed", 7), False),
        ("finding", "b59", "inconclusive", ("lost-write", "violation", 7), False),
        ("finding", "all-power", "pass", ("lost-write", "allowed", 7), True),
        ("finding", "all-power", "pass", ("lost-write", "allowed", 0), False),
        ("finding", "all-power", "violation", ("lost-write", "violation", 7), False),
        ("story", "outage-manual", "pass", ("lost-write", "allowed", 0), True),
        ("story", "outage-manual", "pass", ("lost-write", "allowed", 3), False),
        ("story", "outage-manual", "inconclusive", ("lost-write", "allowed", 0), False),
        ("era", "split zk08", "violation", ("lost-write", "violation", 3), True),
        ("era", "split zk08", "pass", ("lost-write", "allowed", 3), False),
        ("era", "split zk08", "violation", ("stale-read", "violation", 3), False),
        ("era", "split kip966", "pass", ("stale-read", "allowed", 3), True),
        ("era", "split kip966", "pass", ("lost-write", "allowed", 3), False),
        ("era", "split kip966", "inconclusive", ("lost-write", "allowed", 0), False),
        ("era", "zombie-leader zk08", "pass", ("stale-read", "allowed", 1), True),
        ("era", "zombie-leader zk08", "pass", ("stale-read", "allowed", 0), False),
        ("era", "zombie-leader kip101", "pass", ("stale-read", "allowed", 1), False),
    ],
)
def test_a_run_is_right_when_it_comes_out_as_it_must(
    tmp_path: Path, kind: str, name: str, word: str, found: tuple[str, str, int], right: bool
) -> None:
    case = KINDS[kind](name)
    assert not case.is_expected, "nothing was run"
    case.main.add(judged(tmp_path / "run", word, found))
    assert (case.main.right, case.main.runs, case.is_expected) == (int(right), 1, right)
    assert bool(case.main.results[0].wrong) is not right


@pytest.mark.parametrize(
    ("word", "failed", "right"),
    [("inconclusive", GAP, True), ("inconclusive", PROVED, False), ("pass", GAP, False)],
)
def test_a_defect_that_takes_only_time_is_caught_when_it_misses_its_threshold(
    tmp_path: Path, word: str, failed: str, right: bool
) -> None:
    conditions = [{"name": failed, "ok": False}, {"name": "x", "ok": True}]
    [case] = defects(["allow-fenced-isr"])
    case.main.add(judged(tmp_path / "run", word, conditions=conditions))
    assert case.main.right == int(right)


@pytest.mark.parametrize(
    ("kind", "name", "word", "found", "clean"),
    [
        ("finding", "b59", "pass", ("stale-read", "allowed", 7), True),
        ("finding", "b59", "pass", ("lost-write", "allowed", 1), False),
        ("finding", "b59", "inconclusive", ("lost-write", "violation", 0), False),
        ("finding", "b59", "violation", ("duplicate", "violation", 1), False),
        ("defect", "trunc-hw", "pass", ("stale-read", "allowed", 7), True),
        ("defect", "trunc-hw", "violation", ("lost-write", "violation", 1), False),
        ("defect", "trunc-hw", "inconclusive", ("lost-write", "violation", 1), False),
        ("defect", "no-offset-not-available", "pass", ("watermark-regression", "allowed", 2), False),
    ],
)
def test_a_control_is_clean_when_it_passes_and_shows_nothing_of_what_it_is_the_control_of(
    tmp_path: Path, kind: str, name: str, word: str, found: tuple[str, str, int], clean: bool
) -> None:
    case = KINDS[kind](name)
    assert case.control is not None
    case.control.add(judged(tmp_path / "control", word, found))
    assert not case.is_expected, "the run itself was not made"
    must = case.main.expectation
    shown = (must.shows[0], "violation" if must.verdict == "violation" else "allowed", 1)
    case.main.add(judged(tmp_path / "run", must.verdict.value, shown))
    assert (case.control.right, case.control.runs, case.is_expected) == (int(clean), 1, clean)
    [complaint] = case.control.results[0].complaints or [""]
    assert complaint.endswith("(why)") is not clean
