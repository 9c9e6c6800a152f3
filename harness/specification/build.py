"""The parts that a run is made on, built from its specification: the fleet, the system, and the topic's
settings."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wrackline.cache import cache_folder
from wrackline.fleets.base import Fleet
from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.harness.specification.sections import TopicSpec
from wrackline.harness.specification.spec import Spec
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.spec import RandomSpec
from wrackline.nemesis.targets.words import retold
from wrackline.systems.base import Closable, System
from wrackline.systems.base import TopicSpec as ClusterTopic
from wrackline.systems.spec import Layout
from wrackline.workloads.log import ClientsSpec


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a run is made on. Nothing is started yet."""

    fleet: Fleet
    system: System
    keep: Callable[[], None]
    """Let the fleet outlive this process."""

    def close(self) -> None:
        """Closes the system's connections to the cluster."""
        if isinstance(self.system, Closable):
            self.system.close()


def state_root() -> Path:
    """Returns where the fleets of runs lie: where `wrackline fleet` looks for them."""
    return Path(os.environ.get("WRACKLINE_STATE_DIR") or DEFAULT_STATE_ROOT)


def build_parts(spec: Spec, test_id: str) -> Parts:
    """The fleet's name comes from the run's, so that runs side by side never share one."""
    digest = hashlib.blake2b(test_id.encode(), digest_size=16).digest()
    fleet = spec.fleet.build(f"run-{digest.hex()[:8]}", state_root())
    layout = Layout(
        brokers=spec.fleet.broker_hosts,
        controllers=spec.fleet.controller_hosts,
        spares=spec.fleet.spare_hosts,
        cluster_id=base64.urlsafe_b64encode(digest).decode().rstrip("="),
        cache=cache_folder(),
        test_id=test_id,
        zookeeper=spec.fleet.zookeeper_hosts,
        spare_controllers=spec.fleet.spare_controller_hosts,
    )
    return Parts(fleet, spec.system.build(fleet, layout), fleet.detach)


def as_run(spec: Spec, test_id: str) -> Spec:
    """The specification with what only a run may know, and what is saved nowhere: what its topics are called
    in the cluster, and the secrets of its clients. Raises DeployError for a secret that is not there."""
    names = {topic.name: spec.system.topic_of(test_id, topic.name) for topic in spec.every_topic}
    return _with_client_settings(_with_topics(spec, names))


def _with_client_settings(spec: Spec) -> Spec:
    if not (settings := spec.system.client_settings()):
        return spec
    client = spec.workload.client
    own = client.model_copy(update={"librdkafka": {**client.librdkafka, **settings}})
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"client": own})})


def _with_topics(spec: Spec, names: Mapping[str, str]) -> Spec:
    """``names``: of a topic in the specification -> in the cluster."""
    if all(name == called for name, called in names.items()):
        return spec
    nemesis = spec.nemesis
    changed: dict[str, object] = {
        "schedule": tuple(
            one.model_copy(update={"inject": aimed(one.inject, names)}) for one in nemesis.schedule
        )
    }

    def drawn(lane: RandomSpec) -> RandomSpec:
        return lane.model_copy(update={"faults": tuple(aimed(one, names) for one in lane.faults)})

    if nemesis.random is not None:
        changed["random"] = drawn(nemesis.random)
    changed["lanes"] = {lane: drawn(one) for lane, one in nemesis.lanes.items()}
    if nemesis.follow is not None:
        changed["follow"] = nemesis.follow.aimed(lambda one: aimed(one, names))
    topics = [one.model_copy(update={"name": names[one.name]}) for one in spec.every_topic]
    where = {"topics": tuple(topics)} if spec.topics else {"topic": topics[0]}
    return spec.model_copy(update={**where, "nemesis": nemesis.model_copy(update=changed)})


def aimed(fault: FaultSpec, names: Mapping[str, str]) -> FaultSpec:
    """The fault where topics are called otherwise in the cluster (name here -> name there)."""
    return fault.model_copy(update={"target": retold(fault.target, names)})


def cluster_topic(spec: Spec, topic: TopicSpec) -> ClusterTopic:
    """A topic of the run, as the cluster takes it."""
    return ClusterTopic(
        topic.name, topic.partitions, topic.replication_factor, topic_configs(topic, spec.workload)
    )


def topic_configs(topic: TopicSpec, workload: ClientsSpec) -> dict[str, str]:
    """The topic's settings as the cluster takes them."""
    configs = {"min.insync.replicas": str(topic.min_insync_replicas), **workload.topic_configs}
    for name, value in topic.configs.items():
        configs[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return configs
