"""Transport of messages in a world: connections, latency, cuts, holds, resets, time-outs (see
``network``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any, Literal

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.events import Event
from wrackline.broker.model.messages.requests import Request, Response
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.world.answers import resolve
from wrackline.simulator.world.clock import Clock
from wrackline.simulator.world.network import Connection, Hold, Matches, Message, NetworkOptions, Slot
from wrackline.simulator.world.nodes import SimNode, SimServer, StepRecord

_RECEIVED = StepRecord(0, 0.0, "receive", 0)
"""Stands for a message's arrival where nobody observes it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Transport(Clock):
    """The part of a World that carries messages."""

    def __init__(self, seed: int | str, network: NetworkOptions) -> None:
        super().__init__()
        self.network = network
        self.wall_clock = False
        """Brokers are told the time of day with each request."""
        self.cuts: dict[tuple[NodeId, NodeId], int] = {}
        """Ordered pairs that are cut, with how many times over."""
        self.lag: dict[tuple[NodeId, NodeId], float] = {}
        """Ordered pairs whose messages take this much longer, in milliseconds."""
        self.holds: list[Hold] = []
        self._nodes: dict[NodeId, SimNode] = {}
        self.wire: Any = None
        """The broker's codec (``wire``), where messages go through it."""
        self._cut_short = False
        """Among the effects that are being carried out is a truncation that took more than it was asked
        to."""
        self._network_random = Random(f"{seed}/network")
        self._connections: dict[tuple[NodeId, NodeId, str], Connection] = {}

    def _put(self, node: SimNode, event: Event, message: Message | None) -> None:
        """Puts an event into the node's inbox (``Execution``)."""
        raise NotImplementedError

    # --- messages ------------------------------------------------------------------------------------------

    def _send(self, node: SimNode, effect: fx.Send) -> None:
        if effect.destination not in self._nodes or self._cut_short:
            reason = "the log ends before what it says" if self._cut_short else "no such node"
            failed = ev.SendFailed(effect.correlation, effect.destination, reason)
            self._put(node, failed, None)
            return
        key = (node.id, effect.destination, effect.channel)
        connection = self._connections.get(key)
        if connection is None or not connection.open:
            connection = Connection(node.id, effect.destination, effect.channel, node.incarnation)
            self._connections[key] = connection
        correlation = effect.correlation
        connection.asked[correlation] = effect
        self._at(self.now_ms + effect.timeout_ms / node.clock_rate, self._timed_out, connection, correlation)
        message = self._message("request", connection, effect.request, None, correlation)
        if self.wire is not None:
            message.incoming = self.wire.carry_request(node.id, effect.request)
        self._post(message)
        if self.network.duplicate and self._network_random.random() < self.network.duplicate:
            self._post(replace(message, number=self._numbers, duplicate=True))

    def _message(
        self,
        kind: Literal["request", "response", "close"],
        connection: Connection,
        request: Request | None,
        response: Response | None,
        correlation: int,
    ) -> Message:
        self._numbers += 1
        source, destination = connection.source, connection.destination
        if kind == "response":
            source, destination = destination, source
        return Message(
            kind,
            source,
            destination,
            connection.channel,
            request,
            response,
            connection,
            correlation,
            self._numbers,
        )

    def _post(self, message: Message) -> None:
        network, draw = self.network, self._network_random
        connection, destination = message.connection, message.destination
        now_ms = self.now_ms
        for hold in self.holds:
            full = hold.limit is not None and len(hold.held) >= hold.limit
            if not full and message.kind != "close" and hold.matches(message):
                hold.held.append(message)
                connection.stalled.setdefault(destination, deque()).append(message)
                return
        stalled = connection.stalled
        if stalled and stalled.get(destination):
            stalled[destination].append(message)
            return
        latency = network.latency_min_ms + draw.random() * (network.latency_max_ms - network.latency_min_ms)
        if network.spike and draw.random() < network.spike:
            latency += draw.random() * network.spike_ms
        if self.lag:
            latency += self.lag.get((message.source, destination), 0.0)
        if network.drop and draw.random() < network.drop:
            return
        when = now_ms + latency
        if not (network.reorder and draw.random() < network.reorder):
            last_at = connection.last_at
            last = last_at.get(destination, 0.0)
            if when < last:
                when = last
            last_at[destination] = when
        self._at(when, self._arrive, message)

    def _arrive(self, message: Message, _: None) -> StepRecord | None:
        connection, destination, cuts = message.connection, message.destination, self.cuts
        blocked = cuts and (
            (message.source, destination) in cuts
            or (connection.destination_life < 0 and (destination, message.source) in cuts)
        )
        if blocked or (connection.stalled and connection.stalled.get(destination)):
            connection.stalled.setdefault(destination, deque()).append(message)
            return None
        if message.kind == "request":
            return self._request_arrives(message)
        if message.kind == "response":
            return self._response_arrives(message)
        return self._close_arrives(message)

    def _request_arrives(self, message: Message) -> StepRecord | None:
        connection = message.connection
        node = self._nodes[message.destination]
        if node.down == "power" and node.core is None:
            return None
        life_is_over = connection.destination_life not in (-1, node.incarnation)
        if node.core is None or life_is_over or not node.accepts:
            if connection.open:
                delay = self._network_random.uniform(self.network.latency_min_ms, self.network.latency_max_ms)
                why = "connection reset" if life_is_over else "connection refused"
                self._at(self.now_ms + delay, self._reset, connection, why)
            return None
        connection.destination_life = node.incarnation
        self._numbers = number = self._numbers + 1
        assert message.request is not None
        slot = Slot(
            number, message.correlation, message.request, message.duplicate, incoming=message.incoming
        )
        request = message.request if message.incoming is None else message.incoming.request
        if not message.duplicate:
            connection.slots.append(slot)
        node.requests[slot.request_id] = (connection, slot)
        client = self._nodes[message.source].name
        clock_ms = self.now_ms if self.wall_clock else None
        self._put(node, ev.RequestReceived(slot.request_id, request, client, client, clock_ms), message)
        self.steps += 1
        if not self.observers:
            return _RECEIVED
        return StepRecord(self.steps, self.now_ms, "receive", node.id, None, (), message)

    def _response_arrives(self, message: Message) -> StepRecord | None:
        connection = message.connection
        node = self._nodes[message.destination]
        if not connection.open or node.core is None or connection.source_life != node.incarnation:
            return None
        if connection.asked.pop(message.correlation, None) is None:
            return None
        assert message.response is not None
        response = message.response if message.decoded is None else message.decoded
        event = ev.ResponseReceived(message.correlation, message.source, response)
        self._put(node, event, message)
        self.steps += 1
        if not self.observers:
            return _RECEIVED
        return StepRecord(self.steps, self.now_ms, "receive", node.id, None, (), message)

    def _close_arrives(self, message: Message) -> StepRecord | None:
        """The asker has hung up: what is parked for it is forgotten."""
        connection, node = message.connection, self._nodes[message.destination]
        slots = [slot for slot in connection.slots if not slot.done]
        connection.slots.clear()
        if node.core is None or connection.destination_life != node.incarnation or not slots:
            return None
        for slot in slots:
            if node.requests.pop(slot.request_id, None) is not None:
                self._put(node, ev.RequestCancelled(slot.request_id), None)
        return self._record("closed", node.id, message=message, note=f"{connection.source} hung up")

    def _reply(self, node: SimServer, effect: fx.Reply) -> None:
        result = node.requests.pop(effect.request_id, None)
        if result is None:
            return
        connection, slot = result
        slot.response = resolve(node.disk, slot.request, effect.response)
        slot.done = True
        self._answer(connection)

    def _no_reply(self, node: SimNode, effect: fx.NoReply) -> None:
        result = node.requests.pop(effect.request_id, None)
        if result is None:
            return
        connection, slot = result
        slot.done = True
        connection.asked.pop(slot.correlation, None)
        self._answer(connection)
        if effect.close:
            self._at(
                self.now_ms + self.network.latency_max_ms, self._reset, connection, "closed by the broker"
            )

    def _answer(self, connection: Connection) -> None:
        slots = connection.slots
        while slots and slots[0].done:
            slot = slots.popleft()
            if slot.response is not None:
                answer = self._message("response", connection, slot.request, slot.response, slot.correlation)
                if slot.incoming is not None:
                    answer.decoded = self.wire.carry_response(slot.incoming, slot.request, slot.response)
                self._post(answer)

    def _timed_out(self, connection: Connection, correlation: int) -> StepRecord | None:
        send = connection.asked.get(correlation)
        if send is None or not connection.open:
            return None
        return self._reset(connection, f"no answer in {send.timeout_ms} ms")

    def _reset(self, connection: Connection, why: str) -> StepRecord | None:
        """The asker gives the connection up: all that was asked on it fails."""
        if not connection.open:
            return None
        node = self._nodes[connection.source]
        back = (connection.destination, connection.source)
        if why.startswith("connection") and back in self.cuts:
            return None
        self._close(connection)
        if node.core is None or connection.source_life != node.incarnation:
            return None
        asked, connection.asked = connection.asked, {}
        for correlation in asked:
            self._put(node, ev.SendFailed(correlation, connection.destination, why), None)
        return self._record(
            "refused", node.id, note=f"{connection.channel} to {connection.destination}: {why}"
        )

    def _close(self, connection: Connection) -> None:
        connection.open = False
        self._connections.pop((connection.source, connection.destination, connection.channel), None)
        for waiting in connection.stalled.values():
            for hold in self.holds:
                hold.held = [message for message in hold.held if message not in waiting]
        connection.stalled.clear()
        if connection.destination_life >= 0:
            self._post(self._message("close", connection, None, None, -1))

    def _hang_up(self, node: SimNode, *, silent: bool) -> None:
        """The node's process is gone: its kernel tells the others, unless the power went."""
        for connection in list(self._connections.values()):
            if connection.source == node.id:
                if silent:
                    connection.open = False
                    del self._connections[connection.source, connection.destination, connection.channel]
                    connection.stalled.clear()
                else:
                    self._close(connection)
            elif connection.destination == node.id and connection.destination_life >= 0:
                connection.slots.clear()
                if not silent:
                    delay = self._network_random.uniform(
                        self.network.latency_min_ms, self.network.latency_max_ms
                    )
                    self._at(self.now_ms + delay, self._reset, connection, "connection reset")

    # --- network faults ------------------------------------------------------------------------------------

    def cut(self, a: NodeId, b: NodeId, *, one_way: bool = False) -> StepRecord:
        """Cuts the way from a to b (and, unless ``one_way``, back). Cuts of one pair add up."""
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            self.cuts[pair] = self.cuts.get(pair, 0) + 1
        return self._tell(self._record("fault", a, note=f"cut {a}{'->' if one_way else '<->'}{b}"))

    def mend(self, a: NodeId, b: NodeId, *, one_way: bool = False) -> StepRecord:
        """Take one ``cut`` back."""
        for pair in ((a, b),) if one_way else ((a, b), (b, a)):
            count = self.cuts.pop(pair, 0) - 1
            if count > 0:
                self.cuts[pair] = count
        self._resend()
        return self._tell(self._record("fault", a, note=f"mend {a}{'->' if one_way else '<->'}{b}"))

    def isolate(self, node: NodeId, others: Iterable[NodeId] | None = None) -> None:
        """Isolates the node from all other nodes, or from these."""
        for other in sorted(self._nodes) if others is None else others:
            if other != node:
                self.cut(node, other)

    def heal(self) -> StepRecord:
        """Every cut, lag and hold ends."""
        self.cuts.clear()
        self.lag.clear()
        for hold in list(self.holds):
            self.release(hold)
        self._resend()
        return self._tell(self._record("fault", 0, note="heal"))

    def hold(self, matches: Matches, label: str = "", limit: int | None = None) -> Hold:
        """Keep back the messages (sent from now on) for which this is true, until ``release``."""
        hold = Hold(matches, label, limit)
        self.holds.append(hold)
        return hold

    def release(self, hold: Hold, *, drop: bool = False) -> None:
        """Releases what is held (and stops holding), or with ``drop`` loses it: the asker runs into its
        time-out."""
        if hold in self.holds:
            self.holds.remove(hold)
        hold.active = False
        held, hold.held = hold.held, []
        if drop:
            for message in held:
                waiting = message.connection.stalled.get(message.destination)
                if waiting is not None and message in waiting:
                    waiting.remove(message)
        self._resend()

    def _resend(self) -> None:
        """Sends again, in order, what is stalled without a reason."""
        for connection in list(self._connections.values()):
            for destination, waiting in connection.stalled.items():
                source = waiting[0].source if waiting else destination
                if not waiting or (source, destination) in self.cuts:
                    continue
                if connection.destination_life < 0 and (destination, source) in self.cuts:
                    continue
                self._release_until_held(connection, destination, waiting)

    def _release_until_held(
        self, connection: Connection, destination: NodeId, waiting: deque[Message]
    ) -> None:
        held = {id(message) for hold in self.holds for message in hold.held}
        late = self.now_ms + self._network_random.random() * self.network.retransmit_ms
        while waiting and id(waiting[0]) not in held:
            message = waiting.popleft()
            when = max(late, connection.last_at.get(destination, 0.0))
            connection.last_at[destination] = when
            self._at(when, self._arrive, message)
