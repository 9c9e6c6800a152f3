"""Knossos and Elle compiled: a cache that may be missing."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.classpath import available, find_classpath, required_classpath
from wrackline.checkers.jvm.compiled import OFF_VARIABLE, Loadable, loadable


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
    assert kept == {".jar", ".jsa", ".lock"}


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
