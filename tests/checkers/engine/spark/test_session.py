"""Spark's session refuses a missing or old Java, and removes what killed processes left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from subprocess import PIPE

import pytest

from wrackline.checkers import anomalies
from wrackline.checkers.engine.spark.cluster import bundle


@pytest.mark.parametrize(
    ("java", "says"),
    [(None, "there is no"), ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11; the analysis needs 17")],
)
def test_missing_or_old_java_is_one_clear_line(tmp_path: Path, java: str | None, says: str) -> None:
    if java:
        (tmp_path / "bin").mkdir()
        script = tmp_path / "bin" / "java"
        script.write_text(f"#!/bin/sh\n{java}\n")
        script.chmod(0o755)
    code = "from wrackline.checkers.engine.spark.session import JavaMissing, java_version\n"
    code += "try: java_version()\nexcept JavaMissing as e: print(e)"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert says in said.stdout
    assert "`sudo ./wrack setup java` installs it" in said.stdout
    assert len(said.stdout.splitlines()) == 1


def test_what_a_killed_analysis_left_goes_with_the_next(tmp_path: Path) -> None:
    """And a living one's is left alone, in the other process."""
    code = "import sys, time\nfrom wrackline.checkers.engine.spark.session import _scratch\n"
    code += "print(_scratch(), flush=True)\nsys.stdin.read()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def one() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", code], stdin=PIPE, stdout=PIPE, text=True, env=environment
        )

    def folder(process: subprocess.Popen[str]) -> Path:
        assert process.stdout is not None
        return Path(process.stdout.readline().strip())

    with one() as killed, one() as alive:
        left, kept = folder(killed), folder(alive)
        killed.kill()
        killed.wait()
        assert left.is_dir()
        with one() as later:
            own = folder(later)
            assert not left.exists()
            assert kept.is_dir()
            later.communicate("")
            assert not own.exists()
        alive.communicate("")


def test_what_a_cluster_is_sent_imports_without_the_checkout(tmp_path: Path) -> None:
    """Spark's workers have the archive and the libraries, and nothing else of ours."""
    archive = bundle(tmp_path)
    modules = [f"{anomalies.__name__}.{one.name}" for one in iter_modules(anomalies.__path__)]
    code = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    said = subprocess.run(
        [sys.executable, "-P", "-c", code, "wrackline.checkers.engine.tasks", *modules],
        env={**os.environ, "PYTHONPATH": str(archive)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    places = said.stdout.splitlines()
    assert len(places) == len(modules) + 1
    assert [place for place in places if not place.startswith(str(archive))] == []


AHEAD = """
from wrackline.checkers.engine.spark.ahead import SparkAhead
from wrackline.checkers.engine.spark.masters import SparkUnavailable
from wrackline.checkers.engine.spark.session import session

ahead = SparkAhead()
ahead.begin()
ahead.begin()
try:
    with ahead.session() as spark, session() as asked:
        print(asked is spark, spark.range(3).count())
except SparkUnavailable as wrong:
    print(wrong)
"""


@pytest.mark.parametrize(
    ("home", "says"), [(None, "True 3\n"), ("/no-such-java", "JAVA_HOME is /no-such-java")]
)
def test_a_session_that_was_begun_ahead_is_given_to_whoever_asks(home: str | None, says: str) -> None:
    """Another thread has started it. What kept that from it is raised here."""
    environment = {**os.environ, **({"JAVA_HOME": home} if home else {})}
    said = subprocess.run(
        [sys.executable, "-c", AHEAD], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith(says), said.stderr
    assert "Traceback" not in said.stderr
