"""The configuration of a Kafka node.

Where Kafka's own defaults would make a run wait for what no test is about (30 s for a dead connection, 50
partitions of an internal topic), smaller values stand here; a specification's own win over them. What
decides over losing data (flushing, unclean election, acknowledgements) is as Kafka has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wrackline.fleets.folders import data_dirs, folders_of
from wrackline.kafka_client.model import Setting
from wrackline.systems.base import Node
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.jvm.property_file import property_text, text
from wrackline.systems.kafka.releases import parsed
from wrackline.systems.kafka.security.settings import ClusterSecurity

CONTROLLER_LISTENER = "CONTROLLER"
RACK = "broker.rack"
BY_HARNESS = "the harness gives it to each node; leave it out"
OURS: Mapping[str, str] = dict.fromkeys(
    (
        "process.roles",
        "node.id",
        "broker.id",
        "listeners",
        "advertised.listeners",
        "controller.listener.names",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "security.inter.broker.protocol",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
    ),
    BY_HARNESS,
) | {RACK: "give it as system.racks, host by host"}
"""Settings that every node has from us already."""
DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    # Else leadership moves by itself in the middle of a schedule.
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.backoff.ms": "200",
    # 30 s and 10 s by default: so long a fetcher hangs on a host that has lost its power.
    "replica.socket.timeout.ms": "2000",
    "socket.connection.setup.timeout.ms": "1000",
    "socket.connection.setup.timeout.max.ms": "2000",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.quorum.request.timeout.ms": "1000",
    # 50 by default: with three replicas each, 150 logs to recover after every power cut.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "num.io.threads": "4",
    "num.network.threads": "2",
    # 128 MiB of every node's heap by default.
    "log.cleaner.dedupe.buffer.size": "4194304",
}
_SHARE_GROUPS = (4, 0, 0)
"""The first version with share groups, whose state is an internal topic."""
OF_SHARE_GROUPS: Mapping[str, str] = {
    # 50 by default, as of the other internal topics.
    "share.coordinator.state.topic.num.partitions": "4",
    # What a group may ask for at least: 15 s, 5 s and 45 s by default. A group that asks for nothing keeps
    # Kafka's own values.
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "3000",
}


AUTO_JOIN = "controller.quorum.auto.join.enable"
"""A controller's own setting, which a broker refuses (KIP-1186)."""


def properties(
    version: str,
    nodes: Nodes,
    node: Node,
    config: Mapping[str, str | int | float | bool],
    *,
    dynamic: bool = False,
    rack: str = "",
    security: ClusterSecurity = ClusterSecurity(),  # noqa: B008 - it is a value
) -> dict[str, str]:
    """All settings of one node. ``dynamic``: the quorum can change, and is found by asking. ``rack``: where
    it stands; empty: in none. Raises ValueError for what is no version."""
    roles = [role for role in ("broker", "controller") if role in node.roles]
    listener, listeners = security.listener, []
    if node.is_broker:
        listeners.append(f"{listener}://{node.host.address}:{node.port}")
    if node.is_controller:
        listeners.append(f"{CONTROLLER_LISTENER}://{node.host.address}:{node.controller_port or node.port}")
    own = {
        "process.roles": ",".join(roles),
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": f"{listener}:{security.protocol},{CONTROLLER_LISTENER}:PLAINTEXT",
        **_quorum(nodes, dynamic=dynamic),
        "log.dirs": ",".join(data_dirs(node.host)),
    }
    if node.is_broker:
        own["inter.broker.listener.name"] = listener
        own |= {RACK: rack} if rack else {}
    own |= security.properties(folders_of(node.host).configs, broker=node.is_broker)
    if not node.is_controller:
        config = {key: value for key, value in config.items() if key != AUTO_JOIN}
    replicas, min_isr = min(3, len(nodes.brokers)), min(2, len(nodes.brokers))
    internal = {
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(min_isr),
    }
    if parsed(version) >= _SHARE_GROUPS:
        internal |= {
            "share.coordinator.state.topic.replication.factor": str(replicas),
            "share.coordinator.state.topic.min.isr": str(min_isr),
            **OF_SHARE_GROUPS,
        }
    return {**own, **internal, **DEFAULTS, **{key: property_text(value) for key, value in config.items()}}


def _quorum(nodes: Nodes, *, dynamic: bool) -> dict[str, str]:
    if dynamic:
        return {"controller.quorum.bootstrap.servers": nodes.quorum_bootstrap()}
    return {"controller.quorum.voters": ",".join(nodes.voter_list())}


def properties_of(settings: Sequence[Setting]) -> str:
    """Returns the properties of a node: first the settings that it was given, then the others."""
    given = {one.name: one.value or "" for one in settings if one.given}
    others = {one.name: one.value or "" for one in settings if not one.given}
    return f"# given\n{text(given)}\n# by default\n{text(others)}"
