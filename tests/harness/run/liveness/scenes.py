"""Scenes on real clusters: something is done behind the harness's back that no healing knows of, and after it
a promise of liveness is kept or not."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatchBuilder
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v1 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.produce.v8 import ProduceRequest, ProduceResponse
from kio.schema.produce.v8.request import PartitionProduceData, TopicProduceData
from kio.schema.types import TopicName, TransactionalId
from kio.static.primitive import Records, i16, i32

from wrackline.fleets.folders import folders_of
from wrackline.harness.extend.scenario import Cluster, History, Scenario
from wrackline.harness.run.judge import Judged
from wrackline.harness.specification.spec import parse
from wrackline.history.model import ASKER, UNKNOWN, Event, Record, Type, value_of
from wrackline.kafka_client.connection import duration
from wrackline.systems.base import Node
from wrackline.workloads.payload import encode, run_tag


@dataclass(frozen=True)
class Stage:
    """A run whose clients are at work."""

    scenario: Scenario
    cluster: Cluster
    history: History


Break = Callable[[Stage], None]

BOUND_S = 20
OWN = "{kind: wrackline, config: {session_timeout_ms: 2000, heartbeat_interval_ms: 300}}"
SPEC = """
name: NAME
fleet: {kind: netns, brokers: 3, controllers: 3, combined: true}
system: SYSTEM
topic: {partitions: 2, replication_factor: 3, min_insync_replicas: 1}
workload: {duration_s: 6, rate: 40, senders: 2, pollers: 1, enders: 1}
contract:
  liveness:
    {leader_s: B, rejoin_s: B, reassignment_s: B, coordinator_s: B, transaction_s: B, operation_s: B}
"""
TXN = (
    "workload={name: txn, duration_s: 6, rate: 10, workers: 2, pollers: 1, aborts: 0, "
    "transaction_timeout_ms: 5000}"
)
ILL_BEHAVED = "ill-behaved"
"""The transactional id of a client that is none of the run's."""


def play(results: Path, break_: Break, system: str, *settings: str, name: str = "scene") -> Judged:
    """One run with a scene in it."""
    text = SPEC.replace("NAME", name).replace("SYSTEM", system).replace(" B", f" {BOUND_S}")
    scenario = Scenario(parse(text, "scene", settings=settings), results)
    try:
        scenario.up()
        cluster = scenario.deploy()
        history = scenario.drive()
        history.wait(1, within_s=60)
        break_(Stage(scenario, cluster, history))
        return scenario.judge()
    finally:
        scenario.close()


def nothing(_: Stage) -> None:
    """The control."""


# --- a node that is silent ----------------------------------------------------------------------------------


def stop_leader(on: Stage) -> None:
    """The leader of partition 0 is stopped once everything has been healed: it takes connections, and
    answers nobody."""
    _stop_when_healed(on, on.cluster.leader)


def stop_coordinator(on: Stage) -> None:
    """The same of the coordinator of the run's group."""

    def coordinator() -> Node:
        assert on.scenario.live.workload is not None
        group = on.scenario.live.workload.groups[0]
        node = on.cluster.system.coordinator("group", group, timeout_s=20)  # type: ignore[attr-defined]
        return next(one for one in on.cluster.nodes if one.node_id == node)

    _stop_when_healed(on, coordinator)


def _stop_when_healed(on: Stage, choose: Callable[[], Node]) -> None:
    node, fleet = choose(), on.scenario.live.parts.fleet

    def stop(event: Event) -> None:
        if event.f == "repaired":
            fleet.remote(node.host).run(f"kill -STOP {on.cluster.system.pid(node)}")

    on.scenario.live.recorder.listeners.append(stop)


# --- a node that dies ---------------------------------------------------------------------------------------


def spoil_program(on: Stage) -> None:
    """A follower is killed, and whatever starts it then ends at once."""
    _spoil_program(on)


def spoil_program_for_a_while(on: Stage) -> None:
    """The same until everything has been healed."""
    mend = _spoil_program(on)

    def at(event: Event) -> None:
        if event.f == "repaired":
            mend()

    on.scenario.live.recorder.listeners.append(at)


def _spoil_program(on: Stage) -> Callable[[], None]:
    cluster, fleet = on.cluster, on.scenario.live.parts.fleet
    node = next(one for one in cluster.nodes if one.node_id != cluster.leader().node_id)
    remote, program = fleet.remote(node.host), folders_of(node.host).program
    with on.history.fault("kill", target=node.host.name):
        remote.run(f"cp {program} {program}.whole; echo 'echo KeyError; exit 1' >{program}")

    def mend() -> None:
        remote.run(f"mv {program}.whole {program}")

    return mend


# --- a node that ends by itself -----------------------------------------------------------------------------


def end_by(signal: str) -> Break:
    """A follower gets a signal that no fault has sent."""

    def end(on: Stage) -> None:
        cluster, fleet = on.cluster, on.scenario.live.parts.fleet
        node = next(one for one in cluster.nodes if one.node_id != cluster.leader().node_id)
        fleet.remote(node.host).run(f"kill -{signal} {cluster.system.pid(node)}")

    return end


# --- a replica that is throttled ----------------------------------------------------------------------------


def throttle(on: Stage) -> None:
    """Replication of what lags may take one byte a second, and a follower is killed once."""
    _throttle(on.cluster)
    with on.history.fault("kill", target="follower(log-0)"):
        on.history.sleep(5)


