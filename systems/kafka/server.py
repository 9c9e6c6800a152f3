"""Questions to the installed server itself on this machine: its empty data folder, the settings it knows,
and the JVM's archive of its classes.

The archive needs one start of the server: on loopback, on ports that are free, in a folder that is removed. A
server of a version that keeps its metadata in ZooKeeper is started beside one.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path

import orjson

from wrackline.systems.base import DeployError
from wrackline.systems.jvm import java
from wrackline.systems.jvm.logging import logging_options, write_logging
from wrackline.systems.jvm.property_file import text
from wrackline.systems.jvm.store import Release
from wrackline.systems.kafka.releases import on_zookeeper
from wrackline.systems.zookeeper_door import single_zookeeper

_NAME_AND_TYPE = (
    re.compile(r'<a id="(?:broker|topic)configs_([^"]+)".*?<tr><th>Type:</th><td>(\w+)</td>', re.DOTALL),
    # Up to 2.4.
    re.compile(r"<tr>\s*<td>([^<]+)(?:</td>)+\s*<td>(?:(?!<tr>).)*?(?:</td>)+\s*<td>(\w+)</td>", re.DOTALL),
)
_STARTED = re.compile(rb"Kafka Server started|\[Kafka ?Server [^]]*\],? started")


def learn_settings(release: Release) -> None:
    """Note the names and types of the settings that brokers and topics of this version know; none of a
    version that does not tell. Raises DeployError."""
    of_topics = "org.apache.kafka.storage.internals.log.LogConfig"
    if on_zookeeper(release.version):
        of_topics = "kafka.log.LogConfig"
    known = {
        "broker": _table(release, "kafka.server.KafkaConfig"),
        "topic": _table(release, of_topics),
    }
    (release.folder / "settings.json").write_bytes(orjson.dumps(known, option=orjson.OPT_INDENT_2))


def _table(release: Release, main: str) -> dict[str, str]:
    """Reads the page of documentation that the class prints; the oldest classes print none."""
    try:
        page = java.run(release, [main])
    except DeployError:
        if on_zookeeper(release.version):
            return {}
        raise
    return next((dict(found) for layout in _NAME_AND_TYPE if (found := layout.findall(page))), {})


class Kind(StrEnum):
    """The kinds of data folders, besides those of the first voters of a quorum that can change: they name
    each other, so they are of one cluster alone."""

    STATIC = "static"
    """Of any node, where the voters stand in every node's configuration."""
    OBSERVER = "observer"
    """Of a controller that may become a voter later (KIP-853)."""
    BROKER = "broker"
    """Of a broker beside a quorum that can change."""


_QUORUM_ARGUMENTS = {Kind.OBSERVER: ("--no-initial-controllers",)}


def formatted(release: Release, features: Mapping[str, int], kind: Kind = Kind.STATIC) -> dict[str, bytes]:
    """Returns the files that `kafka-storage format` puts into an empty data folder, by path, without
    meta.properties. It is the same for every node of a kind and every cluster of a version with these
    features, so the server is asked once. With ZooKeeper nothing is formatted. Raises DeployError with
    what it says, for a feature that it does not know."""
    if on_zookeeper(release.version):
        return {}
    name = ",".join(f"{feature}={level}" for feature, level in sorted(features.items())) or "default"
    suffix = "" if kind is Kind.STATIC else f".{kind}"
    kept = release.folder / "formatted" / f"{name}{suffix}.json"
    if not kept.is_file():
        roles = "broker" if kind is Kind.BROKER else "broker,controller"
        files = _format(release, features, _QUORUM_ARGUMENTS.get(kind, ()), dynamic=bool(suffix), roles=roles)
        if not os.access(release.folder, os.W_OK):  # installed by root, used by another
            return files
        kept.parent.mkdir(exist_ok=True)
        fresh = kept.with_name(f"{kept.name}.{os.getpid()}")
        fresh.write_bytes(
            orjson.dumps({path: base64.b64encode(data).decode() for path, data in files.items()})
        )
        fresh.replace(kept)
    return {path: base64.b64decode(data) for path, data in orjson.loads(kept.read_bytes()).items()}


