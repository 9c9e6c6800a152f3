"""Properties of librdkafka that a specification may set: a YAML file is not code.

librdkafka can be told to load libraries, run a shell command, read key files and fetch URLs, all of it as the
user who runs the harness, who is root. And some properties are what the harness itself rests on: where
clients connect to, what an acknowledgement means. Only what is known to do neither can be set, so that a
property of a version to come is refused until somebody has looked at it. A test holds the list against the
properties that the installed library has.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.plugins.nearest import nearest

_TIMES_AND_SIZES = """
    batch.num.messages batch.size broker.address.ttl compression.level
    connections.max.idle.ms fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes
    fetch.queue.backoff.ms max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes
    message.copy.max.bytes message.max.bytes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queued.max.messages.kbytes queued.min.messages receive.message.max.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes sticky.partitioning.linger.ms
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""
_SAYS_AND_ASKS = """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms broker.address.family
    broker.version.fallback client.id debug enable.gapless.guarantee enable.metrics.push
    enable.random.seed log.connection.close log.thread.name log_level statistics.interval.ms
"""
ALLOWED = frozenset((_TIMES_AND_SIZES + _SAYS_AND_ASKS).split())

_REACHING: tuple[str, ...] = ("plugin.", "interceptors", "offset.store.")
_SECURITY: tuple[str, ...] = (
    "ssl",
    "sasl.",
    "https.",
    "security.",
    "enable.ssl.",
    "enable.sasl.",
    "oauthbearer",
)
_CALLBACKS = "_cb"
_GROUPS = (
    "group.",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "coordinator.",
    "partition.assignment.strategy",
    "max.poll.",
    "share.",
    "transaction",
    "auto.commit.",
)
_KEYS: Mapping[str, str] = {
    "acks": "workload.acks",
    "request.required.acks": "workload.acks",
    "enable.idempotence": "workload.idempotence",
    "message.timeout.ms": "workload.client.message_timeout_ms",
    "delivery.timeout.ms": "workload.client.message_timeout_ms",
    "request.timeout.ms": "workload.client.request_timeout_ms",
    "socket.timeout.ms": "workload.client.socket_timeout_ms",
    "linger.ms": "workload.client.linger_ms",
    "queue.buffering.max.ms": "workload.client.linger_ms",
    "client.rack": "workload.client.rack",
    "compression.codec": "workload.client.compression",
    "compression.type": "workload.client.compression",
    "retries": "workload.client.retries",
    "message.send.max.retries": "workload.client.retries",
    "fetch.wait.max.ms": "workload.client.fetch_wait_max_ms",
}
"""What has a key of its own, from which the contract and the meaning of an outcome are taken."""
_OURS = """
    bootstrap.servers metadata.broker.list client.dns.lookup allow.auto.create.topics enable.auto.commit
    enable.auto.offset.store auto.offset.reset isolation.level check.crcs enable.partition.eof
    delivery.report.only.error produce.offset.report topic.blacklist partitioner log.queue enabled_events
    internal.termination.signal queuing.strategy
"""
_RESTS_ON = frozenset(_OURS.split())
"""The workloads rest on these: where they connect, what is reported to them, and in what order."""
_NO_USE = frozenset(
    (
        "builtin.features",
        "consume.callback.max.messages",
        "default_topic_conf",
        "msg_order_cmp",
        "opaque",
        "reconnect.backoff.jitter.ms",
        "socket.blocking.max.ms",
    )
)


def refusal(name: str) -> str | None:
    """Returns why a specification may not set this property, and what would do; None when it may."""
    if name in ALLOWED:
        return None
    if name in _KEYS:
        return f"give it as {_KEYS[name]}, which the verdict knows of"
    if name in _RESTS_ON:
        return "the harness gives it itself, its verdicts rest on it; leave it out"
    if name.startswith(_REACHING):
        return "it makes librdkafka load libraries or open files of this machine; leave it out"
    if name.startswith(_SECURITY):
        return (
            "TLS and SASL settings make librdkafka read files of this machine, run commands or fetch URLs, "
            "and clients "
            "speak plain text with the run's own hosts; leave it out"
        )
    if name.endswith(_CALLBACKS):
        return "it is a function, not a value; leave it out"
    if name.startswith(_GROUPS):
        return (
            "most clients have no consumer group and no transactions, and workloads that do have keys of "
            "their own for them (docs/workloads.md); leave it out"
        )
    if name in _NO_USE:
        return "it has no effect on these clients; leave it out"
    hint = nearest(name, ALLOWED) or ";"
    return f"it is not among the properties known to do no harm here{hint} the docs' reference lists them"
