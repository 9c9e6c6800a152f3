"""Figures of a live cluster: our broker on three hosts of a netns fleet. Needs root.

    python benchmarks/harness/live.py [--seconds 10]

1. acks=all, 1 KiB records, librdkafka's default batching, one producer: records/s, latency from produce() to
   report;
2. the same, one record at a time: the next is sent when the last was acknowledged;
3. operations per second that the harness records with its own workload at full speed.

Of 1 and 2 also the processor time that the three brokers took for a record together: unlike the rates it
depends little on what else the machine is doing, so it is what two versions of the broker are compared by.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from wrackline.harness.run.live.setup import new_test_id, plan_of, run_info
from wrackline.harness.specification.build import Parts, build_parts, cluster_topic
from wrackline.harness.specification.spec import Spec, parse
from wrackline.history import Recorder
from wrackline.workloads.log import LogWorkload

SPEC = """
name: bench-live
fleet: {brokers: 3, disk_mb: 2048}
topic: {name: log, partitions: 3, replication_factor: 3, min_insync_replicas: 2}
workload: {rate: 0, senders: 8, pollers: 1, enders: 1, record_bytes: 1024}
"""
RECORD = bytes(1024)
BURST = 20_000


@contextmanager
def cluster(spec: Spec) -> Iterator[Parts]:
    parts = build_parts(spec, new_test_id(spec.name))
    try:
        began = time.monotonic()
        parts.fleet.up()
        parts.system.install()
        for node in sorted(parts.system.nodes, key=lambda node: node.is_broker):
            parts.system.start(node)
        parts.system.wait_ready()
        parts.system.create_topic(cluster_topic(spec, spec.topic))
        print(f"cluster ready after {time.monotonic() - began:.1f} s")
        yield parts
    finally:
        parts.fleet.down()


def broker_cpu_s(parts: Parts) -> float:
    """Processor time that the brokers' processes have taken so far, user and system."""
    ticks = 0
    for node in parts.system.nodes:
        if node.is_broker and (pid := parts.system.pid(node)) is not None:
            stat = parts.fleet.remote(node.host).run(f"cat /proc/{pid}/stat").stdout
            user, system = stat.rpartition(")")[2].split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(parts: Parts, measure: Callable[[], Reports]) -> None:
    """Clients belong to the fleet's network; what asks the brokers for their time must be outside of it."""
    before_s = broker_cpu_s(parts)
    with parts.fleet.entered():
        reports = measure()
    spent_us = (broker_cpu_s(parts) - before_s) * 1e6
    records = len(reports.latencies_s)
    if records:
        print(f"    processor time of the three brokers: {spent_us / records:,.1f} us a record")


class Reports:
    """Delivery reports of one measurement."""

    def __init__(self) -> None:
        self.latencies_s: list[float] = []
        self.failed = 0

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed += 1
        else:
            self.latencies_s.append(message.latency() or 0.0)


def quantile(values: Sequence[float], q: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def told(reports: Reports, seconds: float, what: str) -> None:
    p50, p99 = (quantile(reports.latencies_s, q) * 1e3 for q in (0.5, 0.99))
    rate = len(reports.latencies_s) / seconds
    print(f"{what}: {rate:,.0f} records/s, p50 {p50:.2f} ms, p99 {p99:.2f} ms, failed {reports.failed}")


def batched(bootstrap: str, topic: str, seconds: float) -> Reports:
    """As many as the producer's queue takes, so that the broker is the limit; latency includes the queue."""
    reports = Reports()
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "queue.buffering.max.messages": BURST}
    )
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        try:
            producer.produce(topic, RECORD, on_delivery=reports)
            producer.poll(0)
        except BufferError:
            producer.poll(0.01)
    producer.flush(60)
    told(reports, time.monotonic() - began, "acks=all, 1 KiB, default batching, full queue")
    return reports


def paced(bootstrap: str, topic: str, seconds: float, rate: int) -> Reports:
    """At half of what it can: latency without the queue."""
    reports = Reports()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    began = time.monotonic()
    sent = 0
    while (now := time.monotonic() - began) < seconds:
        while sent < now * rate:
            producer.produce(topic, RECORD, on_delivery=reports)
            sent += 1
        producer.poll(0.001)
    producer.flush(60)
    told(reports, time.monotonic() - began, f"acks=all, 1 KiB, default batching, {rate:,} records/s asked")
    return reports


def one_at_a_time(bootstrap: str, topic: str, seconds: float) -> Reports:
    reports = Reports()
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        producer.produce(topic, RECORD, on_delivery=reports)
        producer.flush(30)
    told(reports, time.monotonic() - began, "acks=all, 1 KiB, one record at a time")
    return reports


def recorded(spec: Spec, parts: Parts, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="wrackline-live-") as folder,
        Recorder(Path(folder) / "run", run_info(spec, "bench", parts.system, plan_of(spec))) as recorder,
    ):
        workload = LogWorkload(
            spec.workload,
            bootstrap=parts.system.bootstrap(),
            topics={spec.topic.name: spec.topic.partitions},
            seed=1,
            recorder=recorder,
            enter=parts.fleet.entered,
        )
        workload.start()
        while workload.missing_kinds():
            time.sleep(0.05)
        before, began = workload.counts(), time.monotonic()
        time.sleep(seconds)
        after, took = workload.counts(), time.monotonic() - began
        workload.stop(timeout_s=10)
    operations = (after.operations - before.operations) / took
    sends = (after.ok["send"] - before.ok["send"]) / took
    print(
        f"harness against the live cluster: {operations:,.0f} operations/s recorded, of these {sends:,.0f} "
        "sends"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    spec = parse(SPEC, "live.py")
    with cluster(spec) as parts:
        target = parts.system.bootstrap(), spec.topic.name, seconds
        measured(parts, lambda: batched(*target))
        measured(parts, lambda: paced(*target, 2_000))
        measured(parts, lambda: one_at_a_time(*target))
        recorded(spec, parts, seconds)


if __name__ == "__main__":
    main()
