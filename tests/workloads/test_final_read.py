"""The final read against librdkafka's own mock cluster, which is asked for the end and does not tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workloads.driving import driven
from wrackline.checkers.inputs.runs import Run, load_run
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.workloads.clients.base import Polled
from wrackline.workloads.clients.librdkafka.consumers import RdkafkaConsumer
from wrackline.workloads.log import LogSpec, drain
from wrackline.workloads.log.drain import Drained

pytestmark = pytest.mark.real

SHORT = 5
PARTITIONS = 4


def read_back(
    bootstrap: str, run_dir: Path, *, pollers: int = 1, deadline_s: float = 20
) -> tuple[Run, list[Drained]]:
    spec = LogSpec(rate=0, senders=2, pollers=pollers, enders=0)
    with driven(bootstrap, run_dir, spec, PARTITIONS, 400, tries=200, stop_s=15) as workload:
        drained = workload.drain(deadline_s=deadline_s)
    return load_run(run_dir), drained


def told(run: Run) -> bool:
    [condition] = [one for one in conditions(run, Figures()) if one.name == "final read complete"]
    return condition.ok


def detail(run: Run) -> str:
    [condition] = [one for one in conditions(run, Figures()) if one.name == "final read complete"]
    return condition.detail


def test_the_end_is_asked_for_again_when_nothing_comes_any_more(mock_cluster: str, tmp_path: Path) -> None:
    run, drained = read_back(mock_cluster, tmp_path / "run")
    for partition in range(PARTITIONS):
        final = run.final["log", partition]
        assert (final.complete, final.stale_end) == (True, None)
        assert [one.end for one in final.reported_ends] == [final.end] * 2 == [drained[partition].records] * 2
        assert final.asked == final.reported_ends[0].invoke_index  # so late an end was shown to anybody
    assert told(run)


@pytest.mark.parametrize("lies", [1, 99])
def test_the_read_goes_on_past_an_end_that_is_told_too_small(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lies: int
) -> None:
    asked: dict[int, int] = {}
    ends = RdkafkaConsumer.ends

    def too_small(client: RdkafkaConsumer, topic: str, partition: int) -> tuple[int, int]:
        low, high = ends(client, topic, partition)
        asked[partition] = asked.get(partition, 0) + 1
        return low, high - SHORT if asked[partition] <= lies else high

    monkeypatch.setattr(RdkafkaConsumer, "ends", too_small)
    run, drained = read_back(mock_cluster, tmp_path / "run")
    for partition in range(PARTITIONS):
        final = run.final["log", partition]
        assert final.end == drained[partition].records > SHORT
        assert final.complete
        assert final.reported_ends[0].end == final.end - SHORT
        assert final.stale_end == (None if lies == 1 else final.end - SHORT)
    assert told(run) == (lies == 1)


def test_what_cannot_be_read_is_passed_over_where_what_is_behind_it_can(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of partition 0 the tier has lost two segments; to consumers their records are gone."""
    lost = (*range(3, 7), *range(15, 17))
    positions: dict[int, int] = {}
    assign, poll = RdkafkaConsumer.assign, RdkafkaConsumer.poll

    def noted(client: RdkafkaConsumer, topic: str, places: dict[int, int]) -> None:
        positions[id(client)] = places.get(0, -1)
        assign(client, topic, places)

    def failing(client: RdkafkaConsumer, most: int, timeout_s: float) -> Polled:
        if positions.get(id(client)) in lost:
            return Polled([], "UNKNOWN", False, {})
        polled = poll(client, most, timeout_s)
        first = next(
            (one.offset for one in polled.records if one.partition == 0 and one.offset in lost), None
        )
        if first is None:
            return polled
        positions[id(client)] = first
        return Polled([one for one in polled.records if one.offset < first], None, False, {})

    monkeypatch.setattr(RdkafkaConsumer, "assign", noted)
    monkeypatch.setattr(RdkafkaConsumer, "poll", failing)
    monkeypatch.setattr(drain, "UNREADABLE_S", 1.0)
    run, drained = read_back(mock_cluster, tmp_path / "run", pollers=0, deadline_s=60)
    assert told(run)
    final = run.final["log", 0]
    assert (final.complete, final.unreadable) == (True, ((3, 6), (15, 16)))
    assert drained[0].records == final.end - len(lost)
    assert not any(offset in drained[0].offsets for offset in lost)
    assert run.final["log", 1].unreadable == ()
    assert detail(run).endswith("; nobody could be given offsets 3 to 6, 15 to 16 of log-0")


def test_an_end_that_is_told_too_large_is_never_reached(
    mock_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = RdkafkaConsumer.ends

    def too_large(client: RdkafkaConsumer, topic: str, partition: int) -> tuple[int, int]:
        low, high = ends(client, topic, partition)
        return low, high + SHORT

    monkeypatch.setattr(RdkafkaConsumer, "ends", too_large)
    spec = LogSpec(rate=0, senders=2, pollers=1, enders=0)
    with driven(mock_cluster, tmp_path / "run", spec, PARTITIONS, 400, tries=200, stop_s=15) as workload:
        drained = workload.drain(deadline_s=4)
    assert not any(one.complete for one in drained)
    assert not told(load_run(tmp_path / "run"))
