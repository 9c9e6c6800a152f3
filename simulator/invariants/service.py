"""A broker, looked at as a run goes: what it owes whoever asks it, and what it keeps of what it hears.

``wait``      nobody waits for what is there already: a write for what is committed, or where this broker does
              not lead any more; a read for records
``image``     a replica is what the metadata says that its broker has applied (K46, K48 to K54)
``answer``    what a controller has answered holds at the broker from then on (docs/protocol.md 2.6, 2.7)
``asleep``    whoever follows has asked its leader, or a time is set to do so; what is proposed is under way,
              or is about to be
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import Send
from wrackline.broker.model.events import ResponseReceived, SnapshotWritten
from wrackline.broker.model.messages.controller import (
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import FetchResponse
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.metadata.topic_settings import settings_of
from wrackline.broker.model.types import (
    METADATA,
    NO_EPOCH,
    LogOverrides,
    NodeId,
    TopicPartition,
)
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.invariants.watchers import Scope, Watcher
from wrackline.simulator.world.nodes import SimBroker
from wrackline.simulator.world.world import StepRecord, World

_LOOK_EVERY_MS = 100.0
_AS_THE_NODE = LogOverrides()


class Service(Watcher):
    """Looks at the steps of brokers under a controller."""

    scope = Scope.SERVICE

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._applied: dict[NodeId, tuple[int, int]] = {}
        """Broker -> (its life, what it had applied of the metadata at the last look)."""

    def __call__(self, world: World, step: StepRecord) -> None:
        server = world.brokers[step.node]
        core = server.core
        if step.cut or not isinstance(core, Broker):
            return
        kind = type(step.event)
        if kind is ResponseReceived:
            self._look_at_answer(step, core, step.event)  # type: ignore[arg-type]
        if core.state is State.CLOSED:
            return
        for replica in core._partitions:
            if replica.produces or replica.fetches:
                self._look_at_waiters(step, replica)
        if kind is ResponseReceived or kind is SnapshotWritten:
            now = server.incarnation, core.image.metadata_offset
            if now != self._applied.get(step.node) and core.state is not State.STARTING:
                self._applied[step.node] = now
                self._look_at_image(step, core, server)

    # --- who waits -----------------------------------------------------------------------------------------

    def _look_at_waiters(self, step: StepRecord, replica: Replica) -> None:
        leader, end = replica.leader, replica.high_watermark
        for waiter in replica.produces:
            if waiter.slot in waiter.parked.waiting:
                if leader is None and not replica.ctx.rules.switches.produce_outlives_leadership:
                    self._find_waiter(step, replica, "a write waits, and it does not lead")
                elif waiter.required <= end:
                    self._find_waiter(step, replica, f"a write waits for {waiter.required} of {end}")
        for parked in replica.fetches.values():
            if leader is None:
                self._find_waiter(step, replica, "a read waits, and it does not lead")
                continue
            request = parked.request
            until = replica.log.leo if request.replica_id >= 0 else end
            if request.min_bytes > 1:
                continue
            for part in request.partitions:
                if part.tp != replica.tp:
                    continue
                if part.fetch_offset < until and part.max_bytes > 0:
                    self._find_waiter(step, replica, f"a read from {part.fetch_offset} waits, of {until}")
                if part.current_leader_epoch not in (NO_EPOCH, replica.leader_epoch):
                    epochs = f"{part.current_leader_epoch} waits in {replica.leader_epoch}"
                    self._find_waiter(step, replica, f"a read of epoch {epochs}")

    def _find_waiter(self, step: StepRecord, replica: Replica, text: str) -> None:
        self.find(step, "wait", f"{replica.tp} at {step.node}: {text}")

    # --- metadata ------------------------------------------------------------------------------------------

    def _look_at_image(self, step: StepRecord, core: Broker, server: SimBroker) -> None:
        node, image, layouts = step.node, core.image, server.disk.layouts
        for replica in core._partitions:
            partition = image.partition(replica.tp)
            if partition is None or node not in partition.replicas:
                self.find(step, "image", f"{node} keeps {replica.tp}, which is not one of its replicas")
            elif not replica.failed and replica.leader_epoch != NO_EPOCH:
                for text in _differences(replica, partition, image):
                    self.find(step, "image", f"{replica.tp} at {node}: {text}")
                if layouts.get(replica.tp, _AS_THE_NODE) != replica.settings.on_disk:
                    text = f"laid out by {layouts.get(replica.tp)}, not {replica.settings.on_disk}"
                    self.find(step, "image", f"{replica.tp} at {node}: {text}")
        for partition in image.partitions():
            if node in partition.replicas and core.replica(partition.tp) is None:
                self.find(step, "image", f"{node} has no {partition.tp}, which is one of its replicas")

    # --- answers -------------------------------------------------------------------------------------------

    def _look_at_answer(self, step: StepRecord, core: Broker, event: ResponseReceived) -> None:
        response = event.response
        if isinstance(response, AlterPartitionResponse):
            asks = any(isinstance(effect, Send) for effect in step.effects)
            if core._alter._in_flight is not None and not asks:
                self.find(step, "answer", f"{step.node} has its answer on an ISR, and proposes none any more")
            for result in response.partitions if response.error is NO_ERROR else ():
                replica = core.replica(result.tp)
                if result.error is NO_ERROR and replica is not None:
                    self._look_at_isr(step, replica, result)
        elif isinstance(response, BrokerRegistrationResponse):
            if response.error is NO_ERROR and core.broker_epoch != response.broker_epoch:
                text = f"{step.node} was given broker epoch {response.broker_epoch}, and has"
                self.find(step, "answer", f"{text} {core.broker_epoch}")
        elif isinstance(response, FetchResponse) and not core._observer._stopped:
            for fetched in response.partitions:
                leader = fetched.current_leader
                if (
                    fetched.tp == METADATA
                    and fetched.error is ErrorCode.not_leader_or_follower
                    and (leader is None or leader.leader_id != event.source)
                    and event.source == core._uplink.controller_id
                    and len(core._ctx.config.controllers) > 1
                ):
                    text = f"{step.node} goes on with controller {event.source}, which does not lead"
                    self.find(step, "answer", text)

    def _look_at_isr(self, step: StepRecord, replica: Replica, result: AlterPartitionResult) -> None:
        leader = replica.leader
        term = result.leader_id, result.leader_epoch, result.topic_id
        if leader is None or term != (step.node, replica.leader_epoch, replica.topic_id):
            return
        isr = frozenset(result.isr)
        behind = replica.partition_epoch < result.partition_epoch
        if behind or (replica.partition_epoch == result.partition_epoch and leader.isr != isr):
            answer = f"ISR {sorted(isr)} in partition epoch {result.partition_epoch} is answered"
            has = f"it has {sorted(leader.isr)} in {replica.partition_epoch}"
            self.find(step, "answer", f"{replica.tp} at {step.node}: {answer}, {has}")


def _differences(replica: Replica, partition: PartitionImage, image: ClusterImage) -> list[str]:
    """What the replica is beside the metadata that its broker has applied. A leader may have heard of a later
    partition epoch, by the answer to its proposal."""
    leader, me = replica.leader, replica.ctx.config.node_id
    result: list[str] = []
    if replica.ctx.rules.switches.has_min_isr and replica.min_isr != image.min_isr(replica.tp):
        result.append(f"MinISR {replica.min_isr}, it is {image.min_isr(replica.tp)}")
    if replica.settings != settings_of(image, replica.tp.topic):
        result.append(f"its settings are {replica.settings}")
    if replica.topic_id != partition.topic_id:
        result.append(f"topic {replica.topic_id}, it is {partition.topic_id}")
    if replica.partition_epoch > partition.partition_epoch and leader is not None:
        return result
    has = replica.partition_epoch, replica.leader_epoch, replica.leader_id, leader is not None
    due = partition.partition_epoch, partition.leader_epoch, partition.leader, partition.leader == me
    if has != due:
        result.append(f"partition epoch, leader epoch, leader, whether it leads: {has}, it is {due}")
    elif leader is not None:
        others = set(partition.replicas) - {me}
        if leader.isr != set(partition.isr):
            result.append(f"ISR {sorted(leader.isr)}, it is {partition.isr}")
        if set(replica.replicas) != set(partition.replicas) or leader.followers.keys() != others:
            result.append(f"followers {sorted(leader.followers)}, it has {sorted(others)}")
    return result


class Omissions(Watcher):
    """Looks at brokers now and then; whoever sleeps at two looks has not just been woken."""

    scope = Scope.EVERY

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._asleep: dict[tuple[NodeId, str], int] = {}
        """(broker, what it does not do) -> its life."""

    def __call__(self, world: World, step: StepRecord) -> None:
        self.next_ms = step.at_ms + _LOOK_EVERY_MS
        before, self._asleep = self._asleep, {}
        committed = world.image.metadata_offset
        for node, server in world.brokers.items():
            core = server.core
            if isinstance(core, Broker) and not server.paused and not server.inbox:
                for text in _omissions(server, core, committed):
                    self._asleep[node, text] = server.incarnation
                    if before.get((node, text)) == server.incarnation:
                        self.find(step, "asleep", f"broker {node} {text}")


def _omissions(server: SimBroker, core: Broker, committed: int) -> list[str]:
    """``committed``: the last offset of the metadata."""
    timers = server.timers
    result: list[str] = []
    if core.state is State.CLOSED:
        return result
    for fetcher in core._fetchers._fetchers.values():
        if (
            fetcher._partitions
            and fetcher._current is None
            and fetcher._timer not in timers
            and not any(following.probing for following in fetcher._partitions.values())
            and not fetcher._waits_for_flush()
        ):
            result.append(f"follows {fetcher._destination}, and has asked it for nothing")
    if core.image.metadata_offset < committed:
        return result  # a refusal may be that of a leader who will hear why
    sent = {replica.tp for replica, _ in core._alter._in_flight or ()}
    for replica in core._partitions:
        proposal = None if replica.leader is None else replica.leader.proposal
        if proposal is not None and replica.tp not in sent | core._alter._changes.proposed.keys():
            result.append(f"proposes {proposal.isr} for {replica.tp}, and does not send it")
    return result
