"""The translation of a specification's settings into the words of kafka-clients. Knows no JVM.

A request of a Java client has one time-out, ``request.timeout.ms``: it is how long the client waits for the
response, and in a produce request also how long the broker may wait for the other replicas. Here it is
``socket_timeout_ms``, after which librdkafka too closes the connection and asks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from pathlib import Path

from wrackline.workloads.clients.base import GroupSettings, RefusedSetting, Settings

CALL_MS = 5_000
"""How long one call of a transactional producer blocks; who called may call again."""
BUFFER_BYTES = 8 * 2**20
"""32 MiB by default, for each producer of a run."""
NO_GROUP = "wrackline"
"""For consumers that commit nothing: a consumer without any group cannot be asked for its offsets."""
NEVER_LATE_MS = 600_000
"""``max.poll.interval.ms``: members poll all the time, or are closed."""
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
LEAVES = "internal.leave.group.on.close"
"""Kafka Streams' own setting; versions with CloseOptions (KIP-1092) have that instead."""
_COMMON = {
    "socket.connection.setup.timeout.ms": "2000",
    "socket.connection.setup.timeout.max.ms": "2000",
    "reconnect.backoff.ms": "50",
    "reconnect.backoff.max.ms": "500",
    "retry.backoff.ms": "100",
    "retry.backoff.max.ms": "500",
    "metadata.max.age.ms": "5000",
    "enable.metrics.push": "false",
}


_LOGIN = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}


def _text(value: bool) -> str:
    return str(value).lower()


def security(properties: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    """Returns the settings of librdkafka by which clients are let in, in Java's words. PEM files are taken as
    they are (KIP-651). Raises RefusedSetting for a setting that has no counterpart here, and for a key that
    Java cannot read."""
    remaining = {name: str(value) for name, value in properties.items()}
    made = {}
    if protocol := remaining.pop("security.protocol", ""):
        made["security.protocol"] = protocol
    if mechanism := remaining.pop("sasl.mechanism", ""):
        name, password = (_quoted(remaining.pop(f"sasl.{one}", "")) for one in ("username", "password"))
        made["sasl.mechanism"] = mechanism
        made["sasl.jaas.config"] = (
            f"org.apache.kafka.common.security.{_LOGIN[mechanism]} required username={name} "
            f"password={password};"
        )
    if protocol.endswith("SSL"):
        made |= _tls(remaining)
    if remaining:
        raise RefusedSetting(f"{', '.join(remaining)}: these are properties of librdkafka")
    return made


def _tls(remaining: dict[str, str]) -> dict[str, str]:
    """The settings of TLS, which are taken out of ``remaining``."""
    verify = remaining.pop("ssl.endpoint.identification.algorithm", "https")
    made = {"ssl.endpoint.identification.algorithm": "" if verify == "none" else verify}
    if ca := remaining.pop("ssl.ca.location", ""):
        made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    if certificate := remaining.pop("ssl.certificate.location", ""):
        key = Path(remaining.pop("ssl.key.location")).read_text()
        if "BEGIN PRIVATE KEY" not in key and "BEGIN ENCRYPTED PRIVATE KEY" not in key:
            raise RefusedSetting(
                "ssl.key_location: Java reads keys in PKCS #8 alone; `openssl pkcs8 -topk8` makes one of it"
            )
        made |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": Path(certificate).read_text(),
            "ssl.keystore.key": key,
        }
    if password := remaining.pop("ssl.key.password", ""):
        made["ssl.key.password"] = password
    return made


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def producer(bootstrap: str, settings: Settings) -> dict[str, str]:
    """Raises RefusedSetting."""
    client = settings.client
    linger_ms = ceil(client.linger_ms)
    request_ms = min(client.socket_timeout_ms, client.message_timeout_ms - linger_ms)
    if request_ms < 1:
        raise RefusedSetting(
            f"linger_ms {client.linger_ms:g} leaves no time of message_timeout_ms {client.message_timeout_ms}"
        )
    given = {
        **_COMMON,
        **security(client.librdkafka),
        "bootstrap.servers": bootstrap,
        "acks": str(settings.acks),
        "enable.idempotence": _text(settings.idempotence),
        "delivery.timeout.ms": str(client.message_timeout_ms),
        "request.timeout.ms": str(request_ms),
        "linger.ms": str(linger_ms),
        "compression.type": client.compression,
        "max.block.ms": str(client.message_timeout_ms),
        "buffer.memory": str(BUFFER_BYTES),
    }
    if not settings.idempotence:  # idempotent producers always retry
        given["retries"] = str(client.retries)
    return given


