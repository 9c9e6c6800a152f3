"""The recognition of the stories that a random run of profile zk08 tells, by what it leaves behind
(docs/known-bugs.md).

An invariant says that a committed record is gone; it does not say how it went. ``Recognizer`` follows every
copy of every acknowledged record: what took it (a cut to the high watermark after a restart, such a cut
before following a new leader, a power cut), how many were in the ISR when it was acknowledged, and whether
the one who leads without it was in the ISR. Together these are the story.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from wrackline.broker.model.effects import Reply, Send, Trace
from wrackline.broker.model.events import RequestReceived
from wrackline.broker.model.messages.requests import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from wrackline.broker.model.types import NO_LEADER, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.invariants.observed.partition import Mark
from wrackline.simulator.world.disk_log import SimLog
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.core.replicas.local import Local, Phase
from wrackline.zookeeper.simulator.ensemble import ensemble_of

LAGGED = "unclean election"
"""A replica that had left an ISR of several was elected uncleanly (B09): by design, and no story."""
OWN_END = "own end taken for committed"
"""Logs differ at what a replica called committed because it was elected: its high watermark became its LEO
(Z29), it died before anybody had copied that, and others wrote something else in its place."""
OTHER = "another way"
"""An acknowledged record was lost, or logs differ, and no story is like it."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """``story`` is a story's name, ``LAGGED``, ``OWN_END`` or ``OTHER``."""

    story: str
    at_ms: float
    text: str


class Took(Enum):
    """The event that took a replica's copy."""

    RESTART = "cut it as it followed again after a restart"
    FAILOVER = "cut it as it followed a new leader"
    POWER_BACK_EARLY = "lost it with its power, and was back before its session had ended"
    POWER_BACK_LATE = "lost it with its power, and was back after its session had ended"
    POWER = "lost it with its power"


_SERVES = frozenset({Phase.FOLLOWING, Phase.OPENING, Phase.LEADING})
_BY_CUT = {Took.RESTART: "restart-then-failover", Took.FAILOVER: "failover-twice"}


@dataclass(slots=True)
class _Loss:
    tp: TopicPartition
    from_offset: int
    to_offset: int
    how: Took


@dataclass(frozen=True, slots=True)
class _Acked:
    mark: Mark
    isr: frozenset[NodeId]
    """Of the leader, when it acknowledged."""


