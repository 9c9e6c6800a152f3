"""A command that lacks something of the machine says so before it begins, in one line that installs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.cli.calling import refused
from wrackline import needs
from wrackline.harness.specification.spec import load

ROOT = Path(__file__).parents[3]
SUITES = ROOT / "suites"
DEMO = str(SUITES / "demo-acks-all.yaml")


@pytest.fixture(autouse=True)
def _as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def lacking(monkeypatch: pytest.MonkeyPatch, *programs: str) -> None:
    monkeypatch.setattr(needs, "is_there", lambda program: program not in programs)


@pytest.mark.parametrize(
    ("command", "lacks", "line"),
    [
        (["run", DEMO], "sshd", "the fleet netns needs sshd: `sudo ./wrack setup netns` installs it"),
        (["demo"], "iptables", "the demo needs iptables: `sudo ./wrack setup netns` installs it"),
        (["demo", "--fleet", "qemu"], "lz4", "the demo needs lz4: `sudo ./wrack setup qemu` installs it"),
        (
            ["run", DEMO, "--set", "fleet.filesystem=xfs", "--set", "fleet.disk_mb=512"],
            "mkfs.xfs",
            "the fleet netns needs mkfs.xfs: `sudo ./wrack setup xfs` installs it",
        ),
        (
            ["run", DEMO, "--fleet", "libvirt"],
            "virsh",
            "the fleet libvirt needs virsh: `sudo ./wrack setup libvirt` installs it",
        ),
        (
            ["run", str(SUITES / "qemu-broker.yaml")],
            "qemu-system-x86_64",
            "the fleet qemu needs qemu-system-x86_64: `sudo ./wrack setup qemu` installs it",
        ),
        (
            ["run", str(SUITES / "kafka-acks-all.yaml")],
            "java",
            "the system apache-kafka needs java: `sudo ./wrack setup java` installs it",
        ),
        (["fleet", "up"], "ip", "a fleet of the kind netns needs ip: `sudo ./wrack setup netns` installs it"),
        (
            ["image", "build"],
            "mmdebstrap",
            "get image needs mmdebstrap: `sudo ./wrack setup qemu` installs it",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_one_line_names_what_is_missing_and_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    command: list[str],
    lacks: str,
    line: str,
) -> None:
    lacking(monkeypatch, lacks)
    folder = tmp_path / "results"
    results = ["--results", str(folder)] if command[0] in ("run", "demo") else []
    assert refused(capsys, *command, *results) == f"wrackline: {line}"
    assert not list(folder.rglob("*.*")), "nothing was begun"


def test_a_laptop_run_needs_nothing_of_the_machine() -> None:
    spec = load(SUITES / "laptop.yaml")
    assert not spec.fleet.needs_root
    assert (*spec.fleet.needs, *spec.system.needs) == ()


def test_without_a_checkout_the_line_is_for_pip_and_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_LAUNCHER", ROOT / "nowhere")
    lacking(monkeypatch, "java", "busybox")
    with pytest.raises(needs.Missing) as caught:
        needs.require("qemu", "the fleet qemu")
    apt = "apt-get install --no-install-recommends"
    assert str(caught.value) == f"the fleet qemu needs busybox: `{apt} busybox-static` installs it"
    with pytest.raises(needs.Missing) as caught:
        needs.require("spark", "the engine spark")
    assert str(caught.value) == (f"the engine spark needs java: `{apt} openjdk-17-jre-headless` installs it")
    monkeypatch.setattr(needs, "find_spec", lambda _name: None)
    assert needs.mend("spark").startswith(f"`pip install 'wrackline[spark]'` and `{apt} openjdk-17")


def test_a_java_that_is_too_old_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not needs.is_there("java")
    for said, new_enough in (("1.8.0_392", False), ("11.0.2", False), ("17.0.15", True), ("25", True)):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{said}\" 2024-01-01' >&2\n")
        java.chmod(0o755)
        assert needs.is_there("java") is new_enough
