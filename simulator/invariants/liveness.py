"""Liveness: what must come to pass once faults have stopped (docs/invariants.md).

``settle`` gives the world a bounded virtual time and says what is still missing at its end. Each condition is
one small function that yields what is not yet so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER
from wrackline.broker.rules.leadership.election import RECOVERING
from wrackline.simulator.invariants.invariant import Violation
from wrackline.simulator.world.world import World

Condition = Callable[[World], Iterator[str]]
DEADLINE_MS = 60_000.0
_LOOK_EVERY_MS = 100.0


def quorum_elects(world: World) -> Iterator[str]:
    """EventuallyLeaderElected."""
    if world.active_controller() is None:
        yield "no controller is active"


def brokers_run(world: World) -> Iterator[str]:
    """STARTING -> RUNNING, fenced -> unfenced. A process that ended with an error has failed."""
    for node, server in world.brokers.items():
        known = world.image.brokers.get(node)
        if server.core is None:
            last = f": {server.exits[-1].reason}" if server.exits else ""
            yield f"broker {node} is down{last}"
        elif server.core.state is not State.RUNNING:
            yield f"broker {node} is {server.core.state.value}"
        elif known is None or known.fenced:
            yield f"broker {node} is fenced"


def metadata_converges(world: World) -> Iterator[str]:
    """Everyone knows of every partition what the active controller has committed."""
    for image, replica in _replicas(world):
        if replica is None or replica.partition_epoch != image.partition_epoch:
            known = None if replica is None else replica.partition_epoch
            yield f"{image.tp} is at partition epoch {image.partition_epoch}, a replica knows {known}"


def partitions_are_led(world: World) -> Iterator[str]:
    for image in world.image.partitions():
        if image.leader == NO_LEADER:
            members = f"ISR {image.isr}, ELR {image.elr}, last known {image.last_known_elr}"
            yield f"{image.tp} has no leader ({members})"
        elif image.leader_recovery_state == RECOVERING:
            yield f"{image.tp} is recovering still"


def proposals_are_resolved(world: World) -> Iterator[str]:
    for image, replica in _replicas(world):
        if replica is not None and replica.leader is not None and replica.leader.proposal is not None:
            yield f"{image.tp}: {replica.leader.proposal.isr} is proposed still"


def isr_is_full(world: World) -> Iterator[str]:
    for image in world.image.partitions():
        if set(image.isr) != set(image.replicas):
            yield f"{image.tp} has ISR {image.isr} of {image.replicas}"


def reassignments_complete(world: World) -> Iterator[str]:
    for image in world.image.partitions():
        if image.adding or image.removing:
            yield f"{image.tp} is being reassigned: adding {image.adding}, removing {image.removing}"


def logs_are_equal(world: World) -> Iterator[str]:
    """Acked values reach all replicas, the high watermark reaches the end: all logs end there. Only of an
    idle world can this be said."""
    for image in world.image.partitions():
        leader = _replica(world, image, image.leader)
        if leader is None:
            continue
        if leader.high_watermark != leader.log.leo:
            reached = f"high watermark {leader.high_watermark} of {leader.log.leo}"
            yield f"{image.tp}: {reached} at leader {image.leader}"
        for node in image.replicas:
            other = _replica(world, image, node)
            if other is not None and (other.log.leo, other.high_watermark) != (
                leader.log.leo,
                leader.log.leo,
            ):
                reached = f"ends at {other.log.leo}, high watermark {other.high_watermark}"
                yield f"{image.tp}: {node} {reached}, of {leader.log.leo}"


def produces_are_answered(world: World) -> Iterator[str]:
    """Each write is acknowledged positively or negatively."""
    for image, replica in _replicas(world):
        waiting = 0 if replica is None else sum(1 for waiter in replica.produces if waiter.parked.waiting)
        if waiting:
            yield f"{image.tp}: {waiting} produce requests wait"


CONDITIONS: tuple[Condition, ...] = (
    quorum_elects,
    brokers_run,
    partitions_are_led,
    metadata_converges,
    proposals_are_resolved,
    isr_is_full,
    reassignments_complete,
    logs_are_equal,
    produces_are_answered,
)


def missing(world: World) -> dict[str, list[str]]:
    """Condition -> what is not so now. Empty when all is well."""
    result = {condition.__name__: list(condition(world)) for condition in CONDITIONS}
    return {name: texts for name, texts in result.items() if texts}


def settle(world: World, within_ms: float = DEADLINE_MS) -> list[Violation]:
    """Runs, after faults and load have stopped, until all conditions hold, or says which ones do not."""
    end_ms = world.now_ms + within_ms
    while (error := missing(world)) and world.now_ms < end_ms:
        world.run(_LOOK_EVERY_MS)
    return [
        Violation("LIVE", name.replace("_", " "), world.steps, world.now_ms, -1, None, "; ".join(texts[:3]))
        for name, texts in error.items()
    ]


def _replica(world: World, image: PartitionImage, node: int) -> Replica | None:
    server = world.brokers.get(node)
    return None if server is None or server.core is None else server.core.replica(image.tp)


def _replicas(world: World) -> Iterator[tuple[PartitionImage, Replica | None]]:
    for image in world.image.partitions():
        for node in image.replicas:
            server = world.brokers.get(node)
            if server is not None and server.core is not None:
                yield image, server.core.replica(image.tp)
