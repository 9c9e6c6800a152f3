"""B32, B36, B44: what operators change while something is wrong."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from broker.core.admin_messages import (
    AlteredResource,
    AlterOp,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    IncrementalAlterConfigsRequest,
    Reassignment,
    Resource,
)
from broker.core.types import NodeId
from simulator.disk import SimulationError
from simulator.guided.schedule import Guided
from simulator.guided.stage import CONTROLLER, Setting, Stage, T

TOPIC = 2
"""The resource type, in Kafka's numbers."""


def _reassign(s: Stage, *target: NodeId) -> None:
    request = AlterPartitionReassignmentsRequest((Reassignment(T, target),), 10_000)
    answer = s.world.asked(CONTROLLER, request)
    if answer.error is not ErrorCode.none or any(
        part.error is not ErrorCode.none for part in answer.partitions
    ):
        raise SimulationError(f"no reassignment to {target}: {answer}")
    s.say(f"reassign to {target}")


def smaller_min_isr(s: Stage) -> None:
    """B32. ISR=[1], ELR=[2]; MinISR becomes 1, so 1 alone commits m2; then 2 comes back."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    change = ConfigChange("min.insync.replicas", AlterOp.SET, "1")
    request = IncrementalAlterConfigsRequest((AlteredResource(Resource(TOPIC, T.topic), (change,)),))
    answer = s.world.asked(CONTROLLER, request)
    if any(resource.error is not ErrorCode.none for resource in answer.resources):
        raise SimulationError(f"MinISR was not changed: {answer}")
    s.run(500)
    s.acked(1, b"m2")
    s.kill(1)
    s.unfence(2)
    s.run(5_000)


def completes_with_one(s: Stage) -> None:
    """B36. ISR=[1], 2 and 3 are away; the partition moves to [2,3,4]; 4, now alone, loses power."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    _reassign(s, 2, 3, 4)
    s.until(lambda: 4 in s.isr, "4 in the ISR")
    s.run(1_000)
    s.power(4, keep=0)
    s.run(5_000)


def never_begins(s: Stage) -> None:
    """B44. 4 is added and 3 removed, without a new leader epoch until that is done."""
    s.commit(b"m1")
    _reassign(s, 1, 2, 4)
    s.must(lambda: s.isr == {1, 2, 4}, "the reassignment done")


SCHEDULES = (
    Guided(
        "elr_kept_on_config",
        "B32",
        ("elr_kept_on_config",),
        smaller_min_isr,
        frozenset({"I14", "I02", "I01", "lost-write"}),
    ),
    Guided(
        "reassign_no_minisr",
        "B36",
        ("reassign_no_minisr",),
        completes_with_one,
        frozenset({"I20", "lost-write"}),
        Setting(profile="kraft35", brokers=4),
    ),
    Guided(
        "added_needs_epoch",
        "B44",
        ("added_needs_epoch",),
        never_begins,
        frozenset({"liveness"}),
        Setting(brokers=4),
    ),
)
