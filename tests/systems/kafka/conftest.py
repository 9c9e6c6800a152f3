"""Apache Kafka itself, installed once on this machine and started once for the tests that ask it."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.systems.base import DeployError
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka.install import install
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.kafka.system import KafkaSystem

READY_S = 150.0
"""On a machine that is busy with other tests."""


def installed(version: str) -> Release:
    """Skips the test where the version cannot be had."""
    try:
        return install(Store(), version)
    except DeployError as wrong:
        pytest.skip(f"no Apache Kafka {version} here: {wrong}")


@contextmanager
def cluster(
    brokers: tuple[str, ...],
    controllers: tuple[str, ...],
    *,
    version: str = NEWEST,
    spares: tuple[str, ...] = (),
    spare_controllers: tuple[str, ...] = (),
    disks: int = 1,
    **options: object,
) -> Iterator[KafkaSystem]:
    """A cluster of its own on hosts of its own, ready."""
    installed(version)
    hosts = tuple(dict.fromkeys((*brokers, *spares, *controllers, *spare_controllers)))
    with (
        tempfile.TemporaryDirectory(prefix="wl-kafka-", dir="/var/tmp") as state,
        NetnsFleet(f"kafka-{os.getpid()}", hosts, state_dir=Path(state), disk_mb=256, disks=disks) as fleet,
    ):
        system = KafkaSystem(
            fleet,
            version=version,
            brokers=brokers,
            controllers=controllers,
            spares=spares,
            spare_controllers=spare_controllers,
            cluster_id=base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("="),
            start_s=READY_S,
            **options,  # type: ignore[arg-type]
        )
        try:
            system.install()
            system.start_all()
            system.wait_ready(timeout_s=READY_S)
            yield system
        finally:
            system.close()


@pytest.fixture(scope="session")
def _one_node() -> Iterator[KafkaSystem]:
    with cluster(("n1",), ("n1",), disks=2) as system:
        yield system


@pytest.fixture
def one_node(_one_node: KafkaSystem) -> KafkaSystem:
    """The newest version on one host with two log directories, broker and controller in one process; ready,
    whatever the test before did to it."""
    [node] = _one_node.nodes
    if not _one_node.is_running(node):
        _one_node.start(node)
        _one_node.wait_ready(timeout_s=READY_S)
    return _one_node
