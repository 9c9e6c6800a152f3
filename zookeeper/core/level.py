"""The cluster's level as a broker of the ZooKeeper design sees it: a node in ZooKeeper that an administrator
writes when every broker supports it (docs/rolling-upgrades.md, KIP-584's ``/feature``).

From the level of KIP-101 on a leader has an epoch. From the level of KIP-866 on nobody leads by ZooKeeper: a
controller takes over. A broker whose profile has one level only does not look: its program was written before
there were levels.
"""

from __future__ import annotations

from collections.abc import Callable

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Create, Get, Outcome
from wrackline.broker.model.effects import Exit
from wrackline.broker.model.metadata.features import WITH_CONTROLLER, Levels
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination

_AGAIN_MS = 200.0


class ClusterLevel:
    """``on_raised`` is called when the level has risen, and other rules hold."""

    def __init__(
        self,
        ctx: Context,
        coordination: Coordination,
        on_raised: Callable[[], None],
        *,
        bridges: bool = False,
        obeys: bool = True,
    ) -> None:
        """``bridges``: this broker can go on under a controller. ``obeys``: see
        ``Switches.fences_zookeeper``."""
        self._ctx = ctx
        self._coordination = coordination
        self._on_raised = on_raised
        self._profile = ctx.rules
        self.looks = self._profile.former is not None
        """The broker's profile has more than one level."""
        self._fenced_at = WITH_CONTROLLER if bridges else None
        self._obeys = obeys
        levels = self._profile.levels
        self._supported = Levels(levels.lowest, self._fenced_at or levels.highest)
        self.handed_over = False
        """Nobody leads by ZooKeeper any more."""
        if self.looks:
            ctx.rules = self._profile.at(znodes.FIRST_LEVEL)

    @property
    def has_epochs(self) -> bool:
        return self._ctx.rules.switches.asks_epoch_first

    def start(self) -> None:
        if self.looks:
            self._coordination.keep(znodes.FEATURE, self._heard)

    def read(self, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Look whether the level has risen, and go on with the answer; ``otherwise`` where there is none."""
        if not self.looks or self.has_epochs:
            then()
            return

        def answered(answer: Answer) -> None:
            if answer.outcome in (Outcome.OK, Outcome.NO_NODE):
                self._heard(answer)
                if not self.handed_over:
                    then()
            else:
                otherwise()

        self._coordination.ask(Get(znodes.FEATURE), answered)

    def confirm(self, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Goes on after a write that claims something, if there was no fence when it was made. One that
        comes later is followed by a controller that sees the write. ``otherwise`` where there is no
        answer."""
        if self._fenced_at is None or not self._obeys:
            then()
            return

        def answered(answer: Answer) -> None:
            if answer.outcome not in (Outcome.OK, Outcome.NO_NODE):
                otherwise()
                return
            self._heard(answer)
            if not self.handed_over:
                then()

        self._coordination.ask(Get(znodes.FEATURE), answered)

    def hand_over(self, why: str) -> None:
        self.handed_over = True
        self._ctx.trace("migration", what="handed over", why=why)

    def registered(self) -> None:
        """Say what this broker supports. The node goes with the session, as the registration does."""
        if not self.looks:
            return
        node, session = self._ctx.config.node_id, self._coordination.session
        data = znodes.of_levels(self._supported)

        def said(answer: Answer) -> None:
            if answer.outcome is Outcome.CONNECTION_LOSS and session == self._coordination.session:
                again = self._ctx.now_ms + _AGAIN_MS
                self._ctx.set_timer("levels", again, self.registered)

        self._coordination.ask(Create(znodes.LEVELS), lambda _: None)
        self._coordination.ask(Create(znodes.levels(node), data, ephemeral=True), said)

    def _heard(self, answer: Answer) -> None:
        level = znodes.to_level(answer.data) if answer.ok else znodes.FIRST_LEVEL
        if level not in self._supported:
            reason = f"the cluster's level is {level}, and this broker supports {self._supported}"
            self._ctx.trace("stop", how="level", reason=reason)
            self._ctx.out.append(Exit(1, reason))
            return
        if self._fenced_at is not None and level >= self._fenced_at:
            if self._obeys and not self.handed_over:
                self.hand_over("the level")
            return
        rules = self._profile.at(level)
        if rules is not self._ctx.rules:
            self._ctx.trace("level", level=level)
            self._ctx.rules = rules
            self._on_raised()
