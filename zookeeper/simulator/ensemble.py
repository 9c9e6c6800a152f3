"""ZooKeeper as brokers meet it in virtual time: sessions that expire, connections that are lost, and an
ensemble that is without a leader for a while.

The ensemble is one node of the network, ``ZOOKEEPER``: a cut between it and a broker holds up everything
between them. Inside it there is one tree, and of an ensemble of three servers it shows this: while they elect
a leader nothing is answered and no session ends, every connection is closed, and a write that was on its way
then was carried out or was not. What it does not show are servers that lag behind their leader: a read is
never older than the last write that was answered. A watch is heard late all the same.

The client's side of a session is here too, as a library has it in a thread of its own: it pings while its
process runs, notices that the server is silent after two thirds of the session's time, and connects again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol, cast

from wrackline.broker.model.coordination import (
    Answer,
    Coordinate,
    Coordinated,
    Create,
    OpenSession,
    Operation,
    Outcome,
    SessionChanged,
    SessionState,
    WatchFired,
)
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.simulator.world.zookeeper_door import ZooKeeper
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.administration import create_cluster
from wrackline.zookeeper.simulator.image import TreeImage, adds_up
from wrackline.zookeeper.simulator.tree import Fired, Tree

_TICKS = 10
"""How often in a session's time a client pings and both sides look whether the other is silent."""
_RECONNECT_MS = 20.0
_RETRANSMIT_MS = 10.0
"""While a cut holds a message up."""

Event = SessionChanged | Coordinated | WatchFired


class Host(Protocol):
    """The part of the world around it that the ensemble needs."""

    now_ms: float
    cuts: dict[tuple[NodeId, NodeId], int]

    def at(self, when_ms: float, action: Callable[[], object]) -> None: ...

    def life(self, node: NodeId) -> int:
        """Returns the number of the life of its process that the node is in; 0 while it is down."""
        ...

    def is_paused(self, node: NodeId) -> bool: ...

    def tell(self, node: NodeId, event: Event) -> None:
        """Puts the event into the node's inbox."""
        ...


@dataclass(slots=True)
class Session:
    """The server's side. ``waiting``: what it has to tell once there is a connection."""

    id: int
    timeout_ms: float
    heard_ms: float
    client: Client
    waiting: list[WatchFired] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Client:
    """The client's side, of one life of a broker's process."""

    node: NodeId
    life: int
    timeout_ms: float
    session: int = 0
    """0: there is none yet."""
    connection: int = 0
    """Rises with each connection: what belongs to an older one goes nowhere. 0: there never was one."""
    connected: bool = False
    heard_ms: float = 0.0
    """The last sign of life from the server."""
    asked: deque[int] = field(default_factory=deque)
    """Correlations without an answer, in order."""
    up: deque[Coordinate | None] = field(default_factory=deque)
    """On its way to the server, in order."""
    down: deque[Event] = field(default_factory=deque)
    """On its way to the client, in order."""
    up_ms: float = 0.0
    """When the last of ``up`` arrives, if no cut holds it up."""
    down_ms: float = 0.0
    over: bool = False
    """Closed, expired and told so, or its process is gone."""


class OnZooKeeper(Protocol):
    """A world, simulated or of traces."""

    zookeeper: ZooKeeper | None


def ensemble_of(world: OnZooKeeper) -> Ensemble | None:
    """Returns the ensemble of the world; None: the world has no ZooKeeper."""
    return cast("Ensemble | None", world.zookeeper)


