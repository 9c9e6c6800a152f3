"""Consumer groups and transactions, which are not served: one final error that every client shows at once.

A client that finds these APIs missing, or its connection closed over one, tries again for ever and says
nothing, so they are advertised and answered, here: no state is behind them, and the core has no part in it.
Which error ends a client was found by trying librdkafka, kcat, kafka-python, aiokafka and Kafka's Java
clients: most others count as passing, and it is tried again.

FindCoordinator names this node for a group, since librdkafka asks it for every consumer, also for one that is
assigned its partitions and has no use for a group; what needs a group is refused when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import Endpoint
from wrackline.broker.wire.api import Range
from wrackline.broker.wire.common import NO_THROTTLE
from wrackline.broker.wire.schema import Schema

NO_GROUPS = "consumer groups are not served by this broker: assign the partitions instead of subscribing"
NO_TRANSACTIONS = "transactions are not served by this broker"
GROUP_ERROR = ErrorCode.group_authorization_failed
TRANSACTION_ERROR = ErrorCode.transactional_id_authorization_failed
_TRANSACTION = 1
"""As the type of a coordinator's key."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """An API that is only ever refused."""

    name: str
    versions: Range
    answer: Callable[[Schema, Any, Endpoint], Any]
    """(schema of the response, request, this node) -> response"""


def _coordinator(schema: Schema, request: Any, me: Endpoint) -> Any:
    transaction = getattr(request, "key_type", 0) == _TRANSACTION
    found = {
        "error_code": TRANSACTION_ERROR if transaction else ErrorCode.none,
        "error_message": NO_TRANSACTIONS if transaction else None,
        "node_id": -1 if transaction else me.node_id,
        "host": "" if transaction else me.host,
        "port": -1 if transaction else me.port,
    }
    keys = getattr(request, "coordinator_keys", ())
    coordinators = tuple(schema.make("Coordinator", key=key, **found) for key in keys)
    return schema.make(
        "FindCoordinatorResponse", throttle_time=NO_THROTTLE, coordinators=coordinators, **found
    )


def _refused(kind: str, error: ErrorCode, **rest: object) -> Callable[[Schema, Any, Endpoint], Any]:
    return lambda schema, _request, _me: schema.make(
        kind, throttle_time=NO_THROTTLE, error_code=error, **rest
    )


def _commit(schema: Schema, request: Any, _: Endpoint) -> Any:
    """Also TxnOffsetCommit: their answers have the same form."""
    make, kind = schema.make, schema.root.__name__
    return make(
        kind,
        throttle_time=NO_THROTTLE,
        topics=tuple(
            make(
                f"{kind}Topic",
                name=topic.name,
                partitions=tuple(
                    make(f"{kind}Partition", partition_index=part.partition_index, error_code=GROUP_ERROR)
                    for part in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _fetch_offsets(schema: Schema, request: Any, _: Endpoint) -> Any:
    """The error of the whole answer is there since version 2; before it every partition has its own."""
    make = schema.make
    return make(
        "OffsetFetchResponse",
        throttle_time=NO_THROTTLE,
        error_code=GROUP_ERROR,
        topics=tuple(
            make(
                "OffsetFetchResponseTopic",
                name=topic.name,
                partitions=tuple(
                    make(
                        "OffsetFetchResponsePartition",
                        partition_index=index,
                        committed_offset=-1,
                        metadata="",
                        error_code=GROUP_ERROR,
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in getattr(request, "topics", None) or ()
        ),
        groups=tuple(
            make("OffsetFetchResponseGroup", group_id=group.group_id, topics=(), error_code=GROUP_ERROR)
            for group in getattr(request, "groups", ())
        ),
    )


_JOINED = {"protocol_name": "", "leader": "", "member_id": "", "members": ()}
_HEARD = {"error_message": NO_GROUPS, "member_epoch": 0, "heartbeat_interval": timedelta(0)}

UNSERVED: Mapping[int, Unserved] = {
    8: Unserved("OffsetCommit", (2, 8), _commit),
    9: Unserved("OffsetFetch", (1, 8), _fetch_offsets),
    10: Unserved("FindCoordinator", (0, 4), _coordinator),
    11: Unserved("JoinGroup", (0, 9), _refused("JoinGroupResponse", GROUP_ERROR, **_JOINED)),
    12: Unserved("Heartbeat", (0, 4), _refused("HeartbeatResponse", GROUP_ERROR)),
    13: Unserved("LeaveGroup", (0, 5), _refused("LeaveGroupResponse", GROUP_ERROR, members=())),
    14: Unserved("SyncGroup", (0, 5), _refused("SyncGroupResponse", GROUP_ERROR, assignment=b"")),
    68: Unserved(
        "ConsumerGroupHeartbeat", (0, 1), _refused("ConsumerGroupHeartbeatResponse", GROUP_ERROR, **_HEARD)
    ),
}
"""By API key. Brokers advertise them; controllers do not."""
