"""Produce, DeleteRecords, InitProducerId and, from node to node, AllocateProducerIds."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import controller as c
from wrackline.broker.model.messages import requests as m
from wrackline.broker.wire.api import api, of_clients, of_nodes
from wrackline.broker.wire.declarations import Grouped, Location, Row, Since, message


def _refused(request: m.DeleteRecordsRequest, error: ErrorCode, _: str | None) -> m.DeleteRecordsResponse:
    results = (m.DeleteRecordsResult(tp, error=error) for tp, _ in request.partitions)
    return m.DeleteRecordsResponse(tuple(results))


_PRODUCED = message(
    m.ProduceResult,
    lacking=("current_leader", "topic_id"),
    fixed={"log_append_time": None, "record_errors": ()},
)

APIS = (
    api(
        0,
        "Produce",
        of_clients(3, 9),
        request=message(
            m.ProduceRequest,
            partitions=Grouped("topic_data", message(m.ProducePartition, lacking=("topic_id",))),
            zstd=Since(7),
        ),
        response=message(m.ProduceResponse, partitions=Grouped("responses", _PRODUCED)),
    ),
    api(
        21,
        "DeleteRecords",
        of_clients(0, 2),
        request=message(m.DeleteRecordsRequest, partitions=Grouped("topics", Row(Location.TP, "offset"))),
        response=message(m.DeleteRecordsResponse, partitions="topics"),
        refuse=_refused,
    ),
    api(22, "InitProducerId", of_clients(0, 4), m.InitProducerIdRequest, m.InitProducerIdResponse),
    api(
        67,
        "AllocateProducerIds",
        of_nodes(0, "broker_id"),
        request=c.AllocateProducerIdsRequest,
        response=c.AllocateProducerIdsResponse,
    ),
)
