"""Oracles beside the invariants: promises about progress and about what is shown, looked at as the run goes.

``end-offset``  the end that a leader in office shows to consumers never goes back (KIP-207)
``stall``       after every event a leader's high watermark is where its own knowledge allows it to be: nobody
                waits for a fetch or a time-out that nothing asks for (KAFKA-13091, KAFKA-15021)
``flapping``    nobody is proposed for the ISR who would be dropped when it is next looked at (KAFKA-19996),
                no ISR that is committed already, and nothing while an earlier proposal is under way, which
                ends when it is decided
``deaf``        a broker that nothing hinders applies what is committed (KAFKA-14296)

Each is an observer of the world; ``found`` is what it has seen.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import ClassVar

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.leader import is_eligible
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import Reply
from wrackline.broker.model.events import RequestReceived, ResponseReceived, TimerFired
from wrackline.broker.model.messages.controller import AlterPartitionItem, AlterPartitionResponse
from wrackline.broker.model.messages.requests import (
    LATEST,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.broker.rules.leadership.election import RECOVERING
from wrackline.broker.rules.profile import Rules, profile
from wrackline.simulator.invariants.client_view import Violation
from wrackline.simulator.world.world import StepRecord, World

_CLEAR_MS = 2_500.0
"""So long after the last thing that could have hindered it a broker has found its controller again."""
_LATE_MS = 400.0
"""So long after a commit an unhindered broker has applied it."""
_LOOK_EVERY_MS = 50.0
HAIR_MS = 1e-3
"""Times on two clocks that differ by less are the same."""
_NO_ANSWER = (RequestReceived, TimerFired)
"""Events that end no proposal of an ISR."""


class Scope(Enum):
    """The steps that a watcher is shown."""

    EVERY = auto()
    """All, from its next time on."""
    LEADERS = auto()
    """Of brokers that lead a watched partition, with effects."""
    SERVERS = auto()
    """With effects."""
    BROKERS = auto()
    """Of brokers, with effects."""
    SERVICE = auto()
    """Of brokers, with effects or an answer."""
    READS = auto()
    """Of brokers, with effects or a request."""
    CONTROLLERS = auto()
    """Of controllers, with effects or with what arrives."""
    VOTERS = auto()
    """Of controllers."""


class Watcher:
    """``watched``: the partitions of the run."""

    scope: ClassVar[Scope] = Scope.BROKERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        self.watched = watched
        self.found: list[Violation] = []
        self.next_ms = 0.0
        """It has nothing to look at before."""

    def __call__(self, world: World, step: StepRecord) -> None:
        raise NotImplementedError

    def find(self, step: StepRecord, oracle: str, text: str) -> None:
        self.found.append(Violation(oracle, text, step.at_ms, step.number))


class LeaderWatcher(Watcher):
    """A watcher of the replicas that lead where a step was."""

    scope = Scope.LEADERS

    def __call__(self, world: World, step: StepRecord) -> None:
        if led := self.led(world, step):
            self.look(world, step, led)

    def look(self, world: World, step: StepRecord, led: list[Replica]) -> None:
        raise NotImplementedError

    def led(self, world: World, step: StepRecord) -> list[Replica]:
        """Returns the watched replicas that lead on the broker of this step, where it went to its end."""
        server = world.brokers.get(step.node)
        if server is None or server.core is None or step.cut or not step.effects:
            return []
        return [
            replica
            for tp in self.watched
            if (replica := server.core.replica(tp)) is not None
            and replica.leader is not None
            and not replica.failed
        ]


class EndOffsets(Watcher):
    """Ends of logs that consumers are told, checked only where loss is not allowed. Consumers see an end in
    what they fetch, too: that the next leader may be behind it for a moment is so by design, and why it must
    not tell its end then."""

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._ends: dict[TopicPartition, tuple[int, NodeId]] = {}

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.node not in world.brokers:
            return
        for effect in step.effects:
            if type(effect) is Reply:
                response = effect.response
                if isinstance(response, FetchResponse):
                    for fetched in response.partitions:
                        self._shown(world, step, fetched.tp, fetched.high_watermark, reported=False)
                elif isinstance(response, ListOffsetsResponse):
                    for result in response.partitions:
                        if result.tp in self._asked(step) and result.error is ErrorCode.none:
                            self._shown(world, step, result.tp, result.offset, reported=True)

    def _asked(self, step: StepRecord) -> set[TopicPartition]:
        """Returns the partitions whose end a consumer wants to know in this step."""
        request = step.event.request if isinstance(step.event, RequestReceived) else None
        if not isinstance(request, ListOffsetsRequest) or request.replica_id >= 0:
            return set()
        return {part.tp for part in request.partitions if part.timestamp == LATEST}

    def _shown(self, world: World, step: StepRecord, tp: TopicPartition, end: int, *, reported: bool) -> None:
        before, who = self._ends.get(tp, (-1, step.node))
        if end > before:
            self._ends[tp] = end, step.node
        if end >= before or not reported:
            return
        image, core = world.image.partition(tp), world.brokers[step.node].core
        replica = None if core is None else core.replica(tp)
        in_office = image is not None and replica is not None and image.leader == step.node
        if in_office and replica.leader_epoch == image.leader_epoch:  # type: ignore[union-attr]
            self.find(step, "end-offset", f"{tp} ends at {end}, says {step.node}; it was {before} at {who}")


class Stalls(LeaderWatcher):
    def __init__(self, watched: tuple[TopicPartition, ...], profile_name: str, upgrade_to: str = "") -> None:
        super().__init__(watched)
        self._former = profile(profile_name)
        """The right ones, whatever defects the brokers have."""
        self._later = profile(upgrade_to) if upgrade_to else self._former

    def look(self, world: World, step: StepRecord, led: list[Replica]) -> None:
        # Nobody can know more to be committed than there is.
        behind = [each for each in led if each.log.leo > each.high_watermark]
        if not behind:
            return
        acting = world.brokers[step.node].acting
        bridging = world.bridges and acting is not None and acting.on_zookeeper
        right = self._later if world.is_upgraded(step.node) and not bridging else self._former
        now_ms = world.server(step.node).local_ms(step.at_ms)
        for replica in behind:
            self._look(step, now_ms, replica, right)

    def _look(self, step: StepRecord, now_ms: float, replica: Replica, right: Rules) -> None:
        """``now_ms``: on the leader's clock."""
        leader, rules = replica.leading, right.high_watermark
        if not leader.open:  # its ISR is not written yet
            return
        gated = right.switches.min_isr_gates_high_watermark
        if gated and not rules.may_advance(len(leader.isr), len(leader.maximal), replica.min_isr):
            return
        # Who was about to join and did not is let go when the ISR is next looked at, half a lag time later.
        since = now_ms - 1.5 * replica.ctx.config.replica_lag_time_max_ms - 1
        joining = right.switches.waits_for_joining
        awaited = [
            each.leo
            for other, each in leader.followers.items()
            if other in leader.maximal
            or (
                joining
                and rules.waits_for(each.last_caught_up_ms >= since, is_eligible(replica, other, each))
            )
        ]
        log = replica.log
        allowed = rules.candidate(log.leo, awaited, log.flushed if replica.every_write else None)
        if allowed > replica.high_watermark:
            knows = f"{step.node} knows {allowed} to be committed"
            text = f"{replica.tp}: {knows}, and says {replica.high_watermark}"
            self.find(step, "stall", text)


