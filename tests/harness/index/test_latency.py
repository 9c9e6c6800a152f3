"""Latency by partition, and by the node that led it when a send was begun."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from upath import UPath

from wrackline.harness.index.collect import latency
from wrackline.harness.report.read.latency import PRECISION
from wrackline.history.model import CONTROL, RunInfo, TopicInfo
from wrackline.history.store.schema import METADATA_KEY, SCHEMA

S = 1_000_000_000
INFO = RunInfo(
    test_id="r",
    name="r",
    seed=1,
    started_at="2026-01-01T00:00:00Z",
    system="wrackline",
    workload="log",
    acks="all",
    idempotence=False,
    topics=(TopicInfo("log", 2, 3, 2),),
    nodes={"1": "n1", "2": "n2"},
)


def row(**columns: object) -> dict[str, object]:
    own = {"test_id": "r", "index": 0, "time_ns": 0, "process": 0, "type": "ok", "f": "send", "topic": "log"}
    return {**dict.fromkeys(SCHEMA.names), **own, **columns}


def leader(at_s: float, node: int) -> dict[str, object]:
    extra = f'{{"partitions": [{{"topic": "log", "partition": 0, "leader": {node}}}]}}'
    return row(
        time_ns=int(at_s * S),
        process=CONTROL,
        type="info",
        f="cluster",
        topic=None,
        partition=None,
        extra=extra,
    )


def sent(ended_s: float, took_ms: float, **columns: object) -> dict[str, object]:
    return row(**{"time_ns": int(ended_s * S), "latency_ns": int(took_ms * 1e6), "partition": 0, **columns})


def history(folder: Path, rows: list[dict[str, object]]) -> UPath:
    folder.mkdir(exist_ok=True)
    schema = SCHEMA.with_metadata({METADATA_KEY: INFO.to_json()})
    ordered = sorted(rows, key=lambda one: str(one["time_ns"]).zfill(20))
    pq.write_table(pa.Table.from_pylist(ordered, schema=schema), folder / "history.parquet", row_group_size=4)
    return UPath(folder)


def test_a_send_belongs_to_who_led_when_it_was_begun(tmp_path: Path) -> None:
    """The third was begun under n1 and answered under n2."""
    rows = [leader(at / 4, 1 if at < 20 else 2) for at in range(40)]
    rows += [sent(2.0, 10), sent(3.0, 20), sent(6.0, 2_000), sent(8.0, 30)]
    found = latency(history(tmp_path, rows))
    assert found is not None
    assert {name: (one.count, one.max_ms) for name, one in found.nodes.items()} == {
        "n1": (3, 2_000.0),
        "n2": (1, 30.0),
    }
    assert found.partitions["log-0"].count == 4
    assert found.partitions["log-0"].p50_ms == pytest.approx(20, rel=PRECISION)
    assert found.partitions["log-0"].p99_ms == pytest.approx(2_000, rel=PRECISION)


def test_only_acknowledged_sends_count(tmp_path: Path) -> None:
    rows = [sent(1.0, 5), sent(2.0, 99, type="info"), sent(3.0, 99, type="fail"), sent(4.0, 99, f="poll")]
    found = latency(history(tmp_path, rows))
    assert found is not None
    assert [(name, one.count, one.max_ms) for name, one in found.partitions.items()] == [("log-0", 1, 5.0)]


def test_without_a_leader_the_partition_still_has_it(tmp_path: Path) -> None:
    found = latency(history(tmp_path, [leader(1, 1), sent(20.0, 5), sent(21.0, 5, partition=1)]))
    assert found is not None
    assert found.nodes == {}
    assert list(found.partitions) == ["log-0", "log-1"]


def test_partitions_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    found = latency(history(tmp_path, [sent(n + 1.0, 5, partition=n) for n in range(11)]))
    assert found is not None
    assert list(found.partitions) == [f"log-{n}" for n in range(11)]


def test_what_cannot_be_read_is_not_known(tmp_path: Path) -> None:
    assert latency(UPath(tmp_path)) is None
    (tmp_path / "history.parquet").write_bytes(b"PAR1 nothing")
    assert latency(UPath(tmp_path)) is None
