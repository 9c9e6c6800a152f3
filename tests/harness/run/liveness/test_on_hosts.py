"""Promises that real clusters break, each with a control that keeps it: something is done that no healing
mends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.run.liveness import scenes
from tests.harness.run.liveness.scenes import OWN, TXN, Break, play
from wrackline.harness.run.liveness.promises import CRASH, PROMISES

pytestmark = [pytest.mark.fleet, pytest.mark.apart]

KAFKA = "{kind: apache-kafka, version: 4.4.0}"
UNVERIFIED = (
    "{kind: apache-kafka, version: 4.4.0, config: {transaction.partition.verification.enable: false}}"
)
ONE_REPLICA = "{kind: apache-kafka, version: 4.4.0, config: {offsets.topic.replication.factor: 1}}"
GROUP = "workload={name: group, duration_s: 6, rate: 20}"
FOUR_BROKERS = "fleet={kind: netns, brokers: 4, controllers: 3, combined: true}"
NAMES = {CRASH, *(one.name for one in PROMISES)}

SCENES: list[tuple[str, Break, str, tuple[str, ...], dict[str, str]]] = [
    (
        "throttled",
        scenes.throttle,
        KAFKA,
        (),
        {"under-replicated": "violation"},
    ),
    (
        "throttled-reassignment",
        scenes.throttle_reassignment,
        KAFKA,
        (FOUR_BROKERS,),
        {"endless-reassignment": "violation"},
    ),
    (
        "stopped-coordinator",
        scenes.stop_coordinator,
        ONE_REPLICA,
        (GROUP,),
        {"under-replicated": "violation", "unavailable-coordinator": "violation"},
    ),
    ("hanging", scenes.hang_transaction, UNVERIFIED, (TXN,), {"stuck-lso": "violation"}),
    ("refused-to-hang", scenes.refuse_to_hang, KAFKA, (TXN,), {}),
    ("left-open", scenes.open_transaction(900), KAFKA, (TXN,), {"stuck-lso": "allowed"}),
    ("timed-out", scenes.open_transaction(5), KAFKA, (TXN,), {}),
]


def broken(results: Path, break_: Break, system: str, *settings: str) -> dict[str, str]:
    """What each anomaly of liveness that was found means."""
    judged = play(results, break_, system, *settings)
    every = judged.verdict["anomalies"]
    return {one["anomaly"]: one["meaning"] for one in every if one["count"] and one["anomaly"] in NAMES}


def test_a_node_that_is_silent_though_it_runs_keeps_its_partitions_from_having_a_leader(
    tmp_path: Path,
) -> None:
    """Nobody else has a replica: with the leader the only one is gone."""
    assert broken(tmp_path, scenes.stop_leader, OWN, "topic.replication_factor=1") == {
        "offline-partition": "violation",
        "refused-operation": "violation",
    }


@pytest.mark.nightly
def test_a_silent_node_is_never_in_the_isr_again(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.stop_leader, OWN) == {"under-replicated": "violation"}


def test_a_node_that_dies_whenever_it_is_started_breaks_a_promise(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.spoil_program, OWN) == {
        "failed-start": "violation",
        "under-replicated": "allowed",
    }


def test_a_node_that_crashes_breaks_a_promise(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.end_by("SEGV"), OWN) == {"crash": "violation"}


@pytest.mark.nightly
def test_a_node_that_somebody_has_killed_did_not_crash(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.end_by("KILL"), OWN) == {}


@pytest.mark.nightly
def test_a_node_that_starts_at_last_keeps_it(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.spoil_program_for_a_while, OWN) == {}


@pytest.mark.nightly
def test_nothing_stands_still_where_nothing_is_done(tmp_path: Path) -> None:
    assert broken(tmp_path, scenes.nothing, OWN) == {}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("break_", "system", "settings", "meanings"),
    [row[1:] for row in SCENES],
    ids=[row[0] for row in SCENES],
)
def test_apache_kafka(
    tmp_path: Path, break_: Break, system: str, settings: tuple[str, ...], meanings: dict[str, str]
) -> None:
    assert broken(tmp_path, break_, system, *settings) == meanings
