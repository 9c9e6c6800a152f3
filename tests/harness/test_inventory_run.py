"""A whole run on machines of an inventory: entered as a user with a narrow sudo rule, one by way of a jump
host, their power by a command. The run is in the machines' network, as a user's would be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.fleets.machines import made_machines
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.measures.metrics import Figures

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.apart]

FAULTS = [
    {"at_s": 1, "duration_s": 1.5, "fault": "kill", "target": "n2"},
    {"at_s": 6, "duration_s": 4, "fault": "partition", "target": "n2"},
    {"at_s": 15, "duration_s": 1, "fault": "power-cut", "target": "n2"},
]


def test_a_run_on_machines_of_an_inventory(state_root: Path, tmp_path: Path) -> None:
    with made_machines(f"tf-run-{os.getpid()}", state_root, tmp_path) as machines:
        config = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200, "replica_lag_time_max_ms": 1000}
        specification = {
            "name": "inventory",
            "fleet": machines.spec(keep_installed=False).model_dump(mode="json"),
            "system": {"config": config, "waits": {"steady_s": 0}},
            "topic": {"partitions": 1, "replication_factor": 2, "min_insync_replicas": 1},
            "workload": {"duration_s": 17, "rate": 50, "senders": 2, "pollers": 1, "enders": 1},
            "nemesis": {"schedule": FAULTS},
        }
        spec = tmp_path / "inventory.yaml"
        spec.write_text(yaml.safe_dump(specification))
        found = machines.as_root("n2", "ls -A /data /home/wl /opt /etc /var/tmp")
        command = ["ip", "netns", "exec", machines.fleet.state.control, sys.executable, "-m"]
        command += ["wrackline.harness.cli.main", "run", str(spec), "--results", str(tmp_path / "results")]
        done = subprocess.run(
            [*command, "--no-analysis"], capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        [run_dir] = (tmp_path / "results").iterdir()
        run = load_run(run_dir)
        met = {one.name: one for one in conditions(run, Figures())}
        assert met["every fault proved"].detail == "3 of 3", met["every fault proved"]
        assert met["nobody died unasked"].ok, met
        assert met["every replica's log read"].ok
        assert run.info.untested == ()  # its power was cut
        assert ["files not counted" in fault.proof for fault in run.faults] == [False, False, True]
        assert machines.as_root("n2", "ls -A /data /home/wl /opt /etc /var/tmp") == found
