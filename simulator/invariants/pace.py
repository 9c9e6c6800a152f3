"""The pace at which nodes ask each other, looked at as a run goes.

``haste``  nobody asks the same thing again and again without the pause that his settings say
``idle``   who follows has asked, or has an answer to wait for: nobody waits for a time-out, an election or a
           change of roles to be told that it is time to ask
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.effects import Send
from wrackline.broker.model.events import ResponseReceived, SendFailed
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.watchers import Watcher
from wrackline.simulator.world.world import StepRecord, World

_TIMES = 12
_HASTE_MS = 80.0
"""So many equal requests take longer: a pause is 20 ms, and 10 where a clock runs at twice its rate."""
_LOOK_EVERY_MS = 50.0
_VOTER_MS = 400.0
"""After an answer a voter flushes and pauses for less than this, at any rate of its clock."""
_BROKER_MS = 900.0
_LEADERS, _CONTROLLER, _QUORUM = "fetcher", "controller-fetch", "raft"
"""What the channels begin with on which a follower fetches: from a leader, from a controller, as a voter."""


@dataclass(slots=True)
class _Repeated:
    what: Any
    count: int
    since_ms: float


@dataclass(slots=True)
class _Line:
    """Fetches of one kind from a node to another one; voters and brokers ask one controller at a time."""

    waiting: int = 0
    """Requests that are not answered."""
    answered_ms: float = 0.0
    """The last one."""


class Pace(Watcher):
    every_step: ClassVar = True

    def __init__(self, watched: tuple[TopicPartition, ...], backoff_ms: float) -> None:
        """``backoff_ms``: of a follower whose fetch has failed."""
        super().__init__(watched)
        self._repeated: dict[tuple[NodeId, NodeId, str], _Repeated] = {}
        self._lines: dict[tuple[NodeId, str, NodeId], _Line] = {}
        self._asked: dict[tuple[NodeId, int], _Line] = {}
        self._fetcher_ms = _BROKER_MS + 4 * backoff_ms
        self._look_ms = 0.0

    def __call__(self, world: World, step: StepRecord) -> None:
        event = step.event
        if type(event) is ResponseReceived or type(event) is SendFailed:
            if step.kind == "handle":
                line = self._asked.pop((step.node, event.correlation), None)
                if line is not None:
                    line.waiting -= 1
                    line.answered_ms = step.at_ms
        elif step.kind == "boot" or step.kind == "down":
            self._forget(step.node)
        for effect in step.effects:
            if type(effect) is Send:
                self._sent(world, step, effect)
        if step.at_ms >= self._look_ms:
            self._look_ms = step.at_ms + _LOOK_EVERY_MS
            for (node, kind, other), line in self._lines.items():
                if line.waiting == 0:
                    self._look(world, step, node, kind, other, line)

    def _forget(self, node: NodeId) -> None:
        for key in [each for each in self._lines if each[0] == node]:
            del self._lines[key]
        for known in [each for each in self._asked if each[0] == node]:
            del self._asked[known]

    def _sent(self, world: World, step: StepRecord, sent: Send) -> None:
        node, channel, request = step.node, sent.channel, sent.request
        if node not in world.brokers and node not in world.controllers:
            return
        what: Any = request
        if type(request) is FetchRequest:  # an empty one says the same in each epoch of its session
            what = request.partitions, request.forgotten
        key = node, sent.destination, channel
        repeated = self._repeated.get(key)
        if repeated is None or repeated.what != what:
            self._repeated[key] = _Repeated(what, 1, step.at_ms)
        else:
            repeated.count += 1
            if repeated.count > _TIMES:
                took_ms = step.at_ms - repeated.since_ms
                if took_ms < _HASTE_MS:
                    text = f"node {node} asks node {sent.destination} the same thing {_TIMES} times"
                    self.find(step, "haste", f"{text} in {took_ms:.0f} ms: {type(request).__name__}")
                repeated.count, repeated.since_ms = 1, step.at_ms
        if type(request) is FetchRequest or type(request) is FetchSnapshotRequest or channel != _QUORUM:
            kind = _LEADERS if channel.startswith(_LEADERS) else channel
            if kind in (_LEADERS, _CONTROLLER, _QUORUM):
                at = node, kind, sent.destination if kind == _LEADERS else -1
                line = self._lines.get(at)
                if line is None:
                    line = self._lines[at] = _Line()
                line.waiting += 1
                self._asked[node, sent.correlation] = line

    def _look(
        self, world: World, step: StepRecord, node: NodeId, kind: str, other: NodeId, line: _Line
    ) -> None:
        server = world.server(node)
        if server.core is None or server.paused or server.disk.slow_ms:
            line.answered_ms = step.at_ms
            return
        idle_ms = step.at_ms - line.answered_ms
        if kind == _QUORUM:
            late = idle_ms > _VOTER_MS and server.core.raft.role is RaftRole.FOLLOWER
        elif kind == _CONTROLLER:
            core = world.brokers[node].acting
            late = idle_ms > _BROKER_MS and getattr(core, "state", None) in (State.RECOVERY, State.RUNNING)
        else:
            late = idle_ms > self._fetcher_ms and self._follows(world, node, other)
        if late:
            line.answered_ms = step.at_ms
            text = f"node {node} has asked nobody for {idle_ms:.0f} ms, and follows"
            self.find(step, "idle", f"{text} ({kind})" if other < 0 else f"{text} node {other}")

    def _follows(self, world: World, node: NodeId, leader: NodeId) -> bool:
        core = world.brokers[node].core
        replicas = [] if core is None else [core.replica(tp) for tp in self.watched]
        return any(
            replica is not None
            and replica.leader_id == leader
            and replica.leader is None
            and not replica.failed
            for replica in replicas
        )