def transactional(
    bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int
) -> dict[str, str]:
    """Raises RefusedSetting."""
    return {
        **producer(bootstrap, settings),
        "transactional.id": transactional_id,
        "transaction.timeout.ms": str(timeout_ms),
        "max.block.ms": str(max(CALL_MS, settings.client.message_timeout_ms)),
    }


def consumer(
    bootstrap: str, settings: Settings, *, isolation: str | None, group: str, reset: str = ""
) -> dict[str, str]:
    """Raises RefusedSetting."""
    client = settings.client
    return {
        **_COMMON,
        **security(client.librdkafka),
        "bootstrap.servers": bootstrap,
        "client.rack": client.rack,
        "group.id": group or NO_GROUP,
        "enable.auto.commit": "false",
        "auto.offset.reset": reset or "none",
        "allow.auto.create.topics": "false",
        "check.crcs": "true",
        "isolation.level": isolation or settings.isolation or "read_uncommitted",
        "fetch.max.wait.ms": str(client.fetch_wait_max_ms),
        "max.poll.records": str(client.poll_records),
        "request.timeout.ms": str(client.socket_timeout_ms),
        "default.api.timeout.ms": str(max(client.socket_timeout_ms, client.end_timeout_ms)),
    }


def admin(bootstrap: str, settings: Settings) -> dict[str, str]:
    """Raises RefusedSetting."""
    return {
        **_COMMON,
        **security(settings.client.librdkafka),
        "bootstrap.servers": bootstrap,
        "request.timeout.ms": "5000",
    }


def share_member(bootstrap: str, settings: Settings, group: str, *, explicit: bool) -> dict[str, str]:
    """A share group's position, isolation and locks are its own settings, which no member may have. Raises
    RefusedSetting."""
    client = settings.client
    return {
        **_COMMON,
        **security(client.librdkafka),
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "share.acknowledgement.mode": "explicit" if explicit else "implicit",
        "allow.auto.create.topics": "false",
        "check.crcs": "true",
        "fetch.max.wait.ms": str(client.fetch_wait_max_ms),
        "max.poll.records": str(client.poll_records),
        "max.poll.interval.ms": str(NEVER_LATE_MS),
        "request.timeout.ms": str(client.socket_timeout_ms),
        "default.api.timeout.ms": str(max(client.socket_timeout_ms, client.end_timeout_ms)),
    }


def member(
    bootstrap: str, settings: Settings, group: GroupSettings, *, close_options: bool
) -> dict[str, str]:
    """``close_options``: whether the version can close a member without leaving its group. Raises
    RefusedSetting."""
    given = {
        **consumer(bootstrap, settings, isolation=None, group=group.group, reset=settings.reset),
        "max.poll.interval.ms": str(max(NEVER_LATE_MS, group.session_timeout_ms)),
        "group.protocol": group.protocol,
    }
    if group.instance:
        given["group.instance.id"] = group.instance
    if group.protocol == "consumer":  # the broker has the time-outs
        if not close_options:
            raise RefusedSetting(
                "protocol consumer needs kafka-clients 4.1.0 or newer, whose members can end without leaving"
            )
        given["group.remote.assignor"] = group.assignor
        return given
    given["partition.assignment.strategy"] = ASSIGNORS[group.assignor]
    given["session.timeout.ms"] = str(group.session_timeout_ms)
    given["heartbeat.interval.ms"] = str(group.heartbeat_ms)
    if not close_options:
        given[LEAVES] = "false"
    return given
