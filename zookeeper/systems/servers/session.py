"""Our own session with the ensemble, by kazoo, inside the fleet's network.

Every question has a deadline, and whatever goes wrong is a DeployError: kazoo by itself would wait as long as
no server answers. A connection that is lost is made again by kazoo in the meantime.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

from wrackline.fleets.base import Fleet, FleetError
from wrackline.systems.base import DeployError

SESSION_S = 6.0
PAUSE_S = 0.1
_PASSING = (ConnectionLoss, ConnectionClosedError, SessionExpiredError, KazooTimeoutError)

T = TypeVar("T")


class Asking:
    """One question, until its deadline: nodes of ZooKeeper read and written."""

    def __init__(self, client: KazooClient, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    @property
    def left_s(self) -> float:
        """Never less than a moment: what has been sent may have been answered."""
        return max(0.01, self._deadline - time.monotonic())

    def children(self, path: str) -> list[str]:
        """Returns the names of the children; empty where there is no such node."""
        try:
            result: list[str] = self._client.get_children_async(path).get(timeout=self.left_s)
        except NoNodeError:
            return []
        return result

    def get(self, path: str) -> bytes | None:
        """Returns the node's data; None when there is no such node."""
        return self.all_of([path])[0]

    def all_of(self, paths: Sequence[str]) -> list[bytes | None]:
        """The data of each, asked all at once."""
        asked = [self._client.get_async(path) for path in paths]
        result: list[bytes | None] = []
        for one in asked:
            try:
                result.append(one.get(timeout=self.left_s)[0])
            except NoNodeError:
                result.append(None)
        return result

    def stat(self, path: str) -> Any:
        """kazoo's ZnodeStat; None when there is no such node."""
        return self._client.exists_async(path).get(timeout=self.left_s)

    def put(self, path: str, data: bytes) -> None:
        """The node has this data now, whether it was there or not; its parents are made."""
        try:
            self._client.set_async(path, data).get(timeout=self.left_s)
        except NoNodeError:
            self.create(path, data)

    def create(self, path: str, data: bytes, *, sequence: bool = False) -> bool:
        """False when it is there already. Its parents are made."""
        parent = path.rpartition("/")[0]
        while True:
            try:
                self._client.create_async(path, data, sequence=sequence).get(timeout=self.left_s)
                return True
            except NodeExistsError:
                return False
            except NoNodeError:
                self.create(parent, b"")

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Raises DeployError at the deadline."""
        while not holds():
            if time.monotonic() > self._deadline:
                raise DeployError(f"ZooKeeper: waited in vain for {what}")
            time.sleep(PAUSE_S)


def persistently() -> KazooRetry:
    """Returns the retry for a lost server: soon, and then about twice a second.

    With a backoff of 1 the pauses would dwindle to nothing, for kazoo multiplies each by a chance of its own.
    A hundred attempts a second would then keep a slow server from its start."""
    return KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=0.5)


class Session:
    """One session, kept. Safe to use from several threads."""

    def __init__(self, fleet: Fleet, servers: str) -> None:
        """``servers``: ``address:port,...``."""
        self._fleet = fleet
        self._servers = servers
        self._mutex = threading.Lock()
        self._client: KazooClient | None = None
        self._live = threading.Event()
        """Set while the client is connected."""

    def ask(self, question: Callable[[Asking], T], timeout_s: float) -> T:
        """Asked again while the connection is lost. Raises DeployError."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                client = self._connected(deadline)
                return question(Asking(client, deadline))
            except _PASSING as passing:
                if time.monotonic() + PAUSE_S >= deadline:
                    said = str(passing) or type(passing).__name__
                    raise DeployError(
                        f"ZooKeeper at {self._servers}: no answer within {timeout_s:g} s ({said}); see that "
                        "it runs, and has a majority of its servers"
                    ) from passing
                time.sleep(PAUSE_S)
            except KazooException as error:
                said = str(error) or type(error).__name__
                raise DeployError(f"ZooKeeper at {self._servers} refused: {said}") from error

    def end(self, session_id: int, password: bytes, timeout_s: float) -> None:
        """End another's session: who knows its id and password may take it over, and close it. Raises
        DeployError."""
        client, live = self._started((session_id, password))
        try:
            if not live.wait(timeout_s):
                raise DeployError(
                    f"ZooKeeper at {self._servers} did not give session {session_id:#x} within "
                    f"{timeout_s:g} s"
                )
            if client.client_id[0] != session_id:
                raise DeployError(f"ZooKeeper at {self._servers} has no session {session_id:#x} any more")
        finally:
            client.stop()
            client.close()

    def close(self) -> None:
        """Idempotent; who asks afterwards has a new session."""
        with self._mutex:
            client, self._client = self._client, None
        if client is not None:
            client.stop()
            client.close()

    def _connected(self, deadline: float) -> KazooClient:
        """Raises KazooTimeoutError, DeployError."""
        with self._mutex:
            if self._client is None:
                self._client, self._live = self._started(None)
            client, live = self._client, self._live
        if not live.wait(max(0.0, deadline - time.monotonic())):
            raise KazooTimeoutError("no server answers")
        return client

    def _started(self, identity: tuple[int, bytes] | None) -> tuple[KazooClient, threading.Event]:
        """The client, and what is set while it is connected. Its threads are begun in the fleet's network,
        and stay there."""
        quiet = logging.getLogger(__name__)
        client = KazooClient(
            self._servers,
            timeout=SESSION_S,
            client_id=identity,
            connection_retry=persistently(),
            logger=quiet,
        )
        try:
            with self._fleet.entered():
                live: threading.Event = client.start_async()
        except FleetError as error:
            raise DeployError(f"the fleet's network cannot be entered: {error}") from error
        return client, live


SUPER_SECRET = 0xB3415C00
"""What a ZooKeeper server mixes into the password of every session: the same in all of its versions."""


def password_of(session_id: int) -> bytes:
    """The password that the server gave a session: the first bytes of java.util.Random, seeded by its id."""
    seed = ((session_id ^ SUPER_SECRET) ^ 0x5DEECE66D) & ((1 << 48) - 1)
    out = bytearray()
    while len(out) < 16:
        seed = (seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        out += (seed >> 16).to_bytes(4, "little")
    return bytes(out[:16])
