"""Systems side by side: our broker and Apache Kafka in turn, on the same fleet, with the same clients.

    sudo python benchmarks/systems.py                                  # wrackline and apache-kafka, 3 rounds
    sudo python benchmarks/systems.py --system wrackline --system a-run.yaml --rounds 1 --warm-up 10

A system is a name from SYSTEMS or a specification, of which only the section `system` counts. In each round
every system has a fresh fleet of three combined nodes on disks of their own, is warmed up (a JVM needs a
minute), and then gives

    ready            seconds from the first start until every broker is in the metadata
    batched          records/s of 1 KiB, acks=all, three partitions, at most 2,000 in flight; p50, p99 in ms
    one at a time    the same with the next record sent when the last is acknowledged
    ... cpu          the brokers' processor time, microseconds a record
    ... busiest      that of the thread that took most: where processors are scarce each thread is given its
                     share, so this and the share say how many records a second there can be
    ... slices       times a thread of the brokers was given a processor, a record
    ... queue        microseconds a record that threads of the brokers could run and had no processor
    memory           MiB resident of a broker, before and after the load
    gap              ms without an acknowledgement when the leader is killed (kill -9); the session is
                     --session-ms, and the client asks who leads every --refresh-ms

Records per second depend on what else the machine does, so what counts are ratios of one round: they are
printed with their spread. Systems take turns in going first.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import yaml

from wrackline.harness.run.live.setup import new_test_id
from wrackline.harness.specification.build import Parts, build_parts, cluster_topic
from wrackline.harness.specification.spec import Spec, parse
from wrackline.systems.base import Node
from wrackline.systems.common.on_hosts import on_each

sys.path.insert(0, str(Path(__file__).parent / "broker"))

import failover
import produce

SYSTEMS = {
    "wrackline": """
kind: wrackline
config:
  session_timeout_ms: {session_ms}
  heartbeat_interval_ms: 300
  replica_lag_time_max_ms: 3000
  replica_fetch_backoff_ms: 200
  quorum_election_timeout_ms: 500
  quorum_fetch_timeout_ms: 1000
  quorum_request_timeout_ms: 1000
""",
    "apache-kafka": """
kind: apache-kafka
version: 4.4.0
config:
  broker.session.timeout.ms: {session_ms}
  broker.heartbeat.interval.ms: 300
  replica.lag.time.max.ms: 3000
  replica.fetch.backoff.ms: 200
  controller.quorum.election.timeout.ms: 500
  controller.quorum.fetch.timeout.ms: 1000
  controller.quorum.request.timeout.ms: 1000
  socket.send.buffer.bytes: -1
  socket.receive.buffer.bytes: -1
  replica.socket.receive.buffer.bytes: -1
""",
}
"""The same deadlines for both. Kafka's fixed socket buffers would cost it a third where processors are
short."""
SPEC = {
    "name": "bench-systems",
    "fleet": {"brokers": 3, "controllers": 3, "combined": True, "disk_mb": 16_384},
    "topic": {"name": "log", "partitions": 3, "replication_factor": 3, "min_insync_replicas": 2},
}
"""A quiet machine writes 4 GiB a broker in the warm-up; the disks are sparse files."""
PARTITIONS = 3
READY_S = 90.0

Figures = dict[str, list[float]]
"""By name; several where a round measures several times."""


@dataclass(frozen=True)
class Spent:
    """What the threads of the brokers have had so far: microseconds on a processor, microseconds in the queue
    for one, and how often they changed. By host and thread: a JVM ends threads, which take their sums with
    them."""

    threads: Mapping[tuple[str, str], tuple[float, float, float]]

    def since(self, before: Spent) -> tuple[float, float, float]:
        """The sum over the threads that live now."""
        nothing = (0.0, 0.0, 0.0)
        cpu = queue = slices = 0.0
        for thread, (cpu_us, queue_us, times) in self.threads.items():
            earlier = before.threads.get(thread, nothing)
            cpu += cpu_us - earlier[0]
            queue += queue_us - earlier[1]
            slices += times - earlier[2]
        return cpu, queue, slices

    def busiest_us(self, before: Spent) -> float:
        """Of the thread that had the processor for longest since then."""
        return max(had[0] - before.threads.get(thread, had)[0] for thread, had in self.threads.items())


class Cluster:
    """A system on its fleet."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.nodes: Sequence[Node] = [node for node in parts.system.nodes if not node.spare]

    def start(self, spec: Spec) -> float:
        """Seconds until it was ready."""
        system = self.parts.system
        self.parts.fleet.up()
        system.install()
        began = time.monotonic()
        on_each(self.nodes, system.start)  # a voter alone has no quorum, and listens only with one
        system.wait_ready(timeout_s=READY_S)
        took_s = time.monotonic() - began
        wanted = cluster_topic(spec, spec.topic)
        system.create_topic(wanted)
        return took_s

    def run(self, node: Node, command: str) -> str:
        return self.parts.fleet.remote(node.host).run(command).stdout

    def pids(self) -> dict[Node, int]:
        found = ((node, self.parts.system.pid(node)) for node in self.nodes)
        return {node: pid for node, pid in found if pid is not None}

    def spent(self) -> Spent:
        threads = {}
        for node, pid in self.pids().items():
            for line in self.run(node, f"cd /proc/{pid}/task && grep -H . */schedstat").splitlines():
                thread, _, had = line.partition("/schedstat:")
                on_ns, queued_ns, slices = map(int, had.split())
                threads[node.host.name, thread] = on_ns / 1e3, queued_ns / 1e3, float(slices)
        return Spent(threads)

    def resident_mib(self) -> list[float]:
        return [
            int(self.run(node, f"grep VmRSS /proc/{pid}/status").split()[1]) / 1024
            for node, pid in self.pids().items()
        ]


