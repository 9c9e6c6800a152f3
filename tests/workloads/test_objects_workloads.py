"""Registers and queues with their real clients against the mock cluster: what they record is what such an
object does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.workloads.driving import Row, driven, recorded
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, columns
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import is_marker
from wrackline.workloads.log import ClientsSpec
from wrackline.workloads.queue import QueueSpec
from wrackline.workloads.register import RegisterSpec

pytestmark = pytest.mark.real

PARTITIONS = 2


def drive(bootstrap: str, run_dir: Path, spec: ClientsSpec, operations: int) -> list[Row]:
    with driven(bootstrap, run_dir, spec, PARTITIONS, operations, tries=300, stop_s=20):
        pass
    return recorded(run_dir)


def of_partition(rows: list[Row], partition: int, get: str) -> Columns:
    """One partition's operations as an object's; ``get`` is the kind that takes a value out."""
    found: list[tuple[bool, int, int, int]] = []
    open_at: dict[int, Row] = {}
    for row in rows:
        if row["type"] == "invoke":
            open_at[row["process"]] = row
            continue
        begun = open_at.pop(row["process"])
        value = row["records"][0]["value"] if row["records"] else NOTHING
        if row["partition"] != partition or row["type"] == "fail" or is_marker(value):
            continue
        ret = row["index"] if row["type"] == "ok" else NEVER
        found.append((row["f"] == "send", value, begun["index"], ret))
        assert row["f"] in ("send", get)
    return columns(found)


@pytest.mark.parametrize("read_by", ["marker", "end"])
def test_reads_of_a_register_find_the_last_write(mock_cluster: str, tmp_path: Path, read_by: Any) -> None:
    spec = RegisterSpec(rate=150, senders=2, readers=3, read_by=read_by)
    rows = drive(mock_cluster, tmp_path / "run", spec, 400)
    reads = [row for row in rows if row["f"] == "read" and row["type"] == "ok"]
    assert len({row["records"][0]["value"] for row in reads if row["records"]}) > 20
    assert any(is_marker(row["records"][0]["value"]) for row in rows if row["f"] == "send") == (
        read_by == "marker"
    )
    for partition in range(PARTITIONS):
        history = of_partition(rows, partition, "read")
        assert len(history) > 40
        assert check_register(history) == []


def test_what_is_dequeued_comes_out_once_and_in_order(mock_cluster: str, tmp_path: Path) -> None:
    # More dequeues than enqueues, so that queues are empty now and then.
    spec = QueueSpec(rate=50, senders=1, dequeuers=4, mix={"send": 1, "dequeue": 8}, client={"poll_ms": 30})
    rows = drive(mock_cluster, tmp_path / "run", spec, 150)
    for partition in range(PARTITIONS):
        history = of_partition(rows, partition, "dequeue")
        got = history.value[~history.puts]
        assert np.count_nonzero(got == NOTHING) > 3
        assert np.count_nonzero(got != NOTHING) > 3
        assert check_queue(history) == []


def test_settings_under_which_values_could_repeat_are_refused() -> None:
    for spec in (RegisterSpec, QueueSpec):
        with pytest.raises(ValidationError, match="acks: 1 or all"):
            spec(acks=0, idempotence=False)
        with pytest.raises(ValidationError, match="acks: all needs idempotence: true"):
            spec(idempotence=False)
        with pytest.raises(ValidationError, match=r"client\.retries without idempotence"):
            spec(acks=1, idempotence=False, client={"retries": 3})
        assert spec(acks=1, idempotence=False).acks == 1
        assert spec(client={"retries": 3}).idempotence


def test_a_specification_names_its_workload() -> None:
    assert isinstance(parse("name: x\nworkload: {name: register}", "x.yaml").workload, RegisterSpec)
    assert isinstance(parse("name: x\nworkload: {name: queue}", "x.yaml").workload, QueueSpec)
    assert parse("name: x\nworkload: {rate: 7}", "x.yaml").workload.name == "log"
    with pytest.raises(SpecError, match=r"workload.pollers: unknown key; known here: .*readers"):
        parse("name: x\nworkload: {name: register, pollers: 3}", "x.yaml")
    with pytest.raises(SpecError, match="workload"):
        parse("name: x\nworkload: {name: stack}", "x.yaml")
