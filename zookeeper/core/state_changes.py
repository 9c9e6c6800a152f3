"""The state-change listener: what leaders ask of this broker's replicas (docs/protocol.md Z37, Z44, Z46)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wrackline.broker.core.replication.context import Context
from wrackline.broker.model.coordination import Answer, Create, Delete, Get
from wrackline.broker.model.types import TopicPartition
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.znodes import StateRequest

Act = Callable[[TopicPartition, StateRequest], None]


class StateChanges:
    """``act`` is called with each request in order, and the request is deleted. One whose deletion was lost
    is acted upon again, which does nothing the second time."""

    def __init__(self, ctx: Context, coordination: Coordination, act: Act) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._act = act
        self._reading: dict[str, None] = {}

    def listen(self, tp: TopicPartition) -> None:
        """To the path of this broker's own replica, made where there is none (Z43)."""
        path = znodes.state(tp, self._ctx.config.node_id)
        if not self._coordination.keeps(path, children=True):
            self._coordination.ask(Create(path), lambda _: None)
            self._coordination.keep(path, lambda answer: self._requests(tp, answer), children=True)

    def stop(self, tp: TopicPartition) -> None:
        self._coordination.drop(znodes.state(tp, self._ctx.config.node_id), children=True)

    def remove(self, tp: TopicPartition) -> None:
        """The replica is gone, and its path goes, unless there are further requests on it: they come after
        this one, and may want the replica again. A path that a lost connection leaves makes the next leader
        ask again."""

        def deleted(answer: Answer) -> None:
            if answer.ok:
                self.stop(tp)

        self._coordination.ask(Delete(znodes.state(tp, self._ctx.config.node_id)), deleted)

    def _requests(self, tp: TopicPartition, answer: Answer) -> None:
        path = znodes.state(tp, self._ctx.config.node_id)
        for name in answer.children:
            request = f"{path}/{name}"
            if request not in self._reading:
                self._reading[request] = None
                self._coordination.ask(Get(request), partial(self._read, tp, request))

    def _read(self, tp: TopicPartition, path: str, answer: Answer) -> None:
        del self._reading[path]
        if not answer.ok:
            return
        request = StateRequest(answer.data.decode())
        self._ctx.trace("state_request", tp=str(tp), request=request.value)

        self._coordination.ask(Delete(path), lambda _: None)
        self._act(tp, request)