@contextmanager
def cluster(spec: Spec) -> Iterator[Cluster]:
    parts = build_parts(spec, new_test_id(spec.name))
    try:
        yield Cluster(parts)
    finally:
        parts.fleet.down()


def specification(system: str, session_ms: int) -> Spec:
    """Of a name from SYSTEMS, or of a file."""
    if system in SYSTEMS:
        section = yaml.safe_load(SYSTEMS[system].format(session_ms=session_ms))
    else:
        section = yaml.safe_load(Path(system).read_text(encoding="utf-8"))["system"]
    return parse(yaml.safe_dump({**SPEC, "system": section}), system)


# --- measuring -------------------------------------------------------------------------------------------


def throughput(
    cluster: Cluster, name: str, measure: Callable[[float], Mapping[str, float]], seconds: float
) -> Figures:
    """What a function of produce.py says, and what the brokers spent on it. It warms up for a second, which
    is counted with the brokers', so what they spent is divided by the records of both."""
    before = cluster.spent()
    with cluster.parts.fleet.entered():
        found = measure(seconds)
    after = cluster.spent()
    records = found["records"] * (seconds + produce._WARM_UP_S) / seconds
    cpu_us, queue_us, slices = after.since(before)
    return {
        f"{name}, records/s": [found["records_per_s"]],
        f"{name}, p50 ms": [found["p50_ms"]],
        f"{name}, p99 ms": [found["p99_ms"]],
        f"{name}, cpu us": [cpu_us / records],
        f"{name}, busiest thread, cpu us": [after.busiest_us(before) / records],
        f"{name}, slices": [slices / records],
        f"{name}, queue us": [queue_us / records],
    }


def load(cluster: Cluster, seconds: float, warm_up_s: float) -> Figures:
    bootstrap, topic = cluster.parts.system.bootstrap(), "log"

    def batched(for_s: float) -> Mapping[str, float]:
        return produce.batched(bootstrap, topic, PARTITIONS, for_s, False)

    def single(for_s: float) -> Mapping[str, float]:
        return produce.one_at_a_time(bootstrap, topic, for_s, False)

    idle = cluster.resident_mib()
    with cluster.parts.fleet.entered():
        single(warm_up_s / 2)
        batched(warm_up_s / 2)
    # One at a time first: batches leave the disks busy for a while.
    time.sleep(2)
    found = throughput(cluster, "one at a time", single, seconds)
    found |= throughput(cluster, "batched", batched, seconds)
    return {**found, "memory idle, MiB": idle, "memory after, MiB": cluster.resident_mib()}


def gaps(cluster: Cluster, kills: int, refresh_ms: int, *, idempotent: bool = True) -> Figures:
    """Of the leader of one partition, killed again and again; by whether it led the controllers too."""
    found: Figures = {"gap, ms": [], "gap with the controller, ms": []}
    system = cluster.parts.system
    with cluster.parts.fleet.entered():
        client = failover.Load(system.bootstrap(), "log", refresh_ms, idempotent=idempotent)
    client.start()
    try:
        for _ in range(kills):
            state = system.describe()
            leader = next(part.leader for part in state.partitions if part.partition == 0)
            node = next(node for node in cluster.nodes if node.is_broker and node.node_id == leader)
            gap_ms = _killed(cluster, client, node)
            found["gap with the controller, ms" if _decides(state.controller, node) else "gap, ms"].append(
                gap_ms
            )
            system.start(node)
            failover.wait_for("the full ISR", lambda: _is_whole(cluster), 120)
            time.sleep(1)  # the next kill is another one's, and its session a whole one
    finally:
        client.stop()
    return {name: values for name, values in found.items() if values}


