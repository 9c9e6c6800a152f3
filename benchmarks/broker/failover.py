"""How long a partition is without service when its leader is killed: last acknowledgement before, first one
after.

    python benchmarks/broker/failover.py           # three brokers on loopback, kill -9 of the leader
    python benchmarks/broker/failover.py --stop    # SIGTERM: leadership moves before the broker stops
    python benchmarks/broker/failover.py --fleet   # the same on four hosts of a netns fleet (needs root)
    python benchmarks/broker/failover.py --controller --session-ms 2000 --refresh-ms 100 --times 20
                                                   # the leader is the active controller of three each time

An acks=all producer (librdkafka, idempotent) writes all the time. The gap is cut into what it is made of:
until the controller has fenced the leader (its session), until another replica knows that it leads, until the
client has found it, until the followers have what it wrote. The first is session_timeout_ms by design, the
third the client's own: it asks for metadata when a connection breaks, then looks once a second at partitions
whose broker is down, and beyond that every --refresh-ms. librdkafka 2.16 may need two such rounds: metadata
that no longer names the dead broker make it end that broker's thread, which gives the partition to nobody
after it was given to the new leader. The broker's own speed is the rest.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

from wrackline.fleets.folders import folders_of
from wrackline.harness.run.live.setup import new_test_id
from wrackline.harness.specification.build import Parts, build_parts, cluster_topic
from wrackline.harness.specification.spec import parse
from wrackline.systems.base import Node, TopicSpec

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker.clients.loopback import Cluster, wait_for

_VALUE = b"x" * 256
_SPEC = """
name: bench-failover
fleet: {{brokers: 3}}
system:
  config:
    session_timeout_ms: {session_ms}
    heartbeat_interval_ms: 200
    replica_lag_time_max_ms: 1500
    replica_fetch_backoff_ms: 100
topic: {{name: log, partitions: 1, replication_factor: 3, min_insync_replicas: 2}}
"""
"""The settings of the cluster on loopback."""


@dataclass(frozen=True)
class Failover:
    """Milliseconds."""

    gap: float
    """Between the last acknowledgement of the old leader and the first of the new one."""
    fenced: float
    """From the last acknowledgement until a broker learnt from the metadata that the leader has changed."""
    elected: float
    """From there until the new leader had taken its role."""
    found: float
    """From there until the client's first batch had come: the client's own search for the leader."""
    committed: float
    """From there until the first acknowledgement."""


class Load(threading.Thread):
    """Writes without a pause worth the name; remembers when each acknowledgement came (monotonic, ns)."""

    def __init__(
        self, bootstrap: str, topic: str, refresh_ms: int | None, *, idempotent: bool = True
    ) -> None:
        super().__init__(daemon=True)
        self.acked_ns: list[int] = []
        self._over = threading.Event()
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "socket.timeout.ms": 3_000,
                "log_level": 0,
                **({} if refresh_ms is None else {"topic.metadata.refresh.interval.ms": refresh_ms}),
            }
        )

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.acked_ns.append(time.monotonic_ns())

    def run(self) -> None:
        while not self._over.is_set():
            if len(self._producer) < 50:
                self._producer.produce(self._topic, _VALUE, partition=0, on_delivery=self._delivered)
            self._producer.poll(0.001)
        self._producer.flush(20)

    def stop(self) -> None:
        self._over.set()
        self.join(30)


class Subject(Protocol):
    """A cluster with topic ``log``, one partition of which the leader can be struck."""

    bootstrap: str

    def leader(self) -> int: ...
    def ready(self) -> None:
        """Before each strike."""

    def strike(self, node_id: int, how: signal.Signals) -> None: ...
    def trace(self, node_id: int) -> list[str]: ...
    def restore(self, node_id: int) -> None:
        """Start it again, and wait until it is in the ISR."""


class OnLoopback:
    def __init__(self, cluster: Cluster, *, controller_too: bool) -> None:
        self._cluster = cluster
        self._controller_too = controller_too
        self.bootstrap = cluster.bootstrap
        cluster.create_topic("log")

    def leader(self) -> int:
        return self._cluster.leader("log")

    def ready(self) -> None:
        """A controller that is restarted does not lead again at once: until it is the leader's that does."""
        for _ in range(20):
            active = self._cluster.active_controller()
            if not self._controller_too or active is self._cluster.brokers[self.leader()]:
                return
            active.kill()
            wait_for("another controller", partial(self._another_than, active))
            active.start()
            self._cluster.wait_isr("log")
        raise AssertionError("20 restarts did not bring the active controller to the leader's node")

    def _another_than(self, gone: object) -> bool:
        return self._cluster.active_controller() is not gone

    def strike(self, node_id: int, how: signal.Signals) -> None:
        self._cluster.brokers[node_id].signal(how)

    def trace(self, node_id: int) -> list[str]:
        return self._cluster.brokers[node_id].trace.read_text().splitlines()

    def restore(self, node_id: int) -> None:
        node = self._cluster.brokers[node_id]
        node.wait(30)
        node.start()
        self._cluster.wait_isr("log")


