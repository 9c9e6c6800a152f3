"""What an administrator writes into ZooKeeper, in the form that each version reads."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from tests.zookeeper.systems.servers.in_memory import InMemory
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.zookeeper.systems.kafka.admin import ELECTION, REASSIGN, ZooKeeperAdmin, spread

THREE = {f"/brokers/ids/{one}": b"{}" for one in (1, 2, 3, 101)}


def admin(nodes: InMemory, *version: int) -> ZooKeeperAdmin:
    return ZooKeeperAdmin(nodes, version or (1, 1, 1), (1, 2, 3))  # type: ignore[arg-type]


def test_replicas_go_round_and_leave_the_first_controller_out() -> None:
    nodes = InMemory(**THREE)
    admin(nodes).create_topic(TopicSpec("log", 4, 2, {"min.insync.replicas": "2"}), timeout_s=1)
    assert orjson.loads(nodes.nodes["/brokers/topics/log"]) == {
        "version": 1,
        "partitions": {"0": [1, 2], "1": [2, 3], "2": [3, 1], "3": [1, 2]},
    }
    assert orjson.loads(nodes.nodes["/config/topics/log"])["config"] == {"min.insync.replicas": "2"}


def test_more_replicas_than_brokers_are_refused() -> None:
    with pytest.raises(DeployError, match="3 replicas need as many brokers, there are 2"):
        spread(TopicSpec("log", 1, 3, {}), (1, 2))


def test_a_topic_waits_for_a_broker_whose_session_is_not_back(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = InMemory(**{one: b"{}" for one in THREE if one != "/brokers/ids/2"})

    def registers(what: str, holds: Callable[[], bool]) -> None:
        assert not holds(), what
        nodes.nodes["/brokers/ids/2"] = b"{}"
        assert holds(), what

    monkeypatch.setattr(nodes, "wait", registers)
    admin(nodes).create_topic(TopicSpec("log", 1, 3, {}), timeout_s=1)
    assert orjson.loads(nodes.nodes["/brokers/topics/log"])["partitions"] == {"0": [1, 2, 3]}


def test_an_election_is_asked_for_and_waited_for() -> None:
    nodes = InMemory()
    nodes.gone_at_once = (ELECTION,)
    admin(nodes).elect_preferred([("log", 1)], timeout_s=1)
    assert nodes.made == [ELECTION]
    assert nodes.waited == ["an election that is under way", "the controller to hold the election"]
    admin(nodes).elect_preferred([], timeout_s=1)
    assert nodes.made == [ELECTION]


def test_moves_are_begun_named_and_not_taken_back() -> None:
    nodes = InMemory()
    admin(nodes).reassign({("log", 0): (2, 1)}, timeout_s=1)
    assert orjson.loads(nodes.nodes[REASSIGN])["partitions"] == [
        {"topic": "log", "partition": 0, "replicas": [2, 1]}
    ]
    assert admin(nodes).under_way(timeout_s=1) == {("log", 0)}
    with pytest.raises(DeployError, match="log-0: a move that has begun cannot be taken back"):
        admin(nodes).reassign({("log", 0): None}, timeout_s=1)


@pytest.mark.parametrize(
    ("version", "news"),
    [
        ((0, 8, 2, 2), "log"),
        ((0, 9, 0, 1), {"version": 1, "entity_type": "topics", "entity_name": "log"}),
        ((0, 10, 2, 2), {"version": 2, "entity_path": "topics/log"}),
        ((2, 8, 2), {"version": 2, "entity_path": "topics/log"}),
    ],
)
def test_a_change_is_told_as_the_version_reads_it(version: tuple[int, ...], news: object) -> None:
    nodes = InMemory(**{"/config/topics/log": b'{"version":1,"config":{"a":"1","b":"2"}}'})
    admin(nodes, *version).change_topic("log", {"a": None, "c": "3"}, timeout_s=1)
    assert admin(nodes).topic_settings("log", timeout_s=1) == {"b": "2", "c": "3"}
    assert orjson.loads(nodes.nodes[nodes.made[-1]]) == news


def test_brokers_of_before_1_1_take_no_settings_while_they_run() -> None:
    with pytest.raises(DeployError, match=r"before Kafka 1\.1"):
        admin(InMemory(), 1, 0, 2).change_cluster({"a": "1"}, timeout_s=1)
    nodes = InMemory()
    admin(nodes).change_cluster({"a": "1"}, timeout_s=1)
    assert admin(nodes).cluster_settings(timeout_s=1) == {"a": "1"}


def test_a_topic_is_deleted_by_name_and_known_by_the_change_that_made_it() -> None:
    nodes = InMemory(**{"/brokers/topics/log": b"{}"})
    assert admin(nodes).topic_id("log", timeout_s=1) == "0x4d"
    assert admin(nodes).topic_id("other", timeout_s=1) is None
    admin(nodes).delete_topic("log", timeout_s=1)
    admin(nodes).delete_topic("other", timeout_s=1)
    assert nodes.made == ["/admin/delete_topics/log"]
