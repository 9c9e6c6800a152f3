"""A broker's disk refuses a write: these tests show what the cluster and its clients then see (B57)."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from tests.broker.clients.loopback import wait_for
from tests.broker.clients.test_failures import under_load

pytestmark = pytest.mark.real

DISK_FAILED = 3


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_failed_write_ends_the_broker_and_loses_nothing_acknowledged(tmp_path: Path, role: str) -> None:
    """The limit on file size makes a write fail in the middle of a batch, as a full disk does."""
    with under_load(tmp_path) as (cluster, writer):
        leader = cluster.leader("log")
        victim = leader if role == "leader" else next(n for n in cluster.brokers if n != leader)
        node = cluster.brokers[victim]
        assert node.process is not None
        segment = node.data_dir / "log-0" / ("0" * 20 + ".log")
        limit = segment.stat().st_size + 20_011
        resource.prlimit(node.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        assert node.wait() == DISK_FAILED, node.log.read_text()[-2_000:]
        told = node.log.read_text()
        assert "its log directory is offline" in told
        assert "File too large" in told
        assert not (node.data_dir / ".kafka_cleanshutdown").exists()
        wait_for("it to be fenced", lambda: victim not in cluster.describe("log")[0].isrs)
        writer.wait_for_more()
        assert cluster.leader("log") != victim
        node.start()
        cluster.wait_isr("log")
        writer.wait_for_more()