class OnFleet:
    """Hosts of their own with a disk and a network each; the clocks are this machine's."""

    def __init__(self, parts: Parts, topic: TopicSpec) -> None:
        self._parts = parts
        self._nodes: dict[int, Node] = {node.node_id: node for node in parts.system.nodes if node.is_broker}
        parts.fleet.up()
        parts.system.install()
        for node in sorted(parts.system.nodes, key=lambda node: node.is_broker):
            parts.system.start(node)
        parts.system.wait_ready()
        parts.system.create_topic(topic)
        self.bootstrap = parts.system.bootstrap()

    def leader(self) -> int:
        found = self._parts.system.describe().partition("log", 0)
        return -1 if found is None else found.leader

    def ready(self) -> None:
        pass

    def strike(self, node_id: int, how: signal.Signals) -> None:
        system, node = self._parts.system, self._nodes[node_id]
        if how is signal.SIGKILL:
            system.kill(node)
        else:
            system.stop(node)

    def trace(self, node_id: int) -> list[str]:
        host = self._nodes[node_id].host
        return (
            self._parts.fleet.remote(host).get(f"{folders_of(host).logs}/trace.jsonl").decode().splitlines()
        )

    def restore(self, node_id: int) -> None:
        self._parts.system.start(self._nodes[node_id])
        wait_for("the full ISR", self._is_whole, 60)

    def _is_whole(self) -> bool:
        found = self._parts.system.describe().partition("log", 0)
        return found is not None and found.full_isr


def one(subject: Subject, load: Load, how: signal.Signals) -> Failover:
    subject.ready()
    old = subject.leader()
    seen = len(load.acked_ns)
    wait_for("acknowledgements", lambda: len(load.acked_ns) > seen + 50)
    begin_ns = time.monotonic_ns()
    subject.strike(old, how)
    wait_for("another leader", lambda: subject.leader() not in (old, -1), 60)
    new = subject.leader()
    after = time.monotonic_ns()
    wait_for("acknowledgements of the new leader", lambda: load.acked_ns[-1] > after + 200_000_000, 60)
    applied_ns, role_ns, append_ns = _taken_over(lambda: subject.trace(new), begin_ns)
    last = max((ns for ns in load.acked_ns if ns <= applied_ns), default=begin_ns)
    first = min(ns for ns in load.acked_ns if ns > applied_ns)
    subject.restore(old)
    moments = last, applied_ns, role_ns, append_ns, first
    parts = (after - before for before, after in pairwise(moments))
    return Failover((first - last) / 1e6, *(part / 1e6 for part in parts))


def _taken_over(trace: Callable[[], list[str]], since_ns: int) -> tuple[int, int, int]:
    """When the new leader had the metadata that made it one, when its role, and when its first batch."""

    def found() -> tuple[int, int, int] | None:
        applied = role = 0
        for line in trace():
            event = json.loads(line)
            if event["mono_ns"] < since_ns or event.get("tp") != "log-0":
                continue
            if event["kind"] == "md_apply" and not role:
                applied = event["mono_ns"]
            elif event["kind"] == "role" and event["role"] == "leader" and not role:
                role = event["mono_ns"]
            elif event["kind"] == "append" and role:
                return applied, role, event["mono_ns"]
        return None

    result: tuple[int, int, int] = wait_for("the new leader's trace", found)
    return result


@contextmanager
def on_fleet(
    session_ms: int, *, controller_too: bool
) -> Iterator[tuple[Subject, AbstractContextManager[object]]]:
    """The cluster, and the network that clients must be made in. Its controller has a host of its own."""
    del controller_too
    spec = parse(_SPEC.format(session_ms=session_ms), "failover.py")
    parts = build_parts(spec, new_test_id(spec.name))
    try:
        wanted = cluster_topic(spec, spec.topic)
        yield OnFleet(parts, wanted), parts.fleet.entered()
    finally:
        parts.fleet.down()


@contextmanager
def on_loopback(
    session_ms: int, *, controller_too: bool
) -> Iterator[tuple[Subject, AbstractContextManager[object]]]:
    with (
        tempfile.TemporaryDirectory(prefix="wrackline-failover-") as folder,
        Cluster(
            Path(folder), combined=controller_too, controller_keys={"session_timeout_ms": session_ms}
        ) as cluster,
    ):
        yield OnLoopback(cluster, controller_too=controller_too), nullcontext()


def main() -> int:
    options = _parser().parse_args()
    how = signal.SIGTERM if options.stop else signal.SIGKILL
    results = []
    if options.fleet and options.controller:
        raise SystemExit("--controller: on loopback only, the fleet's controller has a host of its own")
    setting = on_fleet if options.fleet else on_loopback
    with setting(options.session_ms, controller_too=options.controller) as (subject, network):
        with network:
            load = Load(subject.bootstrap, "log", options.refresh_ms)
        load.start()
        try:
            for _ in range(options.times):
                results.append(one(subject, load, how))
        finally:
            load.stop()
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
        return 0
    where = "on the fleet" if options.fleet else "on loopback"
    print(
        f"{'stopped' if options.stop else 'killed'} {options.times} times {where}, session "
        f"{options.session_ms} ms"
    )
    for name in Failover.__dataclass_fields__:
        values = sorted(getattr(result, name) for result in results)
        print(f"{name:<10} median {median(values):>9.1f} ms   worst {values[-1]:>9.1f} ms")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=5, help="how many leaders (default %(default)s)")
    parser.add_argument("--session-ms", type=int, default=1_000, help="of a broker (default %(default)s)")
    parser.add_argument(
        "--refresh-ms", type=int, help="how often the client asks who leads, besides its own backoff"
    )
    parser.add_argument("--fleet", action="store_true", help="on a netns fleet instead of loopback")
    parser.add_argument(
        "--controller", action="store_true", help="kill the active controller with the leader"
    )
    parser.add_argument("--stop", action="store_true", help="SIGTERM instead of kill -9")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
