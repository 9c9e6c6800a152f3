"""Clients of both libraries are let into a deployed cluster by TLS and SASL, and may do what they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.harness.machine_load import run_despite_load
from tests.nemesis.sabotage.sabotages import Place, Sabotage, Trial, check, every
from tests.nemesis.sabotage.trials import ON_SECURED
from tests.systems.kafka.conftest import cluster, installed
from wrackline.systems.kafka.security.settings import ClusterSecurity
from wrackline.systems.kafka.system import KafkaSystem

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]

SASL_SSL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "acls": True}
ROTATED = [
    {"at_s": 2, "duration_s": 10, "fault": "rotate-certificates"},
    {"at_s": 24, "duration_s": 12, "fault": "quota", "producer_byte_rate": 3000, "consumer_byte_rate": 2000,
     "request_percentage": 0.5},
]  # fmt: skip
REFUSED = [
    {"at_s": 2, "duration_s": 28, "fault": "rotate-credentials"},
    {"at_s": 5, "duration_s": 4, "fault": "kill", "target": "leader(log-0)"},
]
"""Who has to connect again is refused, until the first password is back. By then the killed leader, which is
asked whom it lets in, has long been up again."""


@pytest.mark.parametrize(
    ("security", "library", "workload", "faults"),
    [
        (SASL_SSL, "librdkafka", "log", ROTATED),
        (SASL_SSL, "java", "txn", REFUSED),
        (SASL_SSL, "librdkafka", "txn", REFUSED),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "acls": True}, "librdkafka", "group", []),
        ({"protocol": "SSL"}, "java", "log", ROTATED[:1]),
    ],
    ids=["sasl-ssl", "refused-java", "refused", "sasl-plaintext", "ssl-java"],
)
def test_a_run_passes(
    tmp_path: Path, security: dict[str, Any], library: str, workload: str, faults: list[dict[str, Any]]
) -> None:
    installed("4.4.0")
    file, results = tmp_path / "spec.yaml", tmp_path / "results"
    settings = {
        "name": "secured",
        "system": {"kind": "apache-kafka", "version": "4.4.0", "security": security},
        "fleet": {"brokers": 3, "controllers": 3, "combined": True},
        "workload": {"name": workload, "duration_s": 50 if faults else 10, "rate": 30,
                     "client": {"library": library}},
        "nemesis": {"schedule": faults},
        "contract": {"thresholds": {"left_out": 1}},
    }  # fmt: skip
    file.write_text(yaml.safe_dump(settings))

    ended, made = run_despite_load(file, results)
    verdict = orjson.loads((made / "verdict.json").read_bytes())
    assert [one["proved"] for one in verdict["faults"]] == [True] * len(faults), verdict["faults"]
    assert (ended, verdict["verdict"]) == (0, "pass"), verdict["reasons"]


@pytest.fixture(scope="module")
def secured() -> Iterator[KafkaSystem]:
    with cluster(
        ("n1", "n2", "n3"), ("n1",), security=ClusterSecurity("SASL_SSL", "SCRAM-SHA-512")
    ) as system:
        system.admit({}, ())
        yield system


@pytest.mark.parametrize(("trial", "sabotage"), every(ON_SECURED))
def test_nobody_is_taken_in(secured: KafkaSystem, trial: Trial, sabotage: Sabotage) -> None:
    check(trial, Place(secured.fleet, secured), sabotage)
