"""How nodes ask each other and answer, looked at as a run goes.

``haste``  nobody asks the same thing again and again without the pause that the settings say; a broker that
           is refused, or hears nothing, asks again after its pause and not before
``twice``  a request is answered once
``idle``   a voter that follows has asked its leader, or is about to: it waits for no election to be told
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.quorum.roles import RETRY
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import Reply, Send
from wrackline.broker.model.events import ResponseReceived, SendFailed
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.model.types import METADATA, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.watchers import HAIR_MS, Scope, Watcher
from wrackline.simulator.world.nodes import PROBE, SimBroker
from wrackline.simulator.world.world import StepRecord, World

_TIMES = 12
_HASTE_MS = 40.0
"""So many equal requests take longer: a pause is 20 ms, and 10 where a clock runs at twice its rate."""
_LOOK_EVERY_MS = 50.0
_SESSION_ERRORS = (ErrorCode.fetch_session_id_not_found, ErrorCode.invalid_fetch_session_epoch)
"""A fetcher asks at once for all that it follows."""


def _to_controllers(config: BrokerConfig) -> float:
    return max(20.0, min(config.heartbeat_interval_ms / 10, 200.0))


@dataclass(frozen=True, slots=True)
class _Pause:
    """What follows when a question on a channel is refused or not answered."""

    after_ms: Callable[[BrokerConfig], float]
    refuses: Callable[[Any], bool]
    """Whether an answer does so."""
    what: Callable[[Any], Any] = lambda request: type(request)
    """Of the request: the part that makes another question of it, which may be asked at once."""
    each: bool = False
    """The channel is one for all destinations."""


def _error(response: Any) -> bool:
    return getattr(response, "error", None) is not NO_ERROR


_PAUSES = {
    "fetcher": _Pause(
        lambda config: config.replica_fetch_backoff_ms,
        lambda response: _error(response) and response.error not in _SESSION_ERRORS,
    ),
    "controller-fetch": _Pause(
        _to_controllers,
        lambda response: _error(response) or any(map(_error, getattr(response, "partitions", ()))),
        what=lambda _: METADATA,
        each=True,
    ),
    "controller-alter": _Pause(_to_controllers, _error, each=True),
    "controller": _Pause(
        _to_controllers,
        _error,
        what=lambda request: (
            type(request), getattr(request, "want_fence", None), getattr(request, "want_shut_down", None)
        ),
        each=True,
    ),
    "controller-forward": _Pause(
        _to_controllers,
        lambda response: getattr(response, "error", None) is ErrorCode.not_controller,
        what=id,
        each=True,
    ),
}  # fmt: skip
"""Of the channels of brokers, by how they begin."""


class Exchanges(Watcher):
    """Looks at what servers send and answer."""

    scope = Scope.SERVERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._repeated: dict[tuple[NodeId, NodeId, str], tuple[Any, int, float]] = {}
        """(node, other, channel) -> what is asked, how often, since when"""
        self._answered: set[int] = set()
        self._newest: dict[tuple[Any, ...], int] = {}
        """(broker, its life, channel, destination, question) -> the correlation of the last one."""
        self._under_way: dict[tuple[NodeId, int, int], tuple[_Pause, tuple[Any, ...], Any]] = {}
        """(broker, its life, correlation) -> its pause, its question, the request."""
        self._not_before: dict[tuple[Any, ...], tuple[float, float, Any]] = {}
        """Question -> when it may be asked again, by the broker's clock and by that of the world; the request
        is kept for its id."""

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.node >= PROBE:
            return
        broker = world.brokers.get(step.node)
        if broker is not None and isinstance(broker.core, Broker):
            self._look_at_pauses(step, broker, broker.core.config)
        for effect in step.effects:
            if type(effect) is Send:
                self._sent(step, effect)
            elif type(effect) is Reply:
                if effect.request_id in self._answered:
                    text = f"node {step.node} answers a request a second time: {effect.response}"
                    self.find(step, "twice", text)
                self._answered.add(effect.request_id)

    def _look_at_pauses(self, step: StepRecord, broker: SimBroker, config: BrokerConfig) -> None:
        event, node, life = step.event, step.node, broker.incarnation
        failed = type(event) is SendFailed
        if failed or type(event) is ResponseReceived:
            correlation: int = event.correlation  # type: ignore[union-attr]
            before = self._under_way.pop((node, life, correlation), None)
            if before is not None and self._newest[before[1]] == correlation:
                pause, question, request = before
                if failed or pause.refuses(event.response):  # type: ignore[union-attr]
                    # A timer keeps its time when the clock's rate changes, and the clock does not.
                    local_ms = broker.local_ms(step.at_ms) + pause.after_ms(config)
                    self._not_before[question] = local_ms, broker.world_ms(local_ms), request
        for effect in step.effects:
            if type(effect) is not Send:
                continue
            channel = effect.channel
            kind = _PAUSES.get("fetcher" if channel[:8] == "fetcher-" and channel[8].isdigit() else channel)
            if kind is None:
                continue
            request, where = effect.request, 0 if kind.each else effect.destination
            question = node, life, channel.partition(".")[0], where, kind.what(request)
            since = self._not_before.pop(question, None)
            early_ms = 0.0
            if since is not None:
                early_ms = min(since[0] - broker.local_ms(step.at_ms), since[1] - step.at_ms)
            if early_ms > HAIR_MS:
                text = f"broker {node} asks node {effect.destination} {early_ms:.1f} ms too early"
                self.find(step, "haste", f"{text}, after it was refused: {type(request).__name__}")
            self._newest[question] = effect.correlation
            self._under_way[node, life, effect.correlation] = kind, question, request

    def _sent(self, step: StepRecord, sent: Send) -> None:
        request = sent.request
        what: Any = request
        if type(request) is FetchRequest:  # one without partitions says the same in each epoch of its session
            parts = request.partitions
            what = len(parts), sum([part.fetch_offset for part in parts]) if parts else 0
        key = step.node, sent.destination, sent.channel
        before = self._repeated.get(key)
        if before is None or before[0] != what:
            self._repeated[key] = what, 1, step.at_ms
        elif before[1] < _TIMES:
            self._repeated[key] = what, before[1] + 1, before[2]
        else:
            self._repeated[key] = what, 1, step.at_ms
            took_ms = step.at_ms - before[2]
            if took_ms < _HASTE_MS:
                text = f"node {step.node} asks node {sent.destination} the same thing {_TIMES + 1} times"
                self.find(step, "haste", f"{text} in {took_ms:.0f} ms: {type(request).__name__}")


class Idle(Watcher):
    """Looks at voters now and then; one that is idle at two looks has not just been told something."""

    scope = Scope.EVERY

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._idle: dict[NodeId, int] = {}
        """Voter -> its life."""

    def __call__(self, world: World, step: StepRecord) -> None:
        self.next_ms = step.at_ms + _LOOK_EVERY_MS
        if len(world.controllers) < 2:
            self.next_ms = float("inf")
            return
        idle = {
            node: server.incarnation
            for node, server in world.controllers.items()
            if server.core is not None
            and not server.paused
            and (raft := server.core.raft).role is RaftRole.FOLLOWER
            and not raft.is_asking
            and RETRY not in server.timers
            and raft.log.flushed_to >= raft.log.leo
            and not server.inbox
        }
        for node in idle.keys() & self._idle.keys():
            if idle[node] == self._idle[node]:
                self.find(
                    step, "idle", f"controller {node} follows, and has asked nobody for what comes next"
                )
        self._idle = idle
