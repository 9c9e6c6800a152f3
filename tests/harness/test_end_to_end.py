"""The whole path on a real fleet: one short run, and what Ctrl-C and kill -9 leave behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
import yaml

from tests.checkers.engine.test_executors import contents
from tests.harness.machine_load import despite_load
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.harness.specification.spec import load
from wrackline.history import history_files, read_info
from wrackline.history.model import CONTROL, DIED

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]

SPEC = """
name: end-to-end
seed: 11
system:
  config: {session_timeout_ms: 2000, heartbeat_interval_ms: 300, replica_lag_time_max_ms: 3000}
topic: {partitions: 2, replication_factor: 3, min_insync_replicas: 2}
workload: {duration_s: 10, rate: 80, senders: 4, pollers: 2, enders: 1, records_per_op: 3}
nemesis:
  schedule:
    - {at_s: 2, duration_s: 3, fault: kill, target: leader(log-0)}
"""


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "end-to-end.yaml"
    path.write_text(SPEC)
    return path


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "WRACKLINE_RESULTS": str(tmp_path / "results"), "PYTHONUNBUFFERED": "1"}


def wrackline(tmp_path: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "wrackline.harness.cli.main", *map(str, arguments)]
    return subprocess.run(
        command, env=environment(tmp_path), capture_output=True, text=True, timeout=600, check=False
    )


@contextmanager
def running(tmp_path: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A `wrackline` in the background; killed at the end if it is still there."""
    command = [sys.executable, "-m", "wrackline.harness.cli.main", *map(str, arguments)]
    process = subprocess.Popen(
        command,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=90)


def wait_for_line(process: subprocess.Popen[str], words: str, timeout_s: float = 90.0) -> str:
    """Until the process says a line with these words."""
    assert process.stdout is not None
    deadline = time.monotonic() + timeout_s
    said = []
    for line in process.stdout:
        said.append(line)
        if words in line:
            return line
        if time.monotonic() > deadline:
            break
    raise AssertionError(f"{words!r} was not said; it said: {''.join(said)[-2000:]}")


def only_run(tmp_path: Path) -> Path:
    [run_dir] = (tmp_path / "results").iterdir()
    return run_dir


def rows(run_dir: Path) -> list[dict[str, Any]]:
    return pq.read_table(history_files(run_dir)[0]).to_pylist()


def ours(run_dir: Path) -> list[str]:
    """Network namespaces of this run's fleet."""
    from wrackline.harness.specification.build import build_parts

    fleet = build_parts(load(run_dir / "spec.yaml"), run_dir.name).fleet
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if fleet.name in line]


