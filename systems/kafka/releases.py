"""Which Maven artifacts make a Kafka server of a version run, by version line.

A server needs more than its own POM brings (4.0 logs nothing by itself, for example) and one thing less: the
POM of 4.4.0 names an artifact that was never published, and that the server does not need.
"""

from __future__ import annotations

import re

from wrackline.maven import Artifact

NEWEST = "4.4.0"
OLDEST = (3, 7)
"""Older ones do not speak the protocol versions that the harness asks for (wrackline.systems.protocol)."""
_GROUP = "org.apache.kafka"
_TOOLS = (_GROUP, "kafka-tools-api")
_LOG4J = "org.apache.logging.log4j"
_LOG4J_VERSION = "2.25.5"
_RELOAD4J = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")
_SLF4J = Artifact(_LOG4J, "log4j-slf4j-impl", _LOG4J_VERSION)
_LOG4J_WHOLE = (
    _SLF4J,
    Artifact(_LOG4J, "log4j-api", _LOG4J_VERSION),
    Artifact(_LOG4J, "log4j-core", _LOG4J_VERSION),
)


def parsed(version: str) -> tuple[int, int, int]:
    """``4.4.0`` as numbers. Raises ValueError, in one line, for what is no version that can run here."""
    found = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        raise ValueError(f"{version!r} is no version of Apache Kafka: give it in full, {NEWEST} for example")
    major, minor, patch = map(int, found.groups())
    if (major, minor) < OLDEST:
        raise ValueError(
            f"Kafka {version} is older than {OLDEST[0]}.{OLDEST[1]}.0, the first whose protocol the harness "
            "speaks"
        )
    return major, minor, patch


def artifacts(version: str) -> tuple[Artifact, ...]:
    """What Maven must resolve. Raises ValueError."""
    line = parsed(version)
    if line >= (4, 1, 0):
        return Artifact(_GROUP, "kafka_2.13", version, without=(_TOOLS,)), _SLF4J
    if line >= (4, 0, 0):
        return Artifact(_GROUP, "kafka_2.13", version, without=(_TOOLS,)), *_LOG4J_WHOLE
    return Artifact(_GROUP, "kafka_2.13", version), _RELOAD4J
