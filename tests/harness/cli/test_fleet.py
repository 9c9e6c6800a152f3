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
from tests.harness.cli.calling import call, refused
from wrackline.harness.cli.machine.doctor import doctor

pytestmark = pytest.mark.fleet


@pytest.fixture
def runner(state_root: Path) -> CliRunner:
    return CliRunner(env={"WRACKLINE_STATE_DIR": str(state_root)})


def test_a_person_makes_enters_lists_and_ends_a_fleet(
    capsys: pytest.CaptureFixture[str], state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"cli-{os.getpid()}"
    monkeypatch.setenv("WRACKLINE_STATE_DIR", str(state_root))
    try:
        code, out, _ = call(capsys, "fleet", "up", name, "--hosts", "n1,c1", "--disk-mb", "16")
        assert (code, out.splitlines()[:2]) == (0, ["n1  198.18.0.11", "c1  198.18.0.21"])
        code, _, err = call(capsys, "fleet", "up", name)
        taken = f"wrackline: fleet {name} is up already; `wrackline fleet down {name}` ends it\n"
        assert (code, err) == (4, taken)
        listed = call(capsys, "fleet", "list")[1]
        assert f"{name}  netns  detached  n1=198.18.0.11 c1=198.18.0.21" in listed
        fleets = json.loads(call(capsys, "fleet", "list", "--json")[1])
        [told] = [one for one in fleets if one["name"] == name]
        assert (told["kind"], told["life"], told["namespace"]) == ("netns", "detached", f"wl-{name}")
        assert told["hosts"]["c1"]["ansible_host"] == "198.18.0.21"
        shell = [sys.executable, "-m", "wrackline.harness.cli.entry", "fleet", "ssh", "c1", "--fleet", name]
        entered = subprocess.run(
            [*shell, "--", "hostname; exit 7"], capture_output=True, text=True, check=False, timeout=180
        )
        assert (entered.returncode, entered.stdout) == (7, "c1\n")
        assert call(capsys, "fleet", "ssh", "n9", "--fleet", name)[0] == 2
    finally:
        ended = call(capsys, "fleet", "down", name)
    assert ended == (0, f"fleet {name} is gone\n", "")
    assert traces(name, state_root) == []
    code, _, err = call(capsys, "fleet", "ssh", "n1", "--fleet", name)
    assert (code, err.count("\n")) == (4, 1)
    assert call(capsys, "fleet", "clean")[1] == "nothing to remove\n"


def test_without_root_no_namespace_is_tried(
    capsys: pytest.CaptureFixture[str], state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("WRACKLINE_STATE_DIR", str(state_root))
    assert "fleets need root" in refused(capsys, "fleet", "up")
    for command in (["down"], ["ssh", "n1"]):
        code, _, err = call(capsys, "fleet", *command)
        assert code == 4
        assert "run it with sudo" in err


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
