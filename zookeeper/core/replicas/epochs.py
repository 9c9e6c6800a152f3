"""Leader epochs in the ZooKeeper design, from the level of KIP-101 on (docs/rolling-upgrades.md).

The document has no epochs. Apache Kafka 0.11 has them from its controller; here each leader takes its own,
one more than that of the leader before it, in a node that it writes by version and before it serves anybody.
The node names the leader's node it belongs to, so a follower that sees a new leader waits for its epoch.
"""

from __future__ import annotations

from collections.abc import Callable

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Create, Get, Outcome, Set
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.level import ClusterLevel
from wrackline.zookeeper.core.replicas.local import Local, Terms
from wrackline.zookeeper.core.view import View
from wrackline.zookeeper.core.znodes import LeaderEpoch

_AGAIN_MS = 100.0


class Epochs:
    def __init__(self, ctx: Context, coordination: Coordination, view: View, level: ClusterLevel) -> None:
        self._ctx = ctx
        self._terms = Terms(ctx, coordination)
        self._view = view
        self._level = level

    def take(self, local: Local, taken: Callable[[], None]) -> None:
        """``taken`` is called when this leader has its epoch, and the log knows it. A write whose outcome
        nobody knows is looked for first. Where another leader has written meanwhile this one has none, and
        its node in ZooKeeper is gone, or going."""
        tp, created = local.replica.tp, local.followed
        path = znodes.epoch(tp)

        def found(answer: Answer) -> None:
            if answer.outcome not in (Outcome.OK, Outcome.NO_NODE):
                later()
                return
            known = znodes.to_epoch(answer.data) if answer.ok else znodes.NO_LEADER_EPOCH
            if known.created == created:
                confirm(known)
                return
            mine = LeaderEpoch(known.number + 1, self._ctx.config.node_id, created)
            data = znodes.of_epoch(mine)
            write = Create(path, data) if answer.stat is None else Set(path, data, answer.stat.version)
            self._terms.ask(local, write, lambda done: confirm(mine) if done.ok else later())

        def confirm(known: LeaderEpoch) -> None:
            """Another term may begin meanwhile."""
            self._level.confirm(self._terms.within(local, lambda: has(known)), later)

        def has(mine: LeaderEpoch) -> None:
            self._view.learnt(tp, mine)
            image = self._ctx.image.partition(tp)
            if image is None:
                return
            local.replica.adopt(image)
            local.replica.log.assign_epoch(mine.number, self._ctx.out)
            taken()

        again = self._terms.within(local, lambda: self.take(local, taken))

        def later() -> None:
            self._terms.wait(local, "epoch", _AGAIN_MS, again)

        self._terms.ask(local, Get(path), found)