def _decides(controller: int, node: Node) -> bool:
    """Combined nodes have the broker's id in the quorum, or that and a hundred."""
    return controller % 100 == node.node_id % 100


def _is_whole(cluster: Cluster) -> bool:
    partitions = cluster.parts.system.describe().partitions
    return len(partitions) == PARTITIONS and all(partition.full_isr for partition in partitions)


def _killed(cluster: Cluster, client: failover.Load, node: Node) -> float:
    """Kill it; ms between the last acknowledgement of the old leader and the first of another."""
    seen = len(client.acked_ns)
    failover.wait_for("acknowledgements", lambda: len(client.acked_ns) > seen + 50)
    before = len(client.acked_ns)
    killed_ns = time.monotonic_ns()
    cluster.parts.system.kill(node)
    # Longer without any than a broker that lives ever is, then some again.
    failover.wait_for(
        "acknowledgements of another leader",
        lambda: client.acked_ns[-1] > killed_ns + 500_000_000,
        120,
    )
    time.sleep(0.5)
    acked = client.acked_ns[before - 1 :]
    return max((after - last) / 1e6 for last, after in pairwise(acked))


def measure(system: str, options: argparse.Namespace) -> Figures:
    spec = specification(system, options.session_ms)
    with cluster(spec) as made:
        found: Figures = {"ready, s": [made.start(spec)]}
        found |= load(made, options.seconds, options.warm_up)
        return found | gaps(made, options.kills, options.refresh_ms)


# --- telling ---------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> str:
    """The median, and the smallest and largest."""
    if not values:
        return "-"
    return f"{median(values):,.6g} [{min(values):,.6g} .. {max(values):,.6g}]"


def ratios(first: Sequence[Figures], second: Sequence[Figures], name: str) -> list[float]:
    """Second to first, round by round, of their medians."""
    pairs = ((a[name], b[name]) for a, b in zip(first, second, strict=True) if name in a and name in b)
    return [median(b) / median(a) for a, b in pairs if median(a)]


def tell(rounds: Mapping[str, Sequence[Figures]]) -> None:
    systems = list(rounds)
    names = list(dict.fromkeys(name for runs in rounds.values() for run in runs for name in run))
    print("\nmedian [smallest .. largest] of all rounds; ratio: to the first system, within a round")
    for name in names:
        print(f"\n{name}")
        for system in systems:
            values = [value for run in rounds[system] for value in run.get(name, ())]
            rounded = [float(f"{value:.4g}") for value in values]
            line = f"    {system:<16} {spread(rounded)}"
            if system != systems[0]:
                found = [float(f"{value:.3g}") for value in ratios(rounds[systems[0]], rounds[system], name)]
                line += f"    ratio {spread(found)}"
            print(line)


def main() -> int:
    options = _parser().parse_args()
    systems = options.system or list(SYSTEMS)
    for system in systems:
        specification(system, options.session_ms).system.prepare(print)  # refused before anything is made
    rounds: dict[str, list[Figures]] = {system: [] for system in systems}
    for number in range(options.rounds):
        turn = number % len(systems)
        for system in (*systems[turn:], *systems[:turn]):
            began = time.monotonic()
            found = measure(system, options)
            rounds[system].append(found)
            first = ", ".join(f"{name} {spread([float(f'{v:.4g}') for v in found[name]])}" for name in found)
            print(f"round {number + 1}, {system}, {time.monotonic() - began:.0f} s: {first}", flush=True)
    tell(rounds)
    if options.json:
        options.json.write_text(json.dumps({"argv": shlex.join(sys.argv), "rounds": rounds}, indent=1))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--system",
        action="append",
        metavar="NAME_OR_FILE",
        help=f"one of {', '.join(SYSTEMS)}, or a specification; give it once for each (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each load (default %(default)s)")
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds (default %(default)s)")
    parser.add_argument("--kills", type=int, default=7, help="of the leader, a round (default %(default)s)")
    parser.add_argument("--session-ms", type=int, default=2_000, help="of a broker (default %(default)s)")
    parser.add_argument("--refresh-ms", type=int, default=100, help="of the client (default %(default)s)")
    parser.add_argument("--json", type=Path, help="write all figures there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
