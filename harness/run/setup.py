"""What is settled before a run begins: its id, its plan, and what the judge must know of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from wrackline.harness.specification.spec import Spec
from wrackline.history.model import PlanInfo, RunInfo, TopicInfo
from wrackline.nemesis.schedule import Plan, plan
from wrackline.systems.base import System


def new_test_id(name: str) -> str:
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(2)}"


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


def _as_setting(configs: Mapping[str, object], name: str, setting: str) -> dict[str, object]:
    return {setting: configs[name]} if name in configs else {}


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"
