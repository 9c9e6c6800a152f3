"""Installing the ZooKeeper server on this machine: jars by Maven, and the JVM's archive of its classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from wrackline.maven import resolve
from wrackline.systems.jvm.java import java_version
from wrackline.systems.jvm.store import Release, Store
from wrackline.zookeeper.systems.servers.release import ARTIFACTS, VERSION
from wrackline.zookeeper.systems.servers.server import make_archive


def install_zookeeper(kafka: Store, *, repositories: Sequence[str], say: Callable[[str], None]) -> Release:
    """The one version that there is, beside those of Kafka; installed now if it was not. Raises DeployError,
    in one line."""
    store, version = kafka.zookeeper, VERSION

    def made(scratch: Path, java: str) -> Release:
        otherwise = "or bring that folder from a machine that has it"
        jars = resolve(scratch, ARTIFACTS, first=repositories, otherwise=otherwise, progress=say)
        folder = store.begin(version, {jar.name: jar for jar in jars})
        release = store.unfinished(folder, version, ", ".join(repositories) or "Maven", java)
        say(f"ZooKeeper {version}: {len(jars)} jars; one start, so that the JVM keeps its classes")
        make_archive(release)
        return release

    return store.installed(version, java_version, made)
