"""The configuration of a broker that keeps its metadata in ZooKeeper, by version.

As in `wrackline.systems.kafka.properties`: smaller values where a run would wait for what no test is about;
what decides over losing data is as the version has it. Up to 0.10.2 that means unclean election, which is on.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.fleets.folders import data_dir
from wrackline.systems.base import Node
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.jvm.property_file import property_text
from wrackline.systems.kafka.properties import BY_HARNESS
from wrackline.systems.kafka.releases import parsed

OURS: Mapping[str, str] = dict.fromkeys(
    (
        "broker.id",
        "port",
        "host.name",
        "listeners",
        "advertised.host.name",
        "advertised.port",
        "advertised.listeners",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "security.inter.broker.protocol",
        "zookeeper.connect",
        "log.dir",
        "log.dirs",
    ),
    BY_HARNESS,
)
DEFAULTS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    # Else leadership moves by itself in the middle of a schedule.
    "auto.leader.rebalance.enable": "false",
    "zookeeper.session.timeout.ms": "2000",
    # A broker that is started while ZooKeeper is away waits for it, and does not end.
    "zookeeper.connection.timeout.ms": "120000",
    "replica.lag.time.max.ms": "3000",
    # 30 s by default: so long a fetcher, or the controller, hangs on a host that has lost its power.
    "replica.socket.timeout.ms": "2000",
    "controller.socket.timeout.ms": "5000",
    # 50 by default: with three replicas each, 150 logs to recover after every power cut.
    "offsets.topic.num.partitions": "4",
    "num.io.threads": "4",
    "num.network.threads": "2",
    # 128 MiB of every node's heap by default.
    "log.cleaner.dedupe.buffer.size": "4194304",
    # Off by default before 1.0: a topic that is deleted would stay.
    "delete.topic.enable": "true",
}
_SINCE_0_9 = {"replica.fetch.backoff.ms": "200"}
_SINCE_0_11 = {"transaction.state.log.num.partitions": "4", "group.initial.rebalance.delay.ms": "0"}


def broker_properties(
    version: str, nodes: Nodes, node: Node, config: Mapping[str, str | int | float | bool]
) -> dict[str, str]:
    """All settings of one broker. Raises ValueError for what is no version."""
    line, address = parsed(version), node.host.address
    own = {"broker.id": str(node.node_id)}
    if line >= (0, 9):
        own["listeners"] = f"PLAINTEXT://{address}:{node.port}"
    else:
        own |= {"port": str(node.port), "host.name": address, "advertised.host.name": address}
    own |= {
        "zookeeper.connect": nodes.zookeeper_connect(),
        "log.dirs": data_dir(node.host),
    }
    replicas, min_isr = min(3, len(nodes.brokers)), min(2, len(nodes.brokers))
    settings = {"offsets.topic.replication.factor": str(replicas), **DEFAULTS}
    if line >= (0, 9):
        settings |= _SINCE_0_9
    if line >= (0, 11):
        settings |= _SINCE_0_11
        settings["transaction.state.log.replication.factor"] = str(replicas)
        settings["transaction.state.log.min.isr"] = str(min_isr)
    return {**own, **settings, **{key: property_text(value) for key, value in config.items()}}
