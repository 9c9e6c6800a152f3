"""A real cluster of kraft35 becomes one of kip966, process by process, on the disks that it has
(docs/rolling-upgrades.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.errors import InvalidUpdateVersionError

from tests.broker.clients.loopback import Cluster, Node
from tests.broker.clients.test_failures import Writer, check_everything_acked_is_there
from wrackline.broker.admin import cli

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.apart]
FORMER = {"profile": "kraft35"}


def become_kip966(node: Node) -> None:
    assert node.stop() == 0
    node.config.write_text(node.config.read_text().replace('"kraft35"', '"kip966"'))
    node.start()


def features(cluster: Cluster, *words: str) -> int:
    return cli.main(["--bootstrap", cluster.bootstrap, "features", *words])


def raise_by_kafka_python(cluster: Cluster) -> None:
    """By a client that is not ours: a level that there is not, and then the right one."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), client_id="tests")
    try:
        with pytest.raises(InvalidUpdateVersionError, match="There is no such level"):
            client.update_features({"metadata.version": 15})
        assert client.update_features({"metadata.version": 23}) == {"metadata.version": "OK"}
    finally:
        client.close()


def test_each_process_is_restarted_as_the_later_profile_under_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(tmp_path, brokers=2, broker_keys=FORMER, controller_keys=FORMER) as cluster:
        cluster.create_topic("log", replicas=2, min_insync_replicas="1")
        writer = Writer(cluster.bootstrap, "log")
        writer.start()
        writer.wait_for_more()
        assert features(cluster) == 0
        assert "supported 11 (3.5-IV2) to 11 (3.5-IV2)  finalized 11 (3.5-IV2)" in capsys.readouterr().out
        for node in cluster.nodes:
            assert features(cluster, "upgrade", "--feature", "metadata.version=23") == 1
            assert "only supports versions 11 to 11" in capsys.readouterr().err
            become_kip966(node)
            cluster.wait_registered()
            cluster.wait_isr("log", size=2)
            writer.wait_for_more()
        raise_by_kafka_python(cluster)
        assert features(cluster) == 0
        assert "supported 11 (3.5-IV2) to 23 (4.0-IV1)  finalized 23 (4.0-IV1)" in capsys.readouterr().out
        check_everything_acked_is_there(cluster, "log", writer.finish())
        # Whoever would go back now does not know what is in the metadata.
        back = cluster.brokers[2]
        assert back.stop() == 0
        back.config.write_text(back.config.read_text().replace('"kip966"', '"kraft35"'))
        back.start()
        assert back.wait() == 1
        assert "start it with a later profile" in back.log.read_text()
