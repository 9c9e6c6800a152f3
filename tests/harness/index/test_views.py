"""Nights, suites, incidents and trends, as values."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from tests.harness.index.conftest import FROM, SLOW
from tests.harness.index.nights import ROOT, SAMPLE, night
from wrackline.harness.index.collect import Kept, NoRuns, gather
from wrackline.harness.index.incidents import incidents
from wrackline.harness.index.runs import Run, beside, shown
from wrackline.harness.index.suites import grid, suites
from wrackline.harness.index.trends import news, series
from wrackline.harness.records import KNOWN, NotKnown, known_incidents


def _runs(results: Path) -> list[Run]:
    return shown(gather(UPath(results), Kept()), beside(results / "site"))


def test_nights_are_down_and_suites_across(all_runs: list[Run]) -> None:
    nights = [row for row in grid(all_runs) if row.name.startswith("nightly")]
    assert [row.began[:10] for row in nights] == [f"2026-11-{day:02}" for day in range(10, 0, -1)]
    assert {tuple(row.cells) for row in nights} == {("acks-all", "power-cut")}
    eighth = nights[2]
    assert (eighth.bad, eighth.of) == (1, 3)
    assert [run.word for run in eighth.cells["power-cut"].runs] == ["violation"]
    again = eighth.cells["power-cut"].again
    assert again is not None
    assert (again.count, again.of) == (1, 2)


def test_repeats_do_not_make_a_suite_look_worse(all_runs: list[Run]) -> None:
    by_name = {one.name: one for one in suites(all_runs)}
    failed = by_name["power-cut"].failed
    assert (failed.count, failed.of) == (2, 10)
    assert failed.low < 0.2 < failed.high
    assert by_name["acks-all"].failed.count == 0


def test_a_case_that_came_out_both_ways_under_one_version_is_flaky(all_runs: list[Run]) -> None:
    """Of power-cut eight runs are of 4.0.0, two of them bad: it changed there and back twice."""
    [cut] = [one for one in suites(all_runs) if one.name == "power-cut"]
    assert (cut.flaky.count, cut.flaky.of, cut.flips) == (2, 10, 3)
    assert not next(one for one in suites(all_runs) if one.name == "acks-all").is_flaky


def test_a_suite_that_always_fails_since_a_version_is_not_flaky(tmp_path: Path) -> None:
    for number in range(6):
        bad = number >= 3
        wanted = {"verdict": "violation" if bad else "pass", "version": "2" if bad else "1"}
        night(tmp_path, number, [{**wanted, "anomalies": ("lost-write",) if bad else ()}])
    [suite] = suites(_runs(tmp_path))
    assert (suite.failed.count, suite.flaky.count, suite.flips) == (3, 0, 0)


def test_one_incident_is_one_cause_schedule_system_and_version(all_runs: list[Run]) -> None:
    [one] = [each for each in incidents(all_runs) if each.schedule == "cut-the-leader"]
    assert (one.cause, one.system, one.version) == ("lost-write", "apache-kafka", "4.0.0")
    assert (one.first.began[:10], one.last.began[:10]) == ("2026-11-03", "2026-11-08")
    assert len(one.runs) == 3  # with the repeat that showed it
    assert (one.often.count, one.often.of, one.quiet) == (3, 8, 1)


def test_another_version_is_another_incident_with_another_link(tmp_path: Path) -> None:
    bad = {"verdict": "violation", "anomalies": ("lost-write",)}
    night(tmp_path, 0, [bad, {**bad, "seed": 8, "version": "9"}])
    one, other = incidents(_runs(tmp_path))
    assert one.slug != other.slug


def test_a_run_with_two_causes_stands_in_two_incidents(tmp_path: Path) -> None:
    bad = {"verdict": "violation", "anomalies": ("lost-write", "phantom")}
    night(tmp_path, 0, [bad, {**bad, "seed": 8}])
    for number, file in enumerate(sorted(tmp_path.glob("nights/*/runs/*/verdict.json"))):
        told = [
            {
                "id": f"i-{number}{cause}",
                "meaning": "violation",
                "sentence": f"{cause} {number}",
                "anomalies": [
                    {"anomaly": cause, "meaning": "violation", "count": 3},
                    {"anomaly": "stale-read", "meaning": "allowed", "count": 1},
                ],
            }
            for cause in ("lost-write", "phantom", "lost-write")
        ]
        counted = {"incidents": told, "incident_counts": {"violation": 3}}
        file.write_text(json.dumps(json.loads(file.read_text()) | counted))
    found = {one.cause: one for one in incidents(_runs(tmp_path))}
    assert {cause: (len(one.runs), one.count) for cause, one in found.items()} == {
        "lost-write": (2, 4),
        "phantom": (2, 2),
    }
    assert found["phantom"].sentence == "phantom 1"


BAD = {"verdict": "violation", "anomalies": ("lost-write",)}


@pytest.mark.parametrize(
    ("asked", "word", "css", "good", "expected"),
    [
        ({**BAD, "defects": ("trunc_hw",)}, "as expected: violation", "reproduced", True, True),
        ({**BAD, "must_violate": True}, "as expected: violation", "reproduced", True, True),
        ({"verdict": "pass", "must_violate": True}, "not as expected: pass", "not-reproduced", False, False),
        ({"verdict": "reproduced"}, "reproduced", "reproduced", True, None),
        ({"verdict": "not reproduced"}, "not reproduced", "not-reproduced", False, False),
        ({"verdict": "pass", "defects": ("trunc_hw",)}, "pass", "pass", True, None),
        (BAD, "violation", "violation", False, False),
        ({"verdict": "pass"}, "pass", "pass", True, None),
        ({"verdict": "inconclusive", "must_violate": True}, "inconclusive", "inconclusive", None, None),
    ],
)
def test_a_run_is_as_good_as_it_came_out_as_it_must(
    asked: dict[str, Any], word: str, css: str, good: bool | None, expected: bool | None, tmp_path: Path
) -> None:
    """``expected``: of its incident; None where it has none."""
    night(tmp_path, 0, [asked])
    [run] = found = _runs(tmp_path)
    assert (run.word, run.css, run.good, run.mark) == (
        word,
        css,
        good,
        {True: "✓", False: "✗", None: "?"}[good],
    )
    assert [row.bad for row in grid(found)] == [int(good is False)]
    assert [one.failed.count for one in suites(found)] == [int(good is False)]
    assert [one.expected for one in incidents(found)] == ([] if expected is None else [expected])


def test_the_twin_of_a_run_that_must_violate_is_good_when_it_passes(tmp_path: Path) -> None:
    night(
        tmp_path,
        0,
        [{**BAD, "must_violate": True}, {"must_violate": True, "seed": 8, "task": "acks-all.s7~twin"}],
    )
    assert [run.good for run in _runs(tmp_path)] == [True, True]


def test_an_expected_incident_stands_behind_the_others_however_late_it_was_seen(tmp_path: Path) -> None:
    night(tmp_path, 0, [BAD])
    night(tmp_path, 1, [{**BAD, "name": "canary", "must_violate": True, "guided": "b01"}])
    assert [(one.first.record.name, one.expected) for one in incidents(_runs(tmp_path))] == [
        ("acks-all", False),
        ("canary", True),
    ]


def test_a_known_incident_names_its_ticket_and_does_not_alarm(tmp_path: Path) -> None:
    night(tmp_path, 0, [BAD])
    night(tmp_path, 1, [{**BAD, "version": "4.1.0"}])
    runs = _runs(tmp_path)
    [later, former] = incidents(runs)
    ticket = "https://issues.example/K-1"
    (tmp_path / KNOWN).write_text(f"{later.slug}: {ticket}\n")
    known = known_incidents(tmp_path)
    assert [(one.slug, one.known, one.alarms) for one in incidents(runs, known)] == [
        (former.slug, "", True),
        (later.slug, ticket, False),
    ]
    assert [run.record.incident_ids for run in runs] == [(former.slug,), (later.slug,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- i-1", "is no list of lines such as"),
        ("i-1: 5", "i-1: a line is"),
        ("x: y", "x: a line is"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_list_of_known_incidents_that_is_none_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / KNOWN).write_text(text)
    with pytest.raises(NotKnown) as wrong:
        known_incidents(tmp_path)
    assert said in str(wrong.value)
    assert "i-0a1b2c3d4e: LINK" in str(wrong.value)
    assert "\n" not in str(wrong.value)


def test_an_incident_without_a_sentence_is_headed_by_its_anomalies(tmp_path: Path) -> None:
    night(tmp_path, 0, [{**BAD, "anomalies": ("duplicate", "lost-write", "reordered-write")}])
    [one] = incidents(_runs(tmp_path))
    assert one.title == "duplicate, lost-write and reordered-write"


def test_the_sample_of_the_repository_is_no_run(tmp_path: Path) -> None:
    night(tmp_path, 0, [{}])
    shutil.copytree(SAMPLE, tmp_path / "sample")
    assert len(_runs(tmp_path)) == 1
    with pytest.raises(NoRuns):
        gather(UPath(ROOT / "results"), Kept(), histories=False)


def test_what_was_made_smaller_is_no_incident_of_its_own(tmp_path: Path) -> None:
    bad = {"verdict": "violation", "anomalies": ("lost-write",)}
    night(
        tmp_path,
        0,
        [{**bad, "task": "a"}, {**bad, "seed": 8, "guided": "fewer", "task": "a~smaller-0a1b2c3d-1"}],
    )
    [one] = incidents(_runs(tmp_path))
    assert [run.record.task for run in one.runs] == ["a"]


def test_what_had_to_be_shown_and_was_not_is_an_incident(tmp_path: Path) -> None:
    night(tmp_path, 0, [{"verdict": "not reproduced"}])
    [one] = incidents(_runs(tmp_path))
    assert one.cause.startswith("not shown: ")


def test_a_step_of_a_figure_is_marked_when_it_comes(all_runs: list[Run]) -> None:
    found = [one for one in news(series(all_runs)) if one.trend.metric == "send_p99_ms"]
    assert {one.point.value for one in found} == {SLOW + 0.1, SLOW + 0.2}
    assert {one.point.run.record.version for one in found} == {"4.1.0"}
    assert all(one.worse for one in found)
    days = {one.point.run.began[:10] for one in found}
    assert days == {f"2026-11-{FROM + 1:02}", f"2026-11-{FROM + 2:02}"}


def test_less_acknowledged_is_worse_and_more_is_better(tmp_path: Path) -> None:
    for number in range(6):
        night(tmp_path, number, [{"acked": 1_000 + number}])
    night(tmp_path, 6, [{"acked": 500}])
    night(tmp_path, 7, [{"acked": 1_500}])
    found = [one for one in news(series(_runs(tmp_path))) if one.trend.metric == "acknowledged"]
    assert [(one.point.value, one.worse) for one in found] == [(1_500.0, False), (500.0, True)]


def test_two_runs_of_one_name_have_pages_of_their_own(tmp_path: Path) -> None:
    night(tmp_path, 0, [{}])
    shutil.copytree(tmp_path / "nights", tmp_path / "copied")
    one, other = _runs(tmp_path)
    assert one.record.run == other.record.run
    assert one.page != other.page


@pytest.mark.parametrize("word", ["lost-write", "cut-the-leader", "4.0.0", "seed=7", "power-cut.s7"])
def test_a_run_is_found_by_what_it_was(all_runs: list[Run], word: str) -> None:
    assert any(word in run.words for run in all_runs)
