"""Specifications: what is written is what is run, and every mistake is one line that says how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from wrackline.checkers.verdict.conditions.thresholds import LEFT_OUT, THRESHOLDS
from wrackline.fleets.inventory.spec import InventorySpec
from wrackline.harness.specification.spec import Spec, SpecError, load, parse
from wrackline.workloads.log import LogSpec

SUITES = Path(__file__).parents[3] / "suites"


def test_settings_reach_any_key_and_are_checked_like_the_file() -> None:
    text = "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kill}]}"
    settings = ["workload.client.librdkafka.debug=broker", "workload.rate=12.5", "nemesis.schedule.0.at_s=9"]
    spec = parse(text, "x.yaml", settings=settings, seed=5)
    assert spec.workload.client.librdkafka == {"debug": "broker"}
    assert spec.workload.rate == 12.5
    assert spec.nemesis.schedule[0].at_s == 9
    assert spec.seed == 5


@pytest.mark.parametrize("path", sorted(SUITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_specification_that_comes_with_us_is_right(path: Path) -> None:
    spec = load(path)
    assert spec.name == path.stem


def test_what_is_saved_is_complete_and_gives_the_same_run() -> None:
    spec = load(SUITES / "demo-acks-all.yaml", seed=9)
    saved = spec.to_yaml()
    assert Spec.model_validate(yaml.safe_load(saved)) == spec
    assert "catch" not in saved
    assert "message_timeout_ms: 3000" in saved


def test_the_default_number_of_clients_grows_with_the_partitions() -> None:
    def clients(text: str) -> tuple[int, int]:
        workload = parse(f"name: x\n{text}", "x.yaml").workload
        assert isinstance(workload, LogSpec)
        return workload.senders, workload.enders

    assert clients("") == (6, 2)
    assert clients("topic: {partitions: 12}") == (24, 8)
    assert clients("topic: {partitions: 12}\nworkload: {senders: 3}") == (3, 8)
    assert clients("topic: {partitions: 1}\nworkload: {name: log, enders: 0}") == (6, 0)
    assert (
        parse("name: x\ntopic: {partitions: 12}\nworkload: {name: queue}", "x.yaml").workload.name == "queue"
    )


def test_thresholds_have_names_that_are_measured() -> None:
    text = """
name: x
contract:
  thresholds:
    latency_ms: {healthy: {p50: 20, p99: 200}, faults: {p95: 3000}}
    longest_gap_s: 20
    recovery_s: 10
    left_out: 0
    records_per_s: 100
    operations_per_s: 150
"""
    limits = parse(text, "x.yaml").contract.thresholds.limits()
    assert limits == {
        "latency_ms.healthy.p50": 20,
        "latency_ms.healthy.p99": 200,
        "latency_ms.faults.p95": 3000,
        "longest_gap_s": 20,
        "recovery_s": 10,
        "left_out": 0,
        "records_per_s": 100,
        "operations_per_s": 150,
    }
    assert limits.keys() <= {*THRESHOLDS, LEFT_OUT}


def test_every_threshold_that_is_measured_can_be_set() -> None:
    names = [*THRESHOLDS, LEFT_OUT]
    settings = [f"contract.thresholds.{name}=0.5" for name in names]
    limits = parse("name: x", "x.yaml", settings=settings).contract.thresholds.limits()
    assert limits == dict.fromkeys(names, 0.5)


@pytest.mark.parametrize("kind", ["netns", "process", "qemu", "libvirt"])
def test_hosts_that_share_this_machine_have_small_bounds(kind: str) -> None:
    too_large = ["topic.partitions=201", "workload.duration_s=25h"]
    with pytest.raises(SpecError) as wrong:
        parse(f"name: x\nfleet: {{kind: {kind}}}", "x.yaml", settings=too_large)
    for line, key in zip(wrong.value.mistakes, ("topic.partitions", "workload.duration_s"), strict=True):
        assert line.startswith(f"x.yaml: {key}: ")
        assert f"hosts of fleet.kind {kind} share one machine" in line


def test_clusters_of_others_have_the_bounds_that_they_need() -> None:
    settings = ["topic.partitions=10000", "workload.duration_s=1344h"]
    spec = parse("name: x\nsystem: {kind: external, bootstrap: ['n:1']}", "x.yaml", settings=settings)
    assert (spec.topic.partitions, spec.workload.duration_s) == (10_000, 8 * 7 * 86_400)
    assert (InventorySpec.made_here, InventorySpec.most_brokers) == (False, 100)
