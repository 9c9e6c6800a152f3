"""The port ``Coordination``: what a broker of profile zk08 asks of ZooKeeper, and what it hears from there.

The core asks with the effects ``OpenSession``, ``Coordinate`` and ``CloseSession`` and hears the events
``SessionChanged``, ``Coordinated`` and ``WatchFired``. A carrier keeps what ZooKeeper promises a client:

- Requests of one session are carried out in the order in which they were made, and answered in that order.
- A watch fires once. It is heard before any answer that shows the state that fired it, and may be heard late.
- ``CONNECTION_LOSS`` leaves open whether the operation was carried out. Every operation under way when a
  connection ends is answered so. A carrier tries nothing again by itself.
- Watches outlive a connection and end with the session. What fired meanwhile is heard after ``CONNECTED``.
- With the end of a session its ephemeral nodes go. The client hears ``EXPIRED`` late: not before it reaches
  ZooKeeper again.

The simulator's carrier is ``zookeeper/simulator``, that of a process ``zookeeper/server/session.py``.
"""

from __future__ import annotations

from enum import Enum

from wrackline.broker.model.values import dataclass

ANY_VERSION = -1
"""Write or delete whatever version is there."""


@dataclass(frozen=True, slots=True)
class Stat:
    """The metadata that ZooKeeper keeps of a node beside its data."""

    created: int
    """The transaction (zxid) that created the node: rises with time over all nodes, and names one life of a
    path."""
    modified: int
    """The transaction that last wrote the data."""
    version: int
    """How often the data was written; 0 at the creation."""
    owner: int
    """The session whose end deletes the node; 0 for a persistent one."""


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    """ZooKeeper appends ten digits to the path, which rise with each child of the parent."""


@dataclass(frozen=True, slots=True)
class Get:
    """Data and stat. With ``watch``: the next change of the data, the deletion and, where the node is
    missing, the creation fire a watch (ZooKeeper's getData, and exists where there is no node)."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Children:
    """Names, sorted. With ``watch``: the next child that comes or goes, or the deletion, fires a watch."""

    path: str
    watch: bool = False


Operation = Create | Get | Set | Delete | Children


class Outcome(Enum):
    OK = "ok"
    NO_NODE = "no node"
    """Also: the parent of a node to be created is missing."""
    NODE_EXISTS = "node exists"
    BAD_VERSION = "bad version"
    NOT_EMPTY = "not empty"
    NO_CHILDREN_FOR_EPHEMERALS = "no children for ephemerals"
    CONNECTION_LOSS = "connection loss"
    """Nobody knows whether it was carried out."""
    SESSION_EXPIRED = "session expired"
    """It was not carried out."""


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: Outcome
    path: str = ""
    """Of the node created, with its digits."""
    data: bytes = b""
    stat: Stat | None = None
    children: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK


class Change(Enum):
    """The change that fired a watch."""

    CREATED = "created"
    DELETED = "deleted"
    DATA = "data"
    CHILDREN = "children"


class SessionState(Enum):
    CONNECTED = "connected"
    """The session is new, or goes on: its number tells."""
    DISCONNECTED = "disconnected"
    """No server answers. The session may go on, or have ended."""
    EXPIRED = "expired"
    """The session is over, and its ephemeral nodes are gone. The core opens another one."""


# --- effects -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Answered by SessionChanged(CONNECTED), as soon as a server can be reached."""

    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Coordinate:
    """Answered by Coordinated with this correlation, exactly once."""

    correlation: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class CloseSession:
    """The session ends at once, and its ephemeral nodes go: a clean shutdown. There is no answer."""


# --- events ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionChanged:
    state: SessionState
    session: int = 0
    """Its number, never 0 when connected: the ``owner`` of the ephemeral nodes that it creates."""


@dataclass(frozen=True, slots=True)
class Coordinated:
    correlation: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class WatchFired:
    path: str
    change: Change
