"""What the judge is told of a run before it begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.live.setup import internal_topics, later_versions, plan_of, run_info
from wrackline.harness.specification.spec import parse
from wrackline.systems.base import System

STRATEGY = "configs: {unclean.recovery.strategy: %s}"
MEANWHILE = f"nemesis.schedule=[{{at_s: 1, duration_s: 2, fault: change-config, {STRATEGY}}}]"


@pytest.mark.parametrize(
    ("settings", "contract"),
    [
        ((), "acks-all"),
        (("topic.configs={unclean.recovery.strategy: manual}",), "acks-all"),
        (("topic.configs={unclean.recovery.strategy: Aggressive}",), "acks-all-unclean"),
        (("system.config={unclean_recovery_strategy: aggressive}",), "acks-all-unclean"),
        (
            (
                "system.config={unclean_recovery_strategy: proactive}",
                "topic.configs={unclean.recovery.strategy: none}",
            ),
            "acks-all",
        ),
        ((MEANWHILE % "proactive",), "acks-all-unclean"),
        ((MEANWHILE % "manual",), "acks-all"),
    ],
)
def test_a_recovery_strategy_that_is_ever_proactive_permits_loss(
    settings: tuple[str, ...], contract: str
) -> None:
    assert forecast(parse("{name: x}", "x.yaml", settings=settings)).contract.name == contract


SHORTER = "nemesis.schedule=[{at_s: 1, duration_s: 2, fault: change-config, configs: {retention.ms: 9}}]"


@pytest.mark.parametrize(
    ("settings", "deletion"),
    [
        ((), {}),
        (("topic.configs={retention.ms: 3000}",), {"retention.ms": "3000"}),
        (("topic.configs={retention.bytes: 10}",), {"retention.bytes": "10"}),
        (("topic.configs={retention.ms: 3000}", SHORTER), {"retention.ms": "9"}),
        (("topic.configs={retention.ms: -1}", SHORTER), {"retention.ms": "9"}),
        (
            ("system.kind=apache-kafka", "system.config={log.retention.hours: 1}"),
            {"log.retention.hours": "1"},
        ),
        (
            (
                "system.kind=apache-kafka",
                "system.config={log.retention.hours: 1, log.retention.bytes: 5}",
                "topic.configs={retention.ms: -1}",
            ),
            {"retention.ms": "-1", "log.retention.bytes": "5"},
        ),
    ],
)
def test_the_judge_is_told_by_what_records_are_deleted(
    settings: tuple[str, ...], deletion: dict[str, str]
) -> None:
    spec = parse("{name: x}", "x.yaml", settings=settings)
    system = cast("System", SimpleNamespace(name="x", nodes=()))
    [topic] = run_info(spec, "t", system, plan_of(spec)).topics
    assert topic.deletion == deletion


def test_versions_that_nodes_become_are_brought_beforehand() -> None:
    upgrades = [
        f"{{at_s: {at_s}, duration_s: 1, fault: rolling-upgrade, to: {to}}}"
        for at_s, to in ((1, "4.4.0"), (9, "4.3.1"), (30, "4.4.0"))
    ]
    schedule = f"nemesis.schedule=[{{at_s: 20, duration_s: 1, fault: kill}}, {', '.join(upgrades)}]"
    spec = parse("{name: x, system: {kind: apache-kafka, version: 4.3.1}}", "x.yaml", settings=[schedule])
    assert later_versions(spec) == ["4.4.0", "4.3.1"]
    assert later_versions(parse("{name: x}", "x.yaml")) == []


def test_the_history_has_the_leaders_of_the_topic_that_has_the_commits_of_groups() -> None:
    """Who leads a partition of it coordinates the groups there."""
    kafka = ("system.kind=apache-kafka",)
    for workload, expected in (
        ("group", ["__consumer_offsets"]),
        ("txn", ["__consumer_offsets"]),
        ("log", []),
    ):
        spec = parse(f"{{name: x, workload: {{name: {workload}}}}}", "x.yaml", settings=kafka)
        assert internal_topics(spec) == expected
