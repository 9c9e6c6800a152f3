"""The suites on virtual machines, run whole: what our broker and Apache Kafka promise holds there too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations.demo import demo_on_vms
from wrackline.harness.run.judge import judge
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.suites import suites_dir
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.install import install

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1800)]


def judged(suite: str, results: Path) -> dict[str, Any]:
    outcome = run(load_checked(suites_dir() / suite), Options(results))
    [found] = judge([outcome.run_dir])
    return dict(found.verdict)


def test_the_demo_on_virtual_machines_comes_out_as_it_must(tmp_path: Path) -> None:
    assert demo_on_vms(tmp_path) == 0


def test_apache_kafka_keeps_what_it_acknowledged_through_a_power_cut(tmp_path: Path) -> None:
    install(Store(), "4.4.0")
    verdict = judged("qemu-kafka.yaml", tmp_path)
    assert verdict["verdict"] == Verdict.PASS, verdict["reasons"]
    assert verdict["counts"]["acked_records"] > 100
    [cut] = verdict["faults"]
    assert (cut["fault"], cut["proved"]) == ("power-cut", True)
