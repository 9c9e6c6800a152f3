"""Watchers: they ask brokers, one by one and each on a connection of its own, what groups have committed.

A client asks whom it takes for the coordinator, and does not say with the answer who that was. Two brokers
may believe that they coordinate a group: one that was replaced and does not know it, and the one that
replaced it. Here it is certain who answered.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wrackline.history.model import Type
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError, Rejected
from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.log.processes import Context, Process, positions_of

CONNECT_S = 1.0
ANSWER_S = 6.0
"""Longer than a coordinator waits for an answer that must be stable (``offsets.commit.timeout.ms``)."""
FRESH_S = 5.0
"""How often the cluster is asked for its brokers."""


class Watcher(Process):
    """Asks every n-th broker, in turn. What a broker answers that does not take itself for the coordinator is
    not recorded."""

    f = "committed"

    def __init__(
        self, context: Context, slot: int, spec: GroupSpec, groups: Sequence[str], number: int
    ) -> None:
        super().__init__(context, slot)
        self._spec, self._groups, self._number = spec, groups, number
        self._brokers: dict[int, tuple[str, int]] = {}
        self._fresh_at = -FRESH_S
        self._open: dict[int, Connection] = {}
        self._coordinates: set[tuple[int, str]] = set()
        """(broker, group) where the last answer was that of a coordinator."""

    def work(self) -> None:
        while not self.context.generator.ended:
            time.sleep(self._spec.watch_every_ms / 1e3)
            for node in self._mine():
                for group in self._groups:
                    self._watch(node, group)
        self.drop_client()

    def drop_client(self) -> None:
        for node in list(self._open):
            self._open.pop(node).close()

    def _mine(self) -> Sequence[int]:
        """Returns the brokers that this watcher asks."""
        if time.monotonic() - self._fresh_at >= FRESH_S:
            for address in self.context.bootstrap.split(","):
                host, _, port = address.rpartition(":")
                try:
                    with Connection(host, int(port), timeout_s=CONNECT_S) as one:
                        brokers = one.metadata([]).brokers
                except ProtocolError:
                    continue
                self._brokers |= {broker.node_id: (broker.host, broker.port) for broker in brokers}
                self._fresh_at = time.monotonic()
                break
        return sorted(self._brokers)[self._number :: self._spec.watchers]

    def _watch(self, node: int, group: str) -> None:
        if (node, group) in self._coordinates or self._is_coordinator(node, group):
            self._ask(node, group)

    def _is_coordinator(self, node: int, group: str) -> bool:
        try:
            self._fetch(node, group)
        except ProtocolError:
            return False
        self._coordinates.add((node, group))
        return True

    def _ask(self, node: int, group: str) -> None:
        extra: dict[str, Any] = {"group": group, "coordinator": node, "coordinator_by": "connection"}
        extra |= {"stable": True} if self._stable else {}
        self.record(self.process, Type.INVOKE, self.f, extra=extra)
        begin = time.monotonic_ns()
        try:
            offsets = self._fetch(node, group)
        except ProtocolError as refused:
            self._coordinates.discard((node, group))
            error = refused.error.name.upper() if isinstance(refused, Rejected) else "_TRANSPORT"
            kind, columns = Type.FAIL, {"error": error, "extra": extra}
        else:
            kind, columns = Type.OK, {"extra": {"offsets": positions_of(offsets), **extra}}
        self.record(self.process, kind, self.f, latency_ns=time.monotonic_ns() - begin, **columns)

    @property
    def _stable(self) -> bool:
        return self._spec.isolation == "read_committed"

    def _fetch(self, node: int, group: str) -> dict[int, int]:
        """Raises ProtocolError; of a connection that failed there will be another."""
        if node not in self._open:
            host, port = self._brokers[node]
            self._open[node] = Connection(host, port, timeout_s=CONNECT_S, answer_s=ANSWER_S)
        places = self.context.topic, range(self.context.partitions)
        try:
            return self._open[node].committed_offsets(group, *places, require_stable=self._stable)
        except Rejected:
            raise
        except ProtocolError:
            self._open.pop(node).close()
            raise
