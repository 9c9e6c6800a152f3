"""Producer epochs of transactional ids are used up at their coordinators: some answers are asked for again,
others are final."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v3 import InitProducerIdRequest

from wrackline.fleets.base import Host
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.administration import Administrator
from wrackline.systems.base import DeployError, Node

NODES = tuple(Node(number, Host(f"n{number}", ""), frozenset({"broker"}), 9092) for number in (1, 2))


class Paper(Connection):
    address = "paper:9092"

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer

    def close(self) -> None: ...

    def request(self, payload: Any, _: Any) -> Any:
        return self._answer(payload)


class Coordinators:
    """Two nodes, of which one coordinates each id and counts its epochs. ``wrong``: what InitProducerId
    answers instead, one after the other."""

    def __init__(self, *wrong: ErrorCode | Exception, coordinator: int = 2) -> None:
        self.wrong, self.coordinator = list(wrong), coordinator
        self.epochs: dict[str, int] = {}
        self.asked: set[int] = set()

    @property
    def administrator(self) -> Administrator:
        return Administrator(NODES, lambda node, _: Paper(lambda payload: self._answer(node, payload)))

    def _answer(self, node: Node, payload: Any) -> Any:
        if not isinstance(payload, InitProducerIdRequest):
            return SimpleNamespace(error_code=ErrorCode.none, node_id=self.coordinator, error_message=None)
        self.asked.add(node.node_id)
        error = self.wrong.pop(0) if self.wrong else ErrorCode.none
        if isinstance(error, Exception):
            raise error
        name = str(payload.transactional_id)
        if error is ErrorCode.none:
            self.epochs[name] = self.epochs.get(name, -1) + 1
        return SimpleNamespace(
            error_code=error, producer_id=7, producer_epoch=self.epochs.get(name, -1), error_message=None
        )


def test_each_id_reaches_the_epoch_at_its_coordinator() -> None:
    cluster = Coordinators()
    cluster.administrator.use_epochs(["a", "b"], 41, timeout_s=20)
    assert cluster.epochs == {"a": 41, "b": 41}
    assert cluster.asked == {2}


@pytest.mark.parametrize(
    "wrong",
    [ProtocolError("silence"), ErrorCode.concurrent_transactions, ErrorCode.not_coordinator],
)
def test_what_passes_is_asked_again(wrong: ErrorCode | Exception) -> None:
    cluster = Coordinators(wrong, wrong)
    cluster.administrator.use_epochs(["a"], 3, timeout_s=20)
    assert cluster.epochs == {"a": 3}


def test_a_refusal_is_final_and_time_ends() -> None:
    refused = Coordinators(ErrorCode.transactional_id_authorization_failed)
    with pytest.raises(DeployError, match=r"refused: InitProducerId\(a\) .*authorization_failed"):
        refused.administrator.use_epochs(["a"], 3, timeout_s=20)
    with pytest.raises(DeployError, match=r"a: epoch \d+ of 10000000 after the whole time for it"):
        Coordinators().administrator.use_epochs(["a"], 10_000_000, timeout_s=0.2)
    with pytest.raises(DeployError, match="node 9 coordinates, and is none of the brokers"):
        Coordinators(coordinator=9).administrator.use_epochs(["a"], 3, timeout_s=5)