class Flaps(LeaderWatcher):
    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._seen: dict[tuple[NodeId, TopicPartition], AlterPartitionItem | None] = {}

    def look(self, world: World, step: StepRecord, led: list[Replica]) -> None:
        now_ms = world.server(step.node).local_ms(step.at_ms)
        for replica in led:
            key = step.node, replica.tp
            item, before = replica.leading.proposal, self._seen.get(key)
            if item is before:
                continue
            self._seen[key] = item
            if item is None:
                if before is not None and not _decides(step):
                    self._look_at_end(step, replica, before)
                continue
            if before is not None and isinstance(step.event, _NO_ANSWER):
                text = f"{step.node} proposes {item.isr}, and {before.isr} is under way"
                self.find(step, "flapping", f"{replica.tp}: {text}")
            self._look(step, now_ms, replica)

    def _look_at_end(self, step: StepRecord, replica: Replica, before: AlterPartitionItem) -> None:
        """Metadata has ended the proposal; what this leader had heard already decides nothing (B17)."""
        epochs = replica.leader_epoch, replica.partition_epoch
        if before.topic_id == replica.topic_id and epochs == (before.leader_epoch, before.partition_epoch):
            text = f"{step.node} drops its proposal {before.isr}, and nothing is decided"
            self.find(step, "flapping", f"{replica.tp}: {text}")

    def _look(self, step: StepRecord, now_ms: float, replica: Replica) -> None:
        """The proposal is new. ``now_ms``: on the leader's clock."""
        leader, end = replica.leading, replica.log.leo
        item, image = leader.proposal, replica.ctx.image.partition(replica.tp)
        settled = image is not None and image.leader_recovery_state != RECOVERING
        if settled and item is not None and {member for member, _ in item.isr} == leader.isr:
            self.find(step, "flapping", f"{replica.tp}: {step.node} proposes {item.isr}, which is the ISR")
        for other in leader.maximal - leader.isr:
            follower = leader.followers[other]
            lag_ms = now_ms - follower.last_caught_up_ms
            if follower.leo != end and lag_ms > replica.ctx.config.replica_lag_time_max_ms:
                behind = f"{end - follower.leo} records behind the end of its log and not caught up in time"
                self.find(step, "flapping", f"{replica.tp}: {step.node} proposes {other}, {behind}")


