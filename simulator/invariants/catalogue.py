"""The catalogue of invariants, in the order of docs/invariants.md."""

from __future__ import annotations

from wrackline.simulator.invariants.invariant import Invariant
from wrackline.simulator.invariants.isr import (
    IsrSanity,
    MinIsrRule,
    OneFetcher,
    ReassignmentRules,
    RecoveryQuorum,
    ReplicationQuorumSuperset,
    UncleanExclusion,
)
from wrackline.simulator.invariants.log import (
    AckRule,
    AppendOnly,
    CandidateCompleteness,
    ConsistentRead,
    EpochCacheMatchesLog,
    FlushedWhenCommitted,
    LeaderCompleteness,
    LogMatching,
    NothingLostGlobally,
    OneLeaderPerEpoch,
    WatermarkBounds,
)
from wrackline.simulator.invariants.metadata import BrokerEpochs, Epochs, MetadataLogMatching
from wrackline.simulator.invariants.raft import (
    CommittedOnMajority,
    ElectionSafety,
    MonotonicEpoch,
    MonotonicHighWatermark,
    OneVotePerEpoch,
    QuorumLeaderCompleteness,
    QuorumLogMatching,
    ValidRoles,
)
from wrackline.simulator.invariants.snapshots import (
    LeaderNeverLoadsSnapshot,
    SnapshotAtLogStart,
    SnapshotSaysCommitted,
)

INVARIANTS: tuple[type[Invariant], ...] = (
    LeaderCompleteness,
    CandidateCompleteness,
    LogMatching,
    ConsistentRead,
    ReplicationQuorumSuperset,
    MetadataLogMatching,
    NothingLostGlobally,
    UncleanExclusion,
    RecoveryQuorum,
    WatermarkBounds,
    BrokerEpochs,
    Epochs,
    OneLeaderPerEpoch,
    IsrSanity,
    EpochCacheMatchesLog,
    OneFetcher,
    AckRule,
    MinIsrRule,
    AppendOnly,
    ReassignmentRules,
    FlushedWhenCommitted,
    ElectionSafety,
    QuorumLogMatching,
    QuorumLeaderCompleteness,
    CommittedOnMajority,
    MonotonicEpoch,
    MonotonicHighWatermark,
    OneVotePerEpoch,
    ValidRoles,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    SnapshotSaysCommitted,
)
