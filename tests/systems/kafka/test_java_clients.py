"""Clients in Java against Apache Kafka itself, in a process of their own: a JVM stays in its process for
ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.systems.kafka.conftest import READY_S, installed
from wrackline.history import history_files
from wrackline.systems.base import TopicSpec
from wrackline.systems.kafka.system import KafkaSystem
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.store import ClientStore

pytestmark = [pytest.mark.fleet, pytest.mark.slow, pytest.mark.nightly]

SPEC = """
name: java
fleet: {{kind: netns, brokers: 1, controllers: 1, combined: true, disk_mb: 512}}
system: {{kind: apache-kafka, version: 4.4.0}}
topic: {{name: log, partitions: 2, replication_factor: 1, min_insync_replicas: 1}}
workload: {{name: {workload}, duration_s: 6, rate: 30, client: {{library: java, version: {version}}}{more}}}
"""
OFTEN = ", crash_every: 15"
"""Six seconds are too short for a member to crash of itself."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("workload", "version", "end_txn"),
    [
        ("txn", "4.4.0", 5),
        ("txn", "3.9.2", 4),
        ("group", "4.4.0", None),
        ("group", "3.9.2", None),
        ("share", "4.4.0", None),
    ],
)
def test_a_run_with_java_clients_records_every_kind_of_operation(
    workload: str, version: str, end_txn: int | None, tmp_path: Path
) -> None:
    installed("4.4.0")
    try:
        ClientStore().install(version)
    except Unavailable as wrong:
        pytest.skip(str(wrong))
    spec = tmp_path / "java.yaml"
    spec.write_text(
        SPEC.format(workload=workload, version=version, more=OFTEN if workload == "group" else "")
    )
    command = [sys.executable, "-m", "wrackline.harness.cli.entry", "run", str(spec), "--no-analysis"]
    done = subprocess.run(
        [*command, "--results", str(tmp_path / "results")],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [run] = (tmp_path / "results").glob("*-java-*")
    client = orjson.loads((run / "run.json").read_bytes())["client"]
    wanted = {"library": "java", "version": version}
    assert client == (wanted if end_txn is None else {**wanted, "end_txn_version": end_txn})
    rows = [row for path in history_files(run) for row in pq.read_table(path).to_pylist()]
    seen = {(row["f"], row["type"]) for row in rows}
    kinds = ("acquire", "acknowledge", "lag") if workload == "share" else ("poll", "commit")
    assert {(f, "ok") for f in ("send", "drain", *kinds)} <= seen
    assert ("drain", "fail") not in seen
    if workload == "group":
        assert {("rebalance", "ok"), ("crash", "ok")} <= seen
        answered = [orjson.loads(row["extra"]) for row in rows if (row["f"], row["type"]) == ("commit", "ok")]
        nodes = {extra.get("coordinator") for extra in answered} - {None}
        assert nodes, "read from the library's own fields"
        assert nodes <= set(map(int, orjson.loads((run / "run.json").read_bytes())["nodes"]))


ASK = """
import sys
from wrackline.workloads.clients.base import ClientError
from wrackline.clients_java.library import Java
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.log import LogSpec

settings = LogSpec(client=ClientSettings(library="java", end_timeout_ms=1_000))
asker = Java("4.4.0").consumer(sys.argv[1], settings, group=sys.argv[2])
asked = asker._kafka.sets()
asked.add(asker._kafka.place(sys.argv[2], 0))
for line in sys.stdin:
    try:
        if line == "plain\\n":  # as an application asks that knows of nothing
            told = asker.handle.committed(asked, asker._kafka.ms(1.0)).get(asker._kafka.place(sys.argv[2], 0))
            print(-1 if told is None else told.offset(), flush=True)
        else:
            print(asker.committed(sys.argv[2], [0])[0], flush=True)
    except Exception as wrong:
        print(type(wrong).__name__, flush=True)
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("how", "seen"), [("plain", 1), ("ours", 2)])
def test_what_a_group_committed_is_asked_anew_after_a_timeout(
    one_node: KafkaSystem, how: str, seen: int
) -> None:
    """The library itself (plain) gives the next call the answer that came too late for the one before."""
    try:
        ClientStore().install("4.4.0")
    except Unavailable as wrong:
        pytest.skip(str(wrong))
    [node] = one_node.nodes
    one_node.create_topic(TopicSpec(how, 1, 1, {}), timeout_s=READY_S)

    def commit(offset: int) -> None:
        with one_node.fleet.entered():
            client = Consumer({"bootstrap.servers": one_node.bootstrap(), "group.id": how})
            client.commit(offsets=[TopicPartition(how, 0, offset)], asynchronous=False)
            client.close()

    commit(1)
    with one_node.fleet.entered():
        asker = subprocess.Popen(
            [sys.executable, "-c", ASK, one_node.bootstrap(), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    with asker:
        assert asker.stdin is not None
        assert asker.stdout is not None

        def ask() -> str:
            print(how, file=asker.stdin, flush=True)
            return asker.stdout.readline().strip()  # type: ignore[union-attr]

        assert ask() == "1"
        one_node.pause(node)
        late = ask()
        one_node.resume(node)
        assert "Timeout" in late or late == "ClientError"
        commit(2)
        assert ask() == str(seen)
        asker.stdin.close()
