"""Consumer groups and transactions, which are not served: one final error that every client shows at once.

A client that finds these APIs missing, or its connection closed over one, tries again for ever and says
nothing, so they are advertised and answered, here: no state is behind them, and the core has no part in it.
Which error ends a client was found by trying librdkafka, kcat, kafka-python, aiokafka and Kafka's Java
clients: most others count as passing, and it is tried again.

A consumer that is assigned its partitions is served, also with a ``group.id``. FindCoordinator names this
node for a group, since librdkafka asks it for every consumer. OffsetFetch says that nothing was committed,
since every client asks it where no start was given; ``auto.offset.reset`` then says where to begin. What
needs a group (to join one, to commit) is refused when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from kio.schema.errors import ErrorCode

from wrackline.broker.model.types import Endpoint
from wrackline.broker.wire.api import Range
from wrackline.broker.wire.schema import Entity

NO_GROUPS = "consumer groups are not served by this broker: assign the partitions instead of subscribing"
NO_TRANSACTIONS = "transactions are not served by this broker"
GROUP_ERROR = ErrorCode.group_authorization_failed
TRANSACTION_ERROR = ErrorCode.transactional_id_authorization_failed
NONE_COMMITTED = -1
"""As an offset in an answer to OffsetFetch."""
_TRANSACTION = 1
"""As the type of a coordinator's key."""


Values = Mapping[str, object]
"""Of a response, by the names of kio's fields in all versions; a structure is a mapping of such."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """An API behind which there is no state: it is refused, or answered with what is always true."""

    name: str
    versions: Range
    answer: Callable[[Entity, Endpoint], Values]
    """(request, this node) -> response"""


def _coordinator(request: Entity, me: Endpoint) -> Values:
    transaction = getattr(request, "key_type", 0) == _TRANSACTION
    result = {
        "error_code": TRANSACTION_ERROR if transaction else ErrorCode.none,
        "error_message": NO_TRANSACTIONS if transaction else None,
        "node_id": -1 if transaction else me.node_id,
        "host": "" if transaction else me.host,
        "port": -1 if transaction else me.port,
    }
    keys = getattr(request, "coordinator_keys", ())
    return {**result, "coordinators": tuple({"key": key, **result} for key in keys)}


def _refused(**rest: object) -> Callable[[Entity, Endpoint], Values]:
    return lambda _request, _me: {"error_code": GROUP_ERROR, **rest}


def _commit(request: Entity, _: Endpoint) -> Values:
    def refused(topic: Entity) -> Values:
        parts = (
            {"partition_index": part.partition_index, "error_code": GROUP_ERROR} for part in topic.partitions
        )
        return {"name": topic.name, "partitions": tuple(parts)}

    return {"topics": tuple(map(refused, request.topics))}


def _fetch_offsets(request: Entity, _: Endpoint) -> Values:
    """Answers that nothing was ever committed: -1, without an error, for each partition that is asked for."""
    none = {"committed_offset": NONE_COMMITTED, "metadata": "", "error_code": ErrorCode.none}

    def none_committed(topics: Iterable[Entity] | None) -> tuple[Values, ...]:
        return tuple(
            {
                "name": topic.name,
                "partitions": tuple({"partition_index": index, **none} for index in topic.partition_indexes),
            }
            for topic in topics or ()
        )

    groups = (
        {"group_id": group.group_id, "topics": none_committed(group.topics), "error_code": ErrorCode.none}
        for group in getattr(request, "groups", ())
    )
    return {
        "error_code": ErrorCode.none,
        "topics": none_committed(getattr(request, "topics", None)),
        "groups": tuple(groups),
    }


_JOINED = {"protocol_name": "", "leader": "", "member_id": "", "members": ()}
_HEARD = {"error_message": NO_GROUPS, "member_epoch": 0, "heartbeat_interval": timedelta(0)}

UNSERVED: Mapping[int, Unserved] = {
    8: Unserved("OffsetCommit", (2, 8), _commit),
    9: Unserved("OffsetFetch", (1, 8), _fetch_offsets),
    10: Unserved("FindCoordinator", (0, 4), _coordinator),
    11: Unserved("JoinGroup", (0, 9), _refused(**_JOINED)),
    12: Unserved("Heartbeat", (0, 4), _refused()),
    13: Unserved("LeaveGroup", (0, 5), _refused(members=())),
    14: Unserved("SyncGroup", (0, 5), _refused(assignment=b"")),
    68: Unserved("ConsumerGroupHeartbeat", (0, 1), _refused(**_HEARD)),
}
"""By API key. Brokers advertise them; controllers do not."""
