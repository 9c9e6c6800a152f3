"""Taking a fleet of this machine apart, one's own or one whose owner was killed (``wrackline fleet clean``).

Whatever its kind, a fleet is processes in its network namespaces (of libvirt: those with its hosts' names),
mounts below its folder or inside those processes, loop devices on images in the folder, and the folder."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Protocol

from wrackline.fleets.base import FleetError, further_disks
from wrackline.fleets.local import throttle
from wrackline.fleets.local.disk import discard, loops_below, wait_released
from wrackline.fleets.local.domains import processes
from wrackline.fleets.local.look import is_alive, signal_all
from wrackline.fleets.local.network.namespaces import (
    delete_netns,
    ip_batch,
    kill_processes_in_netns,
    mounts,
    netns_exists,
    processes_in_netns,
    run_tool,
    wait_dead,
)
from wrackline.fleets.local.state import (
    FleetFolder,
    FleetLock,
    FleetState,
    folders,
    lock_of_detached,
    look_over,
)

LAST_PROGRAM_TIMEOUT_S = 10.0
DATA_DIR = PurePosixPath("/data")
BY_LIBVIRT = "libvirt"
"""The kind of fleet whose hosts are processes outside of its namespaces."""


class Machine(Protocol):
    """A host that this process made."""

    def destroy(self) -> None:
        """End its processes and give back what it holds. Idempotent."""


def dismantle(folder: FleetFolder, state: FleetState, machines: Sequence[Machine] = ()) -> None:
    """Remove every process, network, mount, loop device and file of a fleet. Idempotent; the caller holds its
    lock. ``machines``: those that this process made."""
    if machines:
        with ThreadPoolExecutor(len(machines)) as pool:
            for done in [pool.submit(machine.destroy) for machine in machines]:
                done.result()
    for device in loops_below(folder.path):
        throttle.free(device)  # else what is still to be written takes its time
    with ThreadPoolExecutor(len(state.hosts)) as pool:
        for done in [pool.submit(end_host, folder, state, host) for host in state.hosts]:
            done.result()
    if netns_exists(state.control):
        kill_processes_in_netns(state.control)
        delete_netns(state.control)
    unmount_below(folder)
    wait_released(folder.path)
    folder.remove()


def end_host(folder: FleetFolder, state: FleetState, host: str) -> None:
    """Kill what runs in a host's network namespace, and remove the namespace and the host's link at the
    bridge. Idempotent; fine where hosts have no namespace."""
    netns = state.netns(host)
    discard_data(netns, [folder.image(host, disk) for disk in range(1, state.disks + 1)])
    kill_processes_in_netns(netns)
    if state.kind == BY_LIBVIRT:
        pids = processes(netns)
        signal_all(pids, signal.SIGKILL)
        wait_dead(pids)
    # The link goes first and for certain: sockets of killed programs could otherwise send their last bytes
    # through it, minutes after the "power cut", for as long as the kernel keeps the namespace alive.
    if netns_exists(netns) and netns_exists(state.control):
        with contextlib.suppress(FleetError):
            ip_batch([f"link del {state.port(host)}"], netns=state.control)
    delete_netns(netns)


def discard_data(netns: str, images: Sequence[Path]) -> None:
    """Spare the machine from writing back what is about to be thrown away of a host's data disks; best
    effort."""
    mounted = (DATA_DIR, *further_disks(DATA_DIR, len(images)))
    for pid in processes_in_netns(netns):
        disks = [(Path(f"/proc/{pid}/root{at}"), image) for at, image in zip(mounted, images, strict=True)]
        discarded = [discard(at, image) for at, image in disks]  # of every disk
        if any(discarded):
            return


def unmount_below(folder: FleetFolder, *, timeout_s: float = 5.0) -> None:
    """Every mount below a fleet's folder; what used it may need a moment to let go. What is dirty on disks of
    hosts is thrown away."""
    deadline = time.monotonic() + timeout_s
    while points := [mount.point for mount in mounts() if mount.point.is_relative_to(folder.path)]:
        try:
            for point in sorted(points, reverse=True):
                for image in folder.path.glob("*.img"):
                    discard(point, image)
                run_tool(["umount", str(point)])
        except FleetError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def folders_mounted() -> list[FleetFolder]:
    """The folder of every fleet of this machine whose system disks are mounted, whatever its state root."""
    result = []
    for mount in mounts():
        folder = FleetFolder(mount.point.parent.parent, mount.point.parent.name)
        of_a_fleet = (mount.filesystem, mount.source) == ("tmpfs", f"wl-{folder.name}")
        if of_a_fleet and mount.point == folder.system:
            result.append(folder)
    return result


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
    lock = lock_of_detached(folder)
    state = folder.read()
    try:
        if state is None:
            raise FleetError(f"no fleet {folder.name} in {folder.root}; `wrackline fleet list` shows all")
        dismantle(folder, state)
    finally:
        lock.release(remove=not folder.path.exists())


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
    alive = state is not None and state.lives_alone
    try:
        yield None if alive else lock
    finally:
        lock.release(remove=not alive)


def survey(state_root: Path) -> list[tuple[FleetState, str]]:
    """Every fleet below a state root, and its life."""
    return look_over(folders(state_root))
