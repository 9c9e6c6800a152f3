"""How long a partition is without service when its leader is killed, by who elects the next one.

    sudo python benchmarks/coordinators.py                                   # all systems, 7 kills each
    sudo python benchmarks/coordinators.py --system zk08 --system kip966 --kills 20

Each system has a fresh netns fleet: three brokers, and on hosts of their own whoever elects. That is a KRaft
controller, or ZooKeeper; for Apache Kafka with ZooKeeper it is also the broker that is the controller, which
has no replicas. No kill hits them. A producer (librdkafka, acks=all) writes all the time. The leader of its
partition is killed (kill -9) and started again; when the ISR is full the next one is. What is measured is the
time without an acknowledgement. A session is --session-ms everywhere; the client asks who leads every
--refresh-ms.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from wrackline.harness.specification.spec import Spec, parse

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.systems import SPEC, cluster, gaps, spread

_LAG_MS = 3_000
SYSTEMS = ("zk08", "kip101", "kip966", "kafka-1.1.1", "kafka-2.8.2", "kafka-4.4.0")


def _ours(profile: str, session_ms: int) -> tuple[dict[str, int], dict[str, Any]]:
    config = {
        "session_timeout_ms": session_ms,
        "zookeeper_session_timeout_ms": session_ms,
        "heartbeat_interval_ms": 300,
        "replica_lag_time_max_ms": _LAG_MS,
        "replica_fetch_backoff_ms": 200,
    }
    coordinator = {"zookeeper": 1} if profile == "zk08" else {"controllers": 1}
    return coordinator, {"kind": "wrackline", "profile": profile, "config": config}


def _kafka(version: str, session_ms: int) -> tuple[dict[str, int], dict[str, Any]]:
    config: dict[str, int | bool] = {"replica.lag.time.max.ms": _LAG_MS, "replica.fetch.backoff.ms": 200}
    coordinator = {"controllers": 1}
    if version.startswith("4."):
        config |= {"broker.session.timeout.ms": session_ms, "broker.heartbeat.interval.ms": 300}
    else:
        coordinator |= {"zookeeper": 1}
        config |= {"zookeeper.session.timeout.ms": session_ms, "unclean.leader.election.enable": False}
    return coordinator, {"kind": "apache-kafka", "version": version, "config": config}


def specification(name: str, session_ms: int) -> Spec:
    kind, _, version = name.partition("-")
    coordinator, system = _kafka(version, session_ms) if kind == "kafka" else _ours(name, session_ms)
    fleet = {"brokers": 3, "disk_mb": 1_024, **coordinator}
    return parse(
        yaml.safe_dump({**SPEC, "name": "bench-coordinators", "fleet": fleet, "system": system}), name
    )


def measure(name: str, options: argparse.Namespace) -> list[float]:
    """Milliseconds, of each kill."""
    spec = specification(name, options.session_ms)
    with cluster(spec) as made:
        made.start(spec)
        time.sleep(options.settle)
        # zk08 knows no idempotent producers.
        found = gaps(made, options.kills, options.refresh_ms, idempotent=False)
        return [ms for figures in found.values() for ms in figures]


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    names = options.system or SYSTEMS
    for name in names:
        specification(name, options.session_ms).system.prepare(print)  # refused before anything is made
    found = {}
    logging.getLogger("wrackline.systems").setLevel(logging.ERROR)  # of servers that are not there yet
    print(f"session {options.session_ms} ms, the client asks who leads every {options.refresh_ms} ms")
    for name in names:
        found[name] = measure(name, options)
        print(f"{name:<14} {options.kills} kills: median {median(found[name]):,.0f} ms", end="")
        print(f"   {spread([float(f'{ms:.4g}') for ms in sorted(found[name])])}", flush=True)
    if options.json:
        options.json.write_text(
            json.dumps({"options": vars(options) | {"json": None}, "gap_ms": found}, indent=1)
        )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--system", action="append", choices=SYSTEMS, help="give it once for each (default: all)"
    )
    parser.add_argument("--kills", type=int, default=7, help="of each (default %(default)s)")
    parser.add_argument("--session-ms", type=int, default=2_000, help="of a broker (default %(default)s)")
    parser.add_argument("--refresh-ms", type=int, default=100, help="of the client (default %(default)s)")
    parser.add_argument(
        "--settle", type=float, default=5.0, help="seconds before the first kill (default %(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write all figures there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
