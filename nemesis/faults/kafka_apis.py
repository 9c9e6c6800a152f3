"""Kafka's requests by name, with the keys by which they are known on the wire."""

from __future__ import annotations

from enum import StrEnum


class Api(StrEnum):
    """Kafka's name of a request."""

    key: int
    """The two bytes behind a request's length."""

    def __new__(cls, name: str, key: int) -> Api:
        member = str.__new__(cls, name)
        member._value_ = name
        member.key = key
        return member

    PRODUCE = "Produce", 0
    FETCH = "Fetch", 1
    LIST_OFFSETS = "ListOffsets", 2
    METADATA = "Metadata", 3
    LEADER_AND_ISR = "LeaderAndIsr", 4
    STOP_REPLICA = "StopReplica", 5
    UPDATE_METADATA = "UpdateMetadata", 6
    CONTROLLED_SHUTDOWN = "ControlledShutdown", 7
    OFFSET_COMMIT = "OffsetCommit", 8
    OFFSET_FETCH = "OffsetFetch", 9
    FIND_COORDINATOR = "FindCoordinator", 10
    JOIN_GROUP = "JoinGroup", 11
    HEARTBEAT = "Heartbeat", 12
    LEAVE_GROUP = "LeaveGroup", 13
    SYNC_GROUP = "SyncGroup", 14
    DESCRIBE_GROUPS = "DescribeGroups", 15
    LIST_GROUPS = "ListGroups", 16
    SASL_HANDSHAKE = "SaslHandshake", 17
    API_VERSIONS = "ApiVersions", 18
    CREATE_TOPICS = "CreateTopics", 19
    DELETE_TOPICS = "DeleteTopics", 20
    DELETE_RECORDS = "DeleteRecords", 21
    INIT_PRODUCER_ID = "InitProducerId", 22
    OFFSET_FOR_LEADER_EPOCH = "OffsetForLeaderEpoch", 23
    ADD_PARTITIONS_TO_TXN = "AddPartitionsToTxn", 24
    ADD_OFFSETS_TO_TXN = "AddOffsetsToTxn", 25
    END_TXN = "EndTxn", 26
    WRITE_TXN_MARKERS = "WriteTxnMarkers", 27
    TXN_OFFSET_COMMIT = "TxnOffsetCommit", 28
    DESCRIBE_ACLS = "DescribeAcls", 29
    CREATE_ACLS = "CreateAcls", 30
    DELETE_ACLS = "DeleteAcls", 31
    DESCRIBE_CONFIGS = "DescribeConfigs", 32
    ALTER_CONFIGS = "AlterConfigs", 33
    ALTER_REPLICA_LOG_DIRS = "AlterReplicaLogDirs", 34
    DESCRIBE_LOG_DIRS = "DescribeLogDirs", 35
    SASL_AUTHENTICATE = "SaslAuthenticate", 36
    CREATE_PARTITIONS = "CreatePartitions", 37
    CREATE_DELEGATION_TOKEN = "CreateDelegationToken", 38
    RENEW_DELEGATION_TOKEN = "RenewDelegationToken", 39
    EXPIRE_DELEGATION_TOKEN = "ExpireDelegationToken", 40
    DESCRIBE_DELEGATION_TOKEN = "DescribeDelegationToken", 41
    DELETE_GROUPS = "DeleteGroups", 42
    ELECT_LEADERS = "ElectLeaders", 43
    INCREMENTAL_ALTER_CONFIGS = "IncrementalAlterConfigs", 44
    ALTER_PARTITION_REASSIGNMENTS = "AlterPartitionReassignments", 45
    LIST_PARTITION_REASSIGNMENTS = "ListPartitionReassignments", 46
    OFFSET_DELETE = "OffsetDelete", 47
    DESCRIBE_CLIENT_QUOTAS = "DescribeClientQuotas", 48
    ALTER_CLIENT_QUOTAS = "AlterClientQuotas", 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = "DescribeUserScramCredentials", 50
    ALTER_USER_SCRAM_CREDENTIALS = "AlterUserScramCredentials", 51
    VOTE = "Vote", 52
    BEGIN_QUORUM_EPOCH = "BeginQuorumEpoch", 53
    END_QUORUM_EPOCH = "EndQuorumEpoch", 54
    DESCRIBE_QUORUM = "DescribeQuorum", 55
    ALTER_PARTITION = "AlterPartition", 56
    UPDATE_FEATURES = "UpdateFeatures", 57
    ENVELOPE = "Envelope", 58
    FETCH_SNAPSHOT = "FetchSnapshot", 59
    DESCRIBE_CLUSTER = "DescribeCluster", 60
    DESCRIBE_PRODUCERS = "DescribeProducers", 61
    BROKER_REGISTRATION = "BrokerRegistration", 62
    BROKER_HEARTBEAT = "BrokerHeartbeat", 63
    UNREGISTER_BROKER = "UnregisterBroker", 64
    DESCRIBE_TRANSACTIONS = "DescribeTransactions", 65
    LIST_TRANSACTIONS = "ListTransactions", 66
    ALLOCATE_PRODUCER_IDS = "AllocateProducerIds", 67
    CONSUMER_GROUP_HEARTBEAT = "ConsumerGroupHeartbeat", 68
    CONSUMER_GROUP_DESCRIBE = "ConsumerGroupDescribe", 69
    CONTROLLER_REGISTRATION = "ControllerRegistration", 70
    GET_TELEMETRY_SUBSCRIPTIONS = "GetTelemetrySubscriptions", 71
    PUSH_TELEMETRY = "PushTelemetry", 72
    ASSIGN_REPLICAS_TO_DIRS = "AssignReplicasToDirs", 73
    LIST_CONFIG_RESOURCES = "ListConfigResources", 74
    DESCRIBE_TOPIC_PARTITIONS = "DescribeTopicPartitions", 75
    SHARE_GROUP_HEARTBEAT = "ShareGroupHeartbeat", 76
    SHARE_GROUP_DESCRIBE = "ShareGroupDescribe", 77
    SHARE_FETCH = "ShareFetch", 78
    SHARE_ACKNOWLEDGE = "ShareAcknowledge", 79
    ADD_RAFT_VOTER = "AddRaftVoter", 80
    REMOVE_RAFT_VOTER = "RemoveRaftVoter", 81
    UPDATE_RAFT_VOTER = "UpdateRaftVoter", 82
    INITIALIZE_SHARE_GROUP_STATE = "InitializeShareGroupState", 83
    READ_SHARE_GROUP_STATE = "ReadShareGroupState", 84
    WRITE_SHARE_GROUP_STATE = "WriteShareGroupState", 85
    DELETE_SHARE_GROUP_STATE = "DeleteShareGroupState", 86
    READ_SHARE_GROUP_STATE_SUMMARY = "ReadShareGroupStateSummary", 87
    STREAMS_GROUP_HEARTBEAT = "StreamsGroupHeartbeat", 88
    STREAMS_GROUP_DESCRIBE = "StreamsGroupDescribe", 89
    DESCRIBE_SHARE_GROUP_OFFSETS = "DescribeShareGroupOffsets", 90
    ALTER_SHARE_GROUP_OFFSETS = "AlterShareGroupOffsets", 91
    DELETE_SHARE_GROUP_OFFSETS = "DeleteShareGroupOffsets", 92