class Ensemble:
    def __init__(self, host: Host, seed: int | str, *, latency_ms: tuple[float, float] = (0.3, 3.0)) -> None:
        self.tree = Tree()
        self._image = TreeImage(self.tree)
        self.sessions: dict[int, Session] = {}
        self.expired: list[tuple[float, NodeId]] = []
        """(when, whose session)"""
        self._host = host
        self._random = Random(f"{seed}/zookeeper")
        self._latency_ms = latency_ms
        self._clients: dict[NodeId, Client] = {}
        self._numbers = 0
        self._leaderless_until_ms = 0.0

    # --- the cluster ---------------------------------------------------------------------------------------

    def begin(self, brokers: Iterable[NodeId], level: int) -> None:
        for operation in create_cluster(tuple(brokers), level):
            self.administer(operation)

    @property
    def image(self) -> ClusterImage:
        return self._image.image

    def moves(self, tp: TopicPartition) -> bool:
        return self.tree.data(znodes.reassigned(tp)) is not None

    def adds_up(self, partition: PartitionImage) -> bool:
        return adds_up(self.tree, partition)

    # --- faults --------------------------------------------------------------------------------------------

    @property
    def available(self) -> bool:
        return self._host.now_ms >= self._leaderless_until_ms

    def expire(self, node: NodeId) -> bool:
        """End the node's session, as the ensemble does when it hears nothing of it. False: it has none."""
        result = [session for session in self.sessions.values() if session.client.node == node]
        for session in result:
            self._end(session)
        return bool(result)

    def disconnect(self, node: NodeId) -> bool:
        """Close the node's connection. What was under way in it was carried out, or was not. False: it has
        none."""
        client = self._clients.get(node)
        if client is None or not client.connected:
            return False
        self._lose(client)
        return True

    def change_leader(self, for_ms: float) -> None:
        """The ensemble is without a leader for this long. Sessions then begin their time anew."""
        self._leaderless_until_ms = max(self._leaderless_until_ms, self._host.now_ms + for_ms)
        for client in list(self._clients.values()):
            if client.connected:
                self._lose(client)
        self._host.at(self._leaderless_until_ms, self._has_leader)

    def _has_leader(self) -> None:
        if self.available:
            for session in self.sessions.values():
                session.heard_ms = self._host.now_ms

    # --- what a broker asks for ----------------------------------------------------------------------------

    def open(self, node: NodeId, asked: OpenSession) -> None:
        client = Client(node, self._host.life(node), float(asked.timeout_ms))
        old = self._clients.get(node)
        if old is not None:
            old.over = True
        self._clients[node] = client
        self._tick(client)
        self._connect(client)

    def ask(self, node: NodeId, asked: Coordinate) -> None:
        client = self._clients.get(node)
        if client is None or client.over:
            self._host.tell(node, Coordinated(asked.correlation, Answer(Outcome.SESSION_EXPIRED)))
        elif not client.connected:
            self._host.tell(node, Coordinated(asked.correlation, Answer(Outcome.CONNECTION_LOSS)))
        else:
            client.asked.append(asked.correlation)
            self._up(client, asked)

    def close(self, node: NodeId) -> None:
        """A session that cannot be reached now ends by its time."""
        client = self._clients.pop(node, None)
        if client is not None and not client.over:
            client.over = True
            if client.connected:
                self._up(client, None)

    # --- connections ---------------------------------------------------------------------------------------

    def _connect(self, client: Client) -> None:
        """Try until it works, or until there is nobody who would try."""
        host = self._host
        if client.over or client.connected or host.life(client.node) != client.life:
            return
        free = self._reaches(client) and self._is_reached(client)
        if not free or not self.available or host.is_paused(client.node):
            self._connect_later(client)
            return
        self._numbers += 1
        client.connection, client.connected = self._numbers, True
        client.heard_ms = client.up_ms = client.down_ms = host.now_ms
        if not client.session:
            client.session = self._numbers
            self.sessions[client.session] = Session(client.session, client.timeout_ms, host.now_ms, client)
        session = self.sessions.get(client.session)
        if session is None:
            self._down(client, SessionChanged(SessionState.EXPIRED))
            return
        session.heard_ms = host.now_ms
        self._down(client, SessionChanged(SessionState.CONNECTED, session.id))
        waiting, session.waiting = session.waiting, []
        for fired in waiting:
            self._down(client, fired)

    def _connect_later(self, client: Client) -> None:
        pause = _RECONNECT_MS * (1 + self._random.random())
        self._host.at(self._host.now_ms + pause, lambda: self._connect(client))

    def _lose(self, client: Client) -> None:
        """The connection is gone. Of what was on its way up a part still arrives; all that was asked and has
        no answer may have been carried out."""
        client.connected, client.connection = False, 0
        session = self.sessions.get(client.session)
        up, down, asked = client.up, client.down, client.asked
        client.up, client.down, client.asked = deque(), deque(), deque()
        if session is not None:
            # The client names what it watches when it connects again, and hears then what it has missed.
            session.waiting = [event for event in down if isinstance(event, WatchFired)] + session.waiting
        if up and self._reaches(client):
            for operation in list(up)[: self._random.randint(0, len(up))]:
                self._carry_out(client, operation)
        self._host.tell(client.node, SessionChanged(SessionState.DISCONNECTED))
        for correlation in asked:
            self._host.tell(client.node, Coordinated(correlation, Answer(Outcome.CONNECTION_LOSS)))
        self._connect_later(client)

    def _tick(self, client: Client) -> None:
        """The client pings; each side looks how long it has heard nothing. A process that is paused does
        neither, and finds out when it goes on."""
        host = self._host
        session = self.sessions.get(client.session)
        ended = session is None and client.session != 0
        if client.over and ended:
            return
        alive = host.life(client.node) == client.life
        pings = alive and not client.over and client.connected and not host.is_paused(client.node)
        if pings and self._reaches(client) and self.available:
            if session is not None:
                session.heard_ms = host.now_ms
                if self._is_reached(client):
                    client.heard_ms = host.now_ms
            else:
                client.heard_ms = -client.timeout_ms  # the server has closed the connection
        if pings and host.now_ms - client.heard_ms > client.timeout_ms * 2 / 3:
            self._lose(client)
        if session is not None and self.available and host.now_ms - session.heard_ms > session.timeout_ms:
            self._end(session)
        if alive or client.session in self.sessions:
            host.at(host.now_ms + client.timeout_ms / _TICKS, lambda: self._tick(client))

    def _end(self, session: Session) -> None:
        if self.sessions.pop(session.id, None) is not None:
            self.expired.append((self._host.now_ms, session.client.node))
            self._deliver(self.tree.expire(session.id))

    # --- messages ------------------------------------------------------------------------------------------

    def _reaches(self, client: Client) -> bool:
        return (client.node, ZOOKEEPER) not in self._host.cuts

    def _is_reached(self, client: Client) -> bool:
        return (ZOOKEEPER, client.node) not in self._host.cuts

    def _latency(self) -> float:
        return self._random.uniform(*self._latency_ms)

    def _up(self, client: Client, asked: Coordinate | None) -> None:
        """To the server, behind what is under way. None: the session is closed."""
        client.up.append(asked)
        client.up_ms = max(client.up_ms, self._host.now_ms + self._latency())
        connection = client.connection
        self._host.at(client.up_ms, lambda: self._arrive(client, connection))

    def _arrive(self, client: Client, connection: int) -> None:
        """The next operation is at the server, or held up by a cut. What a process sent before it ended
        arrives too."""
        if client.connection != connection or not client.up:
            return
        if not self._reaches(client):
            self._host.at(self._host.now_ms + _RETRANSMIT_MS, lambda: self._arrive(client, connection))
            return
        asked = client.up.popleft()
        answer = self._carry_out(client, asked)
        if asked is not None and answer is not None:
            self._down(client, Coordinated(asked.correlation, answer))

    def _carry_out(self, client: Client, asked: Coordinate | None) -> Answer | None:
        session = self.sessions.get(client.session)
        if session is None:
            return None
        if asked is None:
            self._end(session)
            return None
        session.heard_ms = self._host.now_ms
        answer, fired = self.tree.apply(session.id, asked.operation)
        self._deliver(fired)
        return answer

    def _deliver(self, fired: list[Fired]) -> None:
        for one in fired:
            session = self.sessions.get(one.session)
            if session is None:
                continue
            event = WatchFired(one.path, one.change)
            if session.client.connected:
                self._down(session.client, event)
            else:
                session.waiting.append(event)

    def _down(self, client: Client, event: Event) -> None:
        """Sends the event from the server, behind what is under way."""
        client.down.append(event)
        client.down_ms = max(client.down_ms, self._host.now_ms + self._latency())
        connection = client.connection
        self._host.at(client.down_ms, lambda: self._hear(client, connection))

    def _hear(self, client: Client, connection: int) -> None:
        """The next event is at the client, or held up by a cut."""
        host = self._host
        if client.connection != connection or not client.down or host.life(client.node) != client.life:
            return
        if not self._is_reached(client):
            host.at(host.now_ms + _RETRANSMIT_MS, lambda: self._hear(client, connection))
            return
        event = client.down.popleft()
        if self._clients.get(client.node) is not client:
            return
        if isinstance(event, Coordinated):
            client.asked.remove(event.correlation)
        host.tell(client.node, event)
        if isinstance(event, SessionChanged) and event.state is SessionState.EXPIRED:
            client.over, client.connected = True, False
            for correlation in client.asked:
                host.tell(client.node, Coordinated(correlation, Answer(Outcome.SESSION_EXPIRED)))

    # --- from outside --------------------------------------------------------------------------------------

    def administer(self, operation: Operation) -> Answer:
        """An administrator's own session does it at once. Missing parents are made."""
        if isinstance(operation, Create):
            self.make_path(operation.path.rpartition("/")[0])
        answer, fired = self.tree.apply(0, operation)
        self._deliver(fired)
        return answer

    def make_path(self, path: str) -> None:
        at = ""
        for part in path.strip("/").split("/") if path.strip("/") else ():
            at += f"/{part}"
            if at not in self.tree.nodes:
                self._deliver(self.tree.apply(0, Create(at))[1])
