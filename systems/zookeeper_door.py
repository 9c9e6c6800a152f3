"""The door to the ZooKeeper era: systems whose metadata is in ZooKeeper, and its servers.

Nothing here imports them. They stand on this room, and are found by name where a version or a profile has no
controllers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from pkgutil import resolve_name

from wrackline.systems.base import System
from wrackline.systems.jvm.store import Release, Store

MakeSystem = Callable[..., System]


def kafka_on_zookeeper() -> MakeSystem:
    """Finds the class of Apache Kafka up to 2.8."""
    make: MakeSystem = resolve_name("wrackline.zookeeper.systems.kafka.system:KafkaOnZooKeeper")
    return make


def wrackline_on_zookeeper(*, bridges: bool) -> MakeSystem:
    """Finds the class of our broker in a profile without controllers. ``bridges``: there are some, that are
    to take over."""
    name = (
        "wrackline.zookeeper.systems.wrackline.bridging:WracklineBridging"
        if bridges
        else "wrackline.zookeeper.systems.wrackline.system:WracklineOnZooKeeper"
    )
    make: MakeSystem = resolve_name(name)
    return make


def install_zookeeper(kafka: Store, *, repositories: Sequence[str], say: Callable[[str], None]) -> Release:
    """Installs the servers, if they were not, and returns them. Raises DeployError, in one line."""
    release: Release = resolve_name("wrackline.zookeeper.systems.servers.install:install_zookeeper")(
        kafka, repositories=repositories, say=say
    )
    return release


def single_zookeeper(release: Release, folder: Path, port: int) -> AbstractContextManager[None]:
    """Runs a server on loopback, with its files in ``folder``. Raises DeployError."""
    running: AbstractContextManager[None] = resolve_name("wrackline.zookeeper.systems.servers.server:alone")(
        release, folder, port
    )
    return running
