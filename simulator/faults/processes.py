"""Faults of processes, disks and clocks in a world; ``network`` and ``operators`` have the others.

A function takes the driver, the fault and a generator of its own, and returns what it did and how to take it
back; None when there was nothing to be done (the target is down already).
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal

from wrackline.broker.model.types import TopicPartition
from wrackline.simulator.faults.driver import Begin, Begun, FaultDriver
from wrackline.simulator.faults.kinds import Fault, Kind
from wrackline.simulator.world.world import SimServer


def _ending(how: Literal["kill", "power"]) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
        node = driver.target(fault, draw)
        if not driver.world.server(node).up:
            return None
        power = how == "power" and driver.may_lose(node)
        servers = [server for server in driver.machine(node) if server.up]
        for server in servers:
            if power:
                driver.world.power(server.id)
            else:
                driver.world.kill(server.id)
        description = _names(servers) + (" (kill)" if how == "power" and not power else "")
        return Begun(description, driver.restarter(*servers), (node,), frozenset(s.id for s in servers))

    return begin


def _clean(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    node = driver.target(fault, draw)
    servers = [server for server in driver.machine(node) if server.up]
    if not driver.world.server(node).up:
        return None
    lives = [(server, server.incarnation) for server in servers]
    for server in servers:
        driver.world.clean_stop(server.id)

    def undo() -> None:
        """Starts the node again; one that is still stopping is killed by whoever wants it back."""
        for server, life in lives:
            if server.incarnation == life:
                driver.world.kill(server.id)
                driver.world.start(server.id)

    return Begun(_names(servers), undo, (node,), frozenset(server.id for server in servers))


def _midway(how: Literal["kill", "power"], *, controller: bool = False) -> Begin:
    """The process ends between two effects of one of its next events that has several."""

    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
        world = driver.world
        node = draw.choice(sorted(world.controllers)) if controller else driver.target(fault, draw)
        active = world.active_controller()
        server = active if controller and active is not None else world.server(node)
        if not server.up:
            return None
        left = [draw.randint(0, 20)]

        def rule(_: object, effects: object) -> int | None:
            count = len(effects)  # type: ignore[arg-type]
            if count < 2:
                return None
            left[0] -= 1
            lossy = how == "power" and not controller
            if left[0] >= 0 or (lossy and not driver.may_lose(server.id)):
                return None
            return draw.randint(0, count - 1)

        driver.world.cut_process(server.id, rule, how)
        restart = driver.restarter(server)

        def undo() -> None:
            server.cut_rule = None
            restart()

        return Begun(f"n{server.id} between two effects", undo, (server.id,), frozenset({server.id}))

    return begin


def _pause(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    return _paused(driver, driver.machine(driver.target(fault, draw)))


def _paused(driver: FaultDriver, servers: tuple[SimServer, ...]) -> Begun | None:
    stopped = [(server, server.incarnation) for server in servers if server.up and not server.paused]
    if not stopped:
        return None
    for server, _ in stopped:
        driver.world.pause(server.id)

    def undo() -> None:
        for server, life in stopped:
            if server.incarnation == life and server.paused:
                driver.world.resume(server.id)

    return Begun(_names([server for server, _ in stopped]), undo, tuple(server.id for server, _ in stopped))


def _skew(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    node = driver.target(fault, draw)
    rate = draw.choice((0.5, 0.8, 0.95, 1.05, 1.25, 2.0))
    driver.world.set_clock_rate(node, rate)
    return Begun(
        f"n{node} at {rate}", lambda: driver.world.set_clock_rate(node, 1.0), (node,), how={"rate": rate}
    )


# --- disks -------------------------------------------------------------------------------------------------


def _new_disk(kind: Literal["wipe", "restore"]) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
        server = driver.world.server(driver.target(fault, draw))
        taken = driver.snapshots.get(server.id)
        if kind == "restore" and taken is None:
            driver.snapshots[server.id] = server.disk.snapshot()
            return None
        if not server.up or not driver.may_lose(server.id):
            return None
        driver.world.kill(server.id)
        if taken is None or kind == "wipe":
            driver.world.wipe(server.id)
        else:
            driver.world.restore(server.id, taken)
        return Begun(f"n{server.id}", driver.restarter(server), (server.id,), frozenset({server.id}))

    return begin


def _disk_refuses(reason: str, *, once: bool) -> Begin:
    """A write fails: once in the middle (EIO), or every one until there is room again (ENOSPC)."""

    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
        server = driver.world.server(driver.target(fault, draw))
        disk = server.disk
        if not server.up or disk.refuses is not None:
            return None
        skip = [draw.randint(0, 6)]

        def refuses(tp: TopicPartition) -> str:
            if once and tp.topic != driver.topic:
                return ""
            skip[0] -= 1
            if skip[0] >= 0:
                return ""
            if once:
                disk.refuses = None
            return reason

        disk.refuses = refuses

        def undo() -> None:
            if disk.refuses is refuses:
                disk.refuses = None

        return Begun(f"n{server.id}: {reason}", undo, (server.id,))

    return begin


def _flush_fails(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """The next flush of a log fails."""
    server = driver.world.server(driver.target(fault, draw))
    if not server.up:
        return None
    disk, reason = server.disk, "input/output error in fsync"
    disk.flush_fails = reason

    def undo() -> None:
        disk.flush_fails = ""

    return Begun(f"n{server.id}: {reason}", undo, (server.id,))


# --- controllers -------------------------------------------------------------------------------------------


def _controller(how: Literal["kill", "power", "pause"]) -> Begin:
    def begin(driver: FaultDriver, _: Fault, draw: Random) -> Begun | None:
        world = driver.world
        active = world.active_controller()
        server = active if active is not None else world.controllers[draw.choice(sorted(world.controllers))]
        if how == "pause":
            return _paused(driver, (server,))
        if not server.up:
            return None
        if how == "kill":
            world.kill(server.id)
        else:
            world.power(server.id)
        return Begun(f"c{server.id}", driver.restarter(server), (server.id,), frozenset({server.id}))

    return begin


def _names(servers: list[SimServer]) -> str:
    return " ".join(f"n{server.id}" for server in servers)


PROCESSES: Mapping[Kind, Begin] = {
    "kill": _ending("kill"),
    "power": _ending("power"),
    "clean": _clean,
    "kill-midway": _midway("kill"),
    "power-midway": _midway("power"),
    "pause": _pause,
    "skew": _skew,
    "disk-error": _disk_refuses("input/output error", once=True),
    "controller-midway": _midway("power", controller=True),
    "flush-error": _flush_fails,
    "disk-full": _disk_refuses("no space left on device", once=False),
    "wipe": _new_disk("wipe"),
    "restore": _new_disk("restore"),
    "controller-kill": _controller("kill"),
    "controller-power": _controller("power"),
    "controller-pause": _controller("pause"),
}
