"""Settings of the core, with Kafka's names and defaults (docs/protocol.md 6.1). Times in milliseconds."""

from __future__ import annotations

from dataclasses import field

from wrackline.broker.model.types import (
    Endpoint,
    FlushMode,
    NodeId,
    PendingOnShrink,
    Placement,
    ReassignRule,
    RecoveryStrategy,
)
from wrackline.broker.model.values import dataclass


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The facts that both roles need on themselves and on the controllers."""

    node_id: NodeId
    cluster_id: str
    host: str
    """Advertised to clients and to other nodes."""
    port: int
    """Of a broker: where clients ask. Of a controller: where the nodes of the cluster do."""
    controllers: tuple[Endpoint, ...]
    rack: str | None = None
    profile: str = "kip966"
    defects: tuple[str, ...] = ()
    metadata_log_max_record_bytes_between_snapshots: int = 20_971_520
    """Of committed metadata records; as many make the next snapshot due."""
    metadata_log_max_records_between_snapshots: int = 100_000
    metadata_log_max_snapshot_interval_ms: int = 3_600_000
    """With anything new in the log, a snapshot at least this often."""
    metadata_log_segment_bytes: int = 8_388_608
    """What lies below the oldest snapshot leaves the disk by whole segments."""
    quorum_fetch_snapshot_max_bytes: int = 1_048_576
    """In one answer of FetchSnapshot."""
    zookeeper_session_timeout_ms: int = 6_000
    """Of a node that is given ZooKeeper's servers."""
    fetch_max_bytes: int = 57_671_680
    """Of records in one answer to a fetch, whatever is asked for; one batch always goes."""
    metrics_port: int | None = None
    """Where metrics are served over HTTP, on the node's own address; default: nowhere. A combined node serves
    those of both its parts on the broker's."""


@dataclass(frozen=True, slots=True)
class BrokerConfig(NodeConfig):
    replication_port: int = field(kw_only=True)
    """Where other nodes ask."""
    heartbeat_interval_ms: int = 2_000
    replica_lag_time_max_ms: int = 30_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_max_bytes: int = 1_048_576
    replica_fetch_response_max_bytes: int = 10_485_760
    replica_fetch_backoff_ms: int = 1_000
    num_replica_fetchers: int = 1
    request_timeout_ms: int = 30_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    recovery_point_checkpoint_interval_ms: int = 60_000
    flush_mode: FlushMode = FlushMode.ON_ROLL
    flush_messages: int = 1_000
    """Batches between flushes in mode every-n-batches."""
    flush_ms: int = 1_000
    """Between flushes in mode every-interval."""
    pending_on_shrink: PendingOnShrink = PendingOnShrink.FAIL_FAST
    max_message_bytes: int = 1_048_588
    message_timestamp_before_max_ms: int = 2**63 - 1
    """How far a record's own time may lie before the broker's time of day."""
    message_timestamp_after_max_ms: int = 3_600_000
    """And after it (KIP-1030)."""
    log_retention_check_interval_ms: int = 300_000
    producer_id_expiration_ms: int = 86_400_000
    """After so long without a batch a log forgets an idempotent producer."""
    producer_id_expiration_check_interval_ms: int = 600_000
    auto_create_topics: bool = False
    max_incremental_fetch_session_cache_slots: int = 1_000
    """Fetch sessions kept for consumers and followers; 0: none."""
    min_incremental_fetch_session_eviction_ms: int = 120_000
    """A session in use keeps its slot at least this long."""
    # --- profile zk08, which has KeepInSyncTime in replica_lag_time_max_ms
    leader_election_wait_ms: int = 3_000
    """How long a new leader waits for the members of the ISR before it opens (LeaderElectionWaitTime)."""
    preferred_replica_ms: int = 300
    """The head start of the preferred replica in an election (PreferredReplicaTime)."""


@dataclass(frozen=True, slots=True)
class ControllerConfig(NodeConfig):
    session_timeout_ms: int = 9_000
    default_partitions: int = 1
    default_replication_factor: int = 3
    min_insync_replicas: int = 1
    """The cluster's default; a topic's own setting wins."""
    unclean_leader_election: bool = False
    unclean_recovery_strategy: RecoveryStrategy = RecoveryStrategy.BALANCED
    unclean_recovery_window_ms: int = 2_000
    """Proactive recovery, and ElectLeaders of kind UNCLEAN: how long answers of replicas are waited for."""
    noop_interval_ms: int = 500
    producer_id_block: int = 1_000
    placement: Placement = Placement.FORMULA
    reassign_rule: ReassignRule = ReassignRule.D4
    auto_leader_rebalance: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    leader_imbalance_per_broker_percent: int = 10
    """Of the partitions that prefer a broker, how many others may lead before it takes them back."""
    quorum_election_timeout_ms: int = 1_000
    """How long without a leader before an election; chance adds up to as much again."""
    quorum_fetch_timeout_ms: int = 2_000
    """How long a follower believes in a leader that does not answer."""
    quorum_election_backoff_max_ms: int = 1_000
    quorum_request_timeout_ms: int = 2_000
    quorum_retry_backoff_ms: int = 20
    quorum_fetch_wait_max_ms: int = 500
    topic_defaults: dict[str, str] = field(default_factory=dict)
