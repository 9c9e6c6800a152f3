"""Logs that begin later than at offset 0: what explains it, and what it means where nothing does."""

from __future__ import annotations

import dataclasses

import pytest

from tests.checkers.good_runs import PLACE, SECOND, decided, good_run, missing, unmet
from wrackline.checkers.findings import Meaning, Verdict
from wrackline.checkers.inputs.final_reads import ReplicaRead
from wrackline.checkers.inputs.runs import Run

NOBODY = "nobody deleted records"


def begun_at(offset: int, **deletion: str) -> Run:
    """A run of 70 s whose only log begins at this offset everywhere."""
    run = good_run()
    run.final[PLACE].log_start = offset
    for replica in run.replicas[PLACE].values():
        replica.log_start = offset
    settings = {name.replace("_", "."): value for name, value in deletion.items()}
    [topic] = run.info.topics
    run.info = dataclasses.replace(run.info, topics=(dataclasses.replace(topic, deletion=settings),))
    return run


def test_a_deletion_that_nothing_explains_leaves_the_run_inconclusive() -> None:
    run = begun_at(60)
    assert missing(run) == [NOBODY]
    result = decided(run)
    assert result["verdict"] == Verdict.INCONCLUSIVE
    assert "log-0 below offset 60 (by the word of its leader; no setting" in result["headline"]


@pytest.mark.parametrize(
    "setting",
    [
        {"retention_ms": "3000"},
        {"retention_bytes": "0"},
        {"log_retention_hours": "0"},
        {"log_retention_minutes": "1"},
        {"log_retention_bytes": "1000"},
    ],
)
def test_a_deletion_that_a_setting_explains_is_allowed_and_told(setting: dict[str, str]) -> None:
    result = decided(begun_at(60, **setting))
    [(name, value)] = setting.items()
    told = f"log-0 below offset 60 ({name.replace('_', '.')}={value})"
    assert result["verdict"] == Verdict.PASS
    assert told in result["headline"]
    assert f"deleted, and not judged as lost: {told}" in result["reasons"]


@pytest.mark.parametrize(
    "setting",
    [
        {"retention_ms": "604800000"},  # a week, and the run lasted 70 s
        {"retention_ms": "-1"},
        {"retention_bytes": "-1"},
        {"log_retention_minutes": "2"},
        {"retention_ms": "soon"},
    ],
)
def test_a_setting_that_deletes_nothing_in_that_time_explains_nothing(setting: dict[str, str]) -> None:
    assert missing(begun_at(60, **setting)) == [NOBODY]


def test_what_clients_asked_to_delete_explains_a_deletion_up_to_there() -> None:
    run = begun_at(60)
    run.deletions[PLACE] = 60
    told = "log-0 below offset 60 (DeleteRecords of the clients, up to 60)"
    assert f"deleted, and not judged as lost: {told}" in decided(run)["reasons"]
    run.deletions[PLACE] = 59
    assert missing(run) == [NOBODY]


def test_one_replica_alone_may_have_lost_its_beginning() -> None:
    run = good_run()
    run.replicas[PLACE]["n2"] = ReplicaRead(40, 100, 100, True, True)
    [condition] = unmet(run)
    assert condition.name == NOBODY
    assert condition.detail.startswith("log-0 below offset 40 (by the word of the files of n2; no setting")


def test_polls_tell_nothing_of_the_beginning_of_a_log() -> None:
    run = begun_at(60)
    run.final[PLACE].derived = True
    run.replicas = {}
    assert NOBODY not in missing(run)


def test_a_deletion_excuses_no_loss_above_it() -> None:
    assert decided(begun_at(60, retention_ms="3000"), lost_write=1)["verdict"] == Verdict.VIOLATION


def test_registers_and_queues_forget_what_was_deleted() -> None:
    for anomaly in ("register_not_linearizable", "queue_not_linearizable"):
        meanings = []
        for start in (60, 0):
            run = begun_at(start, retention_ms="3000")
            run.info = dataclasses.replace(run.info, reads="marker")
            result = decided(run, **{anomaly: 1})
            [row] = [one for one in result["anomalies"] if one["count"] == 1]
            meanings.append(row["meaning"])
        assert meanings == [Meaning.NOT_APPLICABLE, Meaning.VIOLATION]


def test_faults_end_times_do_not_make_a_run_longer() -> None:
    run = begun_at(60, retention_ms="70000")
    assert missing(run) == [NOBODY]  # it lasted so long exactly: nothing was older
    run.end_ns += SECOND
    assert missing(run) == []


def test_what_a_replica_has_no_more_in_its_files_is_not_deleted_where_there_is_a_remote_tier() -> None:
    run = good_run()
    run.replicas[PLACE]["n2"] = ReplicaRead(40, 100, 100, True, True, tiered=True)
    assert missing(run) == []
    run.final[PLACE].log_start = 60
    assert missing(run) == [NOBODY], "the leader's own log start still counts"
