"""Leader epochs in the ZooKeeper design, from the level of KIP-101 on (docs/rolling-upgrades.md).

The document has no epochs. Apache Kafka 0.11 has them from its controller; here each leader takes its own,
one more than that of the leader before it, in a node that it writes by version and before it serves anybody.
The node names the leader's node it belongs to, so a follower that sees a new leader waits for its epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from wrackline.broker.core.coordination import Coordination
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.zk08.level import ClusterLevel
from wrackline.broker.core.zk08.local import Local
from wrackline.broker.core.zk08.view import View
from wrackline.broker.model.coordination import Answer, Create, Get, Outcome, Set
from wrackline.broker.model.metadata import znodes
from wrackline.broker.model.metadata.znodes import LeaderEpoch

_AGAIN_MS = 100.0
_UNKNOWN = (Outcome.CONNECTION_LOSS, Outcome.SESSION_EXPIRED)


class Epochs:
    def __init__(self, ctx: Context, coordination: Coordination, view: View, level: ClusterLevel) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._view = view
        self._level = level

    def take(self, local: Local, taken: Callable[[], None]) -> None:
        """``taken`` is called when this leader has its epoch, and the log knows it. A write whose outcome
        nobody knows is looked for first. Where another leader has written meanwhile this one has none, and
        its node in ZooKeeper is gone, or going."""
        tp, term, created = local.replica.tp, local.term, local.followed
        path = znodes.epoch(tp)

        def found(answer: Answer) -> None:
            if local.term != term:
                return
            if answer.outcome not in (Outcome.OK, Outcome.NO_NODE):
                later()
                return
            known = znodes.to_epoch(answer.data) if answer.ok else znodes.NO_LEADER_EPOCH
            if known.created == created:
                self._level.confirm(lambda: has(known), later)
                return
            mine = LeaderEpoch(known.number + 1, self._ctx.config.node_id, created)
            data = znodes.of_epoch(mine)
            if answer.stat is None:
                self._coordination.ask(Create(path, data), lambda done: wrote(mine, done))
            else:
                version = answer.stat.version
                self._coordination.ask(Set(path, data, version), lambda done: wrote(mine, done))

        def wrote(mine: LeaderEpoch, answer: Answer) -> None:
            if local.term != term:
                return
            if answer.ok:
                self._level.confirm(lambda: has(mine), later)
            else:
                later()

        def has(mine: LeaderEpoch) -> None:
            if local.term != term:
                return
            self._view.learnt(tp, mine)
            image = self._ctx.image.partition(tp)
            if image is None:
                return
            local.replica.adopt(image)
            local.replica.log.assign_epoch(mine.number, self._ctx.out)
            taken()

        def later() -> None:
            def again() -> None:
                if local.term == term:
                    self.take(local, taken)

            self._ctx.set_timer(f"epoch:{tp}", self._ctx.now_ms + _AGAIN_MS, again)

        self._coordination.ask(Get(path), found)
