"""A client that asks a broker of its choice where a log ends, whoever leads: no client library does that.

It is the harness's own small client. It speaks ListOffsets to the named broker, with the leader epoch that
another broker's metadata has (KIP-320), as a client does whose metadata are the newest there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from wrackline.fleets.base import Fleet
from wrackline.history.model import ASKER, Event, Type
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError
from wrackline.nemesis.guided.steps import AskEnd, GuidedError
from wrackline.systems.base import Reachable, System

ANSWERED_S = 30.0
"""A broker that is paused answers when it goes on."""


def ask_end(fleet: Fleet, system: System, step: AskEnd, record: Callable[[Event], object]) -> None:
    """Returns with the answer, or when there is none. Raises GuidedError when the question cannot be put."""
    try:
        with _connected(fleet, system, step.told_by, 5.0) as teller:
            epoch = _leader_epoch(teller, step)
        asked = _connected(fleet, system, step.host, ANSWERED_S)
    except ProtocolError as wrong:
        raise GuidedError(f"{step.host} could not be asked where {step.topic} ends: {wrong}") from wrong
    of_the_end = partial(Event, ASKER, f="end", topic=step.topic, partition=step.partition)
    with asked:
        record(of_the_end(type=Type.INVOKE))
        begin_ns = time.monotonic_ns()
        try:
            end = asked.list_offset(step.topic, step.partition, leader_epoch=epoch)
        except ProtocolError as refused:
            latency_ns = time.monotonic_ns() - begin_ns
            record(of_the_end(type=Type.FAIL, latency_ns=latency_ns, error=str(refused)))
        else:
            latency_ns = time.monotonic_ns() - begin_ns
            record(of_the_end(type=Type.OK, latency_ns=latency_ns, high_watermark=end))


def _connected(fleet: Fleet, system: System, name: str, timeout_s: float) -> Connection:
    [node] = [one for one in system.nodes if one.host.name == name]
    if isinstance(system, Reachable):
        return system.connect(node, timeout_s=timeout_s)
    with fleet.entered():
        return Connection(node.host.address, node.port, timeout_s=timeout_s)


def _leader_epoch(connection: Connection, step: AskEnd) -> int:
    """-1: the system has no such thing. Raises ProtocolError."""
    for topic in connection.metadata([step.topic]).topics:
        for result in topic.partitions:
            if result.partition == step.partition:
                return result.leader_epoch
    raise ProtocolError(f"{connection.address} knows no {step.topic}-{step.partition}")
