"""The recovery strategy of a topic, with real processes: it is changed while the partition waits for a
leader, a person names one with the admin command, and the metrics tell of it (R27 to R29)."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource, ResourceType

from tests.broker.clients.logs import consume, produce
from tests.broker.clients.loopback import Cluster, free_ports, wait_for
from tests.broker.clients.metrics import metrics
from wrackline.broker.admin.cli import main
from wrackline.broker.rules.placement.topics import RECOVERY_STRATEGY

pytestmark = [pytest.mark.real, pytest.mark.slow]
BEFORE = [b"a%d" % n for n in range(5)]


def choose(cluster: Cluster, topic: str, strategy: str) -> Any:
    entry = ConfigEntry(RECOVERY_STRATEGY, strategy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    [future] = cluster.admin().incremental_alter_configs([resource]).values()
    return future.result(15)


def shown(cluster: Cluster, topic: str) -> tuple[str, ConfigSource]:
    [future] = cluster.admin().describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    entry = future.result(15)[RECOVERY_STRATEGY]
    return entry.value, ConfigSource(entry.source)


def test_a_strategy_changed_while_the_partition_waits_and_a_leader_that_a_person_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two topics of the same replicas: all that are complete are away, and one that lags is there."""
    [port] = free_ports(1)
    keys = {"unclean_recovery_strategy": "manual", "unclean_recovery_window_ms": 500, "metrics_port": port}
    with Cluster(tmp_path, controller_keys=keys) as cluster:
        topics = ("named", "left-to-the-controller")
        for topic in topics:
            cluster.create_topic(topic)
        leader, other, lags = (
            cluster.leader("named"),
            *(n for n in cluster.brokers if n != cluster.leader("named")),
        )
        assert shown(cluster, "named") == ("manual", ConfigSource.STATIC_BROKER_CONFIG)
        with pytest.raises(KafkaException, match="it must be balanced, proactive"):
            choose(cluster, "named", "careful")
        for topic in topics:
            produce(cluster.bootstrap, topic, BEFORE)
        cluster.brokers[lags].kill()
        for topic in topics:
            cluster.wait_isr(topic, size=2)
            produce(cluster.bootstrap, topic, [b"only the others have it"])
        cluster.brokers[other].kill()
        cluster.wait_isr("named", size=1)
        cluster.brokers[leader].kill()
        cluster.brokers[lags].start()
        cluster.wait_registered()
        required = "manual_leader_election_required_partition_count"
        for topic in topics:
            wait_for("no leader", lambda topic=topic: cluster.describe(topic)[0].leader == -1)

        def admin(*arguments: str) -> tuple[int, str]:
            code = main(["--bootstrap", cluster.brokers[lags].address, *arguments])
            said = capsys.readouterr()
            return code, said.out + said.err

        code, said = admin("elect", "--leader", str(other), "named:0")
        assert code == 1
        assert f"broker {other} is fenced" in said
        code, said = admin("elect", "--leader", str(lags), "named:0")
        assert code == 0, said
        assert "possible data loss" in said
        wait_for("the named one to lead", lambda: cluster.describe("named")[0].leader == lags)
        assert cluster.describe(topics[1])[0].leader == -1

        choose(cluster, topics[1], "proactive")
        assert shown(cluster, topics[1]) == ("proactive", ConfigSource.DYNAMIC_TOPIC_CONFIG)
        wait_for("the controller to elect", lambda: cluster.describe(topics[1])[0].leader == lags)
        code, said = admin("elect", "--leader", str(lags), f"{topics[1]}:0")
        assert (code, f"broker {lags} leads" in said) == (0, True), said
        found = metrics(port)
        assert found["active_controller_count"] == 1
        assert found['unclean_recovery_finished_count{by="named"}'] == 1
        assert found['unclean_recovery_finished_count{by="proactive"}'] == 1
        assert found["unclean_recovery_timeout_count"] == 1
        assert found[required] == 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
        cluster.brokers[other].start()
        for topic in topics:
            cluster.wait_isr(topic, size=2)
            assert consume(cluster.bootstrap, topic, len(BEFORE)) == list(enumerate(BEFORE))
        lines = [json.loads(line) for line in cluster.controller.trace.read_text().splitlines()]
        told = {line["by"]: line for line in lines if line["kind"] == "recovery" and line["winner"] == lags}
        assert sorted(told) == ["named", "proactive"]
        assert sorted(told["proactive"]["unheard"]) == sorted((leader, other))
        assert told["proactive"]["logs"] == {str(lags): [0, len(BEFORE)]}
        assert cluster.controller.log.read_text().count("possible data loss") >= len(told)
