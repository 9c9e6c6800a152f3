"""A specification as the simulator takes it."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.harness.run.simulated.clients import Clients, acks_of
from wrackline.harness.specification.build import topic_configs
from wrackline.harness.specification.spec import Spec
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.world.nodes import as_deployed
from wrackline.systems.wrackline.spec import WracklineSpec

_MOST_LOSSY = 9


def setup_of(spec: Spec, clients: Clients) -> Setup:
    """The cluster, and how many clients there are. Faults are aimed when their time has come (`faults`)."""
    workload, system = spec.workload, spec.system
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
        producers=len(clients["producers"]),
        consumers=len(clients["consumers"]),
        askers=len(clients["askers"]),
        acks=acks_of(workload),
        idempotent=workload.idempotence,
        kinds=(),
        max_lossy=_MOST_LOSSY,
        unclean=bool(system.config.get("unclean_leader_election", False)),
        invariants=False,
        liveness=False,
        broker=of_brokers,
        controller=of_controllers,
    )


def configs(spec: Spec) -> Mapping[str, str]:
    """The settings of the topic."""
    return topic_configs(spec.topic, spec.workload)
