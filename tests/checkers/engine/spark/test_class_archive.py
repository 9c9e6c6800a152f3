"""The archive of Spark's classes: who makes it, and when the next session finds it. A shell stands for the
JVM, which takes ten seconds to write one; every other test that asks Spark has the real thing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from wrackline.checkers.engine.spark.class_archive import Archive, archive_for


def jvm_that(does: str) -> subprocess.Popen[bytes]:
    """Lives until its standard input is closed, like PySpark's, and then does this."""
    return subprocess.Popen(["sh", "-c", f"cat; {does}"], stdin=PIPE)


def session_of(folder: Path, name: str) -> Archive:
    (folder / name).mkdir()
    return Archive(folder / "cache" / "spark-1.jsa", folder / name)


def test_the_first_session_makes_the_class_archive_and_the_next_uses_it(tmp_path: Path) -> None:
    first, beside = session_of(tmp_path, "first"), session_of(tmp_path, "beside")
    made = tmp_path / "first" / "spark-1.jsa"
    assert first.option() == f"-XX:ArchiveClassesAtExit={made} "
    assert beside.option() == ""
    assert not beside.is_being_made
    first.keep(jvm_that(f"echo classes >{made}"))
    assert session_of(tmp_path, "later").option() == f"-XX:SharedArchiveFile={first.file} "
    assert first.file.read_text() == "classes\n"
    assert sorted(one.name for one in first.file.parent.iterdir()) == ["spark-1.jsa", "spark-1.lock"]


@pytest.mark.parametrize(
    "does", ["exit 0", "exit 1", "echo half >{made}; exit 1", "echo half >{made}; kill -9 $$"]
)
def test_an_incomplete_class_archive_is_made_again_by_the_next_session(tmp_path: Path, does: str) -> None:
    first = session_of(tmp_path, "first")
    assert "ArchiveClassesAtExit" in first.option()
    first.keep(jvm_that(does.format(made=tmp_path / "first" / "spark-1.jsa")))
    assert not first.file.exists()
    assert "ArchiveClassesAtExit" in session_of(tmp_path, "later").option()


def test_without_a_writable_cache_folder_there_is_no_class_archive(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    assert session_of(tmp_path, "first").option() == ""


def test_each_java_version_has_its_own_class_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = archive_for(Path("/usr/bin/java"), 'openjdk version "17.0.1"')
    assert here.parent == tmp_path / "wrackline"
    assert here != archive_for(Path("/usr/bin/java"), 'openjdk version "17.0.2"')
