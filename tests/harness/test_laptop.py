"""A run on the fleet `process`, as a user who is not root, from specification to evidence; and what somebody
who looks from outside sees of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.contracts import contract_for
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.checkers.verdict.verdict import Found, decide
from wrackline.fleets.process.state import listening
from wrackline.harness.specification.spec import SpecError, load
from wrackline.harness.specification.suites import suites_dir

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.apart]

NOBODY = 65534
SUITE = suites_dir() / "laptop.yaml"


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that somebody without rights may use: those of pytest are the user's alone."""
    folder = Path(f"/var/tmp/wl-laptop-{os.getpid()}")
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def as_somebody(home: Path, *arguments: object) -> subprocess.Popen[str]:
    """`wrackline` as a user without rights: as who we are, or as nobody where we are root."""
    program = "import sys; from wrackline.harness.cli.entry import main; sys.exit(main())"
    rights = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "WRACKLINE_STATE_DIR": f"{home}/state",
            "PYTHONUNBUFFERED": "1",
            "PYTHONPYCACHEPREFIX": f"{home}/compiled",  # he may not write beside the sources
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        **rights,  # type: ignore[arg-type]
    )


def said(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=360)
    assert process.returncode == 0, out + errors
    return out


def test_a_run_without_root(home: Path) -> None:
    run = as_somebody(
        home,
        "run",
        SUITE,
        "--results",
        home / "results",
        "--no-analysis",
        "--keep-fleet",
        "--set",
        "workload.duration_s=4",
    )
    at = set()
    while run.poll() is None:  # while it goes on, from outside
        at |= {port for port in listening("127.") if port.endswith((":9092", ":9093", ":9094"))}
        time.sleep(0.2)
    said(run)
    [run_dir] = (home / "results").iterdir()
    made = load_run(run_dir)
    met = {one.name: one for one in conditions(made, Figures())}
    assert met["every fault proved"].detail == "2 of 2", met
    assert met["every replica's log read"].ok
    assert met["the hosts' logs are there"].ok
    _, reasons = decide(contract_for(made, anomalies()), [], Found(), [])
    assert [one.split(":")[:2] for one in reasons[1:]] == [
        ["not tested", " durability"],
        ["not tested", " partitions and lost packets"],
    ]

    [kept] = json.loads(said(as_somebody(home, "fleet", "list", "--json")))
    assert (kept["kind"], kept["life"]) == ("process", "detached")
    hosts = {name: one["ansible_host"] for name, one in kept["hosts"].items()}
    at = {one for one in at if one.partition(":")[0] in hosts.values()}  # other tests have nodes here, too
    assert at == {f"{address}:{port}" for address in hosts.values() for port in (9092, 9093, 9094)}
    assert set(listening("127.")) >= at  # they live on
    assert (
        said(as_somebody(home, "fleet", "ssh", "n1", "id -u; cat run/wrackline/broker.pid")).split()[0] != "0"
    )
    said(as_somebody(home, "fleet", "down"))
    assert not set(listening("127.")) & at
    assert not (home / "state").exists()


@pytest.mark.nightly
def test_apache_kafka_without_root(home: Path) -> None:
    """Its jars are root's, as `wrackline get kafka` leaves them."""
    kafka = {
        "name": "laptop-kafka",
        "fleet": {"kind": "process", "brokers": 3, "controllers": 1, "combined": True},
        "system": {"kind": "apache-kafka", "waits": {"steady_s": 0}},
        "topic": {"partitions": 1, "replication_factor": 3, "min_insync_replicas": 2},
        "workload": {"duration_s": 12, "rate": 30, "senders": 2, "pollers": 1, "enders": 1},
        "nemesis": {
            "schedule": [
                {"at_s": 1, "duration_s": 2, "fault": "kill", "target": "leader(log-0)"},
                {"at_s": 9, "duration_s": 1, "fault": "pause", "target": "follower(log-0)"},
            ]
        },
    }
    (home / "kafka.yaml").write_text(yaml.safe_dump(kafka))
    said(as_somebody(home, "run", home / "kafka.yaml", "--results", home / "results", "--no-analysis"))
    [run_dir] = (home / "results").iterdir()
    met = {one.name: one for one in conditions(load_run(run_dir), Figures())}
    assert met["every fault proved"].detail == "2 of 2", met
    assert met["every replica's log read"].ok
    assert not (home / "state").exists()


def test_what_such_hosts_cannot_do_is_refused_in_a_line() -> None:
    with pytest.raises(SpecError) as refused:
        load(suites_dir() / "demo-acks-all.yaml", settings=["fleet.kind=process"])
    assert [
        line.partition(": hosts of the fleet process are folders")[0].partition(": ")[2]
        for line in refused.value.mistakes
    ] == [
        "nemesis.schedule[0]: partition needs hosts with a network of their own, in which packets can be "
        "dropped",
        "nemesis.schedule[2]: power-cut needs a switch for the power of its hosts",
    ]
