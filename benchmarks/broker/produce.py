"""How fast the broker takes records: acks=all, librdkafka with its default batching, then one record at a
time.

    python benchmarks/broker/produce.py                          # a cluster of its own on loopback
    python benchmarks/broker/produce.py --bootstrap n1:9092      # one that is running

Latency is from produce() to the acknowledgement, as the client sees it. The client shares the machine with a
loopback cluster, so these figures are a floor.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

# The cluster on loopback is the one the client tests use.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker.clients.loopback import Cluster

_RECORD_BYTES = 1_024
_WARM_UP_S = 1.0


def main() -> int:
    options = _parser().parse_args()
    with ExitStack() as stack:
        bootstrap = options.bootstrap
        if bootstrap is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wrackline-benchmark-"))
            cluster = Cluster(
                Path(folder),
                broker_keys={
                    "flush_mode": options.flush_mode,
                    **({"trace_file": "/dev/null"} if options.no_trace else {}),
                },
            )
            stack.enter_context(cluster)
            bootstrap = cluster.bootstrap
        topic = f"benchmark-{int(time.time())}"
        _create(bootstrap, topic, options.partitions, options.replication)
        figures = {
            "batched": batched(bootstrap, topic, options.partitions, options.seconds, options.idempotent),
            "one at a time": one_at_a_time(bootstrap, topic, options.seconds, options.idempotent),
        }
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(
                f"{name:<14} {figure['records_per_s']:>9,.0f} records/s  {figure['mib_per_s']:>7.2f} MiB/s  "
                f"p50 {figure['p50_ms']:>8.2f} ms  p99 {figure['p99_ms']:>8.2f} ms  "
                f"({figure['records']:,.0f} records)"
            )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="measure this cluster instead of one on loopback"
    )
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of each measurement (default %(default)s)"
    )
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--replication", type=int, default=3)
    parser.add_argument(
        "--flush-mode", default="on-roll", help="of the loopback cluster (default %(default)s)"
    )
    parser.add_argument("--no-trace", action="store_true", help="the loopback cluster writes no trace")
    parser.add_argument("--idempotent", action="store_true", help="enable.idempotence in the producer")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _create(bootstrap: str, topic: str, partitions: int, replication: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replication)])[topic].result(30)
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            found = list(admin.list_topics(topic, timeout=5).topics[topic].partitions.values())
        except KafkaException:
            found = []
        if len(found) == partitions and all(len(part.isrs) == replication for part in found):
            return
        time.sleep(0.05)
    raise SystemExit(f"{topic}: no full ISR in 15 s")


def _producer(bootstrap: str, idempotent: bool) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": idempotent})


def _measured(run: Callable[[list[float]], float], warm_up: Callable[[], None]) -> dict[str, float]:
    warm_up()
    latencies: list[float] = []
    took_s = run(latencies)
    latencies.sort()
    count = len(latencies)
    return {
        "records": count,
        "records_per_s": count / took_s,
        "mib_per_s": count * _RECORD_BYTES / took_s / 2**20,
        "p50_ms": 1_000 * latencies[count // 2],
        "p99_ms": 1_000 * latencies[min(count - 1, count * 99 // 100)],
    }


def batched(
    bootstrap: str, topic: str, partitions: int, seconds: float, idempotent: bool
) -> dict[str, float]:
    """As fast as the broker takes them, with at most 2,000 records in flight: more would only measure the
    client's own queue."""
    producer = _producer(bootstrap, idempotent)
    values = [os.urandom(_RECORD_BYTES) for _ in range(64)]

    def send(for_s: float, latencies: list[float]) -> float:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise KafkaException(error)
            latencies.append(message.latency() or 0.0)

        begin = time.monotonic()
        sent = 0
        while time.monotonic() < begin + for_s:
            while len(producer) >= 2_000:
                producer.poll(0.005)
            producer.produce(topic, values[sent % 64], partition=sent % partitions, on_delivery=delivered)
            sent += 1
            if sent % 64 == 0:
                producer.poll(0)
        producer.flush(30)
        return time.monotonic() - begin

    return _measured(lambda latencies: send(seconds, latencies), lambda: _ignore(send(_WARM_UP_S, [])))


def one_at_a_time(bootstrap: str, topic: str, seconds: float, idempotent: bool) -> dict[str, float]:
    """The next record leaves when the one before it was acknowledged; no lingering."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "enable.idempotence": idempotent,
            "linger.ms": 0,
        }
    )
    value = os.urandom(_RECORD_BYTES)

    def send(for_s: float, latencies: list[float]) -> float:
        done: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            done.append(error)

        begin = time.monotonic()
        while time.monotonic() < begin + for_s:
            done.clear()
            sent_at = time.monotonic()
            producer.produce(topic, value, partition=0, on_delivery=delivered)
            while not done:
                producer.poll(1)
            if done[0] is not None:
                raise KafkaException(done[0])
            latencies.append(time.monotonic() - sent_at)
        return time.monotonic() - begin

    return _measured(lambda latencies: send(seconds, latencies), lambda: _ignore(send(_WARM_UP_S, [])))


def _ignore(_: float) -> None:
    return None


if __name__ == "__main__":
    sys.exit(main())
