"""The parts that a run is made on, built from its specification: the fleet, the system, and the topic's
settings."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wrackline.cache import cache_folder
from wrackline.fleets.base import Fleet
from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.harness.specification.spec import Spec
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.spec import RandomSpec
from wrackline.systems.base import Closable, System
from wrackline.systems.spec import Layout


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
    )
    return Parts(fleet, spec.system.build(fleet, layout), fleet.detach)


def as_run(spec: Spec, test_id: str) -> Spec:
    """The specification with what only a run may know, and what is saved nowhere: what its topic is called in
    the cluster, and the secrets of its clients. Raises DeployError for a secret that is not there."""
    name = spec.system.topic_of(test_id, spec.topic.name)
    return _with_client_settings(_with_topic(spec, name))


def _with_client_settings(spec: Spec) -> Spec:
    if not (settings := spec.system.client_settings()):
        return spec
    client = spec.workload.client
    own = client.model_copy(update={"librdkafka": {**client.librdkafka, **settings}})
    return spec.model_copy(update={"workload": spec.workload.model_copy(update={"client": own})})


def _with_topic(spec: Spec, name: str) -> Spec:
    if name == spec.topic.name:
        return spec
    old, nemesis = spec.topic.name, spec.nemesis
    changed: dict[str, object] = {
        "schedule": tuple(
            one.model_copy(update={"inject": aimed(one.inject, old, name)}) for one in nemesis.schedule
        )
    }

    def drawn(lane: RandomSpec) -> RandomSpec:
        return lane.model_copy(update={"faults": tuple(aimed(one, old, name) for one in lane.faults)})

    if nemesis.random is not None:
        changed["random"] = drawn(nemesis.random)
    changed["lanes"] = {name: drawn(lane) for name, lane in nemesis.lanes.items()}
    topic = spec.topic.model_copy(update={"name": name})
    return spec.model_copy(update={"topic": topic, "nemesis": nemesis.model_copy(update=changed)})


def aimed(fault: FaultSpec, old: str, name: str) -> FaultSpec:
    """The fault where the topic ``old`` is called ``name`` in the cluster."""
    return fault.model_copy(update={"target": fault.target.replace(f"({old}-", f"({name}-")})


def topic_configs(spec: Spec) -> dict[str, str]:
    """The topic's settings as the cluster takes them."""
    configs = {"min.insync.replicas": str(spec.topic.min_insync_replicas), **spec.workload.topic_configs}
    for name, value in spec.topic.configs.items():
        configs[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return configs
