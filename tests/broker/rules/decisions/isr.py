"""Tables of the ISR: at the leader that proposes, at the controller that takes the proposal."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.rules.golden_tables import Decide, Facts, end, ids, some, yes
from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.rules.profile import Rules
from wrackline.broker.rules.replication.isr import JoinFacts, LagFacts

T = TopicPartition("t", 0)
TOPIC = UUID(int=9)


def may_join(rules: Rules, facts: Facts) -> object:
    return rules.isr.may_join(
        JoinFacts(
            leo=end(facts["follower"]),
            high_watermark=end(facts["high watermark"]),
            leso=end(facts["LESO"]),
            fetched_in_epoch=int(facts["fetched in"]),
            leader_epoch=int(facts["epoch"]),
            broker_epoch=int(facts["told"]),
            registered_epoch=int(facts["registered"]),
            active=yes(facts["active"]),
            lag=_lag(facts),
        )
    )


def _lag(facts: Facts) -> LagFacts:
    """The lag time is 30 s."""
    now, lag_max = 1_000_000.0, 30_000.0
    caught_up = now - float(facts["caught up ago"])
    return LagFacts(end(facts["follower"]), end(facts["leader"]), caught_up, now, lag_max)


def maximal(rules: Rules, facts: Facts) -> object:
    return rules.isr.maximal(some(facts["committed"]), some(facts["proposed"]))


def lags(rules: Rules, facts: Facts) -> object:
    return rules.isr.lags(_lag(facts))


def kept_in_new_epoch(rules: Rules, facts: Facts) -> object:
    return rules.isr.kept_in_new_epoch(
        ids(facts["followers"]), some(facts["ISR"]), int(facts["epochs later"])
    )


def after_refusal(rules: Rules, facts: Facts) -> object:
    return rules.isr.after_refusal(ErrorCode[facts["error"]])


def verdict(rules: Rules, facts: Facts) -> object:
    """Replicas 1 to 5 led by 1; broker 4 is fenced, 5 is not registered, 3 is shutting down in the rows that
    say so."""
    stopping = some(facts["stopping"])
    brokers = {
        node: BrokerImage(node, 10 + node, UUID(int=node), "h", 1, None, node == 4, node in stopping, 0)
        for node in (1, 2, 3, 4)
    }
    replicas, was = (1, 2, 3, 4, 5), int(facts["was"])
    partition = PartitionImage(T, TOPIC, replicas, (1, 2), 1, 4, 7, leader_recovery_state=was)
    pairs = (member.split("@") for member in facts["proposed ISR"].split(","))
    item = AlterPartitionItem(
        T,
        TOPIC,
        int(facts["leader epoch"]),
        int(facts["partition epoch"]),
        tuple((int(node), int(epoch)) for node, epoch in pairs),
        int(facts["recovery"]),
    )
    return rules.isr_change.verdict(int(facts["sender"]), item, partition, brokers)


TABLES: dict[str, Decide] = {
    "isr.may_join": may_join,
    "isr.maximal": maximal,
    "isr.lags": lags,
    "isr.kept_in_new_epoch": kept_in_new_epoch,
    "isr.after_refusal": after_refusal,
    "isr.verdict": verdict,
}
