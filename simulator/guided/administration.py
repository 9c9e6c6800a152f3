"""B21, B32, B36, B44, B58: operators change the configuration or the replicas while a fault is in force."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

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
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import CONTROLLER, Setting, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.errors import SimulationError

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
    """B32. Broker 1 is alone in the ISR and broker 2 in the ELR. MinISR becomes 1, so broker 1 commits m2
    alone; then it is killed and broker 2, which lacks m2, comes back."""
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
    """B36. Broker 1 is alone in the ISR, 2 and 3 are isolated, and the partition is reassigned to [2,3,4].
    Broker 4, by then the only member of the ISR, loses its power and its log."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    _reassign(s, 2, 3, 4)
    s.until(lambda: 4 in s.isr, "4 in the ISR")
    s.run(1_000)
    s.power(4, keep=0)
    s.run(5_000)


def touched(s: Stage) -> None:
    """B58. Broker 1 is alone in the ISR, and 2, which has everything, in the ELR. A reassignment to more
    brokers begins and leaves both as they are. Then 1 loses its power and its log, and 2 comes back."""
    s.commit(b"m1")
    s.isolate(4)
    s.isolate(3)
    s.isolate(2)
    _reassign(s, 1, 2, 3, 4)
    s.run(500)
    s.power(1, keep=0)
    s.unfence(2)
    s.must(lambda: s.elected == 2, "2 of the ELR elected")


def others_led(s: Stage) -> None:
    """B21. Broker 3 has replicated m1 from broker 1, broker 2 has not. Metadata does not reach broker 1 while
    broker 2 leads, broker 3 follows it and truncates m1, and broker 2 is fenced. Then broker 1 learns at once
    that it leads again with 3 in the ISR, and still remembers how far 3 had come before."""
    s.commit(b"m0")
    s.cut(2, 1)
    s.write(1, b"m1")
    s.until(lambda: s.leo(3) == 2, "m1 on 3")
    s.hold("BrokerHeartbeatRequest", source=2)
    s.run(2_000)
    deaf = s.hold("MetadataFetchResponse", to=1)
    _reassign(s, 2, 1, 3)
    s.run(50)  # this change is on its way to 1, and nothing behind it
    s.world.asked(CONTROLLER, ElectLeadersRequest(ElectionType.PREFERRED, (T,), 10_000))
    s.until(lambda: s.leo(3) == 1, "3 level with 2, its new leader")
    s.until(lambda: s.fenced(2), "2 fenced", 1_500)
    s.must(lambda: s.elected == 1 and s.isr == {1, 3}, "1 elected, with 3")
    s.release(deaf)
    s.run(1_000)


def never_begins(s: Stage) -> None:
    """B44. A reassignment adds broker 4 and removes broker 3; no new leader epoch begins until it is done."""
    s.commit(b"m1")
    _reassign(s, 1, 2, 4)
    s.must(lambda: s.isr == {1, 2, 4}, "the reassignment done")


SCHEDULES = (
    Guided(
        "keep_stale_peers",
        "B21",
        ("keep_stale_peers",),
        others_led,
        frozenset({"I02", "lost-write"}),
    ),
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
        "touch_wipes_elr",
        "B58",
        ("touch_wipes_elr",),
        touched,
        frozenset({"liveness", "I01", "I07", "lost-write"}),
        Setting(brokers=4),
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
