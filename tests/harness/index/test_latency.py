"""Latency by partition, and by the node that led it when a send was begun."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from tests.harness.report.read.histories import row, written
from tests.harness.report.synthetic_setting import INFO
from wrackline.harness.index.collect import latency
from wrackline.harness.report.read.latency import PRECISION
from wrackline.history.model import CONTROL


def leader(at_s: float, node: int) -> dict[str, Any]:
    extra = f'{{"partitions": [{{"topic": "log", "partition": 0, "leader": {node}}}]}}'
    return row(at_s, CONTROL, "info", "cluster", topic=None, partition=None, extra=extra)


def sent(
    ended_s: float, took_ms: float, kind: str = "ok", f: str = "send", partition: int = 0
) -> dict[str, Any]:
    return row(ended_s, 0, kind, f, partition=partition, latency_ns=int(took_ms * 1e6))


def history(folder: Path, rows: list[dict[str, Any]]) -> UPath:
    return UPath(written(folder, rows, info=INFO, groups=4).parent)


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
    rows = [sent(1.0, 5), sent(2.0, 99, "info"), sent(3.0, 99, "fail"), sent(4.0, 99, f="poll")]
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
