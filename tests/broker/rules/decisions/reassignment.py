"""Tables of reassignments, of preferred leaders, and of where replicas go."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from tests.broker.rules.golden_tables import Decide, Facts, ids, some, yes
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.metadata.records import LEADER_UNCHANGED
from wrackline.broker.model.types import ReassignRule, TopicPartition
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.placement.growth import Replicas, plan_growth
from wrackline.broker.rules.placement.reassign import Assignment
from wrackline.broker.rules.profile import Rules

MIN_ISR = 2


def partition(
    replicas: Replicas,
    isr: Replicas = (),
    leader: int = 1,
    number: int = 0,
    assigned: Assignment | None = None,
    elr: Replicas = (),
    last_known: Replicas = (),
) -> PartitionImage:
    return PartitionImage(
        TopicPartition("t", number),
        UUID(int=9),
        replicas,
        isr,
        leader,
        leader_epoch=4,
        partition_epoch=7,
        adding=() if assigned is None else assigned.adding,
        removing=() if assigned is None else assigned.removing,
        elr=elr,
        last_known_elr=last_known,
    )


def _assigned(facts: Facts, prefix: str = "") -> Assignment:
    names = ("replicas", "adding", "removing")
    return Assignment(*(ids(facts[prefix + name]) for name in names))


def _lists(assignment: Assignment) -> list[object]:
    return [assignment.replicas, assignment.adding, assignment.removing]


# --- reassignment --------------------------------------------------------------------------------------


def begin(rules: Rules, facts: Facts) -> object:
    now = _assigned(facts)
    return _lists(rules.reassign.begin(partition(now.replicas, assigned=now), ids(facts["target"])))


def cancel(rules: Rules, facts: Facts) -> object:
    now = _assigned(facts)
    after = rules.reassign.cancel(partition(now.replicas, assigned=now))
    assert not after.moves
    return after.replicas


def finish(rules: Rules, facts: Facts) -> object:
    after = rules.reassign.finish(_assigned(facts))
    assert not after.moves
    return after.replicas


def completes(rules: Rules, facts: Facts) -> object:
    rule = ReassignRule(facts["rule"])
    return rules.reassign.completes(rule, _assigned(facts), ids(facts["ISR"]), MIN_ISR)


def may_leave(rules: Rules, facts: Facts) -> object:
    now = partition(
        (1, 2, 3, 4, 5), ids(facts["ISR"]), elr=ids(facts["ELR"]), last_known=ids(facts["last known"])
    )
    return rules.reassign.may_leave(now, (4, 5), MIN_ISR, yes(facts["unclean election"]))


def acceptable(rules: Rules, facts: Facts) -> object:
    assigned = Assignment((1, 2, 4), adding=(4,))
    now = partition((1, 2, 4), ids(facts["ISR"]), assigned=assigned, elr=ids(facts["ELR"]))
    return rules.reassign.acceptable(now, now.isr, some(facts["alive"]))


def ends_leader_epoch(rules: Rules, facts: Facts) -> object:
    return rules.reassign.ends_leader_epoch(_assigned(facts), _assigned(facts, "new "))


def change(rules: Rules, facts: Facts) -> object:
    """Everybody lives; the ISR is asked for as it is."""
    now = _assigned(facts)
    before = partition(
        now.replicas, ids(facts["ISR"]), int(facts["leader"]), assigned=now, elr=ids(facts["ELR"])
    )
    given = ChangeInput(before, before.isr, MIN_ISR, acceptable=frozenset(now.replicas))
    record = rules.reassign.change(rules.election, given, Assignment(ids(facts["new replicas"])))
    assert record is not None
    leader = "*" if record.leader == LEADER_UNCHANGED else record.leader
    return [leader, *("*" if written is None else written for written in (record.isr, record.elr))]


# --- preferred leaders -----------------------------------------------------------------------------------


def may_prefer(rules: Rules, facts: Facts) -> object:
    now = partition(ids(facts["replicas"]), ids(facts["ISR"]))
    return [rules.rebalance.preferred(now), rules.rebalance.may_prefer(now, some(facts["active"]))]


def prefer(rules: Rules, facts: Facts) -> object:
    return rules.rebalance.prefer(partition(ids(facts["replicas"]), ids(facts["ISR"]))).leader


def to_rebalance(rules: Rules, facts: Facts) -> object:
    led = enumerate(ids(facts["led by"]))
    partitions = [partition((1, 2), (1, 2), leader, number) for number, leader in led]
    chosen = rules.rebalance.to_rebalance(partitions, frozenset((1, 2)), int(facts["percent"]))
    return tuple(found.tp.partition for found in chosen)


# --- where replicas go -----------------------------------------------------------------------------------


def _dotted(replicas: Replicas) -> str:
    return ".".join(str(node) for node in replicas)


def _racks(drawn: str) -> Iterator[tuple[int, str | None]]:
    for broker in drawn.split(","):
        node, rack = broker.split("@")
        yield int(node), rack


def place(rules: Rules, facts: Facts) -> object:
    count, factor, first = (int(facts[name]) for name in ("partitions", "replicas", "first"))
    placed = rules.placement.place(ids(facts["brokers"]), count, factor, first)
    return tuple(_dotted(replicas) for replicas in placed)


def place_striped(rules: Rules, facts: Facts) -> object:
    racks = dict(_racks(facts["brokers by rack"]))
    placed = rules.placement.place_striped(racks, int(facts["partitions"]), int(facts["replicas"]))
    return tuple(_dotted(replicas) for replicas in placed)


def growth(_rules: Rules, facts: Facts) -> object:
    drawn = enumerate(facts["partitions"].split(","))
    now = {
        TopicPartition("t", number): tuple(int(node) for node in replicas.split("."))
        for number, replicas in drawn
    }
    racks = dict(_racks(facts["racks"])) if facts["racks"] != "-" else None
    moves = plan_growth(now, ids(facts["new"]), racks=racks)
    return tuple(f"{move.tp.partition}:{_dotted(move.before)}>{_dotted(move.after)}" for move in moves)


TABLES: dict[str, Decide] = {
    "reassign.begin": begin,
    "reassign.cancel": cancel,
    "reassign.finish": finish,
    "reassign.completes": completes,
    "reassign.may_leave": may_leave,
    "reassign.acceptable": acceptable,
    "reassign.ends_leader_epoch": ends_leader_epoch,
    "reassign.change": change,
    "rebalance.may_prefer": may_prefer,
    "rebalance.prefer": prefer,
    "rebalance.to_rebalance": to_rebalance,
    "placement.place": place,
    "placement.place_striped": place_striped,
    "growth.plan_growth": growth,
}
