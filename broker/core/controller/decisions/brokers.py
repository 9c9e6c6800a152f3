"""Brokers come and go: registration, heartbeats, sessions (docs/protocol.md 2.7, K04-K08, R09-R15)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.partitions import elect_leaderless, led_by, remove_broker
from wrackline.broker.model.messages.admin import UnregisterBrokerRequest, UnregisterBrokerResponse
from wrackline.broker.model.messages.controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from wrackline.broker.model.metadata.image import BrokerImage, PartitionImage
from wrackline.broker.model.metadata.records import (
    BrokerRegistrationChangeRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import NO_ERROR
from wrackline.broker.rules.leadership.registration import BrokerState, Heartbeat


@dataclass(slots=True)
class Session:
    """The facts on a broker that the controller remembers and does not write to the log."""

    broker_epoch: int
    last_contact_ms: float
    metadata_offset: int = -1
    shutdown_offset: int = -1


class Brokers:
    def __init__(self) -> None:
        self._sessions: dict[NodeId, Session] = {}

    def start_sessions(self, draft: Draft, now_ms: float, leader_heard_ms: float | None) -> None:
        """A controller that begins to lead knows no contact times."""
        contact_ms = draft.rules.registration.contact_at_takeover(
            now_ms, leader_heard_ms, draft.config.session_timeout_ms
        )
        self._sessions = {
            broker.id: Session(broker.epoch, contact_ms, shutdown_offset=draft.next_offset - 1)
            for broker in draft.image.brokers.values()
            if not broker.fenced
        }

    def next_expiry_ms(self, draft: Draft) -> float | None:
        """When the first unfenced broker falls silent for too long, if it stays silent."""
        contacts = [last_contact_ms for last_contact_ms, _ in self._watched(draft)]
        return min(contacts) + draft.config.session_timeout_ms if contacts else None

    def expire(self, draft: Draft, now_ms: float) -> None:
        """Fence the stalest broker, if one is stale at all."""
        timeout_ms = draft.config.session_timeout_ms
        rules = draft.rules.registration
        stale = [seen for seen in self._watched(draft) if rules.expired(seen[0], now_ms, timeout_ms)]
        result = list(draft.image.partitions())
        for broker in rules.to_fence(stale):
            stale_view = draft.rules.switches.fences_from_stale_image
            partitions = result if stale_view else list(draft.image.partitions())
            self._fence(draft, draft.image.brokers[broker], partitions)

    def _watched(self, draft: Draft) -> Iterator[tuple[float, NodeId]]:
        for broker, session in self._sessions.items():
            known = draft.image.brokers.get(broker)
            if known is not None and not known.fenced:
                yield session.last_contact_ms, broker

    # --- registration ------------------------------------------------------------------------------------

    def register(
        self, draft: Draft, request: BrokerRegistrationRequest, now_ms: float
    ) -> BrokerRegistrationResponse:
        if request.cluster_id != draft.config.cluster_id:
            return BrokerRegistrationResponse(ErrorCode.inconsistent_cluster_id)
        if not draft.rules.features.may_register(draft.image.level, request.levels):
            return BrokerRegistrationResponse(ErrorCode.unsupported_version)
        rules = draft.rules.registration
        existing = draft.image.brokers.get(request.broker_id)
        if existing is not None and rules.same_uptime(existing, request.incarnation_id):
            return self._amend(draft, request, existing, now_ms)
        if existing is not None:
            if not rules.may_replace(existing, self._session_valid(draft, existing, now_ms)):
                return BrokerRegistrationResponse(ErrorCode.duplicate_broker_registration)
            clean = rules.is_clean(request.previous_broker_epoch, existing.epoch)
            leaves = draft.rules.switches.registration_leaves_isr
            if leaves and not rules.stays_in_isr(existing, clean=clean):
                remove_broker(draft, existing.id, unclean=not clean)
        elif draft.image.zk_migration:
            # It was not there when the controller took over, and may be a member still.
            remove_broker(draft, request.broker_id, unclean=True)
        epoch = draft.next_offset
        draft.add(_register_record(request, epoch))
        self._sessions[request.broker_id] = Session(epoch, now_ms)
        return BrokerRegistrationResponse(NO_ERROR, epoch)

    def _amend(
        self, draft: Draft, request: BrokerRegistrationRequest, existing: BrokerImage, now_ms: float
    ) -> BrokerRegistrationResponse:
        self._touch(existing, now_ms, -1)
        known = (existing.host, existing.port, existing.replication_port, existing.rack)
        if (request.host, request.port, request.replication_port, request.rack) != known:
            draft.add(
                _register_record(
                    request,
                    existing.epoch,
                    fenced=existing.fenced,
                    in_controlled_shutdown=existing.in_controlled_shutdown,
                )
            )
        return BrokerRegistrationResponse(NO_ERROR, existing.epoch)

    def _session_valid(self, draft: Draft, broker: BrokerImage, now_ms: float) -> bool:
        session = self._sessions.get(broker.id)
        return session is not None and not draft.rules.registration.expired(
            session.last_contact_ms, now_ms, draft.config.session_timeout_ms
        )

    # --- heartbeats --------------------------------------------------------------------------------------

    def heartbeat(
        self, draft: Draft, request: BrokerHeartbeatRequest, now_ms: float
    ) -> BrokerHeartbeatResponse:
        rules = draft.rules.registration
        broker = draft.image.brokers.get(request.broker_id)
        if broker is None or not rules.has_right_epoch(broker, request.broker_epoch):
            return BrokerHeartbeatResponse(ErrorCode.stale_broker_epoch)
        session = self._touch(broker, now_ms, request.current_metadata_offset)
        caught_up = request.current_metadata_offset >= broker.registration_offset
        beat = Heartbeat(
            state=_state(broker),
            want_fence=request.want_fence,
            want_shut_down=request.want_shut_down,
            caught_up=caught_up,
            leads=next(led_by(draft, broker.id), None) is not None,
            shutdown_offset=session.shutdown_offset,
            lowest_active_offset=self._lowest_active_offset(draft),
        )
        after = rules.next_state(beat)
        if after is not beat.state:
            self._enter(draft, broker, after, session)
        return BrokerHeartbeatResponse(
            NO_ERROR,
            is_caught_up=caught_up,
            is_fenced=after in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
            should_shut_down=after is BrokerState.SHUTDOWN_NOW,
        )

    def _enter(self, draft: Draft, broker: BrokerImage, state: BrokerState, session: Session) -> None:
        match state:
            case BrokerState.UNFENCED:
                draft.add(BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=False))
                elect_leaderless(draft, broker.id)
            case BrokerState.CONTROLLED_SHUTDOWN:
                draft.add(
                    BrokerRegistrationChangeRecord(broker.id, broker.epoch, in_controlled_shutdown=True)
                )
                remove_broker(draft, broker.id)
                session.shutdown_offset = draft.next_offset - 1
            case BrokerState.FENCED | BrokerState.SHUTDOWN_NOW:
                self._fence(draft, broker)

    def _fence(
        self, draft: Draft, broker: BrokerImage, partitions: Iterable[PartitionImage] | None = None
    ) -> None:
        """First out of leadership and ISR, then fenced: so no fenced broker is ever in an ISR (I14)."""
        remove_broker(draft, broker.id, partitions=partitions)
        if not broker.fenced:
            draft.add(BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=True))

    def _lowest_active_offset(self, draft: Draft) -> int | None:
        offsets = [
            self._sessions[broker].metadata_offset if broker in self._sessions else -1
            for broker in draft.active_brokers()
        ]
        return min(offsets, default=None)

    def _touch(self, broker: BrokerImage, now_ms: float, metadata_offset: int) -> Session:
        session = self._sessions.get(broker.id)
        if session is None or session.broker_epoch != broker.epoch:
            session = self._sessions[broker.id] = Session(broker.epoch, now_ms)
        session.last_contact_ms = now_ms
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        return session


def unregister(draft: Draft, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    """Unregisters a broker for good: whoever comes back under this id has proved nothing about its logs, so
    it leaves the ELR too."""
    broker = draft.image.brokers.get(request.broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            ErrorCode.broker_id_not_registered, f"broker {request.broker_id} is not registered"
        )
    if not broker.fenced:
        return UnregisterBrokerResponse(
            ErrorCode.invalid_request, f"broker {broker.id} is running; stop it first"
        )
    remove_broker(draft, broker.id, unclean=True)
    draft.add(UnregisterBrokerRecord(broker.id, broker.epoch))
    return UnregisterBrokerResponse()


def allocate_producer_ids(draft: Draft, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """A block that nobody else gets: it is in the log before the reply leaves."""
    broker = draft.image.brokers.get(request.broker_id)
    if not draft.rules.registration.has_right_epoch(broker, request.broker_epoch):
        return AllocateProducerIdsResponse(ErrorCode.stale_broker_epoch)
    start, length = draft.image.next_producer_id, draft.config.producer_id_block
    draft.add(ProducerIdsRecord(request.broker_id, request.broker_epoch, start + length))
    return AllocateProducerIdsResponse(NO_ERROR, start, length)


def _state(broker: BrokerImage) -> BrokerState:
    if broker.fenced:
        return BrokerState.FENCED
    return BrokerState.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else BrokerState.UNFENCED


def _register_record(
    request: BrokerRegistrationRequest,
    epoch: int,
    *,
    fenced: bool = True,
    in_controlled_shutdown: bool = False,
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        host=request.host,
        port=request.port,
        rack=request.rack,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        metadata_versions=tuple(request.levels),
        replication_port=request.replication_port,
    )
