"""A night that lies on HDFS or in object storage is judged there, by executors of which one is killed: real
servers, each made of packages of a registry."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.checkers.servers import SparkCluster, Storage, hdfs, s3, spark_cluster, wrackline
from wrackline.checkers.engine.spark import hadoop
from wrackline.history.store.addresses import fetch, files_below, send
from wrackline.proving.__main__ import main as proving

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(3600)]

ANALYZE_S = 1500.0
RUNS = 6
_STORAGES = {"hdfs": hdfs, "s3": s3}
_RUN = {"started_at": "2026-11-20T01:00:00+00:00", "system_kind": "wrackline", "acks": "all"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module", params=sorted(_STORAGES))
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    with (
        _STORAGES[request.param](tmp_path_factory.mktemp(request.param)) as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in made.environment.items():
            patch.setenv(name, value)
        hadoop.install()
        yield made


def write_night(folder: Path) -> Path:
    """Correct histories, and two that are not."""
    for seed in range(RUNS - 2):
        proving(["make", str(folder / f"right-{seed}"), "--seed", str(seed), "--operations", "2000"])
    for anomaly in ("poll-skip", "lost-write"):
        proving(["mutate", anomaly, str(folder / anomaly)])
    for run in folder.iterdir():
        (run / "run.json").write_bytes(orjson.dumps({**_RUN, "test_id": run.name, "name": run.name}))
    return folder


def test_a_night_is_judged_where_it_lies_though_an_executor_is_killed(
    cluster: SparkCluster, storage: Storage, tmp_path: Path
) -> None:
    night = write_night(tmp_path / "night")
    address = f"{storage.address}/one"
    _send(night, address)
    began = time.monotonic()
    command = wrackline("analyze", f"{address}/*", "--master", cluster.master, cluster=cluster)
    killed = _kill_one_in_the_middle(cluster)
    out, err = command.communicate(timeout=ANALYZE_S)
    print(f"{RUNS} runs at {address}, executor {killed} killed: {time.monotonic() - began:.0f} s")
    assert command.returncode == 1, err
    _was_killed(cluster)

    alone = wrackline("analyze", *sorted(night.iterdir()), "--master", "local[2]")
    assert alone.wait(ANALYZE_S) == 1
    there = files_below(address)
    assert [name for name in there if name.startswith(".")] == []
    for run in sorted(night.iterdir()):
        assert {
            f"{run.name}/{name}" for name in ("verdict.json", "metrics.json", "report.html")
        } <= there.keys()
        assert f"report: {address}/{run.name}/report.html" in out
        assert _findings(f"{address}/{run.name}", tmp_path / "far").equals(
            pq.read_table(run / "findings.parquet")
        )
        explained = _fetched(f"{address}/{run.name}", "explanations.json", tmp_path / "far")
        assert explained.read_bytes() == (run / "explanations.json").read_bytes()
        far, near = (
            _verdict(f"{address}/{run.name}", tmp_path / "far"),
            orjson.loads((run / "verdict.json").read_bytes()),
        )
        assert _without_times(far) == _without_times(near)

    dataset = f"{storage.address}/dataset"
    made = wrackline("dataset", dataset, storage.address)
    out, err = made.communicate(timeout=300)
    assert made.returncode == 0, err
    assert out.startswith(f"alone-2026-11-20: {RUNS} runs, ")
    [part] = [name for name in files_below(dataset) if name.startswith("runs/")]
    fetch(f"{dataset}/{part}", tmp_path / "runs.parquet")
    runs = pq.read_table(tmp_path / "runs.parquet").to_pylist()
    assert {one["run"] for one in runs if one["verdict"] == "violation"} == {"poll-skip", "lost-write"}


def _send(folder: Path, address: str) -> None:
    for file in folder.rglob("*"):
        if file.is_file():
            send(file, f"{address}/{file.relative_to(folder)}")


def _kill_one_in_the_middle(cluster: SparkCluster) -> int:
    """Once what it kept is needed later: the first stages are over, the last are not."""
    before = cluster.logs().count("Finished task")
    deadline = time.monotonic() + ANALYZE_S
    while cluster.logs().count("Finished task") < before + 8:
        assert time.monotonic() < deadline, "the analysis did not come so far"
        time.sleep(0.1)
    pid = cluster.executors()[0]
    os.kill(pid, signal.SIGKILL)
    return pid


def _was_killed(cluster: SparkCluster) -> None:
    """The worker says so itself."""
    logs = [(cluster.folder / f"{name}.log").read_text() for name in ("worker-1", "worker-2")]
    assert any("finished with state EXITED" in log and "exitStatus 137" in log for log in logs)


def _fetched(address: str, name: str, into: Path) -> Path:
    fetch(f"{address}/{name}", into / name)
    return into / name


def _findings(address: str, into: Path) -> pa.Table:
    return pq.read_table(_fetched(address, "findings.parquet", into))


def _verdict(address: str, into: Path) -> Mapping[str, object]:
    found: Mapping[str, object] = orjson.loads(_fetched(address, "verdict.json", into).read_bytes())
    return found


def _without_times(verdict: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in verdict.items() if name != "engine"}
