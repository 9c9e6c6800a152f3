"""The writes of an administrator, and of the tools of the time, into ZooKeeper: topics, leaders, settings,
moves. The controller watches these nodes and carries out what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from wrackline.systems.base import DeployError, Place, TopicSpec
from wrackline.zookeeper.systems.kafka.state import IDS, parsed, topic_path
from wrackline.zookeeper.systems.servers.session import Asking, Session

ELECTION = "/admin/preferred_replica_election"
REASSIGN = "/admin/reassign_partitions"
DELETE = "/admin/delete_topics"
CHANGES = "/config/changes/config_change_"
_ALL_BROKERS = "<default>"
_TREE = (0, 9)
_BY_PATH = (0, 10, 1)
_DYNAMIC_BROKERS = (1, 1)


def spread(topic: TopicSpec, brokers: Sequence[int]) -> dict[str, list[int]]:
    """Replicas of each partition, round-robin: the first of partition 0 is on the first broker. Raises
    DeployError."""
    if topic.replication_factor > len(brokers):
        raise DeployError(
            f"topic {topic.name}: {topic.replication_factor} replicas need as many brokers, there are "
            f"{len(brokers)}"
        )
    return {
        str(number): [brokers[(number + at) % len(brokers)] for at in range(topic.replication_factor)]
        for number in range(topic.partitions)
    }


def said(**content: Any) -> bytes:
    return orjson.dumps({"version": 1, **content})


class ZooKeeperAdmin:
    """The `Admin` of a cluster that keeps its metadata in ZooKeeper. Every error is a DeployError. Safe to
    use from several threads."""

    def __init__(self, session: Session, version: Sequence[int], carriers: Sequence[int]) -> None:
        """``version``: of Kafka, as numbers. ``carriers``: the brokers that replicas are put on."""
        self._session = session
        self._version = tuple(version)
        self._carriers = tuple(carriers)

    # --- topics -------------------------------------------------------------------------------------------

    def create_topic(self, topic: TopicSpec, *, timeout_s: float) -> None:
        """One that is there already is no error."""

        def alive(asking: Asking) -> list[int]:
            registered = {int(one) for one in asking.children(IDS)}
            return [one for one in self._carriers if one in registered]

        def create(asking: Asking) -> None:
            expected = min(topic.replication_factor, len(self._carriers))  # more there will never be
            asking.wait(f"{expected} brokers to register", lambda: len(alive(asking)) >= expected)
            partitions = spread(topic, alive(asking))
            # Its settings first: the brokers read them when they are told of the topic.
            asking.put(f"/config/topics/{topic.name}", said(config=dict(topic.configs)))
            asking.create(topic_path(topic.name), said(partitions=partitions))

        self._session.ask(create, timeout_s)

    def delete_topic(self, topic: str, *, timeout_s: float) -> None:
        """One that is not there is no error."""

        def delete(asking: Asking) -> None:
            if asking.stat(topic_path(topic)) is not None:
                asking.create(f"{DELETE}/{topic}", b"")

        self._session.ask(delete, timeout_s)

    def topic_id(self, topic: str, *, timeout_s: float) -> str | None:
        """Topics have no ids here; the change of ZooKeeper that made this life of it is one."""

        def look(asking: Asking) -> str | None:
            stat = asking.stat(topic_path(topic))
            return None if stat is None else f"{stat.czxid:#x}"

        return self._session.ask(look, timeout_s)

    # --- leaders and replicas -----------------------------------------------------------------------------

    def elect_preferred(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Each partition's first replica shall lead. Returns when the controller has taken it up."""
        if not places:
            return
        expected = [{"topic": topic, "partition": number} for topic, number in places]

        def elect(asking: Asking) -> None:
            asking.wait(
                "an election that is under way", lambda: asking.create(ELECTION, said(partitions=expected))
            )
            asking.wait("the controller to hold the election", lambda: asking.stat(ELECTION) is None)

        self._session.ask(elect, timeout_s)

    def elect_uncleanly(self, places: Sequence[Place], *, timeout_s: float) -> None:
        """Refuses: of this era only unclean.leader.election.enable can ask for an unclean election."""
        del timeout_s
        names = ", ".join(f"{topic}-{number}" for topic, number in places)
        raise DeployError(f"no unclean election of {names}: this era has no such request")

    def reassign(self, targets: Mapping[Place, tuple[int, ...] | None], *, timeout_s: float) -> None:
        """Begins when the moves before are through: this era takes one request at a time, and none back."""
        if cancelled := [f"{topic}-{number}" for (topic, number), to in targets.items() if to is None]:
            raise DeployError(f"{', '.join(cancelled)}: a move that has begun cannot be taken back here")
        if not targets:
            return
        expected = [
            {"topic": topic, "partition": number, "replicas": list(to or ())}
            for (topic, number), to in sorted(targets.items())
        ]

        def move(asking: Asking) -> None:
            asking.wait(
                "the moves before to be complete",
                lambda: asking.create(REASSIGN, said(partitions=expected)),
            )

        self._session.ask(move, timeout_s)

    def under_way(self, *, timeout_s: float) -> frozenset[Place]:
        """Partitions whose replicas are changing."""

        def look(asking: Asking) -> frozenset[Place]:
            data = asking.get(REASSIGN)
            moves = parsed(REASSIGN, data)["partitions"] if data else ()
            return frozenset((one["topic"], int(one["partition"])) for one in moves)

        return self._session.ask(look, timeout_s)

    def unregister(self, node_id: int, *, timeout_s: float) -> None:
        """Does nothing: a broker that is stopped has left ZooKeeper with its session."""

    # --- settings -----------------------------------------------------------------------------------------

    def topic_settings(self, topic: str, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that the topic has been given; a setting that is not here has its default."""
        return self._settings("topics", topic, timeout_s)

    def change_topic(self, topic: str, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes settings of the topic; None: the default shall hold again."""
        self._change("topics", topic, values, timeout_s)

    def cluster_settings(self, *, timeout_s: float) -> dict[str, str]:
        """Returns the settings that all brokers have been given while they ran."""
        self._must_have_dynamic_brokers()
        return self._settings("brokers", _ALL_BROKERS, timeout_s)

    def change_cluster(self, values: Mapping[str, str | None], *, timeout_s: float) -> None:
        """Changes settings of all brokers; None: the default shall hold again."""
        self._must_have_dynamic_brokers()
        self._change("brokers", _ALL_BROKERS, values, timeout_s)

    def _must_have_dynamic_brokers(self) -> None:
        if self._version < _DYNAMIC_BROKERS:
            raise DeployError("brokers take no other settings while they run before Kafka 1.1")

    def _settings(self, kind: str, name: str, timeout_s: float) -> dict[str, str]:
        path = f"/config/{kind}/{name}"

        def look(asking: Asking) -> dict[str, str]:
            data = asking.get(path)
            return dict(parsed(path, data).get("config", {})) if data else {}

        return self._session.ask(look, timeout_s)

    def _change(self, kind: str, name: str, values: Mapping[str, str | None], timeout_s: float) -> None:
        path = f"/config/{kind}/{name}"
        if self._version >= _BY_PATH:
            news = orjson.dumps({"version": 2, "entity_path": f"{kind}/{name}"})
        elif self._version >= _TREE:
            news = said(entity_type=kind, entity_name=name)
        else:
            news = orjson.dumps(name)

        def change(asking: Asking) -> None:
            data = asking.get(path)
            config = dict(parsed(path, data).get("config", {})) if data else {}
            config |= {key: value for key, value in values.items() if value is not None}
            for key in (key for key, value in values.items() if value is None):
                config.pop(key, None)
            asking.put(path, said(config=config))
            asking.create(CHANGES, news, sequence=True)

        self._session.ask(change, timeout_s)
