"""What tests ask a node of a stage, as a client would."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.setting import T
from wrackline.simulator.guided.stage import Stage


def end_offset(stage: Stage, node: NodeId) -> int | None:
    """Returns the end offset that this node answers to a consumer; None when it answers with an error."""
    request = ListOffsetsRequest((ListOffsetsPartition(T, LATEST),), knows_offset_not_available=True)
    response = stage.world.asked(node, request)
    assert isinstance(response, ListOffsetsResponse)
    result = response.partitions[0]
    return result.offset if result.error is ErrorCode.none else None
