"""The end of a broker's session with ZooKeeper, as if it had expired."""

from __future__ import annotations

import time
from collections.abc import Callable

from wrackline.systems.base import DeployError, Node, SessionEnd
from wrackline.zookeeper.systems.servers.session import Session, password_of


def expire(session: Session, node: Node, path: str, timeout_s: float) -> SessionEnd:
    """End the session that the broker has, and wait until it has another. ``path``: where it registers.
    Raises DeployError."""
    before = _owner(session, path)
    if not before:
        raise DeployError(f"{node.host.name}: broker {node.node_id} has no session with ZooKeeper now")
    began = time.monotonic()
    session.end(before, password_of(before), timeout_s)
    ended = time.monotonic()
    after = _until(lambda: _owner(session, path), lambda owner: owner not in (0, before), timeout_s)
    back = time.monotonic() - (ended if after else began)
    return SessionEnd(path, before, after if after != before else 0, round(back, 3))


def _owner(session: Session, path: str) -> int:
    """The session that a node belongs to; 0 when there is no such node."""
    stat = session.ask(lambda asking: asking.stat(path), 5.0)
    return int(stat.ephemeralOwner) if stat is not None else 0


def _until(look: Callable[[], int], met: Callable[[int], bool], timeout_s: float) -> int:
    """Looks until the condition is met or the deadline has come; returns what was seen last."""
    deadline = time.monotonic() + timeout_s
    while not met(seen := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen
