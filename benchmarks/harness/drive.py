"""How many operations per second the workload ``log`` drives and records against a live cluster, and where
the processor time goes.

    python benchmarks/harness/drive.py                    # three brokers of our own on loopback
    python benchmarks/harness/drive.py --mock             # librdkafka's mock cluster: next to no broker
    python benchmarks/harness/drive.py --rate 3000        # at an asked rate instead of as fast as it can

Goal: 5,000 operations per second on two quiet cores. Processor time is told apart by whose it is: the
brokers', librdkafka's threads' in the harness, and Python's threads' in the harness. It depends less than the
rate on what else the machine is doing, so the last line says what a processor does that has nothing else to
do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wrackline.history import Recorder
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.workloads.log import LogSpec, LogWorkload

# The cluster on loopback is the one the client tests use.
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.broker.clients.loopback import Cluster

GOAL = 5_000
PARTITIONS = 3
_TICKS = os.sysconf("SC_CLK_TCK")
_MOCK = """
import sys
from confluent_kafka import Producer
owner = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused", "log_level": 0})
brokers = owner.list_topics(timeout=10).brokers.values()
owner.list_topics("log", timeout=10)
print(",".join(f"{broker.host}:{broker.port}" for broker in brokers), flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Target:
    bootstrap: str
    pids: Sequence[int]
    """The cluster's processes."""


@contextlib.contextmanager
def loopback(folder: Path) -> Iterator[Target]:
    with Cluster(folder, combined=True) as cluster:
        cluster.create_topic("log", partitions=PARTITIONS)
        yield Target(
            cluster.bootstrap, [node.process.pid for node in cluster.nodes if node.process is not None]
        )


@contextlib.contextmanager
def mock(_: Path) -> Iterator[Target]:
    with subprocess.Popen(
        [sys.executable, "-c", _MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Target(process.stdout.readline().strip(), [process.pid])
        process.stdin.close()


@dataclass(frozen=True)
class Spent:
    """Processor seconds since the processes began."""

    brokers: float
    librdkafka: float
    python: float

    def since(self, before: Spent) -> Spent:
        return Spent(
            self.brokers - before.brokers,
            self.librdkafka - before.librdkafka,
            self.python - before.python,
        )


def _cpu_s(stat: Path) -> float:
    """0 for a thread that has ended meanwhile: what it took is lost, so clients should live on."""
    try:
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / _TICKS


def spent(target: Target, harness: Sequence[int]) -> Spent:
    librdkafka = python = 0.0
    for pid in harness:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                if (task / "comm").read_text().startswith("rdk:"):
                    librdkafka += _cpu_s(task / "stat")
                else:
                    python += _cpu_s(task / "stat")
    return Spent(sum(_cpu_s(Path(f"/proc/{pid}/stat")) for pid in target.pids), librdkafka, python)


def harness_pids() -> list[int]:
    """This process, and the processes of clients that it started."""
    own = os.getpid()
    children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    return [own, *(int(pid) for pid in children if b"multiprocessing" in _command(pid))]


def _command(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def drive(target: Target, folder: Path, spec: LogSpec, seconds: float) -> None:
    topics = (TopicInfo("log", PARTITIONS, 3, 2),)
    info = RunInfo("drive", "drive", 1, "", "loopback", spec.name, str(spec.acks), False, topics)
    with Recorder(folder / "run", info) as recorder:
        workload = LogWorkload(
            spec,
            bootstrap=target.bootstrap,
            topics={"log": PARTITIONS},
            seed=1,
            recorder=recorder,
            enter=contextlib.nullcontext,
        )
        workload.start()
        while workload.missing_kinds():
            time.sleep(0.05)
        time.sleep(1)
        pids = harness_pids()
        before, began, cpu_before = workload.counts(), time.monotonic(), spent(target, pids)
        time.sleep(seconds)
        after, took, cpu = workload.counts(), time.monotonic() - began, spent(target, pids)
        stuck = workload.stop(timeout_s=20)
        if stuck or workload.failure:
            raise SystemExit(f"did not end: {stuck}, {workload.failure}")
    operations = after.operations - before.operations
    cpu = cpu.since(cpu_before)
    kinds = ", ".join(f"{(after.ok[f] - before.ok.get(f, 0)) / took:,.0f} {f}" for f in sorted(after.ok))
    print(f"{operations / took:,.0f} operations/s recorded (goal {GOAL:,}): {kinds}")
    print(f"not ok: {after.fail - before.fail} failed, {after.info - before.info} unknown")
    for name, of in (
        ("brokers", cpu.brokers),
        ("librdkafka", cpu.librdkafka),
        ("python", cpu.python),
    ):
        print(
            f"{name:<11}{of / took:6.2f} processors {of / operations * 1e6:8.1f} us an operation "
            f"{of / (cpu.brokers + cpu.librdkafka + cpu.python):6.0%}"
        )
    own = cpu.librdkafka + cpu.python
    print(
        f"{operations / own:,.0f} operations per second and processor of the harness, "
        f"{operations / (own + cpu.brokers):,.0f} of all"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0, help="0 (default): as fast as it can")
    parser.add_argument("--senders", type=int, default=6)
    parser.add_argument("--in-flight", type=int, help="operations under way per sender")
    parser.add_argument("--record-bytes", type=int, default=128)
    parser.add_argument("--mock", action="store_true", help="librdkafka's mock cluster")
    options = parser.parse_args()
    spec = LogSpec(
        rate=options.rate,
        senders=options.senders,
        in_flight=options.in_flight,
        record_bytes=options.record_bytes,
    )
    with (
        tempfile.TemporaryDirectory(prefix="wrackline-drive-") as folder,
        (mock if options.mock else loopback)(Path(folder) / "cluster") as target,
    ):
        drive(target, Path(folder), spec, options.seconds)


if __name__ == "__main__":
    main()
