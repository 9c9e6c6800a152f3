"""The launcher on machines that it cannot set up, and the lock file it installs from."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bare() -> Iterator[Path]:
    """The launcher in a folder where nothing is set up, readable for everybody."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="wl-launcher-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(ROOT / "ansible", folder / "ansible")
        for file in ("wrack", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / file, folder)
        yield folder


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error, of a call that ended with exit code 2 and did nothing."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_help_teaches_and_sets_nothing_up(bare: Path) -> None:
    done = call(bare / "wrack", "--help")
    assert done.returncode == 0
    for word in ("demo", "doctor", "setup", "check", "test", "fleet"):
        assert f"./wrack {word}" in done.stdout
    assert sorted(path.name for path in bare.iterdir()) == [
        "ansible",
        "pyproject.toml",
        "requirements.lock",
        "wrack",
    ]


@pytest.mark.fleet
def test_without_root_it_says_so(bare: Path) -> None:
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    line = complaint(call(*nobody, bare / "wrack", "demo", "--seed", "7"))
    assert re.fullmatch(r"wrack: .* needs root; run it again as: sudo .*/wrack demo --seed 7", line)
    assert "needs root" in complaint(call(*nobody, bare / "wrack", "test"))


@pytest.mark.fleet
def test_on_a_system_it_does_not_know_it_says_what_to_do(bare: Path, tmp_path: Path) -> None:
    other = tmp_path / "os-release"
    other.write_text('ID=plan9\nNAME="Plan 9"\n')
    script = f"mount --bind {other} $(readlink -f /etc/os-release) && exec {bare}/wrack setup"
    line = complaint(call("unshare", "--mount", "sh", "-c", script))
    assert line.startswith("wrack: this is plan9, and the set-up knows Debian and Ubuntu only")


def test_the_lock_fits_the_project() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {
        canonicalize_name(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+) \\$", lock)
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    for requirement in map(Requirement, wanted):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement} is not locked: run `./wrack lock`"
        assert requirement.specifier.contains(version), (
            f"{requirement}, but locked is {version}: run `./wrack lock`"
        )


def test_the_lock_names_no_place_to_fetch_from() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|^\s*--(?!hash)|find-links|trusted-host", lock, re.MULTILINE)
    assert lock.count("==") <= lock.count("--hash=sha256:")
