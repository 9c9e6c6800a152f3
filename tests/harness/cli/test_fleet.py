"""``wrackline fleet`` and ``wrackline doctor`` as a person types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.fleets.traces import traces
from wrackline.harness.cli.machine.doctor import doctor
from wrackline.harness.cli.machine.fleet import fleet

pytestmark = pytest.mark.fleet


@pytest.fixture
def runner(state_root: Path) -> CliRunner:
    return CliRunner(env={"WRACKLINE_STATE_DIR": str(state_root)})


def test_a_person_makes_enters_lists_and_ends_a_fleet(runner: CliRunner, state_root: Path) -> None:
    name = f"cli-{os.getpid()}"
    try:
        made = runner.invoke(fleet, ["up", name, "--hosts", "n1,c1", "--disk-mb", "16"])
        assert (made.exit_code, made.output.splitlines()[:2]) == (0, ["n1  198.18.0.11", "c1  198.18.0.21"])
        again = runner.invoke(fleet, ["up", name])
        assert (again.exit_code, again.stderr) == (
            4,
            f"Error: fleet {name} is up already; `wrackline fleet down {name}` ends it\n",
        )
        listed = runner.invoke(fleet, ["list"])
        assert f"{name}  netns  detached  n1=198.18.0.11 c1=198.18.0.21" in listed.output
        [told] = [
            one for one in json.loads(runner.invoke(fleet, ["list", "--json"]).output) if one["name"] == name
        ]
        assert (told["kind"], told["life"], told["namespace"]) == ("netns", "detached", f"wl-{name}")
        assert told["hosts"]["c1"]["ansible_host"] == "198.18.0.21"
        shell = "from wrackline.harness.cli.machine.fleet import fleet; fleet()"
        entered = subprocess.run(
            [sys.executable, "-c", shell, "ssh", "c1", "--fleet", name, "--", "hostname; exit 7"],
            env={**os.environ, "WRACKLINE_STATE_DIR": str(state_root)},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert (entered.returncode, entered.stdout) == (7, "c1\n")
        assert runner.invoke(fleet, ["ssh", "n9", "--fleet", name]).exit_code == 2
    finally:
        ended = runner.invoke(fleet, ["down", name])
    assert (ended.exit_code, ended.output) == (0, f"fleet {name} is gone\n")
    assert traces(name, state_root) == []
    missing = runner.invoke(fleet, ["ssh", "n1", "--fleet", name])
    assert (missing.exit_code, missing.stderr.count("\n")) == (4, 1)
    assert runner.invoke(fleet, ["clean"]).output == "nothing to remove\n"


def test_without_root_no_namespace_is_tried(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done = runner.invoke(fleet, ["up"])
    assert done.exit_code == 2
    assert "fleets need root" in done.stderr
    for command in (["down"], ["ssh", "n1"]):
        done = runner.invoke(fleet, command)
        assert done.exit_code == 4
        assert "run it with sudo" in done.stderr


def test_services_are_refused_where_a_host_runs_none(runner: CliRunner) -> None:
    done = runner.invoke(fleet, ["up", "--init", "systemd"])
    assert done.exit_code == 2
    assert "--init systemd is for --kind qemu; hosts of the kind netns run no services" in done.stderr


def test_the_doctor_finds_this_machine_able(runner: CliRunner) -> None:
    done = runner.invoke(doctor)
    assert done.exit_code == 0, done.output
    assert "lost the 500 unsynced bytes and no others" in done.output
    assert done.output.splitlines()[-1] == "this machine can run everything"


def test_the_doctor_says_how_to_mend_what_is_missing(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr("wrackline.fleets.local.look.FS_IOC_SHUTDOWN", 0x80045878)
    done = runner.invoke(doctor, ["netns", "spark"])
    assert done.exit_code == 2
    lines = done.output.splitlines()
    java = next(number for number, line in enumerate(lines) if line.startswith("missing  java"))
    assert "`sudo ./wrack setup java` installs it" in lines[java + 1]
    assert "missing  host, power cut" in done.output
    assert lines[-1] == "not ready: java, host, power cut"


def test_what_is_absent_is_a_failure_only_for_what_needs_it(
    runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    for asked in ([], ["netns"], ["xfs", "pages"]):
        done = runner.invoke(doctor, asked)
        assert done.exit_code == 0, done.output
        assert "absent   java" in done.output
        assert "\nnot spark: " in done.output
        assert "\nnot netns: " not in done.output
        assert done.output.splitlines()[-1] == "this machine can run everything else"
    assert runner.invoke(doctor, ["nonesuch"]).exit_code == 2
