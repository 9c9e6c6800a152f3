"""Knossos and Elle compiled, so that a JVM has them in a second instead of eight.

Both are published as Clojure source, which a JVM compiles whenever it loads it. Here this is done once per
classpath: their classes go into one jar, and what the JVM makes of that jar into an archive beside it (class
data sharing). Both are a cache: without them, or where they cannot be made, everything is as it was but for
the time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from wrackline.checkers.jvm.classpath import java_program, jvm_home

log = logging.getLogger("wrackline.checkers")

NAMESPACES = ("knossos", "elle")
JVM_OPTIONS = ("-XX:+UseParallelGC", "-Djava.awt.headless=true")
"""What the JVM that compiles has in common with the one that is asked: an archive holds for its collector."""
DEADLINE_S = 300.0
ROOM_BYTES = 256 << 20
"""So much room there must be on the disk of the cache; jar and archive take 50 MB."""
MOST_KEPT = 3
"""Compiled classpaths; checkouts beside each other have different ones."""
OFF_VARIABLE = "WRACKLINE_JVM_COMPILED"
"""Set to 0, everything is loaded from source, as it was published."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """What a JVM is started with."""

    classpath: tuple[str, ...]
    options: tuple[str, ...] = ()


def loadable(classpath: Sequence[str], *, progress: Callable[[str], None] = lambda _line: None) -> Loadable:
    """The classpath with everything compiled, made now where it is missing (some 20 s, once); the classpath
    as it is where that cannot be done."""
    if os.environ.get(OFF_VARIABLE) == "0" or not any(Path(one).exists() for one in classpath):
        return Loadable(tuple(classpath))
    jar = jvm_home().absolute() / f"compiled-{_digest(classpath)}.jar"
    try:
        with _alone(jar) as alone:
            if alone and not jar.is_file():
                progress("compiling Knossos and Elle (once, some 20 s)")
                _make(jar, classpath)
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as wrong:
        log.info("Knossos and Elle are loaded from source: %s", wrong)
    if not jar.is_file():
        return Loadable(tuple(classpath))
    archive = jar.with_suffix(".jsa")
    shared = (f"-XX:SharedArchiveFile={archive}",) if archive.is_file() else ()
    return Loadable((str(jar), *_jars(classpath)), shared)


def _jars(classpath: Sequence[str]) -> list[str]:
    """An archive allows no folders; what is in them is in our jar."""
    return [one for one in classpath if Path(one).is_file()]


def _digest(classpath: Sequence[str]) -> str:
    """Another one when a jar, a folder on the classpath, Java, or what we add to them has changed."""
    found = hashlib.sha256(str(java_program().resolve()).encode())
    for one in classpath:
        path = Path(one)
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            status = file.stat()
            found.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    for name in NAMESPACES:
        found.update(_source(name).encode())
    return found.hexdigest()[:16]


def _source(name: str) -> str:
    return files("wrackline.checkers.jvm").joinpath(f"{name}.clj").read_text()


@contextlib.contextmanager
def _alone(jar: Path) -> Iterator[bool]:
    """Waits for whoever makes the same jar. False where there is no room for it."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    room = os.statvfs(jar.parent)
    if room.f_bavail * room.f_frsize < ROOM_BYTES:
        yield False
        return
    with jar.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield True


def _make(jar: Path, classpath: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        sources, classes = Path(scratch, "source"), Path(scratch, "classes")
        (sources / "wrackline").mkdir(parents=True)
        classes.mkdir()
        for name in NAMESPACES:
            (sources / "wrackline" / f"{name}.clj").write_text(_source(name))
            # One by one: who has only Knossos has that compiled.
            _java(
                (str(classes), str(sources), *classpath),
                f"-Dclojure.compile.path={classes}",
                f"(compile 'wrackline.{name})",
                scratch,
                may_fail=True,
            )
        made = Path(scratch, jar.name)
        _pack(made, [classes, *(Path(one) for one in classpath if Path(one).is_dir())])
        archive = made.with_suffix(".jsa")
        with contextlib.suppress(subprocess.SubprocessError):
            # The jar's name is part of the archive, so it must have its own already.
            shutil.move(made, jar)
            known = [name for name in NAMESPACES if (classes / "wrackline" / f"{name}__init.class").is_file()]
            load = " ".join(f"(require 'wrackline.{name})" for name in known)
            _java((str(jar), *_jars(classpath)), f"-XX:ArchiveClassesAtExit={archive}", load, scratch)
            archive.replace(jar.with_suffix(".jsa"))
        jars = sorted(jar.parent.glob("compiled-*.jar"), key=lambda one: one.stat().st_mtime)
        for old in jars[:-MOST_KEPT]:
            for file in (old, old.with_suffix(".jsa"), old.with_suffix(".lock")):
                file.unlink(missing_ok=True)


def _java(classpath: Sequence[str], option: str, code: str, folder: str, *, may_fail: bool = False) -> None:
    """``folder``: where it works, and leaves what code that is loaded writes beside itself."""
    command = [
        *(str(java_program()), *JVM_OPTIONS, "-Xmx1g", option, "-cp", os.pathsep.join(classpath)),
        *("clojure.main", "-e", f"{code} (shutdown-agents)"),
    ]
    done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False, cwd=folder)
    if done.returncode != 0 and not may_fail:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)


def _pack(jar: Path, folders: Sequence[Path]) -> None:
    """All files of these folders; of two with one name, that of the first folder."""
    taken: set[str] = set()
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as packed:
        for folder in folders:
            for file in sorted(folder.rglob("*")):
                name = file.relative_to(folder).as_posix()
                if file.is_file() and name not in taken:
                    taken.add(name)
                    packed.write(file, name)
