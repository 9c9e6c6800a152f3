"""Runs with several topics whose names look alike: on hosts of ours, where leaders of both are killed, and on
a cluster that runs already, which is left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.harness.doubles import rows
from tests.harness.machine_load import despite_load
from tests.systems.external.running import Running, running
from wrackline.harness.cli.main import main
from wrackline.harness.specification.suites import suites_dir

pytestmark = [pytest.mark.real, pytest.mark.slow]

PLACES = {("log", 0), ("log", 1), ("log-1", 0), ("log-1", 1), ("log-1", 2)}


def call(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def judged(file: Path, results: Path) -> tuple[Path, dict[str, Any], list[dict[str, Any]]]:
    assert despite_load(lambda: call("run", file, "--results", results), results) == 0
    made = sorted(one for one in results.iterdir() if (one / "spec.yaml").exists())[-1]
    return made, orjson.loads((made / "verdict.json").read_bytes()), rows(made)


def extras(found: list[dict[str, Any]], f: str) -> list[dict[str, Any]]:
    return [orjson.loads(row["extra"]) for row in found if row["f"] == f]


def test_two_topics_and_a_kill_of_a_leader_of_each(tmp_path: Path) -> None:
    made, verdict, found = judged(suites_dir() / "topics.yaml", tmp_path / "results")
    assert verdict["verdict"] == "pass"
    assert [(one["role"], one["proved"]) for one in verdict["faults"]] == [
        ("leader(log-1)", True),
        ("leader(log-1-0)", True),
    ]
    for f in ("send", "end", "drain", "replica", "partition"):
        assert {(row["topic"], row["partition"]) for row in found if row["f"] == f} == PLACES, f
    assert {row["topic"] for row in found if row["f"] == "poll"} == {"log", "log-1"}
    assert {row["topic"] for row in found if row["f"] == "assignment"} == {"log", "log-1"}
    seen = {
        (one["topic"], one["partition"]) for each in extras(found, "cluster") for one in each["partitions"]
    }
    assert seen == PLACES
    # Both are in one folder of each broker, and each replica's own log was read for itself.
    kept = {
        (row["topic"], row["partition"], record["offset"], record["value"])
        for row in found
        if row["f"] == "drain"
        for record in row["records"] or ()
    }
    of_replicas = {
        (row["topic"], row["partition"], record["offset"], record["value"])
        for row in found
        if row["f"] == "replica"
        for record in row["records"] or ()
    }
    assert kept == of_replicas
    report = (made / "report.html").read_text()
    assert all(f"{topic}-{partition}" in report for topic, partition in PLACES)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("theirs")) as made:
        yield made


def test_topics_of_ours_are_removed_from_a_cluster_of_others(theirs: Running, tmp_path: Path) -> None:
    before = theirs.topics()
    spec = {
        "name": "theirs",
        "system": {"kind": "external", "bootstrap": theirs.bootstrap},
        "topics": [{"name": "log"}, {"name": "log-1", "partitions": 3}],
        "workload": {"duration_s": 4, "rate": 60, "senders": 3, "in_flight": 20},
        "nemesis": {
            "schedule": [
                {"at_s": 1, "duration_s": 2, "fault": "transfer-leadership", "target": "leader(log-1-2)"}
            ]
        },
    }
    file = tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump(spec))
    made, verdict, found = judged(file, tmp_path / "results")
    assert verdict["verdict"] == "pass"
    called = {(f"wrackline-{made.name}-{topic}", partition) for topic, partition in PLACES}
    assert {(row["topic"], row["partition"]) for row in found if row["f"] == "drain"} == called
    assert verdict["faults"][0]["role"] == f"leader(wrackline-{made.name}-log-1-2)"
    assert theirs.topics() == before
