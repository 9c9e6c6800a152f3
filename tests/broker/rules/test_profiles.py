"""The profiles differ in the rules of docs/protocol.md 0.2, and in no others."""

from __future__ import annotations

from dataclasses import fields
from uuid import UUID

import pytest

from wrackline.broker.defects import apply
from wrackline.broker.defects.isr import NoPartitionEpoch
from wrackline.broker.model.metadata.features import WITH_ELR, WITHOUT_ELR, WITHOUT_EPOCHS
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NO_LEADER, TopicPartition
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.profile import profile

T = TopicPartition("t", 0)


def partition(isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, elr: tuple[int, ...] = ()) -> PartitionImage:
    return PartitionImage(T, UUID(int=9), (1, 2, 3), isr, leader, 4, 7, elr=elr)


def given(part: PartitionImage, isr: tuple[int, ...], able: set[int], **more: bool) -> ChangeInput:
    """As the controller asks in a profile without an ELR."""
    return ChangeInput(part, isr, 2, frozenset(able), has_elr=False, **more)


def different(name: str) -> set[str]:
    mine, theirs = profile(name), profile("kip966")
    return {
        slot.name
        for slot in fields(mine)
        if slot.name not in ("switches", "former")
        and type(getattr(mine, slot.name)) is not type(getattr(theirs, slot.name))
    }


def turned(name: str) -> set[str]:
    """The switches that are not as in kip966."""
    mine, theirs = profile(name).switches, profile("kip966").switches
    return {slot.name for slot in fields(mine) if getattr(mine, slot.name) != getattr(theirs, slot.name)}


def test_a_profile_is_a_few_rules() -> None:
    assert different("kraft35") == different("kip101") == {"election", "topics"}
    assert turned("kraft35") == {"has_elr", "min_isr_gates_high_watermark"}
    assert different("zk08") == {"election", "topics", "truncation", "reads", "isr"}
    assert turned("zk08") == turned("kraft35") | {
        "has_controller",
        "fetch_names_epoch",
        "waits_for_joining",
        "has_min_isr",
    }
    assert turned("kip101") == turned("kraft35") | {"asks_epoch_first", "fetch_names_epoch"}
    assert different("zk08-kip101") == {"election", "topics", "reads", "isr"}
    assert turned("zk08-kip101") == turned("zk08") | {"asks_epoch_first"}


def test_below_its_highest_level_a_profile_does_as_the_one_before_it() -> None:
    later, former = profile("kip966"), profile("kraft35")
    assert later.at(None) is later.at(WITH_ELR) is later
    assert type(later.at(WITHOUT_ELR).election) is type(former.election)
    assert not later.at(WITHOUT_ELR).switches.has_elr
    assert later.at(WITHOUT_ELR).switches.min_isr_gates_high_watermark, "of the program, not of the level"
    on_zookeeper = profile("zk08-kip101")
    assert on_zookeeper.at(WITHOUT_EPOCHS).switches == profile("zk08").switches
    assert type(on_zookeeper.at(WITHOUT_EPOCHS).truncation) is type(profile("zk08").truncation)
    assert former.at(WITHOUT_ELR) is former


def test_a_defect_is_in_the_rules_of_every_level() -> None:
    broken = apply(profile("kip966"), ["no_partition_epoch", "ignore_unclean"])
    assert broken.former is not None
    assert isinstance(broken.isr_change, NoPartitionEpoch)
    assert isinstance(broken.former.isr_change, NoPartitionEpoch)
    assert not broken.former.switches.has_elr


@pytest.mark.parametrize("name", ["kraft35", "kip101"])
def test_the_last_isr_member_stays_in_the_isr_when_it_is_fenced(name: str) -> None:
    """K37: without a leader, with itself in the ISR; and it leads as soon as it may."""
    rules = profile(name).election
    alone = partition((1,))
    record = rules.change(given(alone, (), {2, 3}))
    assert record is not None
    assert (record.leader, record.isr) == (NO_LEADER, None), "the ISR is unchanged"
    frozen = partition((1,), NO_LEADER)
    assert rules.change(given(frozen, (), {2, 3})) is None, "nothing changes while it is away"
    back = rules.change(given(frozen, (1,), {1, 2, 3}))
    assert back is not None
    assert back.leader == 1
    assert rules.recovery(frozen, frozenset({1, 2, 3})) is None
