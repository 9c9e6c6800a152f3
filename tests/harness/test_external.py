"""Runs on a cluster that runs already: real brokers on loopback, which shell commands kill, start, stop and
wake up, as an owner's would. No root, no hosts of ours."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.broker.clients.loopback import free_ports, wait_for
from tests.harness.doubles import rows
from tests.harness.machine_load import despite_load
from tests.systems.external.running import ROOT, Running, running
from wrackline.harness.cli.main import main

pytestmark = pytest.mark.real

LOAD = {"duration_s": 7, "rate": 60, "senders": 3, "in_flight": 20}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("theirs")) as made:
        yield made


def spec(folder: Path, theirs: Running, **others: Any) -> Path:
    system = {"kind": "external", "bootstrap": theirs.bootstrap, **others.pop("system", {})}
    file = folder / "spec.yaml"
    file.write_text(
        yaml.safe_dump({"name": "theirs", "seed": 5, "system": system, "workload": LOAD, **others})
    )
    return file


def call(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def the_run(results: Path) -> Path:
    [made] = [one for one in results.iterdir() if (one / "spec.yaml").exists()]
    return made


@pytest.mark.slow
def test_a_run_with_the_owners_commands_passes_and_leaves_nothing(theirs: Running, tmp_path: Path) -> None:
    """Kill of a leader and pause of a follower, both proved by their probes; the verdict says what nobody
    looked at, and the topic is gone."""
    before = theirs.topics()
    schedule = [
        {"at_s": 1, "duration_s": 2, "fault": "kill", "target": "leader(log-0)"},
        {"at_s": 4.5, "duration_s": 1.5, "fault": "pause", "target": "follower(log-1)"},
    ]
    file = spec(tmp_path, theirs, system={"commands": theirs.commands()}, nemesis={"schedule": schedule})
    results = tmp_path / "results"
    command = ("run", file, "--results", results, "--master", "local[2]")
    assert despite_load(lambda: call(*command), results) == 0
    made = the_run(results)
    verdict = orjson.loads((made / "verdict.json").read_bytes())
    assert ". acks-all was kept, by the final read alone" in verdict["headline"]
    assert [fault["proved"] for fault in verdict["faults"]] == [True, True]
    assert (
        "its probe said yes at the beginning and the end, and no afterwards" in verdict["faults"][0]["proof"]
    )
    told = {one["name"]: (one["ok"], one["detail"]) for one in verdict["conditions"]}
    why = "none was read: its hosts are not ours; the verdict rests on the final read alone"
    assert told["every replica's log read"] == (True, why)
    assert told["the hosts' logs are there"] == (True, "the logs of 3 hosts were fetched")  # by `logs`
    assert "not looked at: replicas, processes (its hosts are not ours)" in verdict["reasons"][1]
    meanings = {one["anomaly"]: one["meaning"] for one in verdict["anomalies"]}
    assert meanings["replica-divergence"] == meanings["lost-on-replica"] == "n/a"
    topic = f"wrackline-{made.name}-log"
    assert {row["topic"] for row in rows(made) if row["f"] == "send"} == {topic}
    assert yaml.safe_load((made / "spec.yaml").read_text())["topic"]["name"] == "log"
    assert theirs.topics() == before
    assert "replica.lag.time.max.ms=1500\n" in (made / "nodes" / "n1" / "effective-config.txt").read_text()


def test_two_runs_at_once_do_not_meet(theirs: Running, tmp_path: Path) -> None:
    """Each has a topic of its own, and reads back what it wrote and nothing else; one topic is kept."""
    runs = []
    for name, kept in (("one", True), ("two", False)):
        folder = tmp_path / name
        folder.mkdir()
        load = {**LOAD, "duration_s": 2}
        file = spec(folder, theirs, system={"keep_topics": kept}, workload=load)
        runs.append(start("run", file, "--results", folder / "results", "--no-analysis"))
    assert [one.wait(120) for one in runs] == [0, 0]
    topics = []
    for name in ("one", "two"):
        made = the_run(tmp_path / name / "results")
        values = {record["value"] for row in rows(made) for record in row["records"] or ()}
        assert values
        assert min(values) >= 0  # -2 is a record of another run, -1 one that is corrupt
        topics.append(f"wrackline-{made.name}-log")
    assert topics[0] in theirs.topics()
    assert topics[1] not in theirs.topics()


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "wrackline.harness.cli.entry", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )


def test_ctrl_c_undoes_the_fault_that_is_in_force(theirs: Running, tmp_path: Path) -> None:
    schedule = [{"at_s": 0.5, "duration_s": 50, "fault": "pause", "target": "n2"}]
    hosts = {f"n{node}": {"node": node} for node in (1, 2, 3)}
    file = spec(
        tmp_path,
        theirs,
        system={"commands": theirs.commands(), "hosts": hosts},
        nemesis={"schedule": schedule},
        workload={**LOAD, "duration_s": 60},
    )
    run = start("run", file, "--results", tmp_path / "results", "--no-analysis")
    wait_for("the pause", lambda: state(theirs.pid(2)) == "T", 60)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: everybody in its group
    said, _ = run.communicate(timeout=270)
    assert state(theirs.pid(2)) in "RSD", said
    faults = [
        orjson.loads(row["extra"]) for row in rows(the_run(tmp_path / "results")) if row["f"] == "pause"
    ]
    assert (faults[-1]["phase"], faults[-1]["proved"]) == ("ended", True)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_cluster_that_does_not_answer_is_one_line(
    tmp_path: Path, theirs: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for who is not root: no host is made."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    nobody = f"127.0.0.1:{free_ports(1)[0]}"
    file = spec(tmp_path, theirs, system={"bootstrap": [nobody]})
    assert call("run", file, "--results", tmp_path / "results") == 4
    [line] = capsys.readouterr().err.splitlines()
    refused = f"cannot connect to {nobody}: [Errno 111] Connection refused"
    assert line.startswith(f"wrackline: no broker of {nobody} answers: {refused}")
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").iterdir())
