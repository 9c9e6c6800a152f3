"""B29, B50, B53, B56: brokers that register, shut down and lose power."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.simulator.guided.schedule import guided
from wrackline.simulator.guided.setting import CONTROLLER, T
from wrackline.simulator.guided.stage import Stage


def unclean_ignored(s: Stage) -> None:
    """B28. Broker 2, in the ELR, has lost its log and comes back; then broker 1, the only member of the ISR,
    is killed."""
    s.isolate(3)
    s.commit(b"m1")
    s.power(2, keep=0)
    s.until(lambda: s.elr == {2}, "2 in the ELR")
    s.cut(1, 2)
    s.unfence(2)
    s.run(500)
    s.kill(1)
    s.run(5_000)


@guided(
    "clean_by_presence+keep_clean_file",
    "B29",
    "I08",
    "I02",
    "lost-write",
    defects=("clean_by_presence", "keep_clean_file"),
    harmless=("clean_by_presence",),
)
def old_clean_file(s: Stage) -> None:
    """B29. Broker 2 was shut down cleanly once. Now it loses its log, but the file of that shutdown still
    marks it as clean."""
    s.commit(b"m0")
    s.stop(2)
    s.unfence(2)
    s.until(lambda: s.isr == {1, 2, 3}, "2 back in the ISR")
    unclean_ignored(s)


@guided("no_broker_epoch", "B50", "I11")
def former_registration(s: Stage) -> None:
    """B50. A delayed heartbeat of broker 3's former registration, in which it asks to shut down, arrives when
    3 has long registered again."""
    s.commit(b"m1")
    core = s.world.brokers[3].core
    assert core is not None
    epoch = core.broker_epoch
    s.kill(3)
    s.until(lambda: s.fenced(3), "3 fenced")
    s.unfence(3)
    s.until(lambda: s.isr == {1, 2, 3}, "3 back in the ISR")
    late = BrokerHeartbeatRequest(3, epoch, s.world.image.metadata_offset, False, True)
    answer = s.world.asked(CONTROLLER, late)
    if isinstance(answer, BrokerHeartbeatResponse) and answer.error is ErrorCode.none:
        s.find("I11", f"a heartbeat of broker epoch {epoch} was accepted")


@guided("epoch_ckpt_no_fsync", "B53", "I15")
def old_epoch_file(s: Stage) -> None:
    """B53. Broker 2 leads and broker 3 has a record of its epoch. Broker 3 loses its power but no record of
    its log, and must still know that epoch."""
    s.commit(b"m1")
    s.kill(1)
    s.until(lambda: s.leader == 2, "2 leads")
    s.commit(b"m2")
    s.power(3, keep=2)
    s.unfence(3)
    s.run(2_000)


@guided("no_topic_id", "B56", "I03", "divergence")
def created_again(s: Stage) -> None:
    """B56. While broker 3 is down its topic is deleted and created again; the new topic has a record at an
    offset where 3 has another one."""
    s.write(1, b"old")
    s.until(lambda: s.leo(3) == 1, "the record on 3")
    s.kill(3)
    s.until(lambda: s.fenced(3), "3 fenced")
    s.world.asked(CONTROLLER, DeleteTopicsRequest((T.topic,), 10_000))
    s.world.asked(CONTROLLER, CreateTopicsRequest((NewTopic(T.topic, -1, -1, {0: (1, 2, 3)}, {}),), 10_000))
    s.until(lambda: s.leader is not None and s.leader != 3, "a leader of the new topic")
    s.commit(b"new")
    s.unfence(3)
    s.until(lambda: 3 in s.isr, "3 in the ISR")
    s.commit(b"newer")
