"""Witnesses that lie, in whole runs on the fleet `process`: what the final read was told and given, what the
replicas' reader found, and records that were deleted. The brokers are right in all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.machine_load import unmet
from wrackline.checkers.analysis import analyze
from wrackline.fleets.folders import data_dir
from wrackline.harness.run.final_read import replicas as replica_logs
from wrackline.harness.run.live import live as live_run
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run
from wrackline.harness.specification.spec import parse
from wrackline.systems.base import Node, ReplicaLog
from wrackline.systems.common.deployed import Deployed
from wrackline.systems.segments import batches
from wrackline.workloads.log import drain as final_read

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

SPEC = """
name: witnesses
seed: 1
fleet: {kind: process, brokers: 3, controllers: 3, combined: true}
system:
  kind: wrackline
  config: {session_timeout_ms: 2000, heartbeat_interval_ms: 300, log_retention_check_interval_ms: 200}
  waits: {steady_s: 0, recovered_s: 0.2}
topic: {name: log, partitions: 2, replication_factor: 3, min_insync_replicas: 2}
workload: {name: log, duration_s: 3, rate: 60, acks: all, senders: 4, pollers: 2, enders: 1}
nemesis: {}
"""
SHORT, LAST, DELETED = 25, 20, 20
Patch = pytest.MonkeyPatch
Verdict = dict[str, Any]


def nothing(patch: Patch) -> None:
    del patch


def an_end_too_small(patch: Patch) -> None:
    ends = final_read._Drain._ends

    def told(self: Any, client: Any) -> tuple[int, int]:
        low, high = ends(self, client)
        return low, high - SHORT

    patch.setattr(final_read._Drain, "_ends", told)


def a_read_that_skips(patch: Patch) -> None:
    """One record of the first partition."""
    read = final_read.read_records

    def skipped(fetched: Any, context: Any) -> Any:
        some = [one for one in fetched if (one.partition, one.offset) != (0, 7)]
        return read(some, context)

    patch.setattr(final_read, "read_records", skipped)


def a_log_start_too_large(patch: Patch) -> None:
    ends = final_read._Drain._ends

    def told(self: Any, client: Any) -> tuple[int, int]:
        low, high = ends(self, client)
        return low + DELETED, high

    patch.setattr(final_read._Drain, "_ends", told)


def logs_without_their_ends(patch: Patch) -> None:
    read = Deployed.replica_log

    def cut(self: Deployed, node: Node, topic: str, partition: int) -> ReplicaLog:
        found = read(self, node, topic, partition)
        return dataclasses.replace(found, records=found.records[:-LAST])

    patch.setattr(Deployed, "replica_log", cut)


def one_log_without_its_end(patch: Patch) -> None:
    """The last batches of one follower's file are gone for good, of the first partition."""
    read = replica_logs.read_replicas

    def cut(system: Any, recorder: Any, state: Any, spec: Any) -> Any:
        leader = state.partition("log", 0).leader
        node = next(one for one in system.nodes if one.is_broker and one.node_id != leader)
        remote = system.fleet.remote(node.host)
        [file] = remote.run(f"ls {data_dir(node.host)}/log-0/*.log").stdout.split()
        at = [batch.position for batch, _ in batches(remote.get(file))][-3]
        remote.run(f"truncate -s {at} {file}")
        return read(system, recorder, state, spec)

    patch.setattr(live_run, "read_replicas", cut)


def deleted_by_a_stranger(patch: Patch) -> None:
    """Before anything is read back."""
    down = live_run.down

    def deleting(system: Any) -> Any:
        admin = AdminClient({"bootstrap.servers": system.bootstrap()})
        asked = [TopicPartition("log", partition, DELETED) for partition in range(2)]
        for answer in admin.delete_records(asked).values():
            answer.result(timeout=10)
        return down(system)

    patch.setattr(live_run, "down", deleting)


RETENTION = ("topic.configs={retention.ms: 1000, segment.bytes: 2000}",)
TRIALS: Mapping[str, tuple[Callable[[Patch], None], tuple[str, ...]]] = {
    "false end": (an_end_too_small, ()),
    "skips": (a_read_that_skips, ()),
    "false log start": (a_log_start_too_large, ()),
    "drops": (logs_without_their_ends, ()),
    "lost on one": (one_log_without_its_end, ()),
    "stranger": (deleted_by_a_stranger, ()),
    "retention": (nothing, RETENTION),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    folder = tmp_path_factory.mktemp("witnesses")
    made: dict[str, Path] = {}
    for name, (sabotage, settings) in TRIALS.items():
        with pytest.MonkeyPatch.context() as patch:
            sabotage(patch)
            outcome = run(parse(SPEC, "witnesses.yaml", settings=settings), Options(folder))
        assert outcome.troubles == (), name
        made[name] = outcome.run_dir
    return dict(zip(made, analyze(list(made.values())), strict=True))


def found(verdict: Verdict) -> dict[str, int]:
    return {one["anomaly"]: one["count"] for one in verdict["anomalies"] if one["count"]}


def loss(verdict: Verdict) -> set[str]:
    return {"lost-write", "vanished-read", "lost-committed", "lost-on-replica"} & found(verdict).keys()


def test_an_end_that_is_too_small_loses_nothing_behind_it(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["false end"]
    assert (verdict["verdict"], found(verdict)) == ("violation", {"stale-end": 2})
    assert "led log-0 all the time, and no fault was in force" in str(verdict["reasons"])
    assert unmet(verdict) == {"final read complete"}


def test_a_final_read_that_skips_a_record_is_the_suspect(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["skips"]
    assert verdict["verdict"] == "infrastructure"
    assert loss(verdict) == {"lost-write", "lost-committed", "vanished-read"}  # told, and no evidence
    assert verdict["reasons"][0] == (
        "the final read of log-0 lacks offset 7, and its leader gave a second reader records there; "
        "n1, n2, n3 and clients had told of them"
    )


def test_a_log_start_that_is_too_large_deletes_nothing(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["false log start"]
    assert (verdict["verdict"], loss(verdict)) == ("infrastructure", set())
    assert f"lacks offsets 0 to {DELETED - 1}, and its leader gave" in verdict["headline"]
    assert unmet(verdict) == {"nobody deleted records"}


def test_a_reader_that_drops_the_end_of_every_replicas_log_is_the_suspect(
    verdicts: dict[str, Verdict],
) -> None:
    verdict = verdicts["drops"]
    assert (verdict["verdict"], found(verdict)) == ("infrastructure", {"lost-on-replica": 2 * LAST})
    told = [one for one in verdict["reasons"] if "and a second reader found records there" in one]
    assert len(told) == 6  # of three replicas of two partitions


def test_a_replica_that_has_lost_records_is_still_found(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["lost on one"]
    assert (verdict["verdict"], loss(verdict)) == ("violation", {"lost-on-replica"})
    assert unmet(verdict) == set()


def test_records_that_a_stranger_deleted_are_not_lost(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["stranger"]
    assert (verdict["verdict"], found(verdict)) == ("inconclusive", {})
    assert unmet(verdict) == {"nobody deleted records"}
    assert f"log-0 below offset {DELETED} (by the word of its leader; no setting" in verdict["headline"]


def test_records_that_retention_deleted_are_not_lost(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["retention"]
    assert (verdict["verdict"], found(verdict)) == ("pass", {})
    assert "; deleted: log-0 below offset " in verdict["headline"]
    assert "(retention.ms=1000)" in verdict["headline"]
