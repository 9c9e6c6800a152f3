"""Clients against a broker whose records are deleted: who deletes is told the low watermark, and a consumer
whose position was deleted goes where ``auto.offset.reset`` says."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.broker.clients.logs import produce
from tests.broker.clients.loopback import Cluster
from tests.workloads.driving import driven, recorded
from tests.workloads.test_group import extra_of
from wrackline.workloads.clients.base import ClientError, Polled
from wrackline.workloads.clients.libraries import make_library
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.log import LogSpec

pytestmark = pytest.mark.real
SETTINGS = LogSpec(client=ClientSettings(end_timeout_ms=10_000))


def first_poll(cluster: Cluster, topic: str, position: int, reset: str) -> Polled:
    """The first poll of a consumer with this position that gives anything."""
    consumer = make_library(SETTINGS.client).consumer(cluster.bootstrap, SETTINGS, reset=reset)
    try:
        consumer.assign(topic, {0: position})
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            polled = consumer.poll(timeout_s=0.2)
            if polled.records or polled.error:
                return polled
            if reset == "latest":
                produce(cluster.bootstrap, topic, [b"later"], linger_ms=0)
    finally:
        consumer.close()
    raise AssertionError("nothing came in 30 s")


def test_a_deletion_is_answered_and_a_consumer_goes_where_it_is_reset_to(cluster: Cluster) -> None:
    cluster.create_topic("deleted")
    produce(cluster.bootstrap, "deleted", [b"%d" % n for n in range(30)], linger_ms=0)
    library = make_library(SETTINGS.client)
    admin = library.admin(cluster.bootstrap, SETTINGS)
    assert admin.delete_records("deleted", 0, 10) == 10
    assert admin.delete_records("deleted", 0, 4) == 10
    with pytest.raises(ClientError, match="OFFSET_OUT_OF_RANGE"):
        admin.delete_records("deleted", 0, 31)
    admin.close()
    asker = library.consumer(cluster.bootstrap, SETTINGS)
    assert asker.ends("deleted", 0) == (10, 30)
    asker.close()
    assert first_poll(cluster, "deleted", 0, "earliest").records[0].offset == 10
    assert first_poll(cluster, "deleted", 0, "").position_lost
    assert first_poll(cluster, "deleted", 0, "latest").records[0].offset >= 30


def test_the_workload_deletes_and_records_what_it_was_told(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("log-deleted")
    spec = LogSpec.model_validate(
        {"rate": 60, "keep_records": 5, "mix": {"delete": 2}, "client": {"end_timeout_ms": 10_000}}
    )
    with driven(
        cluster.bootstrap, tmp_path, spec, 1, 150, tries=600, stop_s=60, topic="log-deleted"
    ) as workload:
        [drained] = workload.drain(deadline_s=60)
    rows = [row for row in recorded(tmp_path) if row["f"] == "delete"]
    answered = [row for row in rows if row["type"] == "ok"]
    assert {row["type"] for row in rows} >= {"invoke", "ok"}
    assert all(extra_of(row)["low_watermark"] >= row["offset"] for row in answered)
    most = max(row["offset"] for row in answered)
    assert (drained.complete, drained.log_start) == (True, most)
    assert drained.end - most >= 5
    assert any(row["offset"] < most for row in answered), "some ask for less than is deleted already"
