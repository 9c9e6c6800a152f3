"""Tables of leaders and of who may become one: ELR, elections, unclean recovery. The replicas are 1, 2, 3."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.rules.golden_tables import Decide, Facts, end, epochs_of, ids, some, yes
from wrackline.broker.model.messages.controller import ReplicaLogInfo
from wrackline.broker.model.metadata.image import PartitionImage, changed
from wrackline.broker.model.types import NO_LEADER, RecoveryStrategy, TopicPartition
from wrackline.broker.rules.leadership.election import Recovery
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.leadership.recovery import UNUSABLE, LogEnd
from wrackline.broker.rules.profile import Rules

T = TopicPartition("t", 0)
TOPIC = UUID(int=9)
MIN_ISR = 2


def partition(facts: Facts, leader: int = NO_LEADER) -> PartitionImage:
    return PartitionImage(
        T,
        TOPIC,
        replicas=(1, 2, 3),
        isr=ids(facts.get("ISR", "-")),
        leader=int(facts.get("leader", leader)),
        leader_epoch=4,
        partition_epoch=7,
        elr=ids(facts.get("ELR", "-")),
        last_known_elr=ids(facts.get("last known", "-")),
    )


# --- who is eligible -----------------------------------------------------------------------------------


def eligible(rules: Rules, facts: Facts) -> object:
    """As the controller asks, with ``Switches.has_elr`` of the profile."""
    isr = ids(facts["new ISR"])
    given = ChangeInput(
        partition(facts),
        isr,
        MIN_ISR,
        acceptable=frozenset(),
        unclean=some(facts["lost"]),
        has_elr=rules.switches.has_elr,
    )
    return list(rules.election.eligible(given, isr))


def is_concerned(rules: Rules, facts: Facts) -> object:
    return rules.election.is_concerned(partition(facts), 2, unclean=yes(facts["unclean"]))


def after_recovery(rules: Rules, facts: Facts) -> object:
    return list(rules.election.after_recovery(partition(facts), int(facts["winner"])))


def min_isr_changed(rules: Rules, facts: Facts) -> object:
    record = rules.election.min_isr_changed(partition(facts), int(facts["MinISR"]))
    return ["*" if written is None else written for written in (record.elr, record.last_known_elr)]


def reconsiders(rules: Rules, facts: Facts) -> object:
    return rules.election.reconsiders(partition(facts))


def within(rules: Rules, facts: Facts) -> object:
    return list(rules.election.within(partition(facts), ids(facts["replicas"])))


# --- who leads -----------------------------------------------------------------------------------------


def _changed(rules: Rules, facts: Facts) -> PartitionImage | None:
    """The partition afterwards; None when there is no record."""
    given = ChangeInput(
        partition(facts),
        target_isr=ids(facts["asked ISR"]),
        min_isr=MIN_ISR,
        acceptable=some(facts["may lead"]),
        unclean=some(facts.get("lost", "-")),
        has_elr=rules.switches.has_elr,
        unclean_election=yes(facts["unclean"]),
    )
    record = rules.election.change(given)
    return None if record is None else changed(given.partition, record)


def change(rules: Rules, facts: Facts) -> object:
    after = _changed(rules, facts)
    if after is None:
        return ["="] * 5
    return [after.leader, after.isr, after.elr, after.last_known_elr, after.leader_recovery_state]


def recovery_state(rules: Rules, facts: Facts) -> object:
    """Broker 2 joins the ISR, so that there is a record."""
    old = PartitionImage(T, TOPIC, (1, 2, 3), (1,), 1, 4, 7, leader_recovery_state=int(facts["was"]))
    reported = None if facts["reported"] == "-" else int(facts["reported"])
    given = ChangeInput(old, (1, 2), MIN_ISR, frozenset((1, 2)), recovery_state=reported)
    record = rules.election.change(given)
    assert record is not None
    return changed(old, record).leader_recovery_state


def change_of_earlier_profile(rules: Rules, facts: Facts) -> object:
    after = _changed(rules, facts)
    if after is None:
        return ["="] * 4
    assert not after.last_known_elr
    return [after.leader, after.isr, after.elr, after.leader_recovery_state]


def recovered(rules: Rules, facts: Facts) -> object:
    before = partition(facts)
    after = changed(before, rules.election.recovered(before, int(facts["winner"])))
    return [after.leader, after.isr, after.elr, after.last_known_elr, after.leader_recovery_state]


# --- unclean recovery ------------------------------------------------------------------------------------


def _compared(recovery: Recovery | None) -> list[object]:
    return ["none", None] if recovery is None else [recovery.candidates, recovery.missing]


def recovery(rules: Rules, facts: Facts) -> object:
    return _compared(rules.election.recovery(partition(facts), some(facts["alive"])))


def proactive_recovery(rules: Rules, facts: Facts) -> object:
    return _compared(rules.election.proactive_recovery(partition(facts), some(facts["alive"])))


def view(rules: Rules, facts: Facts) -> object:
    strategy = RecoveryStrategy(facts["strategy"])
    found = rules.recovery.view(strategy, rules.election, partition(facts), some(facts["alive"]))
    return _compared(found)[0]


def may_inspect(rules: Rules, facts: Facts) -> object:
    found = Recovery(ids(facts["compared"]), ids(facts["missing"]))
    return rules.recovery.may_inspect(RecoveryStrategy(facts["strategy"]), found)


def is_decided(rules: Rules, facts: Facts) -> object:
    return rules.recovery.is_decided(
        RecoveryStrategy(facts["strategy"]),
        int(facts["answered"]),
        int(facts["of"]),
        window_over=facts["window"] == "over",
    )


def judge(rules: Rules, facts: Facts) -> object:
    info = replace(
        ReplicaLogInfo(TOPIC, 0),
        current_leader_epoch=int(facts["knows epoch"]),
        error=ErrorCode[facts["error"]],
    )
    return rules.recovery.judge(info, int(facts["broker epoch"]), registered_epoch=11, leader_epoch=4)


def winner(rules: Rules, facts: Facts) -> object:
    logs = {node: facts[f"log of {node}"] for node in (1, 2, 3)}
    return rules.recovery.winner(
        LogEnd(node, 11, -1, UNUSABLE)
        if log == "unusable"
        else LogEnd(node, 11, epochs_of(log).latest, end(log))
        for node, log in logs.items()
    )


def named(rules: Rules, facts: Facts) -> object:
    strategy = RecoveryStrategy(facts["strategy"])
    alive = some(facts["alive"])
    return rules.recovery.named(strategy, partition(facts), int(facts["named"]), alive).name.lower()


TABLES: dict[str, Decide] = {
    "eligible.eligible": eligible,
    "eligible.without_elr": eligible,
    "eligible.is_concerned": is_concerned,
    "eligible.after_recovery": after_recovery,
    "eligible.min_isr_changed": min_isr_changed,
    "eligible.reconsiders": reconsiders,
    "eligible.within": within,
    "election.change": change,
    "election.recovery_state": recovery_state,
    "election.recovery": recovery,
    "election.proactive_recovery": proactive_recovery,
    "election.recovered": recovered,
    "earlier_profiles.change": change_of_earlier_profile,
    "recovery.view": view,
    "recovery.may_inspect": may_inspect,
    "recovery.is_decided": is_decided,
    "recovery.named": named,
    "recovery.judge": judge,
    "recovery.winner": winner,
}
