"""The level of the metadata at the controllers: the first one, what each of them supports, another level
(KIP-584, KIP-778, KIP-919; docs/rolling-upgrades.md).

A broker says in its registration which levels it supports, and the log keeps that. A controller tells the
active one, which only remembers it: what a node must know before the level is raised cannot rest on a record
that former versions do not know. The next active controller is told anew.
"""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.partitions import change
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Effect, Send
from wrackline.broker.model.messages.admin import UpdateFeaturesRequest, UpdateFeaturesResponse
from wrackline.broker.model.messages.controller import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.metadata.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.model.metadata.records import FeatureLevelRecord
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.placement.features import ClusterLevels

REGISTRATION = "controller-registration"
"""Timer and channel."""
_FIRST_CORRELATION = 1 << 40
"""Apart from the questions of the quorum and of recovery."""
_RETRY_MS = 500.0


def write_first_level(draft: Draft) -> None:
    """The first active controller of a cluster begins with the highest level that it supports. A log that
    has anything in it and no level is left as it is."""
    image = draft.image
    if image.level is None and not (image.brokers or image.topics_by_name or image.configs):
        draft.add(FeatureLevelRecord(METADATA_VERSION, draft.profile.levels.highest))


def update_features(draft: Draft, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    voters = [endpoint.node_id for endpoint in draft.config.controllers]
    now = ClusterLevels(
        draft.image.level,
        {broker.id: broker.levels for broker in draft.image.brokers.values()},
        {voter: draft.controllers.get(voter, NOT_SAID) for voter in voters},
        _remembered(draft),
    )
    for expected in request.updates:
        if why := draft.rules.features.refusal(expected, now):
            return UpdateFeaturesResponse(ErrorCode.invalid_update_version, why)
    for expected in () if request.validate_only else request.updates:
        if expected.level != draft.image.level:
            draft.add(FeatureLevelRecord(expected.name, expected.level))
            _reconsider_leaderless(draft)
    return UpdateFeaturesResponse()


def _reconsider_leaderless(draft: Draft) -> None:
    """Reconsiders leaderless partitions by the rules of the new level, in the same batch. With ELR, a member
    that stood in the ISR because it was the last, and is down, is in the ELR from here on."""
    acceptable = draft.active_brokers()
    for partition in list(draft.image.partitions()):
        if partition.leader == NO_LEADER:
            isr = tuple(member for member in partition.isr if member in acceptable)
            change(draft, partition, isr, acceptable)


def _remembered(draft: Draft) -> str:
    for one in draft.image.partitions():
        if one.elr or one.last_known_elr:
            return f"{one.tp} has the ELR {list(one.elr)} and the LastKnownELR {list(one.last_known_elr)}"
    return ""


class ControllerLevels:
    """The levels that every controller supports, as the active one knows them; a standby reports its own."""

    def __init__(self, config: ControllerConfig, levels: Levels) -> None:
        self._config = config
        self._mine = levels
        self._told: tuple[NodeId, int] | None = None
        """The leader, in its epoch, that knows of us, or is being told."""
        self._not_before_ms = 0.0
        self._correlation = _FIRST_CORRELATION
        self.known: dict[NodeId, Levels] = {}
        """By controller."""

    def begin(self) -> None:
        """This controller becomes the active one."""
        self.known = {self._config.node_id: self._mine}

    def heard(self, request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        self.known[request.controller_id] = request.levels
        return ControllerRegistrationResponse()

    def tell(self, leader: NodeId, epoch: int, incarnation: UUID, now_ms: float) -> list[Effect]:
        """Tell the leader of the quorum, once in each of its epochs."""
        me = self._config.node_id
        if leader in (NO_LEADER, me) or self._told == (leader, epoch) or now_ms < self._not_before_ms:
            return []
        self._told = (leader, epoch)
        self._correlation += 1
        request = ControllerRegistrationRequest(
            me, incarnation, self._config.host, self._config.port, self._mine
        )
        timeout_ms = self._config.quorum_request_timeout_ms
        return [Send(self._correlation, leader, REGISTRATION, request, timeout_ms)]

    def is_mine(self, correlation: int) -> bool:
        return correlation >= _FIRST_CORRELATION

    def answered(self, response: Response | None, now_ms: float) -> None:
        """Takes the answer to a report of levels; it is repeated with the next event after a while, since a
        follower of the quorum has many."""
        if not isinstance(response, ControllerRegistrationResponse) or response.error is not NO_ERROR:
            self._told, self._not_before_ms = None, now_ms + _RETRY_MS