def _decides(step: StepRecord) -> bool:
    """Tells whether a controller has answered to a proposal."""
    return isinstance(step.event, ResponseReceived) and isinstance(
        step.event.response, AlterPartitionResponse
    )


class Deaf(Watcher):
    scope = Scope.EVERY

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._committed: deque[tuple[float, int]] = deque()
        """(when, end of the committed metadata)"""
        self._clear_since: dict[NodeId, float] = {}
        self._lives: dict[NodeId, int] = {}
        self._controllers: tuple[tuple[NodeId, int], ...] = ()

    def __call__(self, world: World, step: StepRecord) -> None:
        if world.now_ms < self.next_ms:
            return
        now = world.now_ms
        self.next_ms = now + _LOOK_EVERY_MS
        image = world.image
        self._committed.append((now, image.metadata_offset))
        while len(self._committed) > 1 and self._committed[1][0] <= now - _LATE_MS:
            self._committed.popleft()
        hindered = self._hindered(world)
        if self._controllers_changed(world) or hindered & world.controllers.keys():
            hindered |= world.brokers.keys()
        for node, server in world.brokers.items():
            core = server.core
            if (
                node in hindered
                or core is None
                or server.paused
                or self._lives.get(node) != server.incarnation
            ):
                self._clear_since[node] = now
                self._lives[node] = server.incarnation
            elif now - self._clear_since[node] > _CLEAR_MS:
                self._look(step, node, core.image.metadata_offset)

    def _look(self, step: StepRecord, node: NodeId, applied: int) -> None:
        when, due = self._committed[0]
        if when <= step.at_ms - _LATE_MS and applied < due:
            knows = f"{node} knows the metadata up to {applied}"
            text = f"{knows}, {due} was committed at {when:.0f} ms"
            self.find(
                step, "deaf", f"{text}, and nothing has hindered it since {self._clear_since[node]:.0f} ms"
            )

    def _hindered(self, world: World) -> set[NodeId]:
        """Brokers that are cut from somebody, or wait for a message that is kept back; controllers only where
        two of them are concerned."""
        pairs = [*world.cuts, *world.lag]
        pairs += [(m.source, m.destination) for hold in world.holds for m in hold.held]
        nodes: set[NodeId] = set()
        for a, b in pairs:
            both = a in world.controllers and b in world.controllers
            nodes |= {node for node in (a, b) if both or node in world.brokers}
        return nodes

    def _controllers_changed(self, world: World) -> bool:
        """Another one is active, none is, or one of them is not at work."""
        active = world.active_controller()
        lives = tuple((node, server.incarnation) for node, server in world.controllers.items() if server.up)
        now = (*lives, (-1 if active is None else active.id, 0))
        changed = now != self._controllers or active is None or len(lives) < len(world.controllers)
        self._controllers = now
        return changed or any(server.paused for server in world.controllers.values())
