"""Historic bugs (docs/protocol.md section 4): each class replaces one rule by its wrong version, or turns a
switch.

A defect of a decision is a subclass of a class of rules with one method overridden. ``apply`` puts it in
front of whatever the profile has, so defects combine with profiles and with each other. Where a bug left a
step out, or did one too many, there is no decision to override: the defect ``flips`` a field of
``broker/model/switches.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from typing import Any

from wrackline.broker.defects import (
    elections,
    isr,
    lifecycle,
    raft,
    reassignment,
    requests,
    truncation,
    watermark,
)
from wrackline.broker.model.switches import Switches
from wrackline.broker.rules.profile import Rules

REGISTRY: dict[str, type] = {
    "trunc_hw": truncation.TruncateToHighWatermark,
    "no_divergence_check": truncation.NoDivergenceCheck,
    "kip101_v0": truncation.AnswerWithoutEpoch,
    "drop_lfe_on_empty": truncation.DropEpochAfterEmpty,
    "lfe_sticky": truncation.StickyEmpty,
    "drop_begun_batch": truncation.DropBegunBatch,
    "oor_to_start": truncation.RestartWhenOutOfRange,
    "keep_epoch_on_noop_trunc": truncation.KeepEpochsOfShortLog,
    "no_epoch_assign": truncation.NoEpochOnElection,
    "hw_no_minisr": watermark.AdvanceBelowMinIsr,
    "hw_gate_maximal": watermark.GateOnMaximalIsr,
    "no_offset_not_available": watermark.ShowStaleEnd,
    "hw_before_trunc": watermark.MoveBeforeTruncation,
    "hw_ignores_unknown": watermark.IgnoreUnknownEnds,
    "no_adv_on_isr": watermark.StayOnIsrChange,
    "hw_waits_ineligible": watermark.WaitForIneligible,
    "hw_passes_joining": watermark.PassJoining,
    "hw_ckpt_skip": watermark.LeaveOutOfCheckpoint,
    "no_maximal_isr": isr.NoMaximalIsr,
    "shrink_before_commit": isr.ShrinkBeforeCommit,
    "isr_no_leso": isr.IsrNoLeso,
    "isr_no_hw": isr.IsrNoHighWatermark,
    "isr_no_recency": isr.JoinFarBehind,
    "keep_stale_peers": isr.KeepStalePeers,
    "inflight_leak": isr.LeakSlot,
    "no_isr_broker_epoch": isr.NoIsrBrokerEpoch,
    "allow_fenced_isr": isr.AllowFencedIsr,
    "no_partition_epoch": isr.NoPartitionEpoch,
    "zombie_ctl_fenced": isr.FenceFutureLeader,
    "elr_not_cleared": elections.ElrNotCleared,
    "elr_kept_on_config": elections.ElrKeptOnConfig,
    "last_known_leader": elections.LastKnownLeader,
    "lke_no_liveness": elections.LastKnownLeaderDead,
    "ignore_unclean": lifecycle.IgnoreUnclean,
    "clean_by_presence": lifecycle.CleanByPresence,
    "keep_clean_file": lifecycle.KeepCleanFile,
    "migrate_without_fence": lifecycle.MigrateWithoutFence,
    "migrate_early_watermark": lifecycle.MigrateEarlyWatermark,
    "register_no_isr_change": lifecycle.RegisterWithoutIsrChange,
    "batch_fence": lifecycle.BatchFence,
    "no_broker_epoch": lifecycle.NoBrokerEpoch,
    "stop_md_on_shutdown": lifecycle.StopMetadataOnShutdown,
    "epoch_ckpt_no_fsync": lifecycle.TrustEpochFile,
    "continue_after_io_error": lifecycle.ContinueAfterIoError,
    "apply_stale_off": requests.ApplyStaleOffset,
    "apply_stale_resp": requests.ApplyStaleAnswer,
    "keep_told_session": requests.KeepToldSession,
    "no_topic_id": requests.NoTopicId,
    "no_client_epoch": requests.NoEpochCheck,
    "forget_producer_state": requests.ForgetProducers,
    "ack_by_hwm_only": requests.AckByHighWatermark,
    "reassign_no_minisr": reassignment.ReassignNoMinIsr,
    "touch_wipes_elr": reassignment.TouchWipesElr,
    "added_needs_epoch": reassignment.AddedNeedsEpoch,
    "raft_keep_role": raft.LeadAgain,
    "raft_no_fsync": raft.AcknowledgeUnflushed,
    "raft_forget_vote": raft.ForgetVote,
    "raft_commit_old_epoch": raft.CommitFormerEpochs,
    "no_check_quorum": raft.LeadAlone,
    "snap_gap": raft.DropPastSnapshot,
}
"""By the name of the switch in docs/protocol.md section 4; docs/known-bugs.md tells which schedule shows
each."""


class UnknownDefect(ValueError):
    """Raised for a defect without an entry, or one that concerns none of the rules at hand."""


def apply(rules: Rules, names: Iterable[str]) -> Rules:
    """The rules with these defects in them; of two that replace the same, the first named. Raises
    UnknownDefect."""
    expected = list(dict.fromkeys(names))
    for name in expected:
        if name not in REGISTRY:
            near = difflib.get_close_matches(name, REGISTRY, n=3)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise UnknownDefect(f"no defect {name!r}; {hint}the documents list all {len(REGISTRY)}")
    with_them, used = _put_in(rules, expected)
    if idle := [name for name in expected if name not in used]:
        raise UnknownDefect(f"these defects replace no rule of this profile: {', '.join(idle)}")
    if rules.former is None:
        return with_them
    former, _ = _put_in(rules.former, expected)
    return replace(with_them, former=former)


def _put_in(rules: Rules, wanted: Sequence[str]) -> tuple[Rules, set[str]]:
    """The rules with the defects in them that concern them, and which those are."""
    changed: dict[str, Any] = {}
    used: set[str] = set()
    for slot in fields(rules):
        current = type(getattr(rules, slot.name))
        mine = [name for name in wanted if _concerns(REGISTRY[name], current, rules.switches)]
        if mine:
            bases = (*(REGISTRY[name] for name in mine), current)
            changed[slot.name] = type("+".join(base.__name__ for base in bases), bases, {})()
            used.update(mine)
    switches = rules.switches
    for name in reversed(wanted):
        if flips := getattr(REGISTRY[name], "flips", None):
            switches = replace(switches, **flips)
            used.add(name)
    return replace(rules, switches=switches, **changed), used


def _concerns(defect: type, rule: type, switches: Switches) -> bool:
    """Does the defect override a method of this rule's family, and does the profile ask it?"""
    needed = getattr(defect, "only_with", None)
    if needed is not None and not getattr(switches, needed):
        return False
    return any(base in rule.__mro__ for base in defect.__bases__ if base is not object)
