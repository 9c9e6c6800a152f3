"""On a real cluster: a standalone master and two workers of Spark on this machine, whose Python has never
heard of us. Histories lie in a folder that all of them see; test_storage.py has them elsewhere."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.checkers.servers import SparkCluster, spark_cluster, wrackline
from wrackline.checkers.engine.spark.masters import MASTER_KNOCK_S, SparkUnavailable, check_master
from wrackline.proving.__main__ import main as proving

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ANALYZE_S = 600.0
STALE = "p: a@0 | p: b@1 | e: end 1 | final a@0 b@1"
FOUND = {
    "right": ["unproven-write"],
    "skip": ["poll-skip", "unproven-write"],
    "stale": ["stale-read", "not-linearizable"],
}
"""Sends whose outcome nobody knows are no violation."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.mark.timeout(ANALYZE_S + 60)
def test_workers_without_a_checkout_judge_a_night(cluster: SparkCluster, tmp_path: Path) -> None:
    night = tmp_path / "night"
    assert proving(["case", str(night / "stale"), STALE]) == 0
    assert proving(["mutate", "poll-skip", str(night / "skip")]) == 0
    assert proving(["make", str(night / "right"), "--operations", "300"]) == 0
    command = wrackline("analyze", *sorted(night.iterdir()), "--master", cluster.master, cluster=cluster)
    out, err = command.communicate(timeout=ANALYZE_S)
    assert command.returncode == 1, err
    assert _anomalies(night) == FOUND
    assert len(re.findall(r"report: \S+", out)) == 3
    executors = [worker for worker in cluster.folder.glob("worker-*") if list(worker.glob("app-*/*/stderr"))]
    assert len(executors) == 2
    assert [path for path in night.iterdir() if path.name.startswith(".")] == []


def _anomalies(night: Path) -> dict[str, list[str]]:
    return {
        run.name: [
            each["anomaly"]
            for each in orjson.loads((run / "verdict.json").read_bytes())["anomalies"]
            if each["count"]
        ]
        for run in sorted(night.iterdir())
    }


@pytest.mark.nightly
@pytest.mark.timeout(ANALYZE_S + 60)
def test_workers_that_offer_nothing_are_told_of_in_one_line(cluster: SparkCluster, tmp_path: Path) -> None:
    """Each worker has 1 GiB."""
    assert proving(["case", str(tmp_path / "stale"), STALE]) == 0
    command = wrackline(
        *("analyze", tmp_path / "stale", "--master", cluster.master, "--conf", "spark.executor.memory=3g"),
        cluster=cluster,
        WRACKLINE_SPARK_WAIT_S="3",
    )
    _, err = command.communicate(timeout=ANALYZE_S)
    assert command.returncode == 2, err
    said = err.splitlines()[-1]
    assert said.startswith(
        f"wrackline: no executor within 3 s: {cluster.master} offers none with 3g of memory"
    )
    assert "Traceback" not in err
    assert not (tmp_path / "stale" / "verdict.json").exists()


def test_a_master_is_known_by_its_answer(cluster: SparkCluster) -> None:
    check_master(cluster.master)
    check_master(f"spark://127.0.0.1:7,{cluster.master.removeprefix('spark://')}")  # one of them is enough
    log = (cluster.folder / "master.log").read_text()
    assert "ERROR" not in log
    assert "Connection reset" not in log


def test_who_takes_connections_and_says_nothing_is_no_master() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(SparkUnavailable, match=rf"{port}: takes connections and says nothing for 5 s\)"):
            check_master(f"spark://127.0.0.1:{port}")
        assert MASTER_KNOCK_S <= time.monotonic() - began < 10


def test_the_port_of_the_web_pages_is_told_from_the_master_s(cluster: SparkCluster) -> None:
    found = re.search(r"MasterWebUI.* at http://\S+:(\d+)", (cluster.folder / "master.log").read_text())
    assert found is not None
    with pytest.raises(SparkUnavailable, match="speaks HTTP; that is the port of its web pages"):
        check_master(f"spark://127.0.0.1:{found[1]}")
