"""The clients of a specification's workload in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from wrackline.harness.specification.spec import Spec
from wrackline.simulator.clients.consumer import Consumer, EndAsker
from wrackline.simulator.clients.objects import Dequeuer, Head, ReadOptions, RegisterReader
from wrackline.simulator.clients.producer import Lanes, Producer, ProducerOptions
from wrackline.simulator.run.recorded import MakeClient
from wrackline.workloads.log.spec import ClientsSpec, LogSpec
from wrackline.workloads.queue.spec import QueueSpec
from wrackline.workloads.register.spec import RegisterSpec

_FASTEST_MS = 1.0
_MOST_PRODUCERS = 60
_AT_A_TIME = 5
"""Sends that one producer of the simulator may have under way."""
_ASKERS = 4
"""Clients of the simulator, each with one question under way, for each that is asked for."""


Clients = dict[str, list[MakeClient]]
"""Field of a ``Setup`` that counts them -> those that there are, in the order of their numbers."""


def clients_of(spec: Spec) -> Clients:
    """Returns the clients of the workload."""
    return _CLIENTS[type(spec.workload)](spec.workload, spec.topic.partitions)


def acks_of(workload: ClientsSpec) -> int:
    return -1 if workload.acks == "all" else workload.acks


def _every_ms(workload: ClientsSpec, kind: str, clients: int) -> float:
    """Returns the mean pause of one of so many clients, so that all of them keep up the asked rate."""
    weights = workload.weights
    share = weights.get(kind, 0.0) / sum(weights.values())
    if not workload.rate:
        return _FASTEST_MS
    return max(_FASTEST_MS, 1000 * clients / (workload.rate * share)) if share else 1_000.0


def _sending(workload: ClientsSpec, kind: str, clients: int, partitions: int) -> ProducerOptions:
    """How so many clients send, one record at a time."""
    return ProducerOptions(
        acks_of(workload),
        workload.idempotence,
        _every_ms(workload, kind, clients),
        1,
        workload.record_bytes,
        float(workload.client.message_timeout_ms),
        (workload.client.request_timeout_ms,),
        lanes=Lanes(clients, [0] * partitions),
    )


def _of_log(workload: LogSpec, partitions: int) -> Clients:
    """A producer may have several sends under way: as many as are asked for, among all of them."""
    producers = min(_MOST_PRODUCERS, ceil(workload.senders * workload.width / _AT_A_TIME))
    producers = producers if workload.mix.send and workload.senders else 0
    consumers = workload.pollers if workload.mix.poll else 0
    askers = _ASKERS * workload.enders if workload.mix.end else 0
    sending = replace(
        _sending(workload, "send", producers, partitions),
        batch=workload.records_per_op,
        load=frozenset({"pipeline"}),
        lanes=None,
    )
    asking_ms = _every_ms(workload, "end", askers)
    return {
        "producers": [partial(Producer, options=sending)] * producers,
        "consumers": [Consumer] * consumers,
        "askers": [partial(EndAsker, every_ms=asking_ms)] * askers,
    }


def _of_register(workload: RegisterSpec, partitions: int) -> Clients:
    reading = _reading(workload, "read", workload.readers, partitions, by_marker=workload.read_by == "marker")
    return {
        "producers": _senders(workload, partitions),
        "askers": [],
        "consumers": [partial(RegisterReader, options=reading)]
        * (workload.readers if workload.mix.read else 0),
    }


def _of_queue(workload: QueueSpec, partitions: int) -> Clients:
    heads = [Head() for _ in range(partitions)]
    reading = _reading(workload, "dequeue", workload.dequeuers, partitions)
    return {
        "producers": _senders(workload, partitions),
        "askers": [],
        "consumers": [partial(Dequeuer, options=reading, heads=heads)]
        * (workload.dequeuers if workload.mix.dequeue else 0),
    }


def _senders(workload: RegisterSpec | QueueSpec, partitions: int) -> list[MakeClient]:
    senders = workload.senders if workload.mix.send else 0
    return [partial(Producer, options=_sending(workload, "send", senders, partitions))] * senders


def _reading(
    workload: ClientsSpec, kind: str, clients: int, partitions: int, *, by_marker: bool = True
) -> ReadOptions:
    client = workload.client
    marking = _sending(workload, kind, clients, partitions)
    if not by_marker:
        marking = replace(marking, idempotent=False)
    return ReadOptions(marking, client.end_timeout_ms, client.poll_ms, by_marker)


_CLIENTS: Mapping[type[ClientsSpec], Callable[[Any, int], Clients]] = {
    LogSpec: _of_log,
    RegisterSpec: _of_register,
    QueueSpec: _of_queue,
}
