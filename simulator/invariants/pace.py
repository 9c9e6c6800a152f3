"""How nodes ask each other and answer, looked at as a run goes.

``haste``  nobody asks the same thing again and again without the pause that the settings say
``twice``  a request is answered once
``idle``   a voter that follows has asked its leader, or is about to: it waits for no election to be told
"""

from __future__ import annotations

from typing import Any, ClassVar

from wrackline.broker.core.quorum.roles import RETRY
from wrackline.broker.model.effects import Reply, Send
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.invariants.watchers import Watcher
from wrackline.simulator.world.nodes import PROBE
from wrackline.simulator.world.world import StepRecord, World

_TIMES = 12
_HASTE_MS = 40.0
"""So many equal requests take longer: a pause is 20 ms, and 10 where a clock runs at twice its rate."""
_LOOK_EVERY_MS = 50.0


class Exchanges(Watcher):
    """Looks at what servers send and answer."""

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._repeated: dict[tuple[NodeId, NodeId, str], tuple[Any, int, float]] = {}
        """(node, other, channel) -> what is asked, how often, since when"""
        self._answered: set[int] = set()

    def __call__(self, world: World, step: StepRecord) -> None:  # noqa: ARG002
        if step.node >= PROBE:
            return
        for effect in step.effects:
            if type(effect) is Send:
                self._sent(step, effect)
            elif type(effect) is Reply:
                if effect.request_id in self._answered:
                    text = f"node {step.node} answers a request a second time: {effect.response}"
                    self.find(step, "twice", text)
                self._answered.add(effect.request_id)

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

    every_step: ClassVar = True

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
