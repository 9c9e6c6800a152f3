"""Registration, sessions and the heartbeat state table of the controller
(docs/protocol.md 2.7, K04-K08, C14, C15)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from uuid import UUID

from wrackline.broker.model.metadata.image import BrokerImage
from wrackline.broker.model.types import NodeId
from wrackline.broker.model.values import dataclass


class BrokerState(Enum):
    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    SHUTDOWN_NOW = "shutdown-now"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One heartbeat and what the controller knows of its sender."""

    state: BrokerState
    want_fence: bool
    want_shut_down: bool
    caught_up: bool
    leads: bool
    """Leads at least one partition."""
    shutdown_offset: int
    """Of the record that began the controlled shutdown."""
    lowest_active_offset: int | None
    """What the slowest active broker has applied; None when no broker is active."""


class RegistrationRules:
    def is_clean(self, previous_epoch: int, registered_epoch: int) -> bool:
        """Clean registration: only the epoch of the registration it replaces proves a clean shutdown (C14),
        since a file that is merely there may be older (bug B29). After an unclean one
        ``broker/core/controller/decisions/brokers.py::Brokers.register`` takes the broker out of every ISR
        and ELR."""
        return previous_epoch >= 0 and previous_epoch == registered_epoch

    def stays_in_isr(self, existing: BrokerImage, *, clean: bool) -> bool:
        """A life that was a member when ZooKeeper was in charge, and has gone on since: it has all that it
        had, and its first registration changes nothing. Others leave the ISR, and come back by their
        leader's decision."""
        return clean and existing.from_zookeeper

    def same_uptime(self, existing: BrokerImage, incarnation: UUID) -> bool:
        """A repeated registration of one incarnation keeps its epoch (KAFKA-16952)."""
        return existing.incarnation == incarnation

    def may_replace(self, existing: BrokerImage, session_valid: bool) -> bool:
        """May a new incarnation take over? Not while the old one may still lead (R12, C15, error 101).

        In controlled shutdown it is out of every ISR already (KAFKA-19047).
        """
        return existing.fenced or existing.in_controlled_shutdown or not session_valid

    def has_right_epoch(self, broker: BrokerImage | None, epoch: int) -> bool:
        """Refuses requests of an earlier uptime (I11, K05)."""
        return broker is not None and broker.epoch == epoch

    def expired(self, last_contact_ms: float, now_ms: float, timeout_ms: int) -> bool:
        """The very sum a timer is set to: another way to write it may round to just before."""
        return now_ms >= last_contact_ms + timeout_ms

    def contact_at_takeover(self, now_ms: float, leader_heard_ms: float | None, timeout_ms: int) -> float:
        """Returns what a controller that begins to lead takes for the last contact of every unfenced broker:
        it knows none. All of them may have been there when the former leader was last heard (None: it never
        was), so the time without a controller counts, else a broker that dies together with the active
        controller would be missed twice as long. At least half a session is left for the others to find this
        one."""
        if leader_heard_ms is None:
            return now_ms
        return max(leader_heard_ms, now_ms - timeout_ms / 2)

    def to_fence(self, stale: Iterable[tuple[float, NodeId]]) -> tuple[NodeId, ...]:
        """Returns, of (last contact, broker), the one silent for longest, and no other in this event, so that
        each fencing sees the effect of the one before (R36, KAFKA-13173)."""
        return tuple(broker for _, broker in sorted(stale)[:1])

    def next_state(self, beat: Heartbeat) -> BrokerState:
        """Returns the broker's state after a heartbeat (docs/protocol.md 2.7.5)."""
        match beat.state:
            case BrokerState.FENCED:
                if beat.want_shut_down:
                    return BrokerState.SHUTDOWN_NOW
                ready = beat.caught_up and not beat.want_fence
                return BrokerState.UNFENCED if ready else BrokerState.FENCED
            case BrokerState.UNFENCED:
                if beat.want_fence:
                    return BrokerState.SHUTDOWN_NOW if beat.want_shut_down else BrokerState.FENCED
                if beat.want_shut_down:
                    return BrokerState.CONTROLLED_SHUTDOWN if beat.leads else BrokerState.SHUTDOWN_NOW
                return BrokerState.UNFENCED
            case BrokerState.CONTROLLED_SHUTDOWN:
                return self._shutting_down(beat)
            case BrokerState.SHUTDOWN_NOW:
                return BrokerState.SHUTDOWN_NOW

    def _shutting_down(self, beat: Heartbeat) -> BrokerState:
        """Returns the state of a broker in controlled shutdown: it may go once it leads nothing and every
        active broker knows who leads instead."""
        known = beat.lowest_active_offset is None or beat.lowest_active_offset >= beat.shutdown_offset
        return BrokerState.SHUTDOWN_NOW if known and not beat.leads else BrokerState.CONTROLLED_SHUTDOWN
