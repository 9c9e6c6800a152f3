"""Two sides of runs beside each other, and what the command says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from upath import UPath

from tests.harness.index.nights import night
from wrackline.harness.cli.verdicts.site import compare_command
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.index.comparing import Outcome, Unlike, compared, side
from wrackline.harness.index.runs import Run, beside, shown


def compare(results: Path, before: str, after: str, *more: str) -> tuple[int, str]:
    """The exit code, and all that was said."""
    arguments = [before, after, "--results", str(results), *more]
    done = CliRunner().invoke(compare_command, arguments, standalone_mode=False)
    if done.exception is not None:
        return getattr(done.exception, "exit_code", -1), str(
            getattr(done.exception, "message", done.exception)
        )
    return int(done.return_value), done.output


def names(results: Path) -> list[str]:
    return [run.record.run for run in shown(gather(UPath(results), Kept(), histories=False), beside(results))]


def test_a_version_that_became_slow_is_worse(ten_nights: Path) -> None:
    code, said = compare(ten_nights, "4.0.0", "4.1.0")
    assert code == 1
    assert "worse than the noise explains: 99th percentile before the first fault (acks-all)" in said
    assert "median time of an operation before" not in said.splitlines()[-1]


def test_the_way_back_is_better_and_finds_a_violation(ten_nights: Path) -> None:
    """The older version is quick again, but it loses records, which the newer did not."""
    code, said = compare(ten_nights, "4.1.0", "4.0.0")
    assert code == 1
    assert said.splitlines()[-1] == "4.0.0 shows lost-write, and 4.1.0 does not"


def test_two_runs_that_differ_by_noise_are_no_worse(ten_nights: Path) -> None:
    one, other = [name for name in names(ten_nights) if "acks-all" in name and name < "20261107"][-2:]
    code, said = compare(ten_nights, one, other)
    assert code == 0
    assert "12 figures are within their noise" in said


def test_a_run_is_held_against_the_noise_of_those_before_it(ten_nights: Path) -> None:
    calm = [name for name in names(ten_nights) if "acks-all" in name and name < "20261109"][-1]
    slow = next(name for name in names(ten_nights) if "acks-all" in name and name > "20261109")
    code, said = compare(ten_nights, calm, slow)
    assert code == 1
    assert "99th percentile before the first fault" in said.splitlines()[-1]


def test_without_five_runs_no_figure_is_worse(tmp_path: Path) -> None:
    night(tmp_path, 0, [{"p99_ms": 10}])
    night(tmp_path, 1, [{"p99_ms": 1_000}])
    code, said = compare(tmp_path, *names(tmp_path))
    assert code == 0
    assert "there are too few runs to know the noise" in said
    assert "×100.0" in said


def test_what_was_found_before_and_is_no_more_is_worse(tmp_path: Path) -> None:
    night(tmp_path, 0, [{"verdict": "reproduced"}, {"verdict": "not reproduced", "seed": 8}])
    assert compare(tmp_path, *names(tmp_path))[0] == 1
    assert compare(tmp_path, *reversed(names(tmp_path)))[0] == 0


def test_what_fails_much_more_often_is_worse(tmp_path: Path) -> None:
    """The same anomaly: in 1 of 20 runs before, and in 19 of 20 after."""
    for number in range(40):
        bad = number in (3, *range(21, 40))
        wanted = {"verdict": "violation" if bad else "pass", "anomalies": ("lost-write",) if bad else ()}
        night(tmp_path, number, [{**wanted, "version": "2" if number >= 20 else "1"}])
    code, said = compare(tmp_path, "1", "2")
    assert code == 1
    assert "19 of 20 runs fail, and 1 of 20 did" in said
    assert compare(tmp_path, "2", "1")[0] == 0


def test_of_runs_that_say_nothing_nothing_is_said(tmp_path: Path) -> None:
    night(tmp_path, 0, [{}, {"verdict": "inconclusive", "seed": 8}])
    code, said = compare(tmp_path, *names(tmp_path))
    assert code == 3
    assert "nothing can be said" in said


def test_runs_of_two_systems_are_refused_unless_asked_for(tmp_path: Path) -> None:
    night(tmp_path, 0, [{}, {"system": "wrackline", "seed": 8}])
    code, said = compare(tmp_path, *names(tmp_path))
    assert code == 2
    assert "is of apache-kafka and" in said
    assert "--across" in said
    code, said = compare(tmp_path, *names(tmp_path), "--across")
    assert code == 0
    assert "too few runs to know" in said


def test_figures_of_two_suites_are_shown_and_not_judged(all_runs: list[Run]) -> None:
    one, other = (
        next(run for run in all_runs if run.record.name == name) for name in ("acks-all", "power-cut")
    )
    said = compared(side(one.slug, all_runs), side(other.slug, all_runs), all_runs)
    assert said.judged == 0
    assert said.outcome is Outcome.NO_WORSE
    assert ("suite", "acks-all", "power-cut") in said.apart


@pytest.mark.parametrize("name", ["4.0.0", "apache-kafka 4.0.0", "nightly-20261103T010000Z"])
def test_a_side_is_a_version_or_a_night(all_runs: list[Run], name: str) -> None:
    found = side(name, all_runs)
    assert len(found.runs) == (3 if name.startswith("nightly") else 24)
    assert not any(run.record.follow_up for run in found.runs)


def test_a_side_is_a_folder_or_the_beginning_of_an_id(all_runs: list[Run]) -> None:
    wanted = all_runs[3]
    assert side(f"{wanted.record.folder}/", all_runs).runs == (wanted,)
    assert side(wanted.record.run[:-1], all_runs).runs == (wanted,)


@pytest.mark.parametrize("suite", ["acks-all", "power-cut"])
def test_a_side_that_is_a_suite_is_its_newest_run(all_runs: list[Run], suite: str) -> None:
    own = [run for run in all_runs if run.record.name == suite and not run.record.follow_up]
    assert len(own) > 1
    assert side(suite, all_runs).runs == (max(own, key=lambda run: run.record.started_at),)


def test_a_name_that_is_nobodys_or_of_many_is_refused(all_runs: list[Run]) -> None:
    with pytest.raises(
        Unlike, match=r"no run, suite, night or version of that name in .*; versions: .*4\.0\.0, 4\.1\.0"
    ):
        side("5.0.0", all_runs)
    with pytest.raises(Unlike, match="runs begin so"):
        side("202611", all_runs)


def test_bad_places_are_one_line(tmp_path: Path) -> None:
    code, said = compare(tmp_path / "nowhere", "a", "b")
    assert (code, said.count("\n")) == (2, 0)
    assert "no such folder" in said
    code, said = compare(tmp_path, "a", "b")
    assert (code, said.count("\n")) == (2, 0)
    assert "no run in it" in said
