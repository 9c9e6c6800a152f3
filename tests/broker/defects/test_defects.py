"""Each defect changes the decision it is about, and no other."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from wrackline.broker.defects import REGISTRY, UnknownDefect, apply
from wrackline.broker.model.messages.controller import AlterPartitionItem
from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.types import NO_EPOCH, NO_LEADER, TopicPartition
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.profile import Rules, profile
from wrackline.broker.rules.replication.fetching import AnswerFacts
from wrackline.broker.rules.replication.isr import JoinFacts, LagFacts
from wrackline.broker.rules.replication.truncation import LeaderRange, OutOfRange

T = TopicPartition("t", 0)
ID = UUID(int=9)


def partition(isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, **more: Any) -> PartitionImage:
    return PartitionImage(T, ID, (1, 2, 3), isr, leader, 4, 7, **more)


def broker(node: int = 1, *, fenced: bool = False, epoch: int = 11) -> BrokerImage:
    return BrokerImage(node, epoch, UUID(int=node), "h", 1, None, fenced, False, epoch)


def item(*isr: tuple[int, int], leader_epoch: int = 4, partition_epoch: int = 7) -> AlterPartitionItem:
    return AlterPartitionItem(T, ID, leader_epoch, partition_epoch, isr)


def change(
    isr: tuple[int, ...], part: PartitionImage | None = None, able: tuple[int, ...] = (1, 2, 3)
) -> ChangeInput:
    return ChangeInput(part or partition(), isr, 2, frozenset(able))


def join(leo: int, high_watermark: int = 3, leso: int = 5, leader_leo: int = 0) -> JoinFacts:
    """Of a follower that was never caught up with a leader whose log ends at ``leader_leo``; 0: where its own
    does."""
    lag = LagFacts(leo, leader_leo or leo, 0.0, 99_000.0, 30_000.0)
    return JoinFacts(leo, high_watermark, leso, 4, 4, 11, 11, True, lag)


def answer(**changes: int) -> AnswerFacts:
    right = {"asked_offset": 5, "asked_epoch": 4, "asked_reset": 1, "leo": 5, "leader_epoch": 4, "reset": 1}
    return AnswerFacts(**{**right, **changes})


ALL = {node: broker(node) for node in (1, 2, 3)}
Case = tuple[str, Callable[[Rules], Any], Any, Any]
DIFFERS: list[Case] = [
    ("trunc_hw", lambda r: r.truncation.on_become_follower(5, 3), 5, 3),
    ("no_divergence_check", lambda r: r.switches.fetch_names_epoch, True, False),
    ("drop_lfe_on_empty", lambda r: r.truncation.fetched_epoch(4, after_empty=True), 4, NO_EPOCH),
    ("lfe_sticky", lambda r: r.switches.empty_answer_outlives_epoch, False, True),
    ("drop_begun_batch", lambda r: r.switches.takes_begun_batch, True, False),
    (
        "oor_to_start",
        lambda r: r.truncation.on_out_of_range(5, LeaderRange(0, 3)),
        OutOfRange.TRUNCATE_TO_LEADER_END,
        OutOfRange.RESTART_AT_LEADER_START,
    ),
    ("keep_epoch_on_noop_trunc", lambda r: r.switches.cuts_epochs_of_short_log, True, False),
    ("no_epoch_assign", lambda r: r.switches.assigns_epoch_on_election, True, False),
    ("hw_no_minisr", lambda r: r.switches.min_isr_gates_high_watermark, True, False),
    ("hw_gate_maximal", lambda r: r.high_watermark.may_advance(1, 2, 2), False, True),
    ("no_offset_not_available", lambda r: r.high_watermark.may_show_end(1, 2), False, True),
    ("hw_before_trunc", lambda r: r.high_watermark.on_divergence(1, 4, 3), 1, 3),
    ("hw_ignores_unknown", lambda r: r.high_watermark.candidate(5, [4, -1], None), -1, 4),
    ("no_adv_on_isr", lambda r: r.switches.isr_change_moves_high_watermark, True, False),
    ("hw_waits_ineligible", lambda r: r.high_watermark.waits_for(True, False), False, True),
    ("hw_passes_joining", lambda r: r.switches.waits_for_joining, True, False),
    ("hw_ckpt_skip", lambda r: r.switches.checkpoints_leaderless, True, False),
    ("no_maximal_isr", lambda r: r.isr.maximal(frozenset({1, 2}), frozenset({1, 2, 3})), {1, 2, 3}, {1, 2}),
    ("shrink_before_commit", lambda r: r.isr.maximal(frozenset({1, 2}), frozenset({1})), {1, 2}, {1}),
    ("isr_no_leso", lambda r: r.isr.may_join(join(3)), False, True),
    ("isr_no_hw", lambda r: r.isr.has_committed(join(2)), False, True),
    ("isr_no_recency", lambda r: r.isr.may_join(join(5, leader_leo=9)), False, True),
    ("keep_stale_peers", lambda r: r.isr.kept_in_new_epoch([2, 3], frozenset({1, 2}), 1), {2}, {2, 3}),
    ("inflight_leak", lambda r: r.switches.overtaken_answer_frees_slot, True, False),
    (
        "no_isr_broker_epoch",
        lambda r: r.isr_change.verdict(1, item((1, 11), (2, 10)), partition(), ALL),
        ErrorCode.ineligible_replica,
        ErrorCode.none,
    ),
    (
        "allow_fenced_isr",
        lambda r: r.isr_change.verdict(
            1, item((1, 11), (2, -1)), partition(), {**ALL, 2: broker(2, fenced=True)}
        ),
        ErrorCode.ineligible_replica,
        ErrorCode.none,
    ),
    (
        "no_partition_epoch",
        lambda r: r.isr_change.verdict(1, item((1, 11), partition_epoch=6), partition(), ALL),
        ErrorCode.invalid_update_version,
        ErrorCode.none,
    ),
    (
        "zombie_ctl_fenced",
        lambda r: r.isr_change.verdict(1, item((1, 11), leader_epoch=5), partition(), ALL),
        ErrorCode.not_controller,
        ErrorCode.fenced_leader_epoch,
    ),
    ("elr_not_cleared", lambda r: r.election.eligible(change((1, 2)), (1, 2)).elr, (), (3,)),
    (
        "last_known_leader",
        lambda r: r.election.elect(change((), partition((), NO_LEADER, last_known_elr=(2,)))).leader,
        NO_LEADER,
        2,
    ),
    (
        "lke_no_liveness",
        lambda r: r.election.elect(change((), partition((), NO_LEADER, last_known_elr=(2,)), (1, 3))).leader,
        NO_LEADER,
        2,
    ),
    ("ignore_unclean", lambda r: r.registration.is_clean(-1, 11), False, True),
    ("clean_by_presence", lambda r: r.registration.is_clean(5, 11), False, True),
    ("keep_clean_file", lambda r: r.switches.start_removes_clean_file, True, False),
    ("register_no_isr_change", lambda r: r.registration.may_replace(broker(), True), False, True),
    ("batch_fence", lambda r: r.registration.to_fence([(2.0, 1), (1.0, 2)]), (2,), (2, 1)),
    ("no_broker_epoch", lambda r: r.registration.has_right_epoch(broker(), 10), False, True),
    ("stop_md_on_shutdown", lambda r: r.switches.applies_metadata_while_stopping, True, False),
    ("continue_after_io_error", lambda r: r.switches.stops_on_disk_failure, True, False),
    ("apply_stale_off", lambda r: r.fetch.accepts(answer(asked_offset=4)), False, True),
    ("apply_stale_resp", lambda r: r.fetch.accepts(answer(asked_reset=0)), False, True),
    ("keep_told_session", lambda r: r.switches.session_outlives_stay, False, True),
    ("no_client_epoch", lambda r: r.reads.epoch_check(3, 4), ErrorCode.fenced_leader_epoch, ErrorCode.none),
    ("forget_producer_state", lambda r: r.switches.new_leader_forgets_producers, False, True),
    ("ack_by_hwm_only", lambda r: r.switches.produce_outlives_leadership, False, True),
]

SAME: list[tuple[str, Callable[[Rules], Any]]] = [
    ("trunc_hw", lambda r: r.truncation.on_become_follower(3, 3)),
    ("drop_lfe_on_empty", lambda r: r.truncation.fetched_epoch(4)),
    ("hw_gate_maximal", lambda r: r.high_watermark.may_advance(2, 2, 2)),
    ("hw_waits_ineligible", lambda r: r.high_watermark.waits_for(False, False)),
    ("hw_ignores_unknown", lambda r: r.high_watermark.candidate(5, [4, 3], None)),
    ("shrink_before_commit", lambda r: r.isr.maximal(frozenset({1}), frozenset({1, 2}))),
    ("isr_no_leso", lambda r: r.isr.may_join(join(2))),
    ("isr_no_hw", lambda r: r.isr.may_join(join(4))),
    ("isr_no_recency", lambda r: r.isr.may_join(join(2, leader_leo=9))),
    ("no_isr_broker_epoch", lambda r: r.isr_change.verdict(2, item((1, 11)), partition(), ALL)),
    ("allow_fenced_isr", lambda r: r.isr_change.verdict(1, item((1, 11), (9, -1)), partition(), ALL)),
    (
        "no_partition_epoch",
        lambda r: r.isr_change.verdict(1, item((1, 11), partition_epoch=8), partition(), ALL),
    ),
    ("zombie_ctl_fenced", lambda r: r.isr_change.verdict(1, item((1, 11), leader_epoch=3), partition(), ALL)),
    ("elr_not_cleared", lambda r: r.election.eligible(change((1,)), (1,))),
    (
        "last_known_leader",
        lambda r: r.election.elect(change((), partition((), NO_LEADER, last_known_elr=(2,)), (1,))),
    ),
    ("last_known_leader", lambda r: r.election.change(change((2, 3), able=(2, 3)))),
    ("clean_by_presence", lambda r: r.registration.is_clean(-1, 11)),
    ("batch_fence", lambda r: r.registration.to_fence([(2.0, 1)])),
    ("no_broker_epoch", lambda r: r.registration.has_right_epoch(None, 10)),
    ("apply_stale_off", lambda r: r.fetch.accepts(answer(asked_epoch=3))),
    ("keep_stale_peers", lambda r: r.isr.kept_in_new_epoch([2], frozenset({1, 2}), 1)),
]


@pytest.mark.parametrize(("name", "decide", "right", "wrong"), DIFFERS, ids=[case[0] for case in DIFFERS])
def test_each_defect_changes_its_decision(
    name: str, decide: Callable[[Rules], Any], right: Any, wrong: Any
) -> None:
    rules = profile("kip966")
    assert decide(rules) == right
    assert decide(apply(rules, [name])) == wrong


@pytest.mark.parametrize(("name", "decide"), SAME, ids=[case[0] for case in SAME])
def test_each_defect_leaves_the_neighbouring_decisions_as_they_are(
    name: str, decide: Callable[[Rules], Any]
) -> None:
    rules = profile("kip966")
    assert decide(apply(rules, [name])) == decide(rules)


def test_kip101_v0_takes_the_offset_alone() -> None:
    rules = profile("kip101")
    own, theirs = EpochEndOffset(1, 1), EpochEndOffset(2, 2)
    assert rules.truncation.on_answer(own, theirs, 4) == (1, True)
    assert apply(rules, ["kip101_v0"]).truncation.on_answer(own, theirs, 4) == (2, False)
    with pytest.raises(UnknownDefect, match="kip101_v0"):
        apply(profile("kip966"), ["kip101_v0"])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_defect_replaces_rules_of_one_kind_and_says_what_and_since_when(name: str) -> None:
    defect = REGISTRY[name]
    text = inspect.getdoc(defect) or ""
    assert f"``{name}``" in text
    assert re.search(r"\b(B\d\d|H\d\d|4\.5|2\.13|2\.15)\b", text), "its place in docs/protocol.md"
    for known in ("kip966", "kraft35", "kip101"):
        rules = profile(known)
        try:
            changed = apply(rules, [name])
        except UnknownDefect:
            continue
        kinds = [s.name for s in fields(rules) if getattr(changed, s.name) != getattr(rules, s.name)]
        assert len(set(kinds) - {"switches", "former"}) <= 1, kinds
        assert kinds
        own = [m for m in vars(defect) if not m.startswith("__")] or ["(inherited)"]
        assert len(own) <= 5, own
        return
    pytest.fail(f"no profile has a rule that {name} replaces")


def test_defects_combine_with_each_other_and_with_any_profile() -> None:
    for known in ("kip966", "kraft35"):
        rules = apply(profile(known), ["hw_ignores_unknown", "no_adv_on_isr", "trunc_hw"])
        assert rules.high_watermark.candidate(5, [-1], None) == 5
        assert not rules.switches.isr_change_moves_high_watermark
        assert rules.truncation.on_become_follower(5, 3) == 3
        assert rules.switches.min_isr_gates_high_watermark is (known == "kip966")
