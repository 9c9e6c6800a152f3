"""Defects of the controller quorum (docs/protocol.md 4.3: B46, B47, B48)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.model.types import NodeId, QuorumState, SnapshotId
from wrackline.broker.rules.leadership.raft import RaftRole, RaftRules
from wrackline.broker.rules.placement.snapshots import SnapshotRules


class LeadAgain(RaftRules):
    """``raft_keep_role``: B46, KAFKA-10527. A leader that restarts goes on leading in the same epoch."""

    def role_at_start(self, state: QuorumState, node_id: NodeId) -> RaftRole:
        return RaftRole.LEADER if state.leader_id == node_id else super().role_at_start(state, node_id)


class AcknowledgeUnflushed(RaftRules):
    """``raft_no_fsync``: B46, KAFKA-10533. What is in the page cache counts as held."""

    def held(self, leo: int, flushed: int) -> int:  # noqa: ARG002
        return leo


class ForgetVote(SwitchDefect):
    """``raft_forget_vote``: B46. The vote is not written down: after a restart there is another one to
    give."""

    flips: ClassVar = {"remembers_vote": False}


class CommitFormerEpochs(RaftRules):
    """``raft_commit_old_epoch``: B46, Raft figure 8. A majority is enough, whatever the epoch of the
    record."""

    def may_commit(self, end: int, epoch_start: int) -> bool:  # noqa: ARG002
        return True


class LeadAlone(RaftRules):
    """``no_check_quorum``: B47, KAFKA-15489. A leader that nobody fetches from believes that it leads."""

    def lost_quorum(self, silences_ms: Sequence[float], window_ms: float) -> bool:  # noqa: ARG002
        return False


class DropPastSnapshot(SnapshotRules):
    """``snap_gap``: B48, KAFKA-14238. The log goes up to the high watermark, past the end of every
    snapshot."""

    def log_start(self, ids: Sequence[SnapshotId], high_watermark: int) -> int:
        return high_watermark if ids else 0
