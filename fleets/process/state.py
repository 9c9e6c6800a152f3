"""The state of a fleet of processes while it is up, and how it is found and ended again.

Every process of the fleet has the fleet's folder in a variable of its environment, which its children
inherit: by it they are found wherever they went, sessions of their own included. The folder has one JSON file
that names the fleet; its lock is held by the owner for as long as that lives.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.look import is_alive, signal_all
from wrackline.fleets.local.network.namespaces import own_family
from wrackline.fleets.local.state import (
    FleetLock,
    OwnedState,
    StateFolder,
    lock_of_detached,
    look_over,
    names_below,
)

MARK = "WRACKLINE_PROCESS_FLEET"
"""The variable of the environment."""
END_S = 10.0
BELOW = ".process"
"""Folder of these fleets below the state root: no other kind of fleet has such a name."""


@dataclass(frozen=True, slots=True)
class ProcessState(OwnedState):
    """Content of ``state.json``."""

    name: str
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    owner_pid: int
    boot_id: str
    detached: bool = False


@dataclass(frozen=True, slots=True)
class ProcessFolder(StateFolder[ProcessState]):
    """The folder of one fleet of processes."""

    state_type: ClassVar[type[Any]] = ProcessState

    def host(self, name: str) -> Path:
        return self.path / name

    def dismantle(self) -> None:
        """End every process of the fleet and remove its folder. Idempotent; the caller holds the lock. Raises
        FleetError."""
        end_all(self.path)
        with suppress(FileNotFoundError):
            shutil.rmtree(self.path)


def marked(folder: Path) -> list[int]:
    """Ids of the living processes of a fleet, by its folder, without this process and its ancestors."""
    mark, spared, result = f"{MARK}={folder}".encode(), own_family(), []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) not in spared:
            with suppress(OSError):
                if mark in Path(entry.path, "environ").read_bytes().split(b"\0") and is_alive(
                    int(entry.name)
                ):
                    result.append(int(entry.name))
    return result


def end_all(folder: Path) -> None:
    """SIGKILL every process of the fleet, and wait until it is gone. Raises FleetError."""
    deadline = time.monotonic() + END_S
    while left := marked(folder):
        if time.monotonic() > deadline:
            raise FleetError(f"processes {left} of {folder} did not end within {END_S:g} s of SIGKILL")
        signal_all(left, signal.SIGKILL)
        time.sleep(0.005)


def folders(root: Path) -> list[ProcessFolder]:
    """Every fleet that has a folder or a lock."""
    return [ProcessFolder(root, name) for name in names_below(root)]


def clean(root: Path) -> list[str]:
    """End the fleets whose owner is gone; their names. A living fleet is never touched. Raises FleetError."""
    removed = []
    for folder in folders(root):
        lock = FleetLock.try_acquire(folder.lock_file)
        if lock is None:
            continue
        state = folder.read()
        dead = state is None or not state.lives_alone
        try:
            if dead and folder.path.exists():
                folder.dismantle()
                removed.append(folder.name)
        finally:
            lock.release(remove=dead)
    return removed


def end_detached(folder: ProcessFolder) -> None:
    """End a fleet that outlived its maker. Raises FleetError when a run owns it."""
    lock = lock_of_detached(folder)
    try:
        folder.dismantle()
    finally:
        give_back(lock, folder.root)


def give_back(lock: FleetLock, root: Path) -> None:
    """Removes the lock, with the folders that only these fleets needed, where they are empty now."""
    lock.release()
    with suppress(OSError):
        root.parent.rmdir()


def survey(root: Path) -> list[tuple[ProcessState, str]]:
    """Every fleet, and its life."""
    return look_over(folders(root))


# -- addresses -----------------------------------------------------------------------------------------------


class AddressLock:
    """The right to a network of loopback addresses, against every other fleet of this machine, whoever's and
    wherever its state is: a socket with a name that the kernel gives to one process at a time."""

    def __init__(self, prefix: str) -> None:
        """``prefix``: ``127.8.9.``. Raises FleetError when another fleet has it, or somebody listens
        there."""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(f"\0wrackline-{prefix}")
        except OSError as taken:
            self._socket.close()
            raise FleetError(f"the addresses {prefix}* are another fleet's; begin the run again") from taken
        if ports := listening(prefix):
            self._socket.close()
            raise FleetError(
                f"somebody listens at {', '.join(ports)}, among this fleet's addresses: a broker that a "
                "killed run of another user left, or a kept fleet? begin the run again"
            )

    def release(self) -> None:
        self._socket.close()


def listening(prefix: str) -> Sequence[str]:
    """``127.8.9.11:9092`` and so on: who listens at addresses that begin so."""
    result = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(FileNotFoundError):
            for line in Path(table).read_text().splitlines()[1:]:
                local, state = line.split()[1], line.split()[3]
                raw, _, port = local.partition(":")
                word = int(raw[-8:], 16)
                address = socket.inet_ntoa(word.to_bytes(4, "little" if _LITTLE else "big"))
                if state == "0A" and address.startswith(prefix):
                    result.append(f"{address}:{int(port, 16)}")
    return result


_LITTLE = socket.htons(1) != 1
