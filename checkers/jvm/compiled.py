"""Knossos and Elle compiled, so that a JVM has them in a second instead of eight.

Both are published as Clojure source, which a JVM compiles whenever it loads it. Here this is done once per
classpath: their classes go into one jar, and what the JVM makes of that jar into an archive beside it (class
data sharing). Both are a cache: without them, or where they cannot be made, everything is as it was but for
the time.

In the cache each classpath has a jar, its archive, and a stamp, which comes last: with it nothing is left to
do. Whoever makes them holds a lock, as do the JVMs that it has compile, and works in a folder of that jar's
own. If it is killed, the next one goes on there: a namespace that was compiled to its end is kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from wrackline.checkers.jvm.classpath import java_program, jvm_home
from wrackline.checkers.jvm.processor_time import Allowance, end_with_parent

log = logging.getLogger("wrackline.checkers")

NAMESPACES = ("knossos", "elle")
JVM_OPTIONS = ("-XX:+UseParallelGC", "-Djava.awt.headless=true")
"""What the JVM that compiles has in common with the one that is asked: an archive holds for its collector."""
LIMIT_S = 300.0
"""Of processor time, for each of the JVMs that compile."""
ROOM_BYTES = 256 << 20
"""So much room there must be on the disk of the cache; jar and archive take 50 MB."""
MOST_KEPT = 3
"""Compiled classpaths; checkouts beside each other have different ones."""
LOOK_S = 1.0
"""Between two looks at what a JVM used."""
OFF_VARIABLE = "WRACKLINE_JVM_COMPILED"
"""Set to 0, everything is loaded from source, as it was published."""


@dataclass(frozen=True, slots=True)
class Loadable:
    """The classpath and the options that a JVM is started with."""

    classpath: tuple[str, ...]
    options: tuple[str, ...] = ()


def loadable(classpath: Sequence[str], *, progress: Callable[[str], None] = lambda _line: None) -> Loadable:
    """The classpath with everything compiled, made now where it is missing (some 20 s, once); the classpath
    as it is where that cannot be done."""
    if os.environ.get(OFF_VARIABLE) == "0" or not any(Path(one).exists() for one in classpath):
        return Loadable(tuple(classpath))
    jar = jvm_home().absolute() / f"compiled-{_digest(classpath)}.jar"
    try:
        with _alone(jar) as lock:
            if lock is not None and not _stamp(jar).is_file():
                progress("compiling Knossos and Elle (once, some 20 s)")
                _make(jar, classpath, lock)
            if lock is not None:
                _stamp(jar).touch()  # what was used last is kept longest
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile) as error:
        log.info("Knossos and Elle are loaded from source: %s", error)
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
    java = java_program().resolve()
    result = hashlib.sha256(str(java).encode())
    for one in (str(java), str(java.parents[1] / "release"), *classpath):
        path = Path(one)
        if not path.exists():
            continue
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            status = file.stat()
            result.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    for name in NAMESPACES:
        result.update(_source(name).encode())
    return result.hexdigest()[:16]


def _source(name: str) -> str:
    return files("wrackline.checkers.jvm").joinpath(f"{name}.clj").read_text()


@contextlib.contextmanager
def _alone(jar: Path) -> Iterator[int | None]:
    """Waits for whoever makes the same jar. None where there is no room for it, else the file that is
    locked."""
    jar.parent.mkdir(parents=True, exist_ok=True)
    room = os.statvfs(jar.parent)
    if room.f_bavail * room.f_frsize < ROOM_BYTES:
        yield None
        return
    with jar.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def _stamp(jar: Path) -> Path:
    return jar.with_suffix(".made")


def _make(jar: Path, classpath: Sequence[str], lock: int) -> None:
    """``lock``: the file that keeps others from it. What whoever was killed here had finished is there."""
    scratch = jar.with_suffix(".making")
    scratch.mkdir(exist_ok=True)
    finished: list[Path] = []
    for name in NAMESPACES:
        # One by one: who has only Knossos has that compiled.
        classes = scratch / name
        if not classes.is_dir():
            _compile(name, classes, finished, classpath, lock)
        finished.insert(0, classes)
    if not jar.is_file():
        packed = scratch / jar.name
        _pack(packed, [*finished, *(Path(one) for one in classpath if Path(one).is_dir())])
        # The jar's name is part of the archive, so it must have its own before there is one.
        packed.replace(jar)
    archive = scratch / jar.with_suffix(".jsa").name
    load = " ".join(f"(require 'wrackline.{one.name})" for one in reversed(finished) if any(one.iterdir()))
    if _java((str(jar), *_jars(classpath)), f"-XX:ArchiveClassesAtExit={archive}", load, scratch, lock):
        archive.replace(jar.with_suffix(".jsa"))
    _stamp(jar).touch()
    shutil.rmtree(scratch)
    _forget_old(jar.parent)


def _compile(name: str, classes: Path, finished: Sequence[Path], classpath: Sequence[str], lock: int) -> None:
    """Compiles into a folder that has this name only when all is in it; empty where there is nothing to
    compile."""
    sources, unfinished = classes.with_suffix(".source"), classes.with_suffix(".unfinished")
    for folder in (sources, unfinished):
        shutil.rmtree(folder, ignore_errors=True)
    unfinished.mkdir()
    source = sources / "wrackline" / f"{name}.clj"
    source.parent.mkdir(parents=True)
    source.write_text(_source(name))
    done = _java(
        (*map(str, (unfinished, *finished, sources)), *classpath),
        f"-Dclojure.compile.path={unfinished}",
        f"(compile 'wrackline.{name})",
        classes.parent,
        lock,
    )
    if not done:
        shutil.rmtree(unfinished)
        unfinished.mkdir()
    unfinished.replace(classes)


def _forget_old(home: Path) -> None:
    """Removes the compiled classpaths that were not used for longest; none that somebody makes or waits
    for."""
    for stamp in sorted(home.glob("compiled-*.made"), key=lambda one: one.stat().st_mtime)[:-MOST_KEPT]:
        with stamp.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for suffix in (".made", ".jsa", ".jar"):
                stamp.with_suffix(suffix).unlink(missing_ok=True)


def _java(classpath: Sequence[str], option: str, code: str, folder: Path, lock: int) -> bool:
    """Runs Java; tells whether it did what it should. ``folder``: where it works, and leaves what code
    that is loaded writes beside itself. Raises SubprocessError where it was ended, by us or by somebody
    else: another time it may succeed."""
    command = [
        *(str(java_program()), *JVM_OPTIONS, "-Xmx1g", option, "-cp", os.pathsep.join(classpath)),
        *("clojure.main", "-e", f"{code} (shutdown-agents)"),
    ]
    with (
        (folder / "java.log").open("wb") as said,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=folder,
            pass_fds=(lock,),
            preexec_fn=end_with_parent,
        ) as java,
    ):
        code_of_exit = _waited_for(java)
    if code_of_exit < 0:
        raise subprocess.CalledProcessError(code_of_exit, command)
    return code_of_exit == 0


def _waited_for(java: subprocess.Popen[bytes]) -> int:
    """Raises SubprocessError."""
    allowance = Allowance(java.pid, LIMIT_S)
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return java.wait(LOOK_S)
            why = allowance.spent()
            if why:
                raise subprocess.SubprocessError(f"the JVM that compiles them was ended: {why}")
    except BaseException:
        java.kill()
        raise


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
