"""A broker notices that the controller it has asked is not in charge."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.uplink import not_in_charge
from wrackline.broker.model.messages.controller import AlterPartitionRequest, BrokerHeartbeatRequest
from wrackline.broker.model.messages.metadata import (
    CreatedTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    NewTopic,
)
from wrackline.broker.model.messages.requests import Refused, Request
from wrackline.broker.wire.refusals import expand


@pytest.mark.parametrize(
    "request_",
    [
        BrokerHeartbeatRequest(1, 1, 1, False, False),
        AlterPartitionRequest(1, 1, ()),
        CreateTopicsRequest((NewTopic("t"),), 1_000),
        DeleteTopicsRequest(("t",), 1_000),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_refusal_is_understood_before_and_after_the_wire(request_: Request) -> None:
    for error, moves_on in ((ErrorCode.not_controller, True), (ErrorCode.request_timed_out, False)):
        refused = Refused(error, "somebody else leads")
        assert not_in_charge(refused) is moves_on
        assert not_in_charge(expand(request_, refused)) is moves_on


def test_an_answer_is_no_refusal() -> None:
    assert not not_in_charge(CreateTopicsResponse((CreatedTopic("t"),)))
