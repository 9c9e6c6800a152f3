"""Limits of the clients that a node serves at once, and of the time that it keeps those that say nothing
(max.connections, connections.max.idle.ms).

When it is full, the connection that has been silent for the longest makes room for a new one, as on Kafka's
listener for brokers: the nodes of a cluster talk all the time, so clients that only hold connections cannot
keep them out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator

from wrackline.broker.server.network.connection import Connection

_LOG = logging.getLogger("broker.connections")
_SPARED_S = 1.0
"""A connection that was active since is not closed for another one."""
_WARN_EVERY_S = 10.0


class Connections:
    def __init__(self, most: int, max_idle_s: float) -> None:
        self._most = most
        self._max_idle_s = max_idle_s
        self._loop = asyncio.get_running_loop()
        self._last_active: OrderedDict[Connection, float] = OrderedDict()
        """The one that has been silent for the longest first."""
        self._turned_away = 0
        self._warned_at = -_WARN_EVERY_S
        self._sweeper = self._loop.call_later(self._sweep_every_s, self._sweep)

    def __len__(self) -> int:
        return len(self._last_active)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._last_active))

    def admit(self, connection: Connection) -> bool:
        """A new one, in the place of the most silent one if need be. False when there is no room."""
        now = self._loop.time()
        if len(self._last_active) >= self._most:
            self._warn(now)
            silent, active_at = next(iter(self._last_active.items()))
            if now - active_at < _SPARED_S:
                return False
            self._drop(silent)
        self._last_active[connection] = now
        return True

    def active(self, connection: Connection) -> None:
        if connection in self._last_active:
            self._last_active[connection] = self._loop.time()
            self._last_active.move_to_end(connection)

    def closed(self, connection: Connection) -> None:
        self._last_active.pop(connection, None)

    def stop(self) -> None:
        self._sweeper.cancel()

    @property
    def _sweep_every_s(self) -> float:
        return min(self._max_idle_s / 2, 30.0)

    def _sweep(self) -> None:
        """Close those that have been idle for too long, whatever they wait for (as Kafka does)."""
        limit = self._loop.time() - self._max_idle_s
        for connection, active_at in list(self._last_active.items()):
            if active_at > limit:
                break
            _LOG.info("%s: closing the connection: idle for %.0f s", connection.peer, self._max_idle_s)
            self._drop(connection)
        self._sweeper = self._loop.call_later(self._sweep_every_s, self._sweep)

    def _drop(self, connection: Connection) -> None:
        del self._last_active[connection]
        connection.drop()

    def _warn(self, now: float) -> None:
        self._turned_away += 1
        if now - self._warned_at >= _WARN_EVERY_S:
            _LOG.warning(
                "%d connections are open, the limit (max_connections, ulimit -n); %d were closed for it so "
                "far",
                len(self._last_active),
                self._turned_away,
            )
            self._warned_at = now
