"""The workloads ``idempotent`` and ``compact`` run with their real clients against the mock cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workloads.driving import driven, recorded
from wrackline.harness.specification.build import topic_configs
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import CORRUPT, is_tombstone, parts_of
from wrackline.workloads.compact import CompactSpec
from wrackline.workloads.idempotent import IdempotentSpec
from wrackline.workloads.payload import OVERHEAD, decode, encode, run_tag

pytestmark = pytest.mark.real

PARTITIONS = 4


def test_every_record_has_its_key_on_both_events(mock_cluster: str, tmp_path: Path) -> None:
    spec = CompactSpec(rate=300, senders=2, pollers=1, enders=0, keys=3, delete_keys=0.3)
    with driven(
        mock_cluster,
        tmp_path / "run",
        spec,
        PARTITIONS,
        200,
        tries=200,
        stop_s=20,
        until=lambda counts: counts.read_records > 0,
    ):
        pass
    rows = recorded(tmp_path / "run")
    keys: dict[int, str] = {}
    for row in rows:
        if row["f"] == "send":
            [record] = row["records"]
            assert keys.setdefault(record["value"], row["key"]) == row["key"]
            assert row["key"] == spec.key_of(record["partition"], record["value"]).decode()
    assert set(keys.values()) == {f"k{p}-{number}" for p in range(PARTITIONS) for number in range(3)}
    read = [record["value"] for row in rows if row["f"] == "poll" for record in row["records"]]
    assert read
    assert min(read) >= 0  # none came under another key
    assert {is_tombstone(value) for value in read} == {True, False}


def test_a_record_under_another_key_is_corrupt() -> None:
    tag, spec = run_tag("t1"), CompactSpec(keys=50)
    payload = encode(tag, 77 << 4, "log", 3, 1, OVERHEAD)
    assert decode(tag, payload, key=spec.key_of(3, 77 << 4), key_of=spec.key_of).value == 77 << 4
    assert decode(tag, payload, key=spec.key_of(2, 77 << 4), key_of=spec.key_of).value == CORRUPT
    assert decode(tag, payload, key=b"k3-1000", key_of=spec.key_of).value == CORRUPT


def test_the_workload_compact_sets_the_cleanup_policy_itself() -> None:
    text = "name: x\ntopic: {configs: {cleanup.policy: delete}}\nworkload: {name: compact}"
    with pytest.raises(SpecError) as refused:
        parse(text, "x.yaml")
    system, topic = refused.value.mistakes
    assert (
        "workload.name compact needs compaction, which system.kind wrackline as it is set here lacks"
        in system
    )
    assert topic == "x.yaml: topic.configs.cleanup.policy: the workload compact sets it, leave it out"
    assert CompactSpec(segment_ms=500).topic_configs["segment.ms"] == "500"
    plain = parse("name: x", "x.yaml")
    assert topic_configs(plain.topic, plain.workload) == {"min.insync.replicas": "2"}


def test_an_idempotent_producer_waits_until_it_is_acknowledged(mock_cluster: str, tmp_path: Path) -> None:
    spec = IdempotentSpec(rate=300, senders=2, pollers=1, enders=1)
    assert spec.client.message_timeout_ms > 5 * spec.client.socket_timeout_ms
    assert parse("name: x\nworkload: {name: idempotent}", "x.yaml").workload.idempotence
    with driven(mock_cluster, tmp_path / "run", spec, PARTITIONS, 200, tries=200, stop_s=40):
        pass
    sends = [row for row in recorded(tmp_path / "run") if row["f"] == "send" and row["type"] != "invoke"]
    assert {row["type"] for row in sends} == {"ok"}
    assert len({parts_of(record["value"]) for row in sends for record in row["records"]}) == len(sends)
