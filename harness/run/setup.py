"""From a specification to the things of a run: names, directory, fleet, system, run information."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wrackline.fleets.base import Fleet
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.harness.specification.spec import Spec
from wrackline.history.model import PlanInfo, RunInfo, TopicInfo
from wrackline.nemesis.schedule import Plan, plan
from wrackline.systems.base import System
from wrackline.systems.wrackline.system import WracklineSystem


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made on. Nothing is started yet."""

    fleet: Fleet
    system: System
    keep: Callable[[], None]
    """Let the fleet outlive this process."""


def new_test_id(name: str) -> str:
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(2)}"


def cache_dir() -> Path:
    """Where bundles of the broker are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "wrackline"


def build_parts(spec: Spec, test_id: str) -> Parts:
    """The fleet's name comes from the run's, so that runs side by side never share one."""
    digest = hashlib.blake2b(test_id.encode(), digest_size=16).digest()
    fleet = NetnsFleet(
        f"run-{digest.hex()[:8]}",
        spec.fleet.hosts,
        subnet=spec.fleet.subnet,
        disk_mb=spec.fleet.disk_mb,
        filesystem=spec.fleet.filesystem,
    )
    system = WracklineSystem(
        fleet,
        brokers=spec.fleet.broker_hosts,
        controllers=spec.fleet.controller_hosts,
        spares=spec.fleet.spare_hosts,
        cluster_id=base64.urlsafe_b64encode(digest).decode().rstrip("="),
        profile=spec.system.profile,
        defects=spec.system.defects,
        config=spec.system.config,
        bundle_cache=cache_dir() / "bundles",
    )
    return Parts(fleet, system, fleet.detach)


def harness_version() -> str:
    try:
        return version("wrackline")
    except PackageNotFoundError:
        return "source"


def plan_of(spec: Spec) -> Plan:
    """Every random choice of the nemesis, settled by the seed."""
    return plan(spec.nemesis, spec.seed, spec.workload.duration_s)


def saved_plan(chosen: Plan) -> dict[str, Any]:
    """What ``plan.json`` says."""
    return {"seed": chosen.seed, "plan": chosen.to_dict()}


def run_info(spec: Spec, test_id: str, system: System, plan: Plan) -> RunInfo:
    """What the judge must know of the run besides its events."""
    config = spec.system.config
    topic = spec.topic
    unclean = {
        **config,
        **_as_setting(topic.configs, "unclean.leader.election.enable", "unclean_leader_election"),
    }
    return RunInfo(
        test_id=test_id,
        name=spec.name,
        seed=spec.seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        system=system.name,
        workload=spec.workload.name,
        acks=str(spec.workload.acks),
        idempotence=spec.workload.idempotence,
        topics=(
            TopicInfo(topic.name, topic.partitions, topic.replication_factor, topic.min_insync_replicas),
        ),
        profile=spec.system.profile,
        defects=spec.system.defects,
        flush_mode=str(config.get("flush_mode", "on-roll")),
        unclean_election=_is_true(unclean.get("unclean_leader_election", False)),
        recovery_strategy=str(config.get("unclean_recovery_strategy", "balanced")),
        rate=spec.workload.rate,
        concurrency=spec.workload.concurrency,
        reads=spec.workload.reads,
        nodes={str(node.node_id): node.host.name for node in system.nodes},
        expected=spec.contract.expected,
        harness_version=harness_version(),
        thresholds=spec.contract.thresholds.limits(),
        plan=PlanInfo(
            duration_s=spec.workload.duration_s,
            faults={fault.id: fault.spec.fault for fault in plan.faults},
            guided=plan.guided.name if plan.guided is not None else "",
        ),
    )


def topic_configs(spec: Spec) -> dict[str, str]:
    """The topic's settings as the cluster takes them."""
    configs = {"min.insync.replicas": str(spec.topic.min_insync_replicas)}
    for name, value in spec.topic.configs.items():
        configs[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return configs


def _as_setting(configs: Mapping[str, object], name: str, setting: str) -> dict[str, object]:
    return {setting: configs[name]} if name in configs else {}


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"
