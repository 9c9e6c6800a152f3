"""Produce, DeleteRecords, InitProducerId and, from node to node, AllocateProducerIds."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import controller as c
from wrackline.broker.model.messages import requests as m
from wrackline.broker.wire.api import api, client_access, node_access
from wrackline.broker.wire.translation.declarations import Items, RowKey, Rows, SinceVersion, message


def _refusal(request: m.DeleteRecordsRequest, error: ErrorCode, _: str | None) -> m.DeleteRecordsResponse:
    results = (m.DeleteRecordsResult(tp, error=error) for tp, _ in request.partitions)
    return m.DeleteRecordsResponse(tuple(results))


_PRODUCE_RESULT = message(
    m.ProduceResult,
    missing=("current_leader", "topic_id"),
    constants={"log_append_time": None, "record_errors": ()},
)

APIS = (
    api(
        0,
        "Produce",
        client_access(3, 9),
        request=message(
            m.ProduceRequest,
            partitions=Rows("topic_data", message(m.ProducePartition, missing=("topic_id",))),
            zstd=SinceVersion(7),
        ),
        response=message(m.ProduceResponse, partitions=Rows("responses", _PRODUCE_RESULT)),
    ),
    api(
        21,
        "DeleteRecords",
        client_access(0, 2),
        request=message(m.DeleteRecordsRequest, partitions=Rows("topics", Items(RowKey.TP, "offset"))),
        response=message(m.DeleteRecordsResponse, partitions="topics"),
        refuse=_refusal,
    ),
    api(22, "InitProducerId", client_access(0, 4), m.InitProducerIdRequest, m.InitProducerIdResponse),
    api(
        67,
        "AllocateProducerIds",
        node_access(0, "broker_id"),
        request=c.AllocateProducerIdsRequest,
        response=c.AllocateProducerIdsResponse,
    ),
)
