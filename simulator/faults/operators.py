"""Actions of operators at a bad moment: elections, reassignments, another MinISR. Refusals are part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random

from wrackline.broker.model.messages.admin import (
    AlteredResource,
    AlterOp,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    ElectionType,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    Reassignment,
    Resource,
)
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.messages.requests import DeleteRecordsRequest, Request
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.simulator.faults.driver import Begin, Begun, FaultDriver, host
from wrackline.simulator.faults.kinds import Fault, Kind

_TIMEOUT_MS = 5_000
_TOPIC_RESOURCE = 2
"""The resource type, in Kafka's numbers."""


def min_isr_request(topic: str, count: int) -> IncrementalAlterConfigsRequest:
    change = ConfigChange("min.insync.replicas", AlterOp.SET, str(count))
    return IncrementalAlterConfigsRequest((AlteredResource(Resource(_TOPIC_RESOURCE, topic), (change,)),))


def _nothing() -> None:
    pass


def _ask(driver: FaultDriver, draw: Random, request: Request) -> None:
    """Some broker; it forwards to the controller."""
    driver.ask(draw.choice(sorted(driver.world.brokers)), request, _TIMEOUT_MS)


def _elect(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """Somebody asks for the preferred leader. There is nothing to take back."""
    tp = TopicPartition(driver.topic, fault.partition)
    _ask(driver, draw, ElectLeadersRequest(ElectionType.PREFERRED, (tp,), _TIMEOUT_MS))
    return Begun(f"preferred leader of {tp}", _nothing)


def _move_leader(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """``elect(b)`` of docs/protocol.md 4.1: the replicas in another order, and then the preferred leader.
    ``on``: whatever these lead goes to another member of the ISR."""
    if fault.on:
        return _each(
            _led_by(driver, draw, one, draw.choice(heirs))
            for one in _settled(driver)
            if one.leader in fault.on and (heirs := [node for node in one.isr if node != one.leader])
        )
    partition = driver.partition(fault)
    if partition is None or partition.adding or partition.removing:
        return None
    node = driver.target(fault, draw)
    if node not in partition.replicas or node == partition.leader:
        node = draw.choice([replica for replica in partition.replicas if replica != partition.leader])
    return _led_by(driver, draw, partition, node)


def _settled(driver: FaultDriver) -> list[PartitionImage]:
    """Returns the topic's partitions that do not move."""
    partitions = driver.world.image.partitions()
    return [one for one in partitions if one.tp.topic == driver.topic and not (one.adding or one.removing)]


def _each(done: Iterable[Begun]) -> Begun | None:
    """What was done to several partitions, as one; None: to none. There is nothing to take back."""
    parts = list(done)
    return Begun("; ".join(one.description for one in parts), _nothing) if parts else None


def _led_by(driver: FaultDriver, draw: Random, partition: PartitionImage, node: NodeId) -> Begun:
    tp = partition.tp
    order = (node, *(replica for replica in partition.replicas if replica != node))
    moved = AlterPartitionReassignmentsRequest((Reassignment(tp, order),), _TIMEOUT_MS)
    asked = draw.choice(sorted(driver.world.brokers))
    call = driver.ask(asked, moved, _TIMEOUT_MS)
    elect = ElectLeadersRequest(ElectionType.PREFERRED, (tp,), _TIMEOUT_MS)
    _then(driver, lambda: call.done, lambda: driver.ask(asked, elect, _TIMEOUT_MS))
    was = {"leader_was": host(partition.leader)} if partition.leader in driver.world.brokers else {}
    return Begun(f"leader of {tp} to n{node}", _nothing, (node,), how=was)


def _then(driver: FaultDriver, ready: Callable[[], bool], then: Callable[[], object]) -> None:
    def look() -> None:
        if ready():
            then()
        else:
            driver.world.at(driver.world.now_ms + 2, look)

    look()


def _reassign(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Reassigns the partition to as many replicas as there are now, elsewhere or in another order. ``on``:
    every replica there moves to a live broker that has none of its partition. There is nothing to take
    back."""
    if fault.on:
        registered = driver.world.image.brokers.items()
        alive = sorted(node for node, broker in registered if not broker.fenced)
        return _each(
            _moved(driver, draw, one.tp, tuple(spare if node in fault.on else node for node in one.replicas))
            for one in _settled(driver)
            if set(fault.on) & set(one.replicas) and set(alive) - set(one.replicas)
            for spare in draw.sample([node for node in alive if node not in one.replicas], 1)
        )
    partition = driver.partition(fault)
    if partition is None:
        return None
    brokers = sorted(driver.world.brokers)
    count = len(partition.replicas) - len(partition.adding)
    target = tuple(draw.sample(brokers, min(count, len(brokers))))
    return _moved(driver, draw, partition.tp, target)


def _cancel(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Leads a reassignment that is under way back; else a replica goes and is wanted again at once."""
    partition = driver.partition(fault)
    if partition is None:
        return None
    if partition.adding or partition.removing:
        return _moved(driver, draw, partition.tp, None)
    if len(partition.replicas) < 3:
        return None
    _moved(driver, draw, partition.tp, partition.replicas[:-1])
    driver.repeated += 1

    def back() -> None:
        _moved(driver, draw, partition.tp, partition.replicas)
        driver.repeated -= 1

    driver.world.at(driver.world.now_ms + draw.uniform(5, 400), back)
    return Begun(f"{partition.tp} without n{partition.replicas[-1]} for a moment", _nothing)


def _moved(driver: FaultDriver, draw: Random, tp: TopicPartition, target: tuple[NodeId, ...] | None) -> Begun:
    _ask(driver, draw, AlterPartitionReassignmentsRequest((Reassignment(tp, target),), _TIMEOUT_MS))
    return Begun(f"{tp} " + ("back" if target is None else f"to {list(target)}"), _nothing)


def _min_isr(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Another MinISR for a while. A lower one promises less: it is not set while a replica may have lost
    something, and until all is in sync again under the old one no more than it allows may."""
    partition = driver.partition(fault)
    if partition is None or (driver.lossy and not driver.all_in_sync()):
        return None
    was = driver.world.image.min_isr(partition.tp)
    factor = len(partition.replicas)
    others = [count for count in range(1, factor + 1) if count != was]
    if not others:
        return None
    now = draw.choice(others)
    driver.lossy_limit = min(driver.lossy_limit, now - 1)
    asked_last = _set_min_isr(driver, draw, now)

    def undo() -> None:
        """The first change may not be done yet: asked again after this one, it would stay."""
        asked_last()
        _set_min_isr(driver, draw, was)
        _then_slowly(driver, was)

    return Begun(f"{now} instead of {was}", undo, how={"min_isr": now})


def _then_slowly(driver: FaultDriver, min_isr: int) -> None:
    """The former promise holds again when the ISR is full under it."""

    def look() -> None:
        partitions = driver.world.image.partitions()
        back = all(driver.world.image.min_isr(partition.tp) == min_isr for partition in partitions)
        if back and driver.all_in_sync():
            driver.lossy_limit = driver.options.max_lossy
        else:
            driver.world.at(driver.world.now_ms + 100, look)

    look()


def _set_min_isr(driver: FaultDriver, draw: Random, count: int) -> Callable[[], None]:
    """Sets MinISR, and returns a function that ends the asking."""
    request = min_isr_request(driver.topic, count)
    asked = draw.choice(sorted(driver.world.brokers))
    ended: list[bool] = []

    def again() -> None:
        """Asks again until it is done: an operator would not leave it half done."""
        if ended:
            driver.repeated -= 1
            return
        call = driver.ask(asked, request, _TIMEOUT_MS)

        def answered() -> None:
            errors = {part.error.name for part in getattr(call.response, "resources", ())}
            if errors != {"none"}:
                driver.world.at(driver.world.now_ms + 300, again)
            else:
                driver.repeated -= 1

        _then(driver, lambda: call.done, answered)

    driver.repeated += 1
    again()
    return lambda: ended.append(True)


def _delete_records(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Somebody deletes the records below an offset; one beyond the high watermark must be refused. There is
    nothing to take back."""
    partition = driver.partition(fault)
    leader = None if partition is None else driver.world.brokers.get(partition.leader)
    replica = None if leader is None or leader.core is None else leader.core.replica(partition.tp)  # type: ignore[union-attr]
    if partition is None or replica is None or replica.leader is None:
        return None
    end = replica.high_watermark
    offset = draw.choice((draw.randint(0, end), max(0, end - draw.randint(0, 5)), end + draw.randint(1, 50)))
    if offset <= end:
        driver.deleted[partition.tp] = max(driver.deleted.get(partition.tp, 0), offset)
    request = DeleteRecordsRequest(((partition.tp, offset),), _TIMEOUT_MS)
    driver.ask(partition.leader, request, _TIMEOUT_MS)
    return Begun(f"{partition.tp} below {offset}, of {end}", _nothing, how={"offset": offset})


def _churn_topic(driver: FaultDriver, _: Fault, draw: Random) -> Begun:
    """Another topic is created, and deleted; one of the same name may come again."""
    name = draw.choice(("u", "u", f"{driver.topic}-0"))
    brokers = len(driver.world.brokers)
    partitions, factor = draw.randint(1, 4), draw.randint(1, brokers)
    configs = draw.choice(
        ({}, {"min.insync.replicas": "1"}, {"flush.messages": "1"}, {"retention.ms": "800"})
    )
    _ask(driver, draw, CreateTopicsRequest((NewTopic(name, partitions, factor, {}, configs),), _TIMEOUT_MS))
    if draw.random() < 0.5:
        _ask(
            driver, draw, ElectLeadersRequest(ElectionType.PREFERRED, (TopicPartition(name, 0),), _TIMEOUT_MS)
        )

    def undo() -> None:
        _ask(driver, draw, DeleteTopicsRequest((name,), _TIMEOUT_MS))

    return Begun(f"topic {name}, {partitions} partitions of {factor} replicas", undo)


ADMINISTRATION: Mapping[Kind, Begin] = {
    "elect": _elect,
    "move-leader": _move_leader,
    "reassign": _reassign,
    "reassign-cancel": _cancel,
    "min-isr": _min_isr,
    "delete-records": _delete_records,
    "churn-topic": _churn_topic,
}
