"""Records are deleted by request and by retention, as real clients ask for it and see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster, wait_for

pytestmark = pytest.mark.real


def watermarks(cluster: Cluster, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    finally:
        consumer.close()


def test_records_are_deleted_and_old_segments_go(tmp_path: Path) -> None:
    keys = {"log_retention_check_interval_ms": 200}
    with Cluster(tmp_path, broker_keys=keys) as cluster:
        cluster.create_topic("log")
        produce(cluster.bootstrap, "log", [b"%d" % n for n in range(50)], linger_ms=0)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        asked = admin.delete_records([TopicPartition("log", 0, 20)], request_timeout=10)
        for future in asked.values():
            assert future.result(15).low_watermark == 20
        assert watermarks(cluster, "log") == (20, 50)
        too_far = admin.delete_records([TopicPartition("log", 0, 51)], request_timeout=10)
        for future in too_far.values():
            with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
                future.result(15)
        cluster.create_topic("old", segment_bytes="1024", retention_bytes="2048")
        for number in range(10):
            produce(cluster.bootstrap, "old", [b"%d" % number * 100] * 20, linger_ms=0)
        wait_for("old segments to go", lambda: watermarks(cluster, "old")[0] > 100)
        wait_for(
            "their files to go on every replica",
            lambda: all(
                len(list((node.data_dir / "old-0").glob("*.log"))) <= 4 for node in cluster.brokers.values()
            ),
        )
        assert watermarks(cluster, "old")[1] == 200


def test_in_mode_on_roll_only_a_full_segment_is_flushed(tmp_path: Path) -> None:
    """R04: Kafka's default. What is in the segment that is written to is left to the operating system."""
    with Cluster(tmp_path) as cluster:
        cluster.create_topic("plain")
        cluster.create_topic("rolls", segment_bytes="1024")
        for _ in range(8):
            for topic in ("plain", "rolls"):
                produce(cluster.bootstrap, topic, [b"%03d" % n * 40 for n in range(10)], linger_ms=0)
        for node in cluster.brokers.values():
            folder = node.data_dir / "rolls-0"

            def flushed(trace: Path = node.trace) -> dict[str, int]:
                lines = map(json.loads, trace.read_text().splitlines())
                return {line["tp"]: line["upto"] for line in lines if line["kind"] == "flush"}

            active = max(int(path.stem) for path in folder.glob("*.log"))
            assert active > 0
            wait_for("the flush of the last full segment", lambda: flushed().get("rolls-0", 0) >= active)  # noqa: B023
            assert "plain-0" not in flushed()
