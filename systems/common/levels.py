"""The level of a feature, as a cluster has it and as an administrator changes it (KIP-584)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1 import request as update_request
from kio.schema.update_features.v1 import response as update_response
from kio.static.primitive import i16, i32Timedelta

from wrackline.systems.base import Node
from wrackline.systems.common.queries import features_of
from wrackline.systems.insisting import NotNow, insist
from wrackline.systems.protocol import Connection

_PASSING = (ErrorCode.not_controller, ErrorCode.request_timed_out, ErrorCode.coordinator_load_in_progress)


class KafkaLevels:
    """Of a cluster that keeps them in its metadata log. Every error is a DeployError. Safe to use from
    several threads."""

    def __init__(self, brokers: Sequence[Node], connect: Callable[[Node, float], Connection]) -> None:
        self._brokers = tuple(brokers)
        self._connect = connect

    def levels(self, *, timeout_s: float) -> Mapping[str, int]:
        return features_of(self._brokers, self._connect, timeout_s)

    def raise_level(self, feature: str, level: int, *, timeout_s: float) -> str:
        def ask(connection: Connection) -> str:
            return _asked(connection, feature, level)

        return insist(f"{feature}={level}", self._brokers, self._connect, ask, timeout_s)


def _asked(connection: Connection, feature: str, level: int) -> str:
    """The refusal, in the cluster's words; empty: it is done. Raises NotNow."""
    update = update_request.FeatureUpdateKey(feature=feature, max_version_level=i16(level))
    answer = connection.request(
        update_request.UpdateFeaturesRequest(
            timeout=i32Timedelta.parse(timedelta(seconds=5)), feature_updates=(update,)
        ),
        update_response.UpdateFeaturesResponse,
    )
    said = [(answer.error_code, answer.error_message)]
    said += [(one.error_code, one.error_message) for one in answer.results]
    for error, message in said:
        if error in _PASSING:
            raise NotNow(f"{error.name}: {message}")
        if error is not ErrorCode.none:
            return f"{error.name}: {message}"
    return ""
