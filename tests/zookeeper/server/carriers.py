"""The two carriers of the port ``Coordination``, driven alike: the simulator's ZooKeeper in virtual time, and
the broker's own carrier on a real ZooKeeper, with a proxy between the two that drops and holds connections.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pytest

from tests.zookeeper.simulator.test_ensemble import World
from wrackline.broker.model.coordination import (
    Answer,
    CloseSession,
    Coordinate,
    Coordinated,
    Create,
    OpenSession,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
)
from wrackline.systems.base import DeployError
from wrackline.systems.jvm import java
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka.install import silent
from wrackline.zookeeper.server.session import Event, ZooKeeper
from wrackline.zookeeper.simulator.ensemble import ZOOKEEPER
from wrackline.zookeeper.systems.servers.install import install_zookeeper
from wrackline.zookeeper.systems.servers.server import alone
from wrackline.zookeeper.systems.servers.session import password_of

LIMIT_S = 30.0


class Carrier(Protocol):
    """Sessions of several clients, by number. Each has heard a list of events."""

    timeout_ms: int

    def heard(self, client: int) -> list[Event]: ...

    def open(self, client: int) -> None:
        """Asked for; the session is there when the client has heard so."""

    def ask(self, client: int, correlation: int, operation: Operation) -> None: ...

    def close(self, client: int) -> None: ...

    def until(self, met: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        """Time goes on until it is so."""

    def drop(self, client: int) -> None:
        """Its connection ends; it may make another."""

    def cut(self, client: int) -> None:
        """Nothing goes to it or comes from it."""

    def mend(self, client: int) -> None: ...

    def expire(self, client: int) -> None:
        """ZooKeeper ends its session."""


class Simulated:
    timeout_ms = 3_000

    def __init__(self) -> None:
        self._world = World()

    def heard(self, client: int) -> list[Event]:
        return self._world.inbox.setdefault(client, [])

    def open(self, client: int) -> None:
        self._world.lives[client] = self._world.lives.get(client, 0) or 1
        self._world.zookeeper.open(client, OpenSession(self.timeout_ms))

    def ask(self, client: int, correlation: int, operation: Operation) -> None:
        self._world.ask(client, correlation, operation)

    def close(self, client: int) -> None:
        self._world.zookeeper.close(client)

    def until(self, met: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        end = self._world.now_ms + limit_s * 1000
        while not met():
            assert self._world.now_ms < end
            self._world.run(1)

    def drop(self, client: int) -> None:
        self._world.zookeeper.disconnect(client)

    def cut(self, client: int) -> None:
        self._world.cuts[client, ZOOKEEPER] = self._world.cuts[ZOOKEEPER, client] = 1

    def mend(self, client: int) -> None:
        del self._world.cuts[client, ZOOKEEPER], self._world.cuts[ZOOKEEPER, client]

    def expire(self, client: int) -> None:
        self._world.zookeeper.expire(client)


class _Proxy:
    """Between one client and the server."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.open = asyncio.Event()
        self.open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> int:
        """The port."""
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, on}
        for one in (self._pass_on(reader, on), self._pass_on(there, writer)):
            task = asyncio.create_task(one)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self.open.wait()
                writer.write(data)
            await self.open.wait()
        writer.close()

    def drop(self) -> None:
        writers, self._writers = self._writers, set()
        for writer in writers:
            writer.transport.abort()

    def close(self) -> None:
        self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()


class Real:
    timeout_ms = 3_000

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._heard: dict[int, list[Event]] = {}
        self._proxies: dict[int, _Proxy] = {}
        self._carriers: dict[int, ZooKeeper] = {}

    def heard(self, client: int) -> list[Event]:
        return self._heard.setdefault(client, [])

    def open(self, client: int) -> None:
        self._do(self._open(client))

    async def _open(self, client: int) -> None:
        if client not in self._carriers:
            self._proxies[client] = _Proxy(self._port)
            servers = f"127.0.0.1:{await self._proxies[client].serve()}"
            self._carriers[client] = ZooKeeper(servers, self.heard(client).append)
        self._carriers[client].carriers[OpenSession](OpenSession(self.timeout_ms))

    def ask(self, client: int, correlation: int, operation: Operation) -> None:
        self._do(self._ask(client, correlation, operation))

    async def _ask(self, client: int, correlation: int, operation: Operation) -> None:
        self._carriers[client].carriers[Coordinate](Coordinate(correlation, operation))

    def close(self, client: int) -> None:
        async def close() -> None:
            self._carriers[client].carriers[CloseSession](CloseSession())
            await self._carriers[client].closed()

        self._do(close())

    def _do(self, what: object) -> None:
        self._loop.run_until_complete(what)  # type: ignore[arg-type]

    def until(self, met: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
        deadline = self._loop.time() + limit_s
        while not met():
            assert self._loop.time() < deadline, self._heard
            self._do(asyncio.sleep(0.002))

    def drop(self, client: int) -> None:
        self._proxies[client].drop()

    def cut(self, client: int) -> None:
        self._proxies[client].open.clear()

    def mend(self, client: int) -> None:
        self._proxies[client].open.set()

    def expire(self, client: int) -> None:
        """By a client that takes the session over and closes it."""
        states = [one for one in self.heard(client) if isinstance(one, SessionChanged) and one.session]

        async def end() -> None:
            await asyncio.to_thread(_end_session, self._port, states[-1].session)

        self._do(end())

    def end(self) -> None:
        for client in self._carriers:
            self.mend(client)
            self.close(client)
        for proxy in self._proxies.values():
            proxy.close()
        self._do(asyncio.sleep(0))
        self._loop.close()


def _end_session(port: int, session: int) -> None:
    from kazoo.client import KazooClient

    client = KazooClient(f"127.0.0.1:{port}", timeout=3.0, client_id=(session, password_of(session)))
    client.start()
    assert client.client_id[0] == session
    client.stop()
    client.close()


def release() -> Release:
    """Of ZooKeeper. Skips where none can be had."""
    try:
        return install_zookeeper(Store(), repositories=(), say=silent)
    except DeployError as wrong:
        pytest.skip(f"no ZooKeeper here: {wrong}")


@contextmanager
def real_server() -> Iterator[int]:
    """The port of a ZooKeeper on loopback."""
    [port] = java.free_ports(1)
    with (
        tempfile.TemporaryDirectory(prefix="wl-zookeeper-") as folder,
        alone(release(), Path(folder) / "z", port),
    ):
        yield port


def states(heard: list[Event]) -> list[SessionState]:
    return [event.state for event in heard if isinstance(event, SessionChanged)]


def answers(heard: list[Event]) -> dict[int, Answer]:
    """By correlation; each has been answered once."""
    found: dict[int, Answer] = {}
    for event in heard:
        if isinstance(event, Coordinated):
            assert event.correlation not in found
            found[event.correlation] = event.answer
    return found


def connected(carrier: Carrier, client: int) -> int:
    """Its session, once it has one."""
    carrier.until(lambda: states(carrier.heard(client))[-1:] == [SessionState.CONNECTED])
    return [event.session for event in carrier.heard(client) if isinstance(event, SessionChanged)][-1]


def done(carrier: Carrier, client: int, correlation: int, operation: Operation) -> Answer:
    """Asked and answered."""
    carrier.ask(client, correlation, operation)
    carrier.until(lambda: correlation in answers(carrier.heard(client)))
    return answers(carrier.heard(client))[correlation]


def place(carrier: Carrier, client: int, name: str) -> str:
    """A node below which a test has its own."""
    assert done(carrier, client, -1, Create(name)).outcome in (Outcome.OK, Outcome.NODE_EXISTS)
    return name
