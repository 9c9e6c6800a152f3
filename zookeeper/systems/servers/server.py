"""The ZooKeeper server: its configuration, and its start on this machine for the archive of its classes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from wrackline.systems.base import Node
from wrackline.systems.common.nodes import FIRST_ZOOKEEPER, ZOOKEEPER_PORT
from wrackline.systems.jvm import java
from wrackline.systems.jvm.logging import logging_options, write_logging
from wrackline.systems.jvm.property_file import text
from wrackline.systems.jvm.store import Release

MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
PEER_PORT, ELECTION_PORT = 2888, 3888
_STARTED = re.compile(rb"binding to port|Started AdminServer|STARTUP.*complete|PrepRequestProcessor")
OPTIONS = ("-Dzookeeper.jmx.log4j.disable=true",)
"""Its beans for a library of logging that is not there."""
CONFIG: Mapping[str, str] = {
    # The unit of all times below, in milliseconds; a session ends after 2 to 20 of them.
    "tickTime": "500",
    # A server of an ensemble that does not hear of its leader for 3 s gives up, and votes again.
    "initLimit": "10",
    "syncLimit": "6",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr,ruok,mntr,cons,dump",
}
"""As ZooKeeper's own defaults, but for times that suit a run. It syncs its log before it answers."""


def server_id(node: Node) -> int:
    """Returns the id that ``myid`` holds: 1, 2, ..."""
    return node.node_id - FIRST_ZOOKEEPER + 1


def config(data: str, address: str, ensemble: Sequence[Node], port: int = ZOOKEEPER_PORT) -> str:
    """The configuration file of a server. ``data``: its folder. ``address``: where it listens for clients."""
    servers = {
        f"server.{server_id(one)}": f"{one.host.address}:{PEER_PORT}:{ELECTION_PORT}" for one in ensemble
    }
    own = {"dataDir": data, "clientPort": str(port), "clientPortAddress": address}
    return text({**CONFIG, **own, **(servers if len(servers) > 1 else {})})


@contextmanager
def alone(release: Release, folder: Path, port: int) -> Iterator[None]:
    """A server on loopback, with its files in ``folder``. Raises DeployError."""
    with java.serving(release, _prepared(folder, port), _options(folder), folder / "zookeeper.log", _STARTED):
        yield


def make_archive(release: Release) -> None:
    """Start the server once, so that the JVM writes down the classes that it loads. Raises DeployError."""
    with tempfile.TemporaryDirectory(prefix="wrackline-zookeeper-") as scratch:
        folder, [port] = Path(scratch), java.free_ports(1)
        arguments = _prepared(folder, port)
        java.archive_classes(release, arguments, _options(folder), folder / "zookeeper.log", _STARTED)


def _prepared(folder: Path, port: int) -> list[str]:
    """Writes the files that a server needs; its arguments."""
    folder.mkdir(exist_ok=True)
    (folder / "data").mkdir()
    write_logging(folder)
    (folder / "zoo.cfg").write_text(config(str(folder / "data"), "127.0.0.1", (), port))
    return [MAIN, str(folder / "zoo.cfg")]


def _options(folder: Path) -> list[str]:
    return ["-Xmx64m", *OPTIONS, *logging_options(folder)]
