"""Produce, DeleteRecords, InitProducerId and, from node to node, AllocateProducerIds."""

from __future__ import annotations

from operator import attrgetter

from kio.schema.errors import ErrorCode

from wrackline.broker.model import controller_messages as c
from wrackline.broker.model import messages as m
from wrackline.broker.wire.api import CLIENT, CONTROLLER, Api
from wrackline.broker.wire.declarations import Grouped, Location, Row, Since, message


def _refused_deletion(
    request: m.DeleteRecordsRequest, error: ErrorCode, _: str | None
) -> m.DeleteRecordsResponse:
    return m.DeleteRecordsResponse(
        tuple(m.DeleteRecordsResult(tp, error=error) for tp, _ in request.partitions)
    )


APIS = (
    Api(
        0,
        "Produce",
        clients=(3, 9),
        open_on=(CLIENT,),
        request=message(
            m.ProduceRequest,
            partitions=Grouped("topic_data", message(m.ProducePartition, lacking=("topic_id",))),
            zstd=Since(7),
        ),
        response=message(
            m.ProduceResponse,
            partitions=Grouped(
                "responses",
                message(
                    m.ProduceResult,
                    lacking=("current_leader", "topic_id"),
                    fixed={"log_append_time": None, "record_errors": ()},
                ),
            ),
        ),
    ),
    Api(
        21,
        "DeleteRecords",
        clients=(0, 2),
        open_on=(CLIENT,),
        request=message(m.DeleteRecordsRequest, partitions=Grouped("topics", Row(Location.TP, "offset"))),
        response=message(
            m.DeleteRecordsResponse, partitions=Grouped("topics", message(m.DeleteRecordsResult))
        ),
        refuse=_refused_deletion,
    ),
    Api(
        22,
        "InitProducerId",
        clients=(0, 4),
        open_on=(CLIENT,),
        request=message(m.InitProducerIdRequest),
        response=message(m.InitProducerIdResponse),
    ),
    Api(
        67,
        "AllocateProducerIds",
        peers=(0, 0),
        sent=0,
        nodes_on=(CONTROLLER,),
        speaks_for=attrgetter("broker_id"),
        request=message(c.AllocateProducerIdsRequest),
        response=message(c.AllocateProducerIdsResponse),
    ),
)
