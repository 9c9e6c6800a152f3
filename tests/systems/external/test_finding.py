"""A cluster is found, and brokers that are silent, answer otherwise or are not specified are reported."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.systems.external.running import Running, running
from wrackline.fleets.none.fleet import NoFleet
from wrackline.kafka_client.security import Security
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.external import queries
from wrackline.systems.external import system as external
from wrackline.systems.external.commands.runner import Known
from wrackline.systems.external.system import ExternalSystem


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("theirs"), brokers=1) as made:
        yield made


def system(bootstrap: list[str], *hosts: Known, **options: object) -> ExternalSystem:
    return ExternalSystem(NoFleet("none"), bootstrap=bootstrap, hosts=hosts, **options)  # type: ignore[arg-type]


def refused(bootstrap: list[str], *hosts: Known, **options: object) -> str:
    with pytest.raises(DeployError) as wrong:
        system(bootstrap, *hosts, **options).install()
    return str(wrong.value)


def test_whoever_is_silent_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two addresses share the time; the real one is under ten seconds."""
    assert external.ANSWER_S < 10
    monkeypatch.setattr(external, "ANSWER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other)]
        began = time.monotonic()
        said = refused(addresses)
        assert time.monotonic() - began < 20
    assert said.startswith(
        f"no broker of {', '.join(addresses)} answers: ApiVersionsRequest to {addresses[0]}: "
    )
    assert "system.bootstrap and system.security are right" in said


def test_a_broker_without_tls_is_told_from_one_that_is_silent(theirs: Running) -> None:
    said = refused(theirs.bootstrap, security=lambda: Security(protocol="SSL"))
    assert theirs.bootstrap[0] in said
    assert "TLS" in said or "hung up" in said


def test_brokers_that_do_not_know_what_will_be_asked_are_refused_at_once(
    theirs: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(queries.NEEDED, 19, ("CreateTopics", 99))
    said = refused(theirs.bootstrap)
    assert said.startswith("the brokers are older than Apache Kafka 1.1")
    assert "CreateTopics 99 is needed, and the newest there is 7" in said


def test_the_brokers_are_those_that_the_specification_names(theirs: Running) -> None:
    assert refused(theirs.bootstrap, Known("n2", 2, None, {})).startswith(
        "the cluster has broker 1, which system.hosts does not name"
    )
    said = refused(theirs.bootstrap, Known("n1", 1, None, {}), Known("n2", 2, None, {}))
    assert said.startswith("system.hosts names broker 2, which the cluster does not know now: there are 1;")
    found = system(theirs.bootstrap, Known("kafka-1", 1, None, {}))
    found.install()
    [node] = found.nodes
    assert (node.host.name, node.node_id, node.port) == ("kafka-1", 1, theirs.cluster.brokers[1].port)
    found.close()


def test_a_topic_that_is_there_is_left_alone_and_only_ours_is_removed(theirs: Running) -> None:
    theirs.cluster.create_topic("theirs", replicas=1)
    asked = system(theirs.bootstrap)
    asked.install()
    with pytest.raises(DeployError, match="has a topic theirs already; it is left as it is"):
        asked.create_topic(TopicSpec("theirs", 1, 1, {}))
    assert asked.remove_topics() == ""
    asked.create_topic(TopicSpec("ours", 2, 1, {"min.insync.replicas": "1"}))
    state = asked.describe()
    assert {one.topic for one in state.partitions} == {"ours"}  # nobody asks about the others
    assert asked.remove_topics() == "topic ours is removed from the cluster"
    assert asked.remove_topics() == ""
    assert "theirs" in theirs.topics()
    assert "ours" not in theirs.topics()
    asked.close()


def test_a_topic_with_other_promises_than_the_specification_says_is_refused(theirs: Running) -> None:
    """The contract would be taken from what is not so."""
    asked = system(theirs.bootstrap)
    asked.install()
    there = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    asked.create_topic(TopicSpec("unclean", 1, 1, there))
    with pytest.raises(
        DeployError, match=r"gave the topic unclean\.leader\.election\.enable=true, and the contract"
    ):
        asked._compare(TopicSpec("unclean", 1, 1, {"min.insync.replicas": "1"}))
    asked.remove_topics()
    asked.close()


def test_a_broker_that_is_gone_is_seen(theirs: Running, tmp_path: Path) -> None:
    asked = system(theirs.bootstrap)
    asked.install()
    [node] = asked.nodes
    assert asked.is_running(node)
    assert asked.pid(node) == 1
    asked.collect(tmp_path)
    assert "replica.lag.time.max.ms=1500\n" in (tmp_path / "n1" / "effective-config.txt").read_text()
    theirs.end()
    assert not asked.is_running(node)
    assert "Connection refused" in asked.last_words(node)
    with pytest.raises(DeployError, match="node 1 does not answer"):
        asked.pid(node)
    asked.close()
