"""A whole cluster in one thread: real Broker and Controller objects on a machine of the tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.core.machine import Call, Machine
from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.defects import apply
from wrackline.broker.model.batches import batch
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.events import Boot, RequestReceived, StopRequested
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, NewTopic
from wrackline.broker.model.messages.requests import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
    Request,
)
from wrackline.broker.model.types import (
    METADATA,
    NO_EPOCH,
    NO_LEADER,
    Endpoint,
    FlushMode,
    NodeId,
    TopicPartition,
)
from wrackline.broker.rules.profile import profile

CONTROLLER = 101
CLIENT = 0
CLUSTER_ID = "core-tests"
T = TopicPartition("t", 0)


class Cluster(Machine):
    def __init__(
        self,
        *,
        brokers: Iterable[NodeId] = (1, 2, 3),
        min_isr: int = 2,
        defects: Sequence[str] = (),
        start: bool = True,
        session_timeout_ms: int = 2_000,
        **changes: object,
    ) -> None:
        super().__init__((CONTROLLER, *brokers))
        self.rules = apply(profile("kip966"), defects)
        endpoints = (Endpoint(CONTROLLER, "c", 9093),)
        self.controller_config = ControllerConfig(
            CONTROLLER,
            CLUSTER_ID,
            "c",
            9093,
            endpoints,
            min_insync_replicas=min_isr,
            session_timeout_ms=session_timeout_ms,
        )
        settings: dict[str, Any] = {
            "heartbeat_interval_ms": 200,
            "replica_lag_time_max_ms": 1_000,
            "replica_fetch_wait_max_ms": 100,
            "replica_fetch_backoff_ms": 100,
            "high_watermark_checkpoint_interval_ms": 500,
            "flush_mode": FlushMode.ON_ROLL,
            **changes,
        }
        self.broker_config = {
            node: BrokerConfig(
                node, CLUSTER_ID, f"b{node}", 9092, endpoints, replication_port=9094, **settings
            )
            for node in brokers
        }
        if start:
            for node in self.nodes:
                self.boot(node)
            self.until(lambda: self.unfenced() == set(self.broker_config))

    # --- what there is -------------------------------------------------------------------------------------

    @property
    def controller(self) -> Controller:
        core = self.nodes[CONTROLLER].core
        assert isinstance(core, Controller)
        return core

    def broker(self, node: NodeId) -> Broker:
        core = self.nodes[node].core
        assert isinstance(core, Broker)
        return core

    def replica(self, node: NodeId, tp: TopicPartition = T) -> Replica:
        replica = self.broker(node).replica(tp)
        assert replica is not None
        return replica

    def values(self, node: NodeId, tp: TopicPartition = T) -> list[bytes]:
        return self.nodes[node].disk.logs[tp].values()

    def unfenced(self) -> set[NodeId]:
        return {broker.id for broker in self.controller.committed.brokers.values() if not broker.fenced}

    def leader(self, tp: TopicPartition = T) -> NodeId:
        partition = self.controller.committed.partition(tp)
        assert partition is not None
        return partition.leader

    def isr(self, tp: TopicPartition = T) -> set[NodeId]:
        partition = self.controller.committed.partition(tp)
        assert partition is not None
        return set(partition.isr)

    def traced(self, kind: str, node: NodeId | None = None) -> list[dict[str, Any]]:
        return [
            dict(trace.fields)
            for _, at, trace in self.traces
            if trace.kind == kind and (node is None or at == node)
        ]

    # --- nodes ---------------------------------------------------------------------------------------------

    def boot(self, node: NodeId, *, damaged: tuple[TopicPartition, ...] = ()) -> None:
        """``damaged``: nobody knows of which topic these logs are."""
        runtime = self.nodes[node]
        runtime.life += 1
        runtime.timers, runtime.paused, runtime.exits = {}, None, []
        previous, runtime.disk.clean_epoch = runtime.disk.clean_epoch, -1
        for tp in damaged:
            del runtime.disk.logs[tp]  # the core knows nothing of it, and the disk puts it aside
        if damaged:
            previous = NO_EPOCH
        logs = runtime.disk.recovered()
        metadata = tuple(data for _, data in runtime.disk.logs[METADATA].batches) if METADATA in logs else ()
        if node == CONTROLLER:
            runtime.core = Controller(self.controller_config, self.rules)
        else:
            runtime.core = Broker(self.broker_config[node], self.rules)
        incarnation = UUID(int=node * 1_000 + runtime.life)
        quorum_state = runtime.disk.quorum_state
        self._handle(node, Boot(incarnation, logs, metadata, previous, quorum_state, offline=damaged))

    def power(self, node: NodeId, keep: dict[TopicPartition, int] | None = None) -> None:
        self.kill(node)
        self.nodes[node].disk.lose_power(keep or {})

    def isolate(self, node: NodeId) -> None:
        """Cut off from every other node; its clients still reach it."""
        for other in self.nodes.keys() - {node}:
            self.cut(node, other)

    def start_all(self) -> None:
        """Whoever is down starts again."""
        for node, runtime in self.nodes.items():
            if runtime.core is None:
                self.boot(node)

    def stop(self, node: NodeId) -> None:
        self._handle(node, StopRequested())

    def fence(self, node: NodeId) -> None:
        """Cut off from the controller until its session has ended."""
        self.cut(node, CONTROLLER)
        self.until(lambda: self.controller.committed.brokers[node].fenced)

    # --- clients -------------------------------------------------------------------------------------------

    def ask(self, node: NodeId, request: Request) -> Call:
        """A client's request, delivered now; time must pass for an answer that waits."""
        call = Call(request)
        self._seq += 1
        request_id = self._seq
        self._routes[request_id] = (CLIENT, 0, 0, call)
        self._handle(node, RequestReceived(request_id, request))
        return call

    def answer(self, node: NodeId, request: Request, within_ms: float = 20_000) -> Any:
        call = self.ask(node, request)
        self.until(lambda: call.done, within_ms)
        return call.response

    def produce(
        self,
        node: NodeId,
        *values: bytes,
        acks: int = -1,
        tp: TopicPartition = T,
        timeout_ms: int = 10_000,
        data: bytes | None = None,
    ) -> Call:
        records = batch.build(values, 0, -1, int(self.now)) if data is None else data
        return self.ask(node, ProduceRequest(acks, timeout_ms, (ProducePartition(tp, records),)))

    def produced(self, node: NodeId, *values: bytes, acks: int = -1, **more: Any) -> ProduceResult:
        call = self.produce(node, *values, acks=acks, **more)
        self.until(lambda: call.done)
        result = call.response.partitions[0]
        assert isinstance(result, ProduceResult)
        return result

    def create_topic(
        self, name: str = "t", *replicas: Sequence[NodeId], configs: dict[str, str] | None = None
    ) -> None:
        """One partition per list of replicas; the first of each leads."""
        assignments = {number: tuple(nodes) for number, nodes in enumerate(replicas or ((1, 2, 3),))}
        topic = NewTopic(name, assignments=assignments, configs=configs or {})
        anyone = next(node for node in self.broker_config if self.nodes[node].core is not None)
        response = self.answer(anyone, CreateTopicsRequest((topic,), 10_000))
        assert response.topics[0].error.value == 0, response
        self.until(
            lambda: all(
                self.broker(node).replica(TopicPartition(name, number)) is not None
                for number, nodes in assignments.items()
                for node in nodes
                if self.nodes[node].core is not None
            )
        )


