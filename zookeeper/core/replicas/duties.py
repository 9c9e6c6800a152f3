"""The duties that only a leader has: the preferred replica, reassigned partitions, replicas that come and
go (docs/protocol.md Z38, Z41, Z53, Z54)."""

from __future__ import annotations

from collections.abc import Callable

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Delete, Outcome, Set
from wrackline.broker.model.types import NodeId
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.replicas.leading import Leading
from wrackline.zookeeper.core.replicas.local import Local, Phase, Terms
from wrackline.zookeeper.core.view import View
from wrackline.zookeeper.core.znodes import StateRequest
from wrackline.zookeeper.rules import RACE

_AGAIN_MS = 100.0
Resign = Callable[[Local, str, Delete | None], None]


def _nothing(local: Local, why: str, then: Delete | None) -> None:
    del local, why, then


class Duties:
    def __init__(self, ctx: Context, coordination: Coordination, view: View, leading: Leading) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._terms = Terms(ctx, coordination)
        self._view = view
        self._leading = leading
        self.resign: Resign = _nothing
        """Give the leadership away: delete the leader's node, and then what is named."""

    def begin(self, local: Local) -> None:
        """The partition is open: set the watches that only a leader has, and tell replicas that are not
        assigned any more."""
        tp, term = local.replica.tp, local.term
        self._coordination.drop(znodes.reassigned(tp))
        self._coordination.keep(znodes.reassigned(tp), lambda answer: self._target(local, term, answer))
        known = self._view.of(tp)
        for node in () if known is None else known.states:
            if node not in local.replica.replicas:
                self._leading.request(local, node, StateRequest.REPLICA_UNASSIGNED)

    def end(self, local: Local) -> None:
        self._coordination.drop(znodes.reassigned(local.replica.tp))

    def replicas_changed(self, local: Local, replicas: tuple[NodeId, ...]) -> None:
        """The replica-change listener: an administrator has assigned others."""
        if local.phase is not Phase.LEADING or local.yielding or replicas == local.assigned:
            return
        before, local.assigned = local.replica.replicas, replicas
        self._leading.retarget(local, local.target)
        self._tell(local, before)

    def _target(self, local: Local, term: int, answer: Answer) -> None:
        """The partition-reassigned listener."""
        if local.term == term and local.phase is Phase.LEADING and not local.yielding:
            before = local.replica.replicas
            self._leading.retarget(local, znodes.to_ids(answer.data))
            self._tell(local, before)

    def _tell(self, local: Local, before: tuple[NodeId, ...]) -> None:
        now = local.replica.replicas
        for node in now:
            if node not in before:
                self._leading.request(local, node, StateRequest.REPLICA_ASSIGNED)
        for node in before:
            if node not in now:
                self._leading.request(local, node, StateRequest.REPLICA_UNASSIGNED)

    # --- after each commit ---------------------------------------------------------------------------------

    def progress(self, local: Local) -> None:
        """checkReassignedReplicas, then checkLoadBalancing."""
        state = local.replica.leading
        if local.phase is not Phase.LEADING or local.yielding or local.writing or state.proposal is not None:
            return
        me = self._ctx.config.node_id
        replica, ends = local.replica, self._leading.ends(local)
        if local.target:
            if local.target == local.assigned:
                # A former leader has come this far, and no further.
                self._coordination.ask(Delete(znodes.reassigned(replica.tp)), lambda _: None)
            elif RACE.is_reassigned(me, local.target, ends, replica.log.leo, replica.high_watermark):
                self._switch(local)
        elif RACE.yields(me, local.assigned, state.isr, self._view.live):
            self.resign(local, "the preferred replica can lead", None)

    def _switch(self, local: Local) -> None:
        """Z54, in the document's order. RAR + ISR comes first, so that whatever happens between the writes,
        an ISR member of old or new replicas can lead."""
        tp, isr = local.replica.tp, local.replica.leading.isr
        both = [*local.target, *(node for node in local.assigned if node in isr and node not in local.target)]
        local.yielding = True
        state = local.replica.leading
        state.open = False  # the commit thread stops
        # What was appended meanwhile and is acknowledged yet, the new members must have too: they may lead.
        state.maximal |= frozenset(both)
        local.replica.touch()
        self._ctx.trace("reassigned", tp=str(tp), target=list(local.target), isr=both)
        self._in_turn(
            local,
            [
                Set(znodes.isr(tp), znodes.of_ids(both), local.isr_version),
                Set(znodes.replicas(tp), znodes.of_ids(local.target)),
            ],
        )

    def _in_turn(self, local: Local, operations: list[Set]) -> None:
        """One after the other, then the leader's node and the reassignment go. A write whose outcome nobody
        knows is done again: of the ISR by version, so that this ends the term if it had been done."""

        def answered(answer: Answer) -> None:
            if answer.ok and operations[1:]:
                self._in_turn(local, operations[1:])
            elif answer.ok:
                self.resign(local, "reassigned", Delete(znodes.reassigned(local.replica.tp)))
            elif answer.outcome in (Outcome.BAD_VERSION, Outcome.NO_NODE):
                self.resign(local, f"{operations[0].path}: {answer.outcome.value}", None)
            else:
                self._terms.later(local, "duty", _AGAIN_MS, lambda: self._in_turn(local, operations))

        self._terms.ask(local, operations[0], answered)
