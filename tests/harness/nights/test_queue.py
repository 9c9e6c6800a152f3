"""What comes next in a night, from what its journal says; and the journal itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.journal import Did, Journal, State, read
from wrackline.harness.nights.night import reached_before, with_reached
from wrackline.harness.nights.order import Before, before, nights, ordered
from wrackline.harness.nights.queue import Saved, Task, agenda, as_yaml, smallest
from wrackline.harness.nights.spec import Night
from wrackline.harness.nights.summary import accounts
from wrackline.harness.records import JOURNAL

FAULTS = [
    {"at_s": 4.0 * number, "duration_s": 2.0, "fault": fault, "target": "one"}
    for number, fault in enumerate(("kill", "pause", "restart", "kill"), start=1)
]


def specification(faults: Sequence[dict[str, Any]] = FAULTS) -> dict[str, Any]:
    return {
        "name": "lap",
        "fleet": {"kind": "process", "brokers": 3},
        "topic": {"name": "log", "partitions": 1},
        "workload": {"duration_s": 30.0, "senders": 1, "pollers": 1, "enders": 1},
        "nemesis": {"schedule": list(faults)},
    }


RAW = specification()
CASES = [Saved(name, yaml.safe_dump(RAW), yaml.safe_dump(specification([]))) for name in ("a", "b")]


def a_night(**settings: Any) -> Night:
    return Night.model_validate({"name": "n", "runs": [{"spec": "x.yaml"}], **settings}, strict=False)


def judged(journal: Journal, task: str, verdict: Verdict, *anomalies: str) -> None:
    journal.write(Did.BEGAN, task=task)
    journal.write(Did.MADE, task=task, run=f"run-of-{task}", seconds=1.0)
    journal.write(
        Did.JUDGED, task=task, run=f"run-of-{task}", verdict=verdict, headline="", anomalies=list(anomalies)
    )


def played(
    tmp_path: Path, night: Night, violates: Callable[[Task], bool], replayed: Callable[[str], Any]
) -> tuple[list[str], State]:
    """A whole night; the journal is read anew for each step, as after a crash."""
    names: list[str] = []
    while tasks := list(agenda(night, CASES, read(tmp_path), replayed)):
        journal = Journal(tmp_path)
        bad = violates(tasks[0])
        judged(journal, tasks[0].name, Verdict.VIOLATION if bad else Verdict.PASS, *["lost-write"] * bad)
        journal.close()
        names.append(tasks[0].name)
        assert len(names) < 200
    return names, read(tmp_path)


def test_a_violation_is_run_again_beside_its_twin_and_made_smaller(tmp_path: Path) -> None:
    def violates(task: Task) -> bool:
        faults = [one["fault"] for one in yaml.safe_load(task.text)["nemesis"]["schedule"]]
        return task.name.startswith("a") and "pause" in faults

    night = a_night(repeat=2)
    names, state = played(tmp_path, night, violates, lambda _: RAW)
    assert names[:5] == ["a", "a~repeat-1", "a~repeat-2", "a~twin", "b"]
    smaller = [name for name in names if "~smaller-" in name]
    assert names[5 : 5 + len(smaller)] == smaller
    assert names[5 + len(smaller) :] == ["a~smallest-1", "a~smallest-2"]
    found = smallest(CASES[0], night, state, lambda _: RAW)
    assert found is not None
    assert (found.faults, found.shows, found.note, found.runs) == ((4, 1), True, "", len(smaller))
    assert [one["fault"] for one in found.raw["nemesis"]["schedule"]] == ["pause"]
    assert not any(name.startswith("b~") for name in names)


def test_what_does_not_show_again_is_left_as_it_is(tmp_path: Path) -> None:
    night = a_night(repeat=1, twins=False, shrink={"tries": 3})
    names, state = played(tmp_path, night, lambda task: task.name == "a", lambda _: RAW)
    assert len([name for name in names if "~smaller-" in name]) == 3, "as often as it is tried"
    assert not any("~smallest" in name for name in names)
    found = smallest(CASES[0], night, state, lambda _: RAW)
    assert found is not None
    assert not found.shows
    assert found.note == "with its faults at fixed times it did not show again"


def test_making_it_smaller_ends_when_its_runs_are_spent(tmp_path: Path) -> None:
    night = a_night(repeat=1, shrink={"runs": 3, "tries": 1})
    names, state = played(tmp_path, night, lambda task: task.name != "b", lambda _: RAW)
    assert len([name for name in names if "~smaller-" in name]) == 3
    found = smallest(CASES[0], night, state, lambda _: RAW)
    assert found is not None
    assert found.note == "3 runs were spent"
    assert found.faults[1] < 4, "what it had come to is kept"


def test_a_night_that_was_interrupted_says_how_far_it_has_come(tmp_path: Path) -> None:
    night = a_night(repeat=0, twins=False, shrink={"tries": 1})
    journal = Journal(tmp_path)
    judged(journal, "a", Verdict.VIOLATION, "lost-write")
    judged(journal, "b", Verdict.PASS)
    assert not follow_up(night, journal.state), "nothing was made smaller yet"
    for _ in range(2):
        [task] = agenda(night, CASES, journal.state, lambda _: RAW)
        judged(journal, task.name, Verdict.VIOLATION, "lost-write")
    assert follow_up(night, journal.state) == "4 faults to 2 in 2 runs so far"


def follow_up(night: Night, state: State) -> str:
    return next(accounts(night, CASES, state, lambda _: RAW)).follow_up


def test_another_anomaly_is_not_the_one_that_is_made_smaller(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    judged(journal, "a", Verdict.VIOLATION, "lost-write")
    judged(journal, "b", Verdict.PASS)
    night = a_night(repeat=0, twins=False, shrink={"tries": 1})
    [task] = agenda(night, CASES, journal.state, lambda _: RAW)
    judged(journal, task.name, Verdict.VIOLATION, "duplicate")
    assert list(agenda(night, CASES, journal.state, lambda _: RAW)) == []


def test_a_run_that_broke_down_is_no_try(tmp_path: Path) -> None:
    night = a_night(repeat=0, twins=False, shrink={"runs": 9, "tries": 1})
    journal = Journal(tmp_path)
    judged(journal, "a", Verdict.VIOLATION, "lost-write")
    judged(journal, "b", Verdict.PASS)
    [first] = agenda(night, CASES, journal.state, lambda _: RAW)
    judged(journal, first.name, Verdict.INFRASTRUCTURE)
    [again] = agenda(night, CASES, journal.state, lambda _: RAW)
    assert (again.text, again.name) == (first.text, first.name.removesuffix("1") + "2")
    judged(journal, again.name, Verdict.PASS)
    assert list(agenda(night, CASES, journal.state, lambda _: RAW)) == []


def test_a_run_that_was_made_waits_for_its_verdict(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.write(Did.BEGAN, task="a")
    assert [task.name for task in agenda(a_night(), CASES, journal.state, lambda _: RAW)] == ["a", "b"]
    journal.write(Did.MADE, task="a", run="r", seconds=2.0)
    assert [task.name for task in agenda(a_night(), CASES, journal.state, lambda _: RAW)] == ["b"]
    assert journal.state.made == {"a": ("r", 2.0)}


def test_a_line_that_was_torn_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    judged(journal, "a", Verdict.PASS)
    journal.close()
    with (tmp_path / JOURNAL).open("ab") as file:
        file.write(b'{"did": "judged", "task": "b", "ru')
    again = Journal(tmp_path)
    assert set(again.state.results) == {"a"}
    judged(again, "b", Verdict.PASS)
    again.close()
    assert set(read(tmp_path).results) == {"a", "b"}


def test_time_adds_up_over_pauses(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    first._opened -= 100
    first.write(Did.CLOSED, why="", over=False)
    first.close()
    second = Journal(tmp_path)
    assert 100 <= second.spent_s < 101
    second.close()


def test_what_failed_lately_comes_first_then_what_was_never_run_then_the_oldest(tmp_path: Path) -> None:
    verdicts = [
        {"old": Verdict.PASS, "mended": Verdict.VIOLATION, "fine": Verdict.PASS},
        {"mended": Verdict.PASS, "fine": Verdict.PASS},
        {"fine": Verdict.PASS, "shown": Verdict.REPRODUCED},
    ]
    for number, one in enumerate(verdicts):
        folder = tmp_path / f"n-2026112{number}T000000Z"
        folder.mkdir()
        journal = Journal(folder)
        for name, verdict in one.items():
            judged(journal, name, verdict)
        journal.close()
    (tmp_path / "other-20261120T000000Z").mkdir()
    known = before(nights(tmp_path, "n"))
    assert known["mended"] == Before(True, 2)
    assert known["old"] == Before(False, 3)
    assert ordered(["fine", "new", "shown", "old", "mended"], known) == [
        "mended",
        "new",
        "old",
        "fine",
        "shown",
    ]


@pytest.mark.parametrize("count", [5, 6])
def test_a_failure_is_forgotten_after_five_nights(tmp_path: Path, count: int) -> None:
    for number in range(count):
        folder = tmp_path / f"n-2026112{number}T000000Z"
        folder.mkdir()
        journal = Journal(folder)
        judged(journal, "a", Verdict.PASS if number else Verdict.VIOLATION)
        journal.close()
    assert before(nights(tmp_path, "n"))["a"].failed is (count == 5)


def test_a_run_is_told_which_pairs_of_state_and_fault_were_reached_before() -> None:
    follows = as_yaml({"nemesis": {"follow": {"reached": {"a > kill": 1}}}})
    assert reached_before(with_reached(follows, {"b > kill": 2})) == {"a > kill": 1, "b > kill": 2}
    plain = as_yaml({"nemesis": {"random": {"faults": ["kill"]}}})
    assert with_reached(plain, {"b > kill": 2}) == plain
    assert reached_before(plain) == {}
