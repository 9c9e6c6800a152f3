"""A second reader of logs, for when the first one is contradicted: by plain Fetch requests to the leader, and
from a replica's files as they lie there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v4 import request as fetch_request
from kio.schema.fetch.v4 import response as fetch_response
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from wrackline.fleets.base import Fleet, FleetError
from wrackline.history.offsets import Offsets
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.base import DeployError, Node, Place
from wrackline.systems.batch_offsets import next_offset, offsets_in
from wrackline.systems.cluster_client import ClusterClient
from wrackline.systems.common.node_files import folders_with
from wrackline.systems.common.on_hosts import deploy_error, run_on

VERSION = 4
"""Of Fetch: the first with the newer batches, and the oldest that Apache Kafka 4 speaks."""
_FETCH = 1
_BYTES = 1 << 20
ASK_S = 10.0


def fetch_again(
    client: ClusterClient,
    nodes: Sequence[Node],
    place: Place,
    wanted: Offsets,
    *,
    committed: bool,
    timeout_s: float,
) -> Offsets:
    """Returns at which of the ``wanted`` offsets the leader gives a record. ``committed``: without those
    of aborted transactions. Raises DeployError."""
    name = f"{place[0]}-{place[1]}"
    deadline = time.monotonic() + timeout_s
    state = client.describe(timeout_s=ASK_S).partition(*place)
    leader = next((node for node in nodes if state is not None and node.node_id == state.leader), None)
    if leader is None:
        raise DeployError(f"{name} cannot be read again: it has no leader")
    result = Offsets()
    try:
        with client.connect(leader, ASK_S) as connection:
            if connection.newest(_FETCH, VERSION) < VERSION:
                raise DeployError(f"{name} cannot be read again: its leader does not know Fetch v{VERSION}")
            for first, last in wanted.intervals():
                for offset in _given(connection, place, first, last, committed, deadline):
                    if offset in wanted:
                        result.add(offset)
    except ProtocolError as error:
        raise DeployError(f"{name} cannot be read again: {error}") from error
    return result


def _given(
    connection: Connection, place: Place, first: int, last: int, committed: bool, deadline: float
) -> list[int]:
    """Offsets of the records between these two, and of some behind them. Raises ProtocolError."""
    result: list[int] = []
    at = first
    while at <= last:
        if time.monotonic() > deadline:
            raise ProtocolError(f"no time was left at offset {at}")
        answer = _fetch(connection, place, at, committed)
        if answer.error_code is ErrorCode.offset_out_of_range:
            break  # nothing is there: it was deleted, or never came
        if answer.error_code is not ErrorCode.none:
            raise ProtocolError(f"Fetch({place[0]}-{place[1]}) at offset {at}: {answer.error_code.name}")
        aborted: dict[int, list[int]] = {}
        for one in answer.aborted_transactions or () if committed else ():
            aborted.setdefault(int(one.producer_id), []).append(int(one.first_offset))
        data = bytes(answer.records or b"")
        given = [offset for offset in offsets_in(data, aborted) if offset >= at]
        result += given
        if (end := next_offset(data)) <= at:
            break
        at = end
    return result


def _fetch(connection: Connection, place: Place, at: int, committed: bool) -> Any:
    part = fetch_request.FetchPartition(
        partition=i32(place[1]), fetch_offset=i64(at), partition_max_bytes=i32(_BYTES)
    )
    request = fetch_request.FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=i32Timedelta.parse(timedelta(milliseconds=500)),
        min_bytes=i32(1),
        max_bytes=i32(_BYTES),
        isolation_level=i8(int(committed)),
        topics=(fetch_request.FetchTopic(topic=TopicName(place[0]), partitions=(part,)),),
    )
    for topic in connection.request(request, fetch_response.FetchResponse).responses:
        for result in topic.partitions:
            return result
    raise ProtocolError(f"Fetch to {connection.address}: the answer does not speak of {place[0]}")


def scan_again(fleet: Fleet, node: Node, place: Place) -> Offsets:
    """The offsets at which the node's own segments have records. Raises DeployError."""
    name = f"{place[0]}-{place[1]}"
    folders = " ".join(f"{folder}/{name}/*.log" for folder in folders_with(fleet, node, name))
    result = Offsets()
    try:
        remote = fleet.remote(node.host)
        for file in run_on(fleet, node, f"ls {folders}").stdout.split():
            for offset in offsets_in(remote.get(file)):
                result.add(offset)
    except (FleetError, IndexError) as error:
        what = f"read the log of {name} again"
        raise deploy_error(node, what, str(error), "see that the replica is on this host") from error
    return result