def formatted_voters(
    release: Release, features: Mapping[str, int], voters: Sequence[tuple[int, str, str]]
) -> dict[str, bytes]:
    """Returns the files of the first voters of a quorum that can change, each the same. ``voters``: id,
    ``host:port`` and the id of its folder. Raises DeployError."""
    listed = ",".join(f"{node_id}@{where}:{directory}" for node_id, where, directory in voters)
    return _format(release, features, ("--initial-controllers", listed), dynamic=True, node_id=voters[0][0])


def _format(
    release: Release,
    features: Mapping[str, int],
    more: Sequence[str] = (),
    *,
    dynamic: bool = False,
    node_id: int = 1,
    roles: str = "broker,controller",
) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="wrackline-kafka-") as scratch:
        config, data = Path(scratch, "server.properties"), Path(scratch, "data")
        settings = _alone(data, 9092, 9093) | {"node.id": str(node_id), "process.roles": roles}
        if dynamic:
            settings["controller.quorum.bootstrap.servers"] = settings.pop("controller.quorum.voters")[2:]
        if roles == "broker":
            settings["listeners"] = settings["listeners"].split(",")[0]
            settings["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        config.write_text(text(settings))
        arguments = ["kafka.tools.StorageTool", "format", "-t", "A" * 22, "-c", str(config), *more]
        for feature, level in sorted(features.items()):
            arguments += ["--feature", f"{feature}={level}"]
        java.run(release, arguments)
        return {
            file.relative_to(data).as_posix(): file.read_bytes()
            for file in sorted(data.rglob("*"))
            if file.is_file() and file.name != "meta.properties"
        }


def make_archive(release: Release, beside: Release | None = None) -> None:
    """Start the server once, so that the JVM writes down the classes that it loads. ``beside``: the ZooKeeper
    that it needs, if it does. Raises DeployError."""
    with tempfile.TemporaryDirectory(prefix="wrackline-kafka-") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        config, data = folder / "server.properties", folder / "data"
        port, other = java.free_ports(2)
        write_logging(folder)
        if beside is None:
            config.write_text(text(_alone(data, port, other)))
            write_data(data, formatted(release, {}), node_id=1, cluster_id="A" * 22)
        else:
            config.write_text(text(_beside_zookeeper(data, port, other)))
            data.mkdir()
            stack.enter_context(single_zookeeper(beside, folder / "zookeeper", other))
        options = ["-Xmx256m", *logging_options(folder)]
        main = ["kafka.Kafka", str(config)]
        java.archive_classes(release, main, options, folder / "server.log", _STARTED)


def write_data(data: Path, files: Mapping[str, bytes], *, node_id: int, cluster_id: str) -> None:
    """An empty data folder for one node."""
    for path, content in {**files, "meta.properties": meta(node_id, cluster_id).encode()}.items():
        file = data / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def directory_of(node_id: int, disk: int = 0, log_dir: int = 1) -> str:
    """Returns the id of a node's log directory. ``disk``: how many it has had before, where another one shall
    have another id. ``log_dir``: which of several it is."""
    mark = b"-" if log_dir == 1 else b"%d" % log_dir
    return base64.urlsafe_b64encode(b"wrackline%b%03d%03d" % (mark, disk, node_id)).decode().rstrip("=")


def meta(node_id: int, cluster_id: str, disk: int = 0, log_dir: int = 1) -> str:
    """Content of meta.properties. ``cluster_id``: 16 bytes in base64url, 22 characters."""
    directory = directory_of(node_id, disk, log_dir)
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


def _beside_zookeeper(data: Path, port: int, zookeeper_port: int) -> dict[str, str]:
    """One broker on loopback; each version knows some of these and passes the others over."""
    return {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "host.name": "127.0.0.1",
        "port": str(port),
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
        "log.dirs": str(data),
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
