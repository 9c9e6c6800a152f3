"""The configuration of a Kafka node: properties and logging.

Where Kafka's own defaults would make a run wait for what no test is about (30 s for a dead connection, 50
partitions of an internal topic), smaller values stand here; a specification's own win over them. What
decides over losing data (flushing, unclean election, acknowledgements) is as Kafka has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.fleets.folders import data_dir
from wrackline.systems.base import Node
from wrackline.systems.common.nodes import Nodes
from wrackline.systems.common.questions import Setting
from wrackline.systems.kafka.releases import parsed

LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "CONTROLLER"
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
)
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


def properties(
    version: str, nodes: Nodes, node: Node, config: Mapping[str, str | int | float | bool]
) -> dict[str, str]:
    """All settings of one node. Raises ValueError for what is no version."""
    roles = [role for role in ("broker", "controller") if role in node.roles]
    listeners = []
    if node.is_broker:
        listeners.append(f"{LISTENER}://{node.host.address}:{node.port}")
    if node.is_controller:
        listeners.append(f"{CONTROLLER_LISTENER}://{node.host.address}:{node.controller_port or node.port}")
    own = {
        "process.roles": ",".join(roles),
        "node.id": str(node.node_id),
        "listeners": ",".join(listeners),
        "controller.listener.names": CONTROLLER_LISTENER,
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "controller.quorum.voters": ",".join(nodes.voter_list()),
        "log.dirs": data_dir(node.host),
    }
    if node.is_broker:
        own["inter.broker.listener.name"] = LISTENER
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
        }
    return {**own, **internal, **DEFAULTS, **{key: property_text(value) for key, value in config.items()}}


def property_text(value: str | int | float | bool) -> str:
    """As a properties file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(settings: Mapping[str, str]) -> str:
    """As a properties file has it: a backslash and what begins a new line are written so that they are read
    as they are."""
    escaped = ((key, value.replace("\\", "\\\\").replace("\n", "\\n")) for key, value in settings.items())
    return "".join(f"{key}={value}\n" for key, value in escaped)


def properties_of(settings: Sequence[Setting]) -> str:
    """What a node says of its settings: first those that it was given, then the others."""
    given = {one.name: one.value or "" for one in settings if one.given}
    others = {one.name: one.value or "" for one in settings if not one.given}
    return f"# given\n{text(given)}\n# by default\n{text(others)}"


LOG4J2_XML = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="stdout"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers><Root level="info"><AppenderRef ref="stdout"/></Root></Loggers>
</Configuration>
"""
"""Of 4.0 and later. Without ``shutdownHook`` the last lines of a shutdown would be lost."""
LOG4J_PROPERTIES = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
"""Of versions before 4.0."""
LOGGING = {"log4j2.xml": LOG4J2_XML, "log4j.properties": LOG4J_PROPERTIES}


def logging_options(folder: Path | str) -> list[str]:
    """Options of the JVM: each generation of the library knows one of them and passes the other over."""
    return [
        f"-Dlog4j2.configurationFile={folder}/log4j2.xml",
        f"-Dlog4j.configuration=file:{folder}/log4j.properties",
    ]


def write_logging(folder: Path) -> None:
    for name, content in LOGGING.items():
        (folder / name).write_text(content)
