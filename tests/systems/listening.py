"""A fleet whose hosts only listen: what is said to them is written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from wrackline.fleets.base import FleetError, Host, PowerSwitch, Result
from wrackline.systems.base import DeployError
from wrackline.systems.common.deployed import Deployed

# ruff: noqa: ARG002 - the signatures are those of the seam

Said = tuple[int, str, str]


class Listening:
    """A fleet whose hosts write down what they are told and answer from ``answers`` (by part of a
    command)."""

    name = "listening"
    power: PowerSwitch

    def __init__(self, *more: str) -> None:
        """``more``: hosts besides n1, n2 and c1."""
        known = [("n1", 11), ("n2", 12), ("c1", 21), *zip(more, range(31, 40), strict=False)]
        self.hosts = tuple(Host(name, f"198.18.0.{last}") for name, last in known)
        self.commands: list[tuple[str, str]] = []
        self.files: dict[tuple[str, str], Path | bytes] = {}
        self.answers: dict[str, Said] = {"version_info": (0, "3.11\n", "")}

    def up(self) -> None: ...

    def down(self) -> None: ...

    def remote(self, host: Host) -> ListeningRemote:
        return ListeningRemote(host, self)

    @contextmanager
    def entered(self) -> Iterator[None]:
        yield

    def told(self, host: str) -> list[str]:
        return [command for name, command in self.commands if name == host]


class ListeningRemote:
    def __init__(self, host: Host, fleet: Listening) -> None:
        self.host = host
        self._fleet = fleet

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        self._fleet.commands.append((self.host.name, command))
        for part, (code, stdout, stderr) in self._fleet.answers.items():
            if part in command:
                return Result(self.host.name, command, code, stdout, stderr, 0.0)
        return Result(self.host.name, command, 0, "", "", 0.0)

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        self._fleet.files[self.host.name, path] = content
        if isinstance(content, Path) and path.endswith(".tar"):  # a file that is gone when the upload is over
            self._fleet.files[self.host.name, path] = content.read_bytes()

    def get(self, path: str) -> bytes:
        raise FleetError(f"host {self.host.name}: no {path}")

    def get_tree(self, path: str, into: Path, *, patterns: Sequence[str] = ("*",)) -> list[Path]:
        raise FleetError(f"host {self.host.name}: connection lost")

    def close(self) -> None: ...


def starts_and_stops(fleet: Listening, system: Deployed, *, start_s: int) -> None:
    node = system.brokers[0]
    for act in (system.start, system.stop, system.kill, system.pause, system.resume, system.pid):
        act(node)
    words = (f"start 9092 {start_s}", "stop 30", "kill", "pause", "resume", "pid")
    assert fleet.told("n1") == [f"/opt/wrackline/node.sh {word}" for word in words]


def in_trouble(system: Deployed, act: str, message: str) -> None:
    """What is wrong is told with host and node, and with a way out."""
    subject = () if act == "install" else (system.brokers[0],)
    with pytest.raises(DeployError, match=message) as trouble:
        getattr(system, act)(*subject)
    assert str(trouble.value).startswith("n1 (node 1): ")


def collected(system: Deployed, into: Path) -> None:
    """What silent hosts give is there, and what they do not is told."""
    system.collect(into)
    for host in ("n1", "n2", "c1"):
        assert "logs: host" in (into / host / "missing.txt").read_text()
        assert (into / host / "listing.txt").exists()
