"""Playbooks as a site would run them: by `ansible-playbook`, on the inventory of the fleets that are up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parents[2]
ANSIBLE = HERE / "ansible"
FLEET = "import sys; from wrackline.harness.cli.machine.fleet import fleet; sys.exit(fleet())"


def beside(name: str) -> str:
    """A program of the environment that the tests run in."""
    return str(Path(sys.executable).with_name(name))


def environment(state_dir: Path, folder: Path) -> dict[str, str]:
    """``folder``: where Ansible keeps what is its own."""
    return {
        **os.environ,
        "WRACKLINE_STATE_DIR": str(state_dir),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }


def fleets_up(around: dict[str, str]) -> Path:
    """The program that `wrackline fleet inventory` names."""
    command = [sys.executable, "-c", FLEET, "inventory"]
    asked = subprocess.run(command, env=around, capture_output=True, text=True, timeout=180, check=True)
    return Path(asked.stdout.strip())


def apply(
    book: Path, inventories: Sequence[Path], around: dict[str, str], *, timeout_s: float = 400
) -> dict[str, dict[str, int]]:
    """What Ansible counts, by host: ``ok``, ``changed``, ``failed``, ..."""
    sources = [word for one in inventories for word in ("-i", str(one))]
    command = [beside("ansible-playbook"), *sources, str(book)]
    done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    recap = re.findall(r"^(\w+) +: (ok=.*)$", done.stdout, re.MULTILINE)
    return {
        host: {key: int(value) for key, value in (one.split("=") for one in counts.split())}
        for host, counts in recap
    }