def inside(run_dir: Path, host: str) -> list[int]:
    """Processes of a host."""
    [namespace] = [line.split()[0] for line in ours(run_dir) if line.split()[0].endswith(f"-{host}")]
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def fill(disk: Path) -> None:
    """To its last byte."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(1 << 12))


def unmet(run_dir: Path) -> dict[str, str]:
    """Conditions of a pass that do not hold, but for those that count operations."""
    counted = ("records acknowledged", "every operation kind", "asked rate", "asked load")
    found = conditions(load_run(run_dir), Figures())
    return {one.name: one.detail for one in found if not one.ok and not one.name.startswith(counted)}


def assert_the_cluster_wrote_down_what_it_answered(found: list[dict[str, Any]]) -> None:
    """Clients were told of no state that is not among the changes, and at the end of the last one."""
    control = [{**row, **orjson.loads(row["extra"] or "{}")} for row in found if row["process"] == CONTROL]
    [chronicle] = [row for row in control if row["f"] == "chronicle"]
    changes = [row for row in control if row["f"] == "partition"]
    assert chronicle["missing"] == []
    assert chronicle["changes"] == len(changes) > 4
    for partition in (0, 1):
        written = [
            (row["leader"], row["leader_epoch"], set(row["isr"]))
            for row in changes
            if row["partition"] == partition
        ]
        answered = [
            (one["leader"], one["leader_epoch"], set(one["isr"]))
            for row in control
            if row["f"] == "cluster"
            for one in row["partitions"]
            if one["partition"] == partition
        ]
        assert [one for one in answered if one not in written] == []
        assert written[-1] == answered[-1]
        epochs = [row["partition_epoch"] for row in changes if row["partition"] == partition]
        assert epochs == list(range(len(epochs)))
    begun = next(row["time_ns"] for row in found if row["f"] == "kill" and '"active"' in row["extra"])
    lost = next(row["at_ns"] for row in changes if row["leader_epoch"] > 0)
    assert begun - 100_000_000 < lost < begun + 10_000_000_000


def test_a_short_run_with_a_killed_leader_passes(tmp_path: Path, spec_file: Path) -> None:
    done = despite_load(lambda: wrackline(tmp_path, "run", spec_file), tmp_path / "results")
    assert done.returncode == 0, done.stdout + done.stderr
    run_dir = only_run(tmp_path)
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    assert verdict["verdict"] == "pass", verdict["reasons"]
    assert [(fault["fault"], fault["proved"]) for fault in verdict["faults"]] == [("kill", True)]
    assert verdict["counts"]["acked_records"] > 500
    assert all(condition["ok"] for condition in verdict["conditions"])

    found = rows(run_dir)
    drained = {
        row["partition"] for row in found if row["f"] == "drain" and "complete" in (row["extra"] or "")
    }
    assert drained == {0, 1}
    replicas = {(row["node"], row["partition"]) for row in found if row["f"] == "replica"}
    assert replicas == {(node, partition) for node in ("n1", "n2", "n3") for partition in (0, 1)}
    for host in ("n1", "n2", "n3", "c1"):
        names = {path.name.removesuffix(".zst") for path in (run_dir / "nodes" / host).iterdir()}
        assert names >= {"broker.log", "trace.jsonl", "effective-config.toml", "listing.txt"}
    assert "<html" in (run_dir / "report.html").read_text()[:200]
    assert ours(run_dir) == []
    assert_the_cluster_wrote_down_what_it_answered(found)
    invariants = verdict["invariants"]
    assert invariants["broken"] == []
    assert invariants["steps"] > 500
    assert {"I01", "I14", "I17"} <= set(invariants["checked"])
    limits = [invariants[name] for name in ("until_ns", "unordered", "unread", "blind")]
    assert limits == [None, 0, 0, []]

    saved = yaml.safe_load((run_dir / "spec.yaml").read_text())
    plan = orjson.loads((run_dir / "plan.json").read_bytes())
    assert saved["seed"] == plan["seed"] == 11

    listed = wrackline(tmp_path, "runs")
    assert run_dir.name in listed.stdout
    assert "pass" in listed.stdout
    assert verdict["engine"]["name"] == "local"
    here = contents(run_dir)
    again = wrackline(tmp_path, "analyze", run_dir, "--engine", "spark")
    assert again.returncode == 0, again.stdout + again.stderr
    by_spark = orjson.loads((run_dir / "verdict.json").read_bytes())["engine"]["name"]
    assert by_spark.startswith("spark "), "Spark judges it again"
    assert contents(run_dir) == here


def test_ctrl_c_in_mid_run_heals_reads_back_and_tears_down(tmp_path: Path, spec_file: Path) -> None:
    with running(
        tmp_path, "run", spec_file, "--no-analysis", "--set", "workload.duration_s=120",
        "--set", "nemesis.schedule.0.duration_s=100",
    ) as process:  # fmt: skip
        wait_for_line(process, "active")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everything in the foreground
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    run_dir = only_run(tmp_path)
    assert any("interrupted by the user" in note for note in read_info(run_dir).notes)
    found = rows(run_dir)
    phases = [orjson.loads(row["extra"])["phase"] for row in found if row["f"] == "phase"]
    assert phases == ["setup", "warm", "main", "heal", "drain", "collect"]
    assert any(row["f"] == "drain" and "complete" in (row["extra"] or "") for row in found)
    ended = [orjson.loads(row["extra"]) for row in found if row["process"] == -1]
    assert ended[-1]["phase"] == "ended"
    assert ended[-1]["proved"] is True
    assert ours(run_dir) == []
    assert list(unmet(run_dir))[:2] == ["the run went to its end", "planned duration reached"]


def test_a_killed_harness_leaves_a_history_and_clean_removes_its_hosts(
    tmp_path: Path, spec_file: Path
) -> None:
    with running(tmp_path, "run", spec_file, "--set", "workload.duration_s=120") as process:
        wait_for_line(process, "ended")
        process.kill()
        process.wait(30)
    run_dir = only_run(tmp_path)
    assert (run_dir / "history.wal").exists()
    assert ours(run_dir) != []

    cleaned = wrackline(tmp_path, "fleet", "clean")
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert ours(run_dir) == []

    found = rows(run_dir)
    assert [row["index"] for row in found] == list(range(len(found)))
    acked = [
        record for row in found if row["f"] == "send" and row["type"] == "ok" for record in row["records"]
    ]
    assert len(acked) > 100
    assert "the recording process died" in read_info(run_dir).notes[0]
    assert (run_dir / "plan.json").exists()
    told = unmet(run_dir)
    assert told["the run went to its end"].startswith("it was killed, or broke down, in phase main, ")
    assert {"planned duration reached", "the hosts' logs are there", "nobody died unasked"} <= set(told)


def test_a_node_that_dies_unasked_is_a_fault_of_its_own(tmp_path: Path, spec_file: Path) -> None:
    with running(tmp_path, "run", spec_file, "--no-analysis") as process:
        wait_for_line(process, "ended")  # the planned one
        [pid] = [pid for pid in inside(only_run(tmp_path), "n3") if "broker.toml" in command_of(pid)]
        os.kill(pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    run = load_run(only_run(tmp_path))
    planned, died = run.faults
    assert (planned.name, planned.proved, planned.asked_for) == ("kill", True, True)
    assert (died.name, died.targets, died.lossy, died.unsure) == (DIED, ("n3",), (), ())
    assert "of node 3 was gone; its last words: " in died.proof
    unmet_ones = unmet(run.directory)
    assert set(unmet_ones) == {"nobody died unasked", "every fault was undone by its own undo"}
    repaired = unmet_ones["every fault was undone by its own undo"]
    assert repaired.startswith("healing had to repair: n3: node 3 was down"), repaired


def test_a_full_data_disk_is_not_called_a_loss(tmp_path: Path, spec_file: Path) -> None:
    """Healing fails. It was: the final read taken while clients still sent, lost-write, exit code 1."""
    settings = ["--set", "fleet.disk_mb=64", "--set", "nemesis.schedule.0.fault=pause"]
    with running(tmp_path, "run", spec_file, *settings) as process:
        wait_for_line(process, "active")
        fill(Path(f"/proc/{inside(only_run(tmp_path), 'n2')[0]}/root/data"))
        said, _ = process.communicate(timeout=540)
    assert process.returncode == 4, said
    run_dir = only_run(tmp_path)
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    assert verdict["verdict"] == "infrastructure"
    assert "No space left on device" in verdict["headline"]
    lost = [row for row in verdict["anomalies"] if row["anomaly"] in ("lost-write", "vanished-read")]
    assert [(row["count"], row["meaning"]) for row in lost] == [(0, "n/a")] * 2
    assert all(final.is_evidence for final in load_run(run_dir).final.values())
