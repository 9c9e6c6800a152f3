"""How long a partition is without service when its leader is killed: last acknowledgement before, first one after.

    python benchmarks/broker/failover.py                 # three brokers on loopback, kill -9 of the leader
    python benchmarks/broker/failover.py --stop          # SIGTERM: leadership moves before the broker stops

An acks=all producer (librdkafka, idempotent) writes all the time. The gap is cut into what it is made of: until
the controller has fenced the leader (its session), until another replica knows that it leads, until the client
has found it. Only the middle part is the broker's own speed; the first is session_timeout_ms by design.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from confluent_kafka import KafkaError, Message, Producer

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "broker_clients"))

from loopback import Cluster, wait_for

_VALUE = b"x" * 256


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

    def __init__(self, bootstrap: str, topic: str, refresh_ms: int | None) -> None:
        super().__init__(daemon=True)
        self.acked_ns: list[int] = []
        self._over = threading.Event()
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
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


def one(cluster: Cluster, load: Load, how: signal.Signals) -> Failover:
    old = cluster.leader("log")
    node = cluster.brokers[old]
    seen = len(load.acked_ns)
    wait_for("acknowledgements", lambda: len(load.acked_ns) > seen + 50)
    begin_ns = time.monotonic_ns()
    node.signal(how)
    wait_for("another leader", lambda: cluster.leader("log") not in (old, -1), 60)
    new = cluster.leader("log")
    after = time.monotonic_ns()
    wait_for("acknowledgements of the new leader", lambda: load.acked_ns[-1] > after + 200_000_000, 60)
    applied_ns, role_ns, append_ns = _taken_over(cluster.brokers[new].trace, begin_ns)
    last = max((ns for ns in load.acked_ns if ns <= applied_ns), default=begin_ns)
    first = min(ns for ns in load.acked_ns if ns > applied_ns)
    node.wait(30)
    node.start()
    cluster.wait_isr("log")
    moments = last, applied_ns, role_ns, append_ns, first
    parts = (after - before for before, after in pairwise(moments))
    return Failover((first - last) / 1e6, *(part / 1e6 for part in parts))


def _taken_over(trace: Path, since_ns: int) -> tuple[int, int, int]:
    """When the new leader had the metadata that made it one, when its role, and when its first batch."""

    def found() -> tuple[int, int, int] | None:
        applied = role = 0
        for line in trace.read_text().splitlines():
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


def main() -> int:
    options = _parser().parse_args()
    keys = {"session_timeout_ms": options.session_ms}
    how = signal.SIGTERM if options.stop else signal.SIGKILL
    results = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="wrackline-failover-"))
        cluster = stack.enter_context(Cluster(Path(folder), controller_keys=keys))
        cluster.create_topic("log")
        load = Load(cluster.bootstrap, "log", options.refresh_ms)
        load.start()
        stack.callback(load.stop)
        for _ in range(options.times):
            results.append(one(cluster, load, how))
    if options.json:
        print(json.dumps([asdict(result) for result in results]))
        return 0
    print(f"{'stopped' if options.stop else 'killed'} {options.times} times, session {options.session_ms} ms")
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
    parser.add_argument("--stop", action="store_true", help="SIGTERM instead of kill -9")
    parser.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    return parser


if __name__ == "__main__":
    sys.exit(main())
