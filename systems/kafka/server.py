"""What the installed server itself is asked on this machine: what it makes of an empty data folder, which
settings it knows, and the JVM's archive of its classes.

The archive needs one start of the server: on loopback, on ports that are free, in a folder that is removed.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from wrackline.systems.base import DeployError
from wrackline.systems.kafka.properties import logging_options, text, write_logging
from wrackline.systems.kafka.store import Release

ASK_S = 120.0
"""The deadline of a process that takes two seconds on a machine that does nothing else."""
ARCHIVE_S = 240.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A JVM that runs for seconds is done sooner with them. Nodes run with them too, and the archive of classes
is of use only to a JVM with the same garbage collector."""
_NAME_AND_TYPE = re.compile(
    r'<a id="(?:broker|topic)configs_([^"]+)".*?<tr><th>Type:</th><td>(\w+)</td>', re.DOTALL
)


def java() -> str:
    """The program. Raises DeployError when there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        raise DeployError(
            "control node: no Java found: install a Java 17 runtime (Debian: openjdk-17-jre-headless), or "
            "set JAVA_HOME"
        )
    return found


def java_version() -> str:
    """As the JVM says it, in one line. Raises DeployError."""
    try:
        done = subprocess.run([java(), "-version"], capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError) as wrong:
        raise DeployError(f"control node: {java()} -version: {wrong}") from wrong
    return (done.stderr or done.stdout).splitlines()[0]


def learn_settings(release: Release) -> None:
    """Note the names and types of the settings that brokers and topics of this version know. Raises
    DeployError."""
    known = {
        "broker": _table(release, "kafka.server.KafkaConfig"),
        "topic": _table(
            release,
            "org.apache.kafka.storage.internals.log.LogConfig",
        ),
    }
    (release.folder / "settings.json").write_bytes(orjson.dumps(known, option=orjson.OPT_INDENT_2))


def _table(release: Release, main: str) -> dict[str, str]:
    """From the page of documentation that the class prints."""
    return dict(_NAME_AND_TYPE.findall(_run(release, [main])))


def formatted(release: Release, features: Mapping[str, int]) -> dict[str, bytes]:
    """What `kafka-storage format` puts into an empty data folder, by path, without meta.properties. With
    static voters it is the same for every node and cluster of a version with these features, so the server
    is asked once. Raises DeployError with what it says, for a feature that it does not know."""
    name = ",".join(f"{feature}={level}" for feature, level in sorted(features.items())) or "default"
    kept = release.folder / "formatted" / f"{name}.json"
    if not kept.is_file():
        files = _format(release, features)
        if not os.access(release.folder, os.W_OK):  # installed by root, used by another
            return files
        kept.parent.mkdir(exist_ok=True)
        fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
        fresh.write_bytes(
            orjson.dumps({path: base64.b64encode(data).decode() for path, data in files.items()})
        )
        fresh.replace(kept)
    return {path: base64.b64decode(data) for path, data in orjson.loads(kept.read_bytes()).items()}


def _format(release: Release, features: Mapping[str, int]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="wrackline-kafka-") as scratch:
        config, data = Path(scratch, "server.properties"), Path(scratch, "data")
        config.write_text(text(_alone(data, 9092, 9093)))
        arguments = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(config)]
        for feature, level in sorted(features.items()):
            arguments += ["--feature", f"{feature}={level}"]
        _run(release, arguments)
        return {
            file.relative_to(data).as_posix(): file.read_bytes()
            for file in sorted(data.rglob("*"))
            if file.is_file() and file.name != "meta.properties"
        }


def make_archive(release: Release) -> None:
    """Start the server once, so that the JVM writes down the classes that it loads. Raises DeployError."""
    with tempfile.TemporaryDirectory(prefix="wrackline-kafka-") as scratch:
        folder = Path(scratch)
        config, data, log = folder / "server.properties", folder / "data", folder / "server.log"
        config.write_text(text(_alone(data, *_free_ports(2))))
        write_data(data, formatted(release, {}), node_id=1, cluster_id="A" * 22)
        options = [f"-XX:ArchiveClassesAtExit={release.archive}", "-Xmx256m", *logging_options(folder)]
        write_logging(folder)
        with log.open("wb") as into:
            server = subprocess.Popen(
                _command(release, ["kafka.Kafka", str(config)], options), stdout=into, stderr=into, cwd=folder
            )
            try:
                _wait_until_started(server, log)
                server.send_signal(signal.SIGTERM)
                server.wait(ARCHIVE_S)
            except subprocess.TimeoutExpired as late:
                raise DeployError(
                    f"control node: Kafka {release.version} did not end within {ARCHIVE_S:g} s of SIGTERM"
                ) from late
            finally:
                server.kill()
                server.wait()
        if not release.archive.is_file():
            raise DeployError(
                f"control node: the JVM wrote no archive of Kafka {release.version}'s classes: {_end_of(log)}"
            )


def _wait_until_started(server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + ARCHIVE_S
    while b"Kafka Server started" not in log.read_bytes():
        if server.poll() is not None:
            raise DeployError(f"control node: Kafka ended with code {server.returncode}: {_end_of(log)}")
        if time.monotonic() > deadline:
            raise DeployError(f"control node: Kafka did not start in {ARCHIVE_S:g} s: {_end_of(log)}")
        time.sleep(0.1)


def write_data(data: Path, files: Mapping[str, bytes], *, node_id: int, cluster_id: str) -> None:
    """An empty data folder for one node."""
    for path, content in {**files, "meta.properties": meta(node_id, cluster_id).encode()}.items():
        file = data / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def meta(node_id: int, cluster_id: str) -> str:
    """Content of meta.properties. ``cluster_id``: 16 bytes in base64url, 22 characters."""
    directory = base64.urlsafe_b64encode(b"wrackline-%06d" % node_id).decode().rstrip("=")
    return f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={directory}\n"


def _alone(data: Path, port: int, controller_port: int) -> dict[str, str]:
    """One combined node on loopback."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(data),
        "log.cleaner.dedupe.buffer.size": "4194304",
    }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _command(release: Release, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    return [java(), *QUICK, "-XX:-UsePerfData", *options, "-cp", release.classpath, *arguments]


def _run(release: Release, arguments: Sequence[str]) -> str:
    """A program of the release; what it said. Raises DeployError."""
    what = f"control node: Kafka {release.version}: {arguments[0]}"
    try:
        done = subprocess.run(
            _command(release, arguments), capture_output=True, text=True, timeout=ASK_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise DeployError(f"{what} did not end within {ASK_S:g} s") from late
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        # Of an exception with its stack the first line says what is wrong.
        said = [line for line in lines if not line.startswith(("\t", "SLF4J", "log4j"))] or ["nothing"]
        raise DeployError(f"{what}: {said[-1]}")
    return done.stdout


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() or ["(its log is empty)"]
    telling = [line for line in lines if "ERROR" in line or "Exception" in line or "FATAL" in line]
    return (telling or lines)[-1]
