"""A wheel with extension modules: the same runs and the same tests as from its sources, or no extension."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from wrackline import compiled

ROOT = Path(__file__).parents[2]
INTERPRETED = ("mutants", "trace_check", "output/test_export.py", "run/test_replay.py")
"""Tests of mutants, and those that import what judges traces: both run from the sources."""
DIGESTS = """
import sys
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.run import run
for seed in range(int(sys.argv[1])):
    result = run(swarm(Setup(seed), any_profile=True), digest=True)
    print(seed, result.digest, result.events, result.violation)
print(*(name for name, one in sys.modules.items() if (getattr(one, "__file__", None) or "").endswith(".py")))
"""


def build(into: Path, **environment: str) -> tuple[Path, str]:
    """The wheel, and what its build printed."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)],
        cwd=ROOT,
        env={**os.environ, "WRACKLINE_COMPILE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    [wheel] = into.glob("*.whl")
    return wheel, done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked wheel that was compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    wheel, _ = build(folder / "dist")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "unpacked")
    return folder / "unpacked"


def digests(package: Path, seeds: int, **environment: str) -> tuple[list[str], set[str], str]:
    """(a line for each run, modules of the manifest that run from their source, what was printed beside)."""
    manifest = json.loads((package / "wrackline/extensions" / compiled.MANIFEST).read_text())
    done = subprocess.run(
        [sys.executable, "-P", "-c", DIGESTS, str(seeds)],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *lines, interpreted = done.stdout.splitlines()
    return lines, set(interpreted.split()) & set(manifest["modules"]), done.stderr


# --- which extension modules are used ----------------------------------------------------------------------


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    """A package of one module, with an extension module of it."""
    folder = tmp_path / "wrackline" / "extensions"
    folder.mkdir(parents=True)
    source, file = folder.parent / "probe.py", folder / f"probe{EXTENSION_SUFFIXES[0]}"
    source.write_text("VALUE = 1\n")
    file.touch()
    manifest = {
        "modules": {"wrackline.probe": file.name},
        "sources": {"probe.py": sha256(source.read_bytes()).hexdigest()},
    }
    (folder / compiled.MANIFEST).write_text(json.dumps(manifest))
    return folder


def origin(extensions: Path, *modules: str, **environment: str) -> str | None:
    """Where the last of these modules would come from, as far as the extension modules have a say."""
    before = list(sys.meta_path)
    try:
        compiled.install(extensions, environment)
        finder = next((one for one in sys.meta_path if one not in before), None)
        spec = None
        for module in modules or ("wrackline.probe",):
            spec = None if finder is None else finder.find_spec(module, None)
        return None if spec is None else spec.origin
    finally:
        sys.meta_path[:] = before


def test_a_module_that_was_compiled_is_an_extension_module(extensions: Path) -> None:
    assert origin(extensions) == str(extensions / f"probe{EXTENSION_SUFFIXES[0]}")
    assert origin(extensions, "wrackline.other") is None


def test_none_is_used_where_the_environment_says_so(extensions: Path) -> None:
    assert origin(extensions, WRACKLINE_PURE="1") is None


def test_none_is_used_when_a_source_is_another_one(
    extensions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = extensions.parent / "probe.py"
    source.write_text("VALUE = 2\n")
    assert origin(extensions) is None
    line = f"{source} is not what the extension modules were compiled from; install the wheel again"
    assert capsys.readouterr().err == f"wrackline: runs from its sources: {line}\n"


def test_none_is_used_where_traces_are_judged(extensions: Path) -> None:
    judge = "wrackline.simulator.trace_check"
    assert origin(extensions, judge, "wrackline.probe") is None
    with pytest.raises(ImportError, match=f"^{judge} does not work .*: set WRACKLINE_PURE=1$"):
        origin(extensions, "wrackline.probe", judge)


def test_none_is_used_by_another_python(extensions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (extensions / compiled.MANIFEST).read_text()
    (extensions / compiled.MANIFEST).write_text(text.replace(EXTENSION_SUFFIXES[0], ".cpython-30-other.so"))
    (extensions / "probe.cpython-30-other.so").touch()
    assert origin(extensions) is None
    assert "is not of this Python" in capsys.readouterr().err


@pytest.mark.slow
def test_without_a_compiler_the_wheel_is_pure(tmp_path: Path) -> None:
    wheel, output = build(tmp_path, CC="no-such-compiler")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert "nothing is compiled: no compiler no-such-compiler" in output


# --- what was compiled -------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_runs_are_the_same_byte_for_byte(package: Path) -> None:
    pure, every, _ = digests(package, 20, WRACKLINE_PURE="1")
    lines, none, printed = digests(package, 20)
    assert lines == pure
    assert "wrackline.simulator.world.world" in every
    assert not none
    assert printed == ""


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("folder", ["tests/broker/core", "tests/simulator"])
def test_the_same_tests_pass(package: Path, folder: str) -> None:
    paths = f"pythonpath={package} {ROOT}"
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", paths, folder]
    command += [f"--ignore=tests/simulator/{name}" for name in INTERPRETED]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(package)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_change_of_a_source_is_what_runs(package: Path) -> None:
    source = package / "wrackline/simulator/world/clock.py"
    text = source.read_text()
    try:
        source.write_text(f"{text}\n# another one\n")
        _, interpreted, printed = digests(package, 1)
    finally:
        source.write_text(text)
    assert "wrackline.broker.core.broker" in interpreted
    assert printed.count("\n") == 1
    assert "clock.py is not what the extension modules were compiled from" in printed
