"""Records what real clients, and nodes among themselves, send to a cluster of ours: the frames that fuzzing
starts from.

    python benchmarks/broker/recorder/record.py            # writes tests/broker/wire/frames/*.jsonl again

It needs Java, Maven and Go besides the development packages, and fetches Kafka's clients and franz-go through
Maven and Go. Per client, API and version a few frames of different lengths are kept, none longer than 4 KiB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

# The cluster on loopback is the one the client tests use.
sys.path.insert(0, str(Path(__file__).parents[3]))

from proxy import HIDDEN, Exchange, Proxy
from python_clients import aiokafka_client, kafka_python_client, kcat_client, librdkafka_client

from tests.broker.clients.loopback import Cluster
from wrackline.broker.wire.apis import API_VERSIONS, BY_KEY
from wrackline.broker.wire.proof import PROOF
from wrackline.broker.wire.unserved import UNSERVED

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
_KEPT = 3
"""Frames of one client, API and version, of different lengths."""
_LONGEST = 4_096
_CLIENT_S = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--to", type=Path, default=ROOT / "tests" / "broker_wire" / "frames")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wrackline-recorder-") as folder:
        exchanges = _record(Path(folder))
    options.to.mkdir(exist_ok=True)
    for client, lines in _chosen(exchanges).items():
        (options.to / f"{client}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        print(f"{client}: {len(lines)} frames")
    return 0


def _record(folder: Path) -> list[Exchange]:
    listen = {"listen": HIDDEN}
    # Small snapshots and lagging followers, so that nodes have something to say in every API of theirs.
    quorum = {"metadata_log_max_records_between_snapshots": 40, "metadata_log_segment_bytes": 16_384}
    cluster = Cluster(folder, controllers=3, broker_keys=listen, controller_keys={**listen, **quorum})
    with Proxy(port for node in cluster.nodes for port in node.ports) as proxy, cluster:
        for topic in ("of-kcat", "of-aiokafka"):
            cluster.create_topic(topic)  # these two cannot
        for name, run in _clients(folder).items():
            print(f"--- {name}", flush=True)
            run(cluster.bootstrap)
        _upset(cluster)
    return proxy.exchanges


def _clients(folder: Path) -> dict[str, Callable[[str], None]]:
    return {
        "librdkafka": librdkafka_client,
        "kcat": kcat_client,
        "kafka-python": kafka_python_client,
        "aiokafka": aiokafka_client,
        "java": lambda bootstrap: _java(folder, bootstrap),
        "franz-go": lambda bootstrap: _run(["go", "run", ".", bootstrap], HERE / "go"),
    }


def _java(folder: Path, bootstrap: str) -> None:
    jars = folder / "jars"
    goal = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
    _run(["mvn", "-q", "-f", str(HERE / "java" / "pom.xml"), goal, f"-DoutputDirectory={jars}"], folder)
    _run(["java", "-cp", f"{jars}/*", str(HERE / "java" / "Recorder.java"), bootstrap], folder)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=_CLIENT_S)


def _upset(cluster: Cluster) -> None:
    """A vote, an unclean recovery and a snapshot that is fetched: what nodes say only when something
    happens."""
    cluster.create_topic("upset", replicas=3, partitions=2)
    for node in cluster.brokers.values():
        node.kill()
    for node in cluster.brokers.values():
        node.start()
    cluster.wait_isr("upset", partitions=2)
    active = cluster.active_controller()
    active.stop()
    cluster.create_topic("after-the-vote", replicas=3)
    active.start()
    for at in range(12):
        cluster.create_topic(f"more-{at}", replicas=3, partitions=4)
    newcomer = cluster.brokers[3]
    newcomer.stop()
    subprocess.run(["rm", "-rf", str(newcomer.data_dir)], check=True)
    newcomer.start()
    cluster.wait_isr("upset", partitions=2)


def _chosen(exchanges: Iterable[Exchange]) -> dict[str, list[str]]:
    """Lines by client: of every API and version some frames of different lengths, the shortest first."""
    found: dict[tuple[str, int, int], dict[int, Exchange]] = defaultdict(dict)
    for seen in exchanges:
        if seen.key not in PROOF and len(seen.request) <= _LONGEST and len(seen.answer) <= _LONGEST:
            found[_client(seen.client_id), seen.key, seen.version].setdefault(len(seen.request), seen)
    chosen = defaultdict(list)
    for (client, key, version), by_length in sorted(found.items()):
        lengths = sorted(by_length)
        kept = {lengths[0], lengths[len(lengths) // 2], lengths[-1]}
        for length in sorted(kept)[:_KEPT]:
            line = {"api": _name(key), "version": version, "request": by_length[length].request.hex()}
            if client == "nodes":
                # What clients are answered is no node's to read.
                line["answer"] = by_length[length].answer.hex()
            chosen[client].append(json.dumps(line))
    return chosen


def _client(client_id: str) -> str:
    if client_id.startswith("node-"):
        return "nodes"
    return "librdkafka" if client_id == "rdkafka" else client_id.split("-producer")[0].split("-consumer")[0]


def _name(key: int) -> str:
    if key == API_VERSIONS:
        return "ApiVersions"
    return BY_KEY[key].name if key in BY_KEY else UNSERVED[key].name


if __name__ == "__main__":
    sys.exit(main())
