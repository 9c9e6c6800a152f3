"""Making a violation smaller, with an oracle that is told what it needs to show."""

from __future__ import annotations

from typing import Any

import pytest

from wrackline.harness.nights.shrinking import Raw, faults_of, shrunk


def specification(faults: int, **workload: Any) -> Raw:
    return {
        "name": "x",
        "topic": {"partitions": 4},
        "workload": {"duration_s": 100.0, "senders": 8, "pollers": 2, **workload},
        "nemesis": {
            "schedule": [
                {"at_s": 10.0 * number, "duration_s": 5.0, "fault": f"f{number}"}
                for number in range(1, faults + 1)
            ]
        },
    }


def names(raw: Raw) -> set[str]:
    return {one["fault"] for one in faults_of(raw)}


@pytest.mark.parametrize("needed", [{"f3"}, {"f1", "f8"}, {"f2", "f3", "f7"}, {f"f{n}" for n in range(1, 9)}])
def test_what_is_left_is_what_it_takes(needed: set[str]) -> None:
    asked: list[Raw] = []

    def shows(raw: Raw) -> bool:
        asked.append(raw)
        return needed <= names(raw) and raw["workload"]["senders"] >= 2

    found = shrunk(specification(8), shows)
    assert names(found) == needed
    assert found["workload"]["senders"] == 2
    assert found["workload"]["pollers"] == 1
    assert found["topic"]["partitions"] == 1
    assert shows(found)
    assert len(asked) < 60


def test_faults_begin_early_and_the_run_ends_soon_after_them() -> None:
    found = shrunk(specification(8), lambda raw: "f5" in names(raw))
    assert faults_of(found) == [{"at_s": 2.0, "duration_s": 5.0, "fault": "f5"}]
    assert found["workload"]["duration_s"] == 10.0


def test_what_needs_all_is_left_as_it_is() -> None:
    start = specification(3)
    assert shrunk(start, lambda raw: raw == start) == start


def test_a_guided_schedule_keeps_its_steps() -> None:
    start: Raw = {"topic": {"partitions": 2}, "workload": {"duration_s": 60.0}, "nemesis": {"guided": "b01"}}
    found = shrunk(start, lambda _: True)
    assert found == {**start, "topic": {"partitions": 1}}


def test_the_start_is_not_touched() -> None:
    start = specification(4)
    before = specification(4)
    shrunk(start, lambda raw: "f1" in names(raw))
    assert start == before
