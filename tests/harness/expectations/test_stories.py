"""Each suite of stories has a known outcome and, where a setting allows the loss, a control; some are played
on real hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.harness.expectations.playing import made_on_hosts
from wrackline.checkers.findings import Verdict
from wrackline.harness.cli.runs.known import stories_command
from wrackline.harness.expectations.cases import CONTROL, Case, catalogue, stories
from wrackline.simulator.guided.catalogue import SCHEDULES as SIMULATED
from wrackline.systems.wrackline.spec import WracklineSpec

STORIES = catalogue()["stories"]
SUITES = Path(__file__).parents[3] / "suites" / "stories"
BY_SETTINGS = {
    "acks=1": "acks-one",
    "min_isr=1": "min-isr-one",
    "unclean_election": "unclean-on",
    "last_replica_standing": "last-replica-standing",
    "clean_example": "clean-example",
    "whole_isr_loses_power": "outage-unclean",
    "proactive_recovery": "outage-proactive",
    "no_idempotence": "no-idempotence",
    "jepsen_2013": "jepsen-2013",
}
"""Schedules of the simulator without a defect, and which story is theirs on hosts."""


@pytest.fixture(scope="module")
def all_of_them() -> list[Case]:
    return stories()


def test_every_suite_is_a_story_or_the_control_of_one() -> None:
    found = {path.stem for path in SUITES.glob("*.yaml")}
    assert {name.removesuffix(CONTROL) for name in found} == set(STORIES)
    assert set(STORIES) <= found


def test_the_simulators_schedules_of_settings_have_their_story() -> None:
    assert set(BY_SETTINGS) <= set(SIMULATED)
    assert set(BY_SETTINGS.values()) <= set(STORIES)


def test_a_control_differs_in_one_thing_and_whatever_is_lost_has_one(all_of_them: list[Case]) -> None:
    for each in all_of_them:
        assert isinstance(each.main.spec.system, WracklineSpec)
        assert not each.main.spec.system.defects
        assert each.main.spec.name == f"story-{each.name}"
        assert (each.control is not None) is bool(each.main.expectation.shows)
        assert len(each.changed) == len(each.main.expectation.shows), each.changed
        if each.control is not None:
            opening = (SUITES / f"{each.name}{CONTROL}.yaml").read_text()
            assert opening.startswith(f"# The control of {each.name}")


def test_only_rules_without_an_elr_break_a_promise(all_of_them: list[Case]) -> None:
    broken = [each.name for each in all_of_them if each.main.expectation.verdict is Verdict.VIOLATION]
    assert broken == ["last-replica-standing", "clean-example"]
    for each in all_of_them:
        assert (each.version == "kraft35") is (each.name in broken)


def test_the_list_says_what_there_is() -> None:
    told = CliRunner().invoke(stories_command, ["--list"], standalone_mode=False)
    rows = [row.split()[0] for row in told.output.splitlines() if row and not row.startswith(" ")]
    assert rows[1:] == list(STORIES)


@pytest.mark.nightly
@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.spark
def test_a_story_and_its_control_come_out_as_they_must_on_hosts(tmp_path: Path) -> None:
    rows = made_on_hosts(tmp_path, "stories", "last-replica-standing", "outage-manual")
    assert [(row["shown"], row["clean"]) for row in rows] == [(1, 1), (1, 0)]
