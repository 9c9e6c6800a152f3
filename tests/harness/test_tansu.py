"""Runs on a broker of another make, each beside its control: docs/findings.md has what they show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.checkers.servers import BUCKET, s3
from tests.harness.machine_load import run_despite_load
from tests.systems.external.tansu import Tansu, tansu

pytestmark = pytest.mark.nightly

STALE = {"stale-end", "stale-read", "watermark-regression", "not-linearizable"}


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tansu]:
    with tansu(tmp_path_factory.mktemp("memory")) as made:
        yield made


@pytest.fixture(scope="module")
def on_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tansu]:
    """Three brokers over the same objects."""
    folder = tmp_path_factory.mktemp("s3")
    with s3(folder) as storage:
        environment = {
            **storage.environment,
            "AWS_ENDPOINT": storage.environment["AWS_ENDPOINT_URL"],
            "AWS_ALLOW_HTTP": "true",
        }
        with tansu(folder, 3, f"s3://{BUCKET}/", environment) as made:
            yield made


def verdict(theirs: Tansu, folder: Path, workload: dict[str, Any], *faults: dict[str, Any]) -> Any:
    """What came of a run, and the anomalies that its contract forbids."""
    file, results = folder / "spec.yaml", folder / "results"
    settings = {
        "name": "tansu",
        "system": theirs.system(),
        "topic": {"replication_factor": 1, "min_insync_replicas": 1},
        "workload": {"duration_s": 15, "rate": 50, **workload},
        "nemesis": {"schedule": list(faults)},
        "contract": {"thresholds": {"left_out": 1}},
    }
    file.write_text(yaml.safe_dump(settings))

    _, made = run_despite_load(file, results)
    result = orjson.loads((made / "verdict.json").read_bytes())
    forbidden = {one["anomaly"] for one in result["anomalies"] if one["in_violations"]}
    return result, forbidden


def test_one_broker_in_memory_keeps_the_contract_of_a_log(in_memory: Tansu, tmp_path: Path) -> None:
    """The control of the next test."""
    result, forbidden = verdict(in_memory, tmp_path, {"name": "log"})
    assert (result["verdict"], forbidden) == ("pass", set()), result["reasons"]


def test_ends_that_are_older_than_an_acknowledgement_are_answered_over_object_storage(
    on_s3: Tansu, tmp_path: Path
) -> None:
    """One of three brokers is killed and started again, which is proved; nothing acknowledged is lost."""
    kill = {"at_s": 4, "duration_s": 4, "fault": "kill", "target": "n111"}
    result, forbidden = verdict(on_s3, tmp_path, {"name": "log"}, kill)
    assert [one["proved"] for one in result["faults"]] == [True]
    assert "stale-end" in forbidden, result["reasons"]
    assert "lost-write" not in forbidden


def test_records_of_aborted_transactions_are_read(in_memory: Tansu, tmp_path: Path) -> None:
    result, forbidden = verdict(in_memory, tmp_path, {"name": "txn", "rate": 20})
    assert "aborted-read" in forbidden, result["reasons"]


def test_without_aborts_no_such_record_is_read(in_memory: Tansu, tmp_path: Path) -> None:
    """The control of the test before."""
    _, forbidden = verdict(in_memory, tmp_path, {"name": "txn", "rate": 20, "aborts": 0})
    assert "aborted-read" not in forbidden
