"""Knossos and Elle compiled: a cache that may be missing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.classpath import available, find_classpath, required_classpath
from wrackline.checkers.jvm.compiled import OFF_VARIABLE, Loadable, loadable
from wrackline.checkers.jvm.processor_time import Allowance


def java(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A Java that writes down how it was called and does what the script says. Returns the jar of a
    classpath."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    jar = folder / "knossos.jar"
    jar.write_text("a jar")
    return jar


COMPILES = """
mkdir -p dom_top/core; : > dom_top/core/MutableAcc-Object.class
for one in "$@"; do case $one in
-Dclojure.compile.path=*) mkdir -p "${one#*=}/wrackline"; : > "${one#*=}/wrackline/knossos__init.class" ;;
-XX:ArchiveClassesAtExit=*) : > "${one#*=}" ;;
esac; done"""


def test_it_is_made_once_and_again_when_a_jar_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar, told = java(tmp_path, monkeypatch, COMPILES), list[str]()
    first = loadable([str(jar)], progress=told.append)
    compiled, *rest = first.classpath
    assert (Path(compiled).is_file(), rest) == (True, [str(jar)])
    assert first.options == (f"-XX:SharedArchiveFile={Path(compiled).with_suffix('.jsa')}",)
    assert loadable([str(jar)], progress=told.append) == first
    assert len(told) == 1, "the second finds what the first made"
    jar.write_text("another jar")
    assert loadable([str(jar)]).classpath[0] != compiled


def test_what_a_jvm_writes_where_it_is_does_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As dom-top does, for one. The classpath and the cache are named from where the command is given."""
    jar, here = java(tmp_path, monkeypatch, COMPILES), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", "../cache")
    classpath = find_classpath("../knossos.jar")
    assert classpath is not None
    found = loadable(classpath)
    assert found.classpath[1:] == (str(here / ".." / jar.name),)
    assert found.options, "jar and archive were made"
    assert list(here.iterdir()) == []
    kept = {path.suffix for path in (tmp_path / "cache" / "wrackline" / "jvm").iterdir()}
    assert kept == {".jar", ".jsa", ".made", ".lock"}


def test_a_folder_on_the_classpath_goes_into_the_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar, sources = java(tmp_path, monkeypatch, COMPILES), tmp_path / "src"
    (sources / "elle").mkdir(parents=True)
    (sources / "elle" / "core.clj").touch()
    found = loadable([str(sources), str(jar)])
    assert found.classpath[1:] == (str(jar),), "an archive allows no folders"
    assert "elle/core.clj" in ZipFile(found.classpath[0]).namelist()


@pytest.mark.parametrize("script", ["exit 1", COMPILES.replace(': > "${one#*=}" ;;', "exit 1;;")])
def test_without_an_archive_it_is_only_slower(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    jar = java(tmp_path, monkeypatch, script)
    found = loadable([str(jar)])
    assert found.classpath[-1] == str(jar)
    assert found.options == ()


def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = java(tmp_path, monkeypatch, COMPILES)
    (tmp_path / "cache").touch()
    assert loadable([str(jar)]) == Loadable((str(jar),))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setenv(OFF_VARIABLE, "0")
    assert loadable([str(jar)]) == Loadable((str(jar),))
    assert not (tmp_path / "calls").exists()


def wait_until(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def compiled(folder: Path, name: str) -> int:
    """How often it was begun to compile this."""
    return (folder / "calls").read_text().count(f"compile 'wrackline.{name}")


def in_a_process(jar: Path) -> subprocess.Popen[bytes]:
    code = (
        f"from wrackline.checkers.jvm.compiled import loadable; print(loadable([{str(jar)!r}]).classpath[0])"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


ELLE_ONCE = """
case "$*" in *compile*wrackline.elle*) [ -e {folder}/again ] || {{ : > {folder}/again; {then}; }} ;; esac
"""


def test_who_is_killed_leaves_what_it_had_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = ELLE_ONCE.format(folder=tmp_path, then=f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    jar = java(tmp_path, monkeypatch, COMPILES + hangs)
    killed = in_a_process(jar)
    pid = tmp_path / "pid"
    wait_until(lambda: pid.exists() and pid.read_text().strip(), "Elle is compiled")
    killed.kill()
    killed.communicate()
    found = loadable([str(jar)])
    assert found.options, "jar and archive were made"
    assert (compiled(tmp_path, "knossos"), compiled(tmp_path, "elle")) == (1, 2)
    status = Path(f"/proc/{pid.read_text().strip()}/status")
    gone = not status.exists() or "State:\tZ" in status.read_text()
    assert gone, "the JVM goes with who started it"


def test_a_jvm_that_somebody_ended_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel does where memory is short: that says nothing about Elle."""
    jar = java(tmp_path, monkeypatch, COMPILES + ELLE_ONCE.format(folder=tmp_path, then="kill -9 $$"))
    assert loadable([str(jar)]) == Loadable((str(jar),))
    assert loadable([str(jar)]).options
    assert (compiled(tmp_path, "knossos"), compiled(tmp_path, "elle")) == (1, 2)


def test_who_is_killed_before_the_archive_leaves_it_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = java(tmp_path, monkeypatch, COMPILES)
    first = loadable([str(jar)])
    for suffix in (".jsa", ".made"):
        Path(first.classpath[0]).with_suffix(suffix).unlink()
    assert loadable([str(jar)]) == first


def test_two_at_once_have_it_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = java(tmp_path, monkeypatch, COMPILES)
    said = {one.communicate()[0] for one in [in_a_process(jar) for _ in range(3)]}
    assert len(said) == 1
    assert (compiled(tmp_path, "knossos"), compiled(tmp_path, "elle")) == (1, 1)


def test_its_limit_is_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.checkers.jvm.compiled.LIMIT_S", 0.3)
    monkeypatch.setattr("wrackline.checkers.jvm.compiled.LOOK_S", 0.1)
    waits, works = tmp_path / "waits", tmp_path / "works"
    waits.mkdir()
    assert loadable([str(java(waits, monkeypatch, f"sleep 1; {COMPILES}"))]).options, (
        "others had the processor"
    )
    works.mkdir()
    jar = java(works, monkeypatch, "while :; do :; done")
    assert loadable([str(jar)]) == Loadable((str(jar),))


def test_who_does_nothing_any_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wrackline.checkers.jvm.processor_time.STILL_S", 0.05)
    with subprocess.Popen(["sleep", "100"]) as still:
        allowance = Allowance(still.pid, 300)
        wait_until(lambda: allowance.spent(), "it is still")
        assert "did nothing" in allowance.spent()
        still.kill()


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="no classpath with Knossos and Elle (WRACKLINE_JVM_CLASSPATH)")
def test_the_real_ones_are_compiled_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classpath, here = required_classpath(), tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = loadable(classpath)
    assert [Path(one).suffix for one in (found.classpath[0], *found.options)] == [".jar", ".jsa"]
    assert any(name.startswith("dom_top/core/MutableAcc-") for name in ZipFile(found.classpath[0]).namelist())
    for compiled in ("1", "0"):
        monkeypatch.setenv(OFF_VARIABLE, compiled)
        with Bridge(classpath) as bridge:
            bridge.load("elle")
    assert list(here.iterdir()) == []