def throttle_reassignment(on: Stage) -> None:
    """The same, and partition 0 shall move to a broker that has nothing of it."""
    cluster = on.cluster
    on.history.wait(100, within_s=60)
    _throttle(cluster)
    place = (cluster.topic, 0)
    one = cluster.state().partition(*place)
    assert one is not None
    [fresh] = {node.node_id for node in cluster.nodes if node.is_broker} - set(one.replicas)
    kept = [node for node in one.replicas if node == one.leader]
    others = [node for node in one.replicas if node != one.leader]
    cluster.system.reassign({place: (*kept, *others[1:], fresh)})


def _throttle(cluster: Cluster) -> None:
    admin = cluster.system.admin  # type: ignore[attr-defined]
    of_topic = dict.fromkeys(
        ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas"), "*"
    )
    of_brokers = dict.fromkeys(
        ("leader.replication.throttled.rate", "follower.replication.throttled.rate"), "1"
    )
    admin.change_topic(cluster.topic, of_topic, timeout_s=20)
    admin.change_cluster(of_brokers, timeout_s=20)


# --- an ill-behaved client ----------------------------------------------------------------------------------


class IllBehaved:
    """A client of transactions that is none of the workload's: it writes one record to partition 0, which is
    on record as a send of unknown outcome."""

    process = ASKER + 1

    def __init__(self, scenario: Scenario, cluster: Cluster) -> None:
        self._recorder, self._topic = scenario.live.recorder, cluster.topic
        self._value, self._timestamp_ms = value_of(self.process, 1), int(time.time() * 1000)
        tag = run_tag(self._recorder.info.test_id)
        self.payload = encode(tag, self._value, self._topic, 0, self._timestamp_ms)
        self.key = self._value.to_bytes(8, "big")

    def begin(self) -> None:
        self._row(Type.INVOKE)

    def vanish(self) -> None:
        self._row(Type.INFO, error="_TIMED_OUT")

    def _row(self, kind: Type, error: str | None = None) -> None:
        sent = Record(0, UNKNOWN, self._value)
        extra = {"txn": 1 << 30} | ({"transactional_id": ILL_BEHAVED} if kind is Type.INVOKE else {})
        event = Event(
            self.process, kind, "send", topic=self._topic, records=(sent,), error=error, extra=extra
        )
        self._recorder.record(event)

    def batch(self, producer_id: int, epoch: int) -> bytes:
        builder = DefaultRecordBatchBuilder(2, 0, True, producer_id, epoch, 0, 1 << 20)
        builder.append(0, self._timestamp_ms, self.key, self.payload, [])
        out = bytearray(builder.build())
        struct.pack_into(">I", out, 17, crc32c(bytes(out[21:])))
        return bytes(out)

    def produce(self, producer: Producer) -> None:
        producer.produce(self._topic, self.payload, key=self.key, partition=0, timestamp=self._timestamp_ms)


def open_transaction(timeout_s: float) -> Break:
    """Makes a client that begins a transaction with this time-out, writes, and is never heard of again."""

    def scene(on: Stage) -> None:
        scenario, cluster = on.scenario, on.cluster
        client = IllBehaved(scenario, cluster)
        with cluster.network():
            producer = Producer(
                {
                    "bootstrap.servers": cluster.bootstrap,
                    "transactional.id": ILL_BEHAVED,
                    "transaction.timeout.ms": int(timeout_s * 1000),
                }
            )
            producer.init_transactions(60)
            producer.begin_transaction()
            client.begin()
            client.produce(producer)
            assert producer.flush(60) == 0
            client.vanish()
            scenario.abandoned = producer  # type: ignore[attr-defined]  # its end would abort the transaction

    return scene


def hang_transaction(on: Stage) -> None:
    """A client writes a transactional batch to a partition that it has never added to its transaction:
    nobody will ever end it (KIP-890)."""
    answer = write_unadded(on.scenario, on.cluster)
    assert answer is ErrorCode.none, answer


def refuse_to_hang(on: Stage) -> None:
    """The same, where the broker asks the coordinator first."""
    answer = write_unadded(on.scenario, on.cluster)
    assert answer is not ErrorCode.none


def write_unadded(scenario: Scenario, cluster: Cluster) -> ErrorCode:
    """Returns what the leader answers."""
    client = IllBehaved(scenario, cluster)
    client.begin()
    producer_id, epoch = _producer_id(cluster)
    batch = client.batch(producer_id, epoch)
    partition = PartitionProduceData(index=i32(0), records=Records(batch))
    request = ProduceRequest(
        transactional_id=TransactionalId(ILL_BEHAVED),
        acks=i16(-1),
        timeout=duration(10),
        topic_data=(TopicProduceData(name=TopicName(cluster.topic), partition_data=(partition,)),),
    )
    with cluster.system.connect(cluster.leader(), timeout_s=15) as connection:  # type: ignore[attr-defined]
        [topic] = connection.request(request, ProduceResponse).responses
    client.vanish()
    [result] = topic.partition_responses
    return result.error_code


def _producer_id(cluster: Cluster, within_s: float = 60.0) -> tuple[int, int]:
    """Returns a producer id and its epoch, from the coordinator of the transactional id."""
    system, deadline = cluster.system, time.monotonic() + within_s
    by_id = {one.node_id: one for one in cluster.nodes}
    init = InitProducerIdRequest(
        transactional_id=TransactionalId(ILL_BEHAVED), transaction_timeout=duration(5)
    )
    while True:
        node = system.coordinator("transaction", ILL_BEHAVED, timeout_s=60)  # type: ignore[attr-defined]
        with system.connect(by_id[node], timeout_s=10) as connection:  # type: ignore[attr-defined]
            answer = connection.request(init, InitProducerIdResponse)
        if answer.error_code is ErrorCode.none:
            return int(answer.producer_id), int(answer.producer_epoch)
        assert time.monotonic() < deadline, answer
        time.sleep(0.5)