class Recognizer:
    """Attach with ``world.watchers.append(recognizer)``; profile zk08 alone. ``found`` has one recognition
    for each record that is lost so far."""

    def __init__(self, world: World) -> None:
        self.found: list[Recognition] = []
        self._world = world
        self._losses: dict[NodeId, list[_Loss]] = {node: [] for node in world.brokers}
        self._served = {
            (node, image.tp)
            for image in world.image.partitions()
            for node in image.replicas
            if (local := self._local(node, image.tp)) is not None and local.phase in _SERVES
        }
        """Have followed or led in the present life of their process."""
        self._powerless: set[NodeId] = set()
        """Have ever lost power."""
        self._acked: dict[TopicPartition, list[_Acked]] = {}
        """Acknowledged with acks=all, and not found missing yet."""
        self._ends: dict[TopicPartition, int] = {}
        """Where the last acknowledged record ends that is not lost."""
        self._elected: dict[TopicPartition, int] = {}
        """The creation of the leader's node."""
        self._outsiders: set[tuple[NodeId, TopicPartition]] = set()
        """Were elected from outside of the ISR since anybody has last opened; it may name them by now."""
        self._own_ends: list[tuple[TopicPartition, range]] = []
        """Offsets that were committed by nothing but an election."""
        self._produces: dict[tuple[NodeId, int], ProduceRequest] = {}
        self._asked: dict[tuple[NodeId, int], dict[TopicPartition, int]] = {}
        """(client, correlation) of a question where the log ends -> what was acknowledged as it was sent."""
        self._questions: dict[tuple[NodeId, int], tuple[NodeId, int]] = {}
        """(broker, request id) -> (client, correlation)."""

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.node not in world.brokers:
            self._note_questions(step)
            self._note_elections()
            return
        self._note_elections()
        self._note_losses(step)
        if isinstance(step.event, RequestReceived):
            request = step.event.request
            if isinstance(request, ProduceRequest):
                self._produces[step.node, step.event.request_id] = request
            elif isinstance(request, ListOffsetsRequest) and step.message is not None:
                asked = step.message.source, step.message.correlation
                self._questions[step.node, step.event.request_id] = asked
        for effect in step.effects:
            if isinstance(effect, Reply):
                self._replied(step, effect)

    @property
    def stories(self) -> tuple[str, ...]:
        """Returns the stories in the order in which they were first seen."""
        return tuple(dict.fromkeys(sign.story for sign in self.found))

    # --- what took a copy ----------------------------------------------------------------------------------

    def _note_losses(self, step: StepRecord) -> None:
        node = step.node
        if step.kind == "boot":
            self._served = {(other, tp) for other, tp in self._served if other != node}
            back = Took.POWER_BACK_EARLY if self._has_session(node) else Took.POWER_BACK_LATE
            for loss in self._losses[node]:
                loss.how = back if loss.how is Took.POWER else loss.how
        elif step.kind == "down" and step.note.startswith("power"):
            self._powerless.add(node)
            for at_ms, lost in self._world.brokers[node].losses:
                if at_ms == step.at_ms:
                    self._losses[node].append(_Loss(lost.tp, lost.from_offset, lost.to_offset, Took.POWER))
        raised: dict[str, Any] = {}
        for effect in step.effects:
            if isinstance(effect, Trace):
                fields = dict(effect.fields)
                self._traced(step, effect.kind, fields, raised)
                raised = fields if effect.kind == "hwm" else raised

    def _traced(self, step: StepRecord, kind: str, fields: dict[str, Any], raised: dict[str, Any]) -> None:
        """``raised``: the high watermark's last move in this step."""
        if kind not in ("open", "truncate", "role") or fields.get("role") == "none":
            return
        node = step.node
        topic, _, partition = fields["tp"].rpartition("-")
        tp = TopicPartition(topic, int(partition))
        if kind == "open":
            self._opened(node, tp, step.at_ms)
        elif kind == "truncate":
            how = Took.FAILOVER if (node, tp) in self._served else Took.RESTART
            self._losses[node].append(_Loss(tp, fields["to"], fields["was"], how))
        else:
            self._served.add((node, tp))
            if fields["role"] == "leader" and raised.get("tp") == fields["tp"]:
                self._own_ends.append((tp, range(raised["old"], raised["new"])))

    def _has_session(self, node: NodeId) -> bool:
        zookeeper = ensemble_of(self._world)
        return zookeeper is not None and any(s.client.node == node for s in zookeeper.sessions.values())

    def _what_took(self, node: NodeId, tp: TopicPartition, mark: Mark) -> Took | None:
        for loss in reversed(self._losses[node]):
            if loss.tp == tp and loss.from_offset <= mark.base < loss.to_offset:
                return loss.how
        return None

    # --- elections, and what a new leader does not have ----------------------------------------------------

    def _note_elections(self) -> None:
        for image in self._world.image.partitions():
            created = self._created(image.tp)
            if image.leader != NO_LEADER and self._elected.get(image.tp) != created:
                self._elected[image.tp] = created
                if image.isr and image.leader not in image.isr:
                    self._outsiders.add((image.leader, image.tp))

    def _created(self, tp: TopicPartition) -> int:
        """Returns the transaction that created the leader's node in ZooKeeper; -1: there is none."""
        zookeeper = ensemble_of(self._world)
        node = None if zookeeper is None else zookeeper.tree.nodes.get(znodes.leader(tp))
        return -1 if node is None else node.created

    def _local(self, node: NodeId, tp: TopicPartition) -> Local | None:
        core = self._world.brokers[node].acting
        return core.local(tp) if isinstance(core, ZookeeperBroker) else None

    def _log(self, node: NodeId, tp: TopicPartition) -> SimLog | None:
        return self._world.brokers[node].disk.logs.get(tp)

    def _opened(self, leader: NodeId, tp: TopicPartition, at_ms: float) -> None:
        """Records that the leader serves clients from now on: what was acknowledged and is not in its log
        is lost."""
        outside = (leader, tp) in self._outsiders
        log = self._log(leader, tp)
        kept = []
        for acked in self._acked.get(tp, ()):
            if log is not None and acked.mark.is_in(log):
                kept.append(acked)
            elif sign := self._lost(tp, acked, leader, outside, at_ms):
                self.found.append(sign)
        self._outsiders = {(node, other) for node, other in self._outsiders if other != tp}
        self._acked[tp] = kept
        self._ends[tp] = max((acked.mark.end for acked in kept), default=0)

    def _lost(
        self, tp: TopicPartition, acked: _Acked, leader: NodeId, outside: bool, at_ms: float
    ) -> Recognition | None:
        """Returns the story of a lost record; None where an earlier loss goes on: this leader kept what
        that one lost, and has it in the record's place. ``outside``: it was elected from outside of the
        ISR."""
        took = self._what_took(leader, tp, acked.mark)
        if outside:
            story = "isolated-then-unclean" if len(acked.isr) == 1 else LAGGED
            how = "was elected from outside of the ISR"
        elif took in _BY_CUT:
            story, how = _BY_CUT[took], took.value
        elif took in (Took.POWER_BACK_EARLY, Took.POWER_BACK_LATE):
            early = took is Took.POWER_BACK_EARLY
            story = "split" if acked.isr == {leader} else "power-back-early" if early else OTHER
            how = took.value
        elif self.found:
            return None
        else:
            story, how = OTHER, "never had it"
        what = f"the record acknowledged at {acked.mark.base} by an ISR of {sorted(acked.isr)}"
        return Recognition(story, at_ms, f"{what} is not in the log of leader {leader}, which {how}")

    # --- acknowledgements and answers ----------------------------------------------------------------------

    def _replied(self, step: StepRecord, reply: Reply) -> None:
        key = step.node, reply.request_id
        request = self._produces.pop(key, None)
        if isinstance(reply.response, ProduceResponse) and request is not None and request.acks == -1:
            for result in reply.response.partitions:
                local, log = self._local(step.node, result.tp), self._log(step.node, result.tp)
                if result.error is not NO_ERROR or local is None or log is None:
                    continue
                at = log.index_of(result.base_offset)
                if at < len(log.batches):
                    mark = Mark.of(log.batches[at])
                    isr = frozenset(local.replica.leading.isr)
                    self._acked.setdefault(result.tp, []).append(_Acked(mark, isr))
                    self._ends[result.tp] = max(self._ends.get(result.tp, 0), mark.end)
        asked = self._asked.pop(self._questions.pop(key, (-1, -1)), None)
        if asked is not None and isinstance(reply.response, ListOffsetsResponse):
            for answer in reply.response.partitions:
                known = min(asked.get(answer.tp, 0), self._ends.get(answer.tp, 0))
                if (
                    answer.error is NO_ERROR
                    and answer.offset < known
                    and self._is_zombie(step.node, answer.tp)
                ):
                    text = f"{step.node}, which leads no more, says that the log ends at {answer.offset}"
                    self.found.append(
                        Recognition("zombie-leader", step.at_ms, f"{text}; {known} was acknowledged")
                    )

    def _is_zombie(self, node: NodeId, tp: TopicPartition) -> bool:
        local = self._local(node, tp)
        return local is not None and local.leads and local.followed != self._created(tp)

    def _note_questions(self, step: StepRecord) -> None:
        for effect in step.effects:
            if isinstance(effect, Send) and isinstance(effect.request, ListOffsetsRequest):
                self._asked[step.node, effect.correlation] = dict(self._ends)

    # --- the end -------------------------------------------------------------------------------------------

    def at_rest(self) -> None:
        """Looks for replicas whose logs differ, once everybody is in the ISR again. Where one of them
        never lost power this is how an earlier loss goes on: the high watermark of those who kept a record
        tells them nothing of the leader who put another in its place."""
        lost = bool(self.found)
        for image in self._world.image.partitions():
            for node, other, offset in self._differences(image.tp, image.replicas):
                if {node, other} <= self._powerless:
                    story = "double-power-loss"
                elif lost:
                    continue
                else:
                    own = any(tp == image.tp and offset in ends for tp, ends in self._own_ends)
                    story = OWN_END if own else OTHER
                text = f"{node} and {other} differ at {offset}; without power were {sorted(self._powerless)}"
                self.found.append(Recognition(story, self._world.now_ms, text))

    def _differences(
        self, tp: TopicPartition, replicas: tuple[NodeId, ...]
    ) -> Iterator[tuple[NodeId, NodeId, int]]:
        first = replicas[0]
        one = self._log(first, tp)
        for other in replicas[1:]:
            two = self._log(other, tp)
            if one is None or two is None:
                continue
            for mine, theirs in zip(one.batches, two.batches, strict=False):
                if Mark.of(mine) != Mark.of(theirs):
                    yield first, other, Mark.of(mine).base
                    break
