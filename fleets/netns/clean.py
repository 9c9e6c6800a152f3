"""Taking a ``netns`` fleet apart, one's own or one whose owner was killed (``wrackline fleet clean``)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.netns.disk import wait_released
from wrackline.fleets.netns.machine import Machine
from wrackline.fleets.netns.namespaces import (
    delete_netns,
    is_alive,
    kill_processes_in_netns,
    mounts,
    netns_exists,
    run_tool,
)
from wrackline.fleets.netns.state import FleetFolder, FleetLock, FleetState, boot_id, folders

LAST_PROGRAM_TIMEOUT_S = 10.0


def dismantle(folder: FleetFolder, state: FleetState, machines: list[Machine] | None = None) -> None:
    """Remove every process, network, mount, loop device and file of a fleet. Idempotent; the caller holds its
    lock."""
    if machines is None:
        machines = [
            Machine(state, folder, Host(name, address), {})
            for name, address in zip(state.hosts, state.addresses, strict=True)
        ]
    with ThreadPoolExecutor(len(machines)) as pool:
        for done in [pool.submit(machine.destroy) for machine in machines]:
            done.result()
    if netns_exists(state.control):
        kill_processes_in_netns(state.control)
        delete_netns(state.control)
    wait_released(folder.path)
    unmount_system(folder)
    folder.remove()


def unmount_system(folder: FleetFolder, *, timeout_s: float = 5.0) -> None:
    """The tmpfs with the hosts' system disks; a host's mount namespace may need a moment to let go of it."""
    deadline = time.monotonic() + timeout_s
    while any(mount.point == folder.system for mount in mounts()):
        try:
            run_tool(["umount", str(folder.system)])
        except FleetError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def folders_mounted() -> list[FleetFolder]:
    """The folder of every fleet of this machine whose system disks are mounted, whatever its state root."""
    found = []
    for mount in mounts():
        folder = FleetFolder(mount.point.parent.parent, mount.point.parent.name)
        of_a_fleet = (mount.filesystem, mount.source) == ("tmpfs", f"wl-{folder.name}")
        if of_a_fleet and mount.point == folder.system:
            found.append(folder)
    return found


def clean(state_root: Path) -> list[str]:
    """Remove the fleets whose owner is gone; their names. A living fleet is never touched. Raises
    FleetError."""
    removed = []
    for folder in folders(state_root):
        with lock_of_the_dead(folder) as lock:
            if lock is None:
                continue
            state = folder.read()
            if state is not None:
                dismantle(folder, state)
                removed.append(folder.name)
            folder.remove()
    return removed


def end_detached(folder: FleetFolder) -> None:
    """Remove a fleet that outlived its maker. Raises FleetError when a run owns it, or there is none."""
    lock = FleetLock.try_acquire(folder.lock_file)
    state = folder.read()
    if lock is None:
        owner = f"process {state.owner_pid}" if state else "another process"
        raise FleetError(
            f"fleet {folder.name} is in use by {owner}; end that run, and its fleet ends with it"
        )
    try:
        if state is None:
            raise FleetError(f"no fleet {folder.name} in {folder.root}; `wrackline fleet list` shows all")
        dismantle(folder, state)
    finally:
        lock.release(remove=not folder.path.exists())


def lives(state: FleetState) -> bool:
    """Whether a fleet whose lock nobody holds is nevertheless meant to stay."""
    return state.detached and state.boot_id == boot_id()


@contextlib.contextmanager
def lock_of_the_dead(folder: FleetFolder) -> Iterator[FleetLock | None]:
    """The lock of a fleet that nobody owns any more; None for one that lives. Gives the lock back at the
    end."""
    deadline = time.monotonic() + LAST_PROGRAM_TIMEOUT_S
    while (lock := FleetLock.try_acquire(folder.lock_file)) is None:
        owner = folder.read()
        if owner is None or is_alive(owner.owner_pid) or time.monotonic() > deadline:
            break
        # The owner is dead, but a program it had started is still at work and will not be long.
        time.sleep(0.02)
    if lock is None:
        yield None
        return
    state = folder.read()
    alive = state is not None and lives(state)
    try:
        yield None if alive else lock
    finally:
        lock.release(remove=not alive)


@dataclass(frozen=True, slots=True)
class FleetSeen:
    """A fleet of this machine, for ``wrackline fleet list``."""

    state: FleetState
    life: str
    """``owned by pid N``, ``detached`` or ``dead``."""


def survey(state_root: Path) -> list[FleetSeen]:
    """Every fleet below a state root."""
    seen = []
    for folder in folders(state_root):
        state = folder.read()
        if state is None:
            continue
        lock = FleetLock.try_acquire(folder.lock_file)
        if lock is None:
            life = f"owned by pid {state.owner_pid}"
        else:
            life = "detached" if lives(state) else "dead"
            lock.release(remove=False)
        seen.append(FleetSeen(state, life))
    return seen