class Writer:
    """Sends one record after the other with acks=all to whom the controller has as leader of ``T``; never the
    same value twice."""

    def __init__(self, cluster: Cluster, pause_ms: float = 2) -> None:
        self.acked: dict[bytes, int] = {}
        self.stopped = False
        self._cluster = cluster
        self._pause_ms = pause_ms
        self._sent = 0
        self._next()

    def _next(self) -> None:
        c = self._cluster
        if self.stopped:
            return
        partition = c.controller.committed.partition(T) if c.nodes[CONTROLLER].core is not None else None
        leader = NO_LEADER if partition is None else partition.leader
        if leader == NO_LEADER or c.nodes[leader].core is None:
            c.at(c.now + 20, self._next)
            return
        self._sent += 1
        value = b"v%d" % self._sent
        call = c.produce(leader, value, timeout_ms=500)
        self._wait(call, value, c.now + 1_000)

    def _wait(self, call: Call, value: bytes, until: float) -> None:
        """An answer of a broker that was killed never comes."""
        c = self._cluster
        if not call.done and c.now < until:
            c.at(c.now + self._pause_ms, lambda: self._wait(call, value, until))
            return
        if isinstance(call.response, ProduceResponse):
            (result,) = call.response.partitions
            if result.error is ErrorCode.none:
                self.acked[value] = result.base_offset
        c.at(c.now + self._pause_ms, self._next)

    def finish(self) -> None:
        """Every replica has the same log, with all that was acknowledged in place; nobody else has one."""
        self.stopped = True
        c = self._cluster
        partition = c.controller.committed.partition(T)
        assert partition is not None
        members = set(partition.replicas)
        c.until(lambda: {node for node, runtime in c.nodes.items() if T in runtime.disk.logs} == members)
        c.until(lambda: len({c.nodes[node].disk.logs[T].leo for node in members}) == 1)
        log, *others = (c.values(node) for node in members)
        assert all(other == log for other in others), "logs differ"
        start = c.nodes[min(members)].disk.logs[T].leo - len(log)
        there = {value: offset for offset, value in enumerate(log, start)}
        assert self.acked
        assert {value: there.get(value) for value in self.acked} == self.acked, "acknowledged, and not there"
