"""Carry out a plan of reassignments, at most so many at a time (docs/protocol.md 2.16)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from wrackline.broker.admin.client import AdminClient, AdminError
from wrackline.broker.rules.placement.growth import Move
from wrackline.broker.rules.placement.topics import REPLICATION_RATE
from wrackline.kafka_client.model import Place, ResourceType

Say = Callable[[str], None]
_POLL_S = 0.2


def execute(
    client: AdminClient, moves: Iterable[Move], *, at_a_time: int, stall_s: float, say: Say = print
) -> None:
    """Returns when all are complete. Raises AdminError when for ``stall_s`` none has been: what was started
    goes on without us."""
    waiting = deque(moves)
    running: dict[Place, Move] = {}
    total, done = len(waiting), 0
    since = time.monotonic()
    while waiting or running:
        started = [waiting.popleft() for _ in range(min(at_a_time - len(running), len(waiting)))]
        if started:
            client.reassign({move.tp: move.after for move in started})
            running.update({move.tp: move for move in started})
        under_way = {one.place for one in client.reassignments()}
        for tp in [tp for tp in running if tp not in under_way]:
            move = running.pop(tp)
            done += 1
            since = time.monotonic()
            say(f"[{done}/{total}] {move.tp}: {list(move.before)} -> {list(move.after)}")
        if running and time.monotonic() - since > stall_s:
            late = ", ".join(str(tp) for tp in running)
            raise AdminError(
                f"no reassignment was completed for {stall_s:g} s; still under way: {late}; "
                "see `admin describe` for who is not in the ISR, `admin cancel` takes them back"
            )
        if running:
            time.sleep(_POLL_S)


@contextmanager
def throttled(client: AdminClient, rate_bytes: int | None) -> Iterator[None]:
    """Throttles replication inside of the context: added replicas copy at most so many bytes a second on
    each broker."""
    if rate_bytes is not None:
        client.alter_configs(ResourceType.BROKER, "", {REPLICATION_RATE: str(rate_bytes)})
    try:
        yield
    finally:
        if rate_bytes is not None:
            client.alter_configs(ResourceType.BROKER, "", {REPLICATION_RATE: None})
