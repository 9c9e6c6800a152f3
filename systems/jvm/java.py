"""Programs of an installed release on this machine: one that ends by itself, and a server that is started
once so that the JVM writes down the classes that it loads."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wrackline.needs import find_java, mend
from wrackline.systems.base import DeployError
from wrackline.systems.jvm.store import Release

ASK_S = 120.0
"""The deadline of a process that takes two seconds on a machine that does nothing else."""
ARCHIVE_S = 240.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A JVM that runs for seconds is done sooner with them. Nodes run with them too, and the archive of classes
is of use only to a JVM with the same garbage collector."""


def java() -> str:
    """The program. Raises DeployError when there is none."""
    result = shutil.which(find_java())
    if result is None:
        raise DeployError(f"control node: no Java found: {mend('java')}, or set JAVA_HOME")
    return result


def java_version() -> str:
    """Returns the version as the JVM says it, in one line. Raises DeployError."""
    try:
        done = subprocess.run([java(), "-version"], capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise DeployError(f"control node: {java()} -version: {error}") from error
    return (done.stderr or done.stdout).splitlines()[0]


def command(release: Release, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    return [java(), *QUICK, "-XX:-UsePerfData", *options, "-cp", release.classpath, *arguments]


def run(release: Release, arguments: Sequence[str]) -> str:
    """A program of the release; what it said. Raises DeployError."""
    what = f"control node: {release.title}: {arguments[0]}"
    try:
        done = subprocess.run(
            command(release, arguments), capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise DeployError(f"{what} did not end within {ASK_S:g} s") from late
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        # Of an exception with its stack the first line says what is wrong.
        said = [line for line in lines if not line.startswith(("\t", "SLF4J", "log4j"))] or ["nothing"]
        raise DeployError(f"{what}: {said[-1]}")
    return done.stdout


@contextmanager
def serving(
    release: Release, arguments: Sequence[str], options: Sequence[str], log: Path, started: re.Pattern[bytes]
) -> Iterator[None]:
    """A server of the release, in the folder of its log: started, which its log says, and stopped in the end
    by SIGTERM. Raises DeployError."""
    with log.open("wb") as into:
        server = subprocess.Popen(
            command(release, arguments, options), stdout=into, stderr=into, cwd=log.parent
        )
        try:
            _wait_until_started(release, server, log, started)
            yield
            server.send_signal(signal.SIGTERM)
            server.wait(ARCHIVE_S)
        except subprocess.TimeoutExpired as late:
            raise DeployError(
                f"control node: {release.title} did not end within {ARCHIVE_S:g} s of SIGTERM"
            ) from late
        finally:
            server.kill()
            server.wait()


def archive_classes(
    release: Release, arguments: Sequence[str], options: Sequence[str], log: Path, started: re.Pattern[bytes]
) -> None:
    """Start a server once, so that the JVM writes down the classes that it loads. Raises DeployError."""
    with serving(release, arguments, [f"-XX:ArchiveClassesAtExit={release.archive}", *options], log, started):
        pass
    if not release.archive.is_file():
        raise DeployError(
            f"control node: the JVM wrote no archive of {release.title}'s classes: {_end_of(log)}"
        )


def _wait_until_started(
    release: Release, server: subprocess.Popen[bytes], log: Path, started: re.Pattern[bytes]
) -> None:
    deadline = time.monotonic() + ARCHIVE_S
    while not started.search(log.read_bytes()):
        what = f"control node: {release.title}"
        if server.poll() is not None:
            raise DeployError(f"{what} ended with code {server.returncode}: {_end_of(log)}")
        if time.monotonic() > deadline:
            raise DeployError(f"{what} did not start in {ARCHIVE_S:g} s: {_end_of(log)}")
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() or ["(its log is empty)"]
    telling = [line for line in lines if "ERROR" in line or "Exception" in line or "FATAL" in line]
    return (telling or lines)[-1]
