"""Facts that are settled before a run begins: its id, its plan, and what the judge must know of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from wrackline.harness.specification.build import topic_configs
from wrackline.harness.specification.parts import COORDINATED
from wrackline.harness.specification.sections import TopicSpec
from wrackline.harness.specification.spec import Spec
from wrackline.history.model import PlanInfo, RunInfo, TopicInfo
from wrackline.nemesis.faults.admin_steps import Entity
from wrackline.nemesis.faults.cluster.admin import MIN_ISR, ChangeConfigSpec
from wrackline.nemesis.faults.processes.restarts import RollingUpgradeSpec
from wrackline.nemesis.schedule import Plan, plan
from wrackline.nemesis.targets.words import INTERNAL_TOPICS
from wrackline.release import full_version
from wrackline.systems.base import System
from wrackline.systems.spec import is_true

UNCLEAN = "unclean.leader.election.enable"
STRATEGY = "unclean.recovery.strategy"
_PROACTIVE = ("proactive", "aggressive")
"""The strategy that permits loss, by both of its names."""


def new_test_id(name: str) -> str:
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(2)}"


def plan_of(spec: Spec) -> Plan:
    """Every random choice of the nemesis, settled by the seed."""
    return plan(spec.nemesis_here, spec.seed, spec.workload.duration_s)


def internal_topics(spec: Spec) -> list[str]:
    """Returns the internal topics whose leaders the history has: of groups, whom they coordinate."""
    has_groups = COORDINATED["group"] & spec.workload.needs
    return [topic for topic, what in INTERNAL_TOPICS.items() if what == "group" and has_groups]


def save_request(spec: Spec, run_dir: Path) -> Plan:
    """Writes down the request for a run: specification and plan. Returns the plan. Raises OSError."""
    (run_dir / "spec.yaml").write_text(spec.to_yaml())
    chosen = plan_of(spec)
    saved = orjson.dumps(saved_plan(chosen), option=orjson.OPT_INDENT_2)
    (run_dir / "plan.json").write_bytes(saved + b"\n")
    return chosen


def saved_plan(chosen: Plan) -> dict[str, Any]:
    """Returns the content of ``plan.json``."""
    return {"seed": chosen.seed, "plan": chosen.to_dict()}


def run_info(spec: Spec, test_id: str, system: System, plan: Plan) -> RunInfo:
    """Returns what the judge must know of the run besides its events."""
    configured, usual = spec.system.configured(), spec.every_topic[0].configs  # the others' are the same
    unclean = usual.get(UNCLEAN, configured.unclean_election)
    changes = [one.spec for one in plan.faults if isinstance(one.spec, ChangeConfigSpec)]
    meanwhile = [one.texts for one in changes]
    of_brokers = [one.texts for one in changes if one.entity is Entity.BROKERS]
    every_write = str(usual.get("flush.messages")) == "1"
    return RunInfo(
        test_id=test_id,
        name=spec.name,
        seed=spec.seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        system=system.name,
        system_kind=spec.system.kind,
        system_version=configured.version,
        workload=spec.workload.name,
        acks=str(spec.workload.acks),
        idempotence=spec.workload.idempotence,
        topics=tuple(  # a fault that changes a topic's settings changes those of the first
            _topic(topic, spec, of_brokers if number else meanwhile)
            for number, topic in enumerate(spec.every_topic)
        ),
        profile=configured.profile,
        defects=configured.defects,
        flush_mode="every-write" if every_write else configured.flush_mode,
        unclean_election=is_true(unclean) or any(is_true(one.get(UNCLEAN)) for one in meanwhile),
        recovery_strategy=_strategy(
            usual.get(STRATEGY, configured.recovery_strategy),
            *(one[STRATEGY] for one in meanwhile if STRATEGY in one),
        ),
        rate=spec.workload.rate,
        concurrency=spec.workload.concurrency,
        reads=spec.workload.reads,
        isolation=spec.workload.isolation,
        rack=spec.workload.client.rack,
        reset=spec.workload.reset,
        rewinds=spec.workload.rewinds,
        nodes={str(node.node_id): node.host.name for node in system.nodes},
        expected=spec.contract.expected,
        harness_version=full_version(),
        thresholds=spec.contract.thresholds.limits(),
        invariants_bind=spec.contract.invariants == "violation",
        plan=PlanInfo(
            duration_s=spec.workload.duration_s,
            faults={fault.id: fault.spec.fault for fault in plan.faults},
            guided=plan.guided.name if plan.guided is not None else "",
            follows=plan.follow is not None,
        ),
        unread=configured.unread,
        untested=spec.fleet.untested,
    )


def _topic(topic: TopicSpec, spec: Spec, meanwhile: Sequence[Mapping[str, str]]) -> TopicInfo:
    """``meanwhile``: settings that it is given while the run goes on. What is promised is what holds from the
    first moment to the last."""
    least = [{MIN_ISR: str(topic.min_insync_replicas)}, *meanwhile]
    return TopicInfo(
        topic.name,
        topic.partitions,
        topic.replication_factor,
        min(int(one[MIN_ISR]) for one in least if MIN_ISR in one),
        contiguous=spec.workload.contiguous,
        compacted=spec.workload.compacted,
        source=_sources(spec).get(topic.name, ""),
        deletion=_deletion(topic_configs(topic, spec.workload), spec.system.configured().deletion, meanwhile),
    )


def _sources(spec: Spec) -> dict[str, str]:
    return spec.workload.source_of({topic.name: topic.partitions for topic in spec.every_topic})


def _deletion(
    topic: Mapping[str, str], brokers: Mapping[str, str], meanwhile: Sequence[Mapping[str, str]]
) -> dict[str, str]:
    """Returns by what the topic's records may be deleted: of each setting the value that deletes most, of all
    that it ever has. The brokers' settings hold for a topic that has none of its own."""
    result: dict[str, str] = {}
    for name in ("retention.ms", "retention.bytes"):
        of_topic = [one[name] for one in (topic, *meanwhile) if name in one]
        if of_topic:
            result[name] = min(of_topic, key=_deletes_last)
        if name not in topic:
            by_size = name.endswith("bytes")
            result |= {one: value for one, value in brokers.items() if one.endswith(".bytes") == by_size}
    return result


def _deletes_last(limit: str) -> float:
    """Sorts limits: nothing is ever deleted by a negative one."""
    return float(limit) if limit.isdigit() else float("inf")


def _strategy(first: object, *meanwhile: object) -> str:
    """Returns the loosest recovery strategy of the brokers, since only it is promised: proactive where it is
    ever on."""
    every = [str(one).lower() for one in (first, *meanwhile)]
    return _PROACTIVE[0] if set(_PROACTIVE).intersection(every) else str(first)


def later_versions(spec: Spec) -> list[str]:
    """Returns the versions that nodes become by faults of the run, each once."""
    upgrades = (fault for fault in spec.every_fault if isinstance(fault, RollingUpgradeSpec))
    return list(dict.fromkeys(one.to for one in upgrades))
