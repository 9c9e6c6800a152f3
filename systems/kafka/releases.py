"""Maven artifacts that make a Kafka server of a version run, by version line.

A server needs more than its own POM brings (4.0 logs nothing by itself, for example) and one thing less: the
POM of 4.4.0 names an artifact that was never published, and that the server does not need. Servers that are
older than Java 17 need a little more of what Java had then.
"""

from __future__ import annotations

import re

from wrackline.maven import Artifact
from wrackline.systems.jvm.logging import OLD_LOG4J, RELOAD4J

NEWEST = "4.4.0"
OLDEST = (0, 8, 2)
"""Older ones write other paths into ZooKeeper, and take what nobody publishes any more."""
LAST_ON_ZOOKEEPER = (2, 8)
"""Up to this line versions keep their metadata in ZooKeeper."""
FIRST_ON_KRAFT = (3, 7)
"""From this line on they are deployed with controllers of their own (KRaft). Those between could have
either, and do not speak the versions of the protocol that the harness asks KRaft for
(wrackline.kafka_client.connection)."""
_GROUP = "org.apache.kafka"
_TOOLS = (_GROUP, "kafka-tools-api")
_LOG4J = "org.apache.logging.log4j"
_LOG4J_VERSION = "2.25.5"
_SLF4J = Artifact(_LOG4J, "log4j-slf4j-impl", _LOG4J_VERSION)
_LOG4J_WHOLE = (
    _SLF4J,
    Artifact(_LOG4J, "log4j-api", _LOG4J_VERSION),
    Artifact(_LOG4J, "log4j-core", _LOG4J_VERSION),
)
_ZOOKEEPER_CLIENT = Artifact("org.apache.zookeeper", "zookeeper", "3.4.10", without=OLD_LOG4J)
"""The client in 3.4.13 and 3.4.14, which 2.0 to 2.3 ask for, does not find any server on Java 17."""
_JAXB = Artifact("javax.xml.bind", "jaxb-api", "2.3.1")
"""A part of Java until Java 11."""


def parsed(version: str) -> tuple[int, ...]:
    """``4.4.0`` as numbers; ``0.11.0.3`` has four. Raises ValueError, in one line, for what is no version
    that can run here."""
    match = re.fullmatch(r"0(\.\d+){3}|[1-9]\d*(\.\d+){2}", version)
    if match is None:
        raise ValueError(f"{version!r} is no version of Apache Kafka: give it in full, {NEWEST} for example")
    numbers = tuple(map(int, version.split(".")))
    if numbers < OLDEST:
        raise ValueError(f"Kafka {version} is older than 0.8.2.0, the first that runs here")
    if LAST_ON_ZOOKEEPER < numbers[:2] < FIRST_ON_KRAFT:
        raise ValueError(
            f"Kafka {version} is between those that run here: up to 2.8 with ZooKeeper, from 3.7.0 on without"
        )
    return numbers


def on_zookeeper(version: str) -> bool:
    """Tells whether the version keeps its metadata in ZooKeeper. Raises ValueError."""
    return parsed(version)[:2] <= LAST_ON_ZOOKEEPER


def artifacts(version: str) -> tuple[Artifact, ...]:
    """Returns the artifacts that Maven must resolve. Raises ValueError."""
    line = parsed(version)
    if line[:2] <= LAST_ON_ZOOKEEPER:
        return _of_the_zookeeper_era(version, line)
    if line >= (4, 1, 0):
        return Artifact(_GROUP, "kafka_2.13", version, without=(_TOOLS,)), _SLF4J
    if line >= (4, 0, 0):
        return Artifact(_GROUP, "kafka_2.13", version, without=(_TOOLS,)), *_LOG4J_WHOLE
    return Artifact(_GROUP, "kafka_2.13", version), RELOAD4J


def _of_the_zookeeper_era(version: str, line: tuple[int, ...]) -> tuple[Artifact, ...]:
    scala = "2.13" if line >= (2, 4) else "2.12" if line >= (0, 10, 2) else "2.11"
    server = Artifact(_GROUP, f"kafka_{scala}", version)
    if line >= (2, 4):
        return server, RELOAD4J
    if line >= (1, 0):
        return server, RELOAD4J, _ZOOKEEPER_CLIENT
    return (server, _JAXB) if line >= (0, 9) else (server,)
