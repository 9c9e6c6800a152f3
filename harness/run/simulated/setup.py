"""A specification as the simulator takes it."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from wrackline.harness.specification.build import topic_configs
from wrackline.harness.specification.spec import Spec
from wrackline.simulator.clients.producer import ProducerOptions
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.world.nodes import as_deployed
from wrackline.systems.wrackline.spec import WracklineSpec
from wrackline.workloads.log.spec import LogSpec

_MOST_LOSSY = 9
_FASTEST_MS = 1.0
_MOST_PRODUCERS = 60
_AT_A_TIME = 5
"""Sends that one producer of the simulator may have under way."""
_ASKERS = 4
"""Clients of the simulator, each with one question under way, for each that is asked for."""


def setup_of(spec: Spec) -> Setup:
    """The cluster and the clients. Faults are aimed when their time has come (`faults`)."""
    workload, system = _log(spec), spec.system
    assert isinstance(system, WracklineSpec)
    of_brokers, of_controllers = as_deployed(system.config)
    return Setup(
        seed=spec.seed,
        topic=spec.topic.name,
        seconds=workload.duration_s,
        brokers=spec.fleet.brokers,
        controllers=spec.fleet.controllers,
        combined=spec.fleet.combined,
        profile=system.profile,
        defects=system.defects,
        partitions=spec.topic.partitions,
        replication_factor=spec.topic.replication_factor,
        min_isr=spec.topic.min_insync_replicas,
        producers=_producers(workload),
        consumers=workload.pollers if workload.mix.poll else 0,
        askers=_ASKERS * workload.enders if workload.mix.end else 0,
        acks=-1 if workload.acks == "all" else workload.acks,
        idempotent=workload.idempotence,
        ask_every_ms=_every_ms(workload, "end", _ASKERS * workload.enders),
        kinds=(),
        max_lossy=_MOST_LOSSY,
        unclean=bool(system.config.get("unclean_leader_election", False)),
        invariants=False,
        liveness=False,
        broker=of_brokers,
        controller=of_controllers,
    )


def producing(spec: Spec) -> ProducerOptions:
    """What producers do."""
    workload = _log(spec)
    return ProducerOptions(
        -1 if workload.acks == "all" else workload.acks,
        workload.idempotence,
        _every_ms(workload, "send", _producers(workload)),
        workload.records_per_op,
        workload.record_bytes,
        float(workload.client.message_timeout_ms),
        (workload.client.request_timeout_ms,),
        load=frozenset({"pipeline"}),
    )


def _producers(workload: LogSpec) -> int:
    """Returns how many there are: they may have as much under way as is asked for."""
    if not workload.mix.send or not workload.senders:
        return 0
    return min(_MOST_PRODUCERS, ceil(workload.senders * workload.width / _AT_A_TIME))


def configs(spec: Spec) -> Mapping[str, str]:
    """The settings of the topic."""
    return topic_configs(spec.topic, spec.workload)


def _log(spec: Spec) -> LogSpec:
    assert isinstance(spec.workload, LogSpec)  # virtual time has no other
    return spec.workload


def _every_ms(workload: LogSpec, kind: str, clients: int) -> float:
    """Returns the mean pause of one of so many clients, so that all of them keep up the asked rate."""
    weights = workload.weights
    share = weights.get(kind, 0.0) / sum(weights.values())
    if not workload.rate:
        return _FASTEST_MS
    return max(_FASTEST_MS, 1000 * clients / (workload.rate * share)) if share else 1_000.0
