"""The view behind the page computes its numbers, neighbourhoods, timelines and charts."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.report import synthetic_run
from wrackline.checkers.explain.operations import pair
from wrackline.checkers.explain.step import explain
from wrackline.checkers.inputs.cluster_history import LeaderSpan, polled_spans
from wrackline.checkers.verdict.seal import UNSEALED
from wrackline.harness.report.draw.cluster_chart import cluster_chart, span_tip
from wrackline.harness.report.draw.events import bar_name, pack_faults, place_label
from wrackline.harness.report.draw.process_lanes import merge_bars
from wrackline.harness.report.draw.run_chart import BUCKETS, buckets, run_chart
from wrackline.harness.report.evidence import EvidenceGroup
from wrackline.harness.report.model import Report, build
from wrackline.harness.report.read.faults import Fault, controller_spans
from wrackline.harness.report.read.files import read_run
from wrackline.harness.report.summary import tiles_of, versions_of
from wrackline.history import wording as text
from wrackline.history.excerpts import Excerpt, History
from wrackline.history.model import CONTROL, Event, Record, RunInfo, Type, value_of
from wrackline.history.wording import outcome_label
from wrackline.pages.frame import PAGE, PHONE, Frame
from wrackline.pages.svg import Scale, Svg, ticks

S = synthetic_run.S


@pytest.fixture(scope="module")
def report(whole_run: Path) -> Report:
    return build(whole_run)


def group_of(report: Report, anomaly: str) -> EvidenceGroup:
    return next(one.groups[0] for one in report.further if one.anomaly == anomaly)


@pytest.mark.parametrize(
    ("name", "said"), [("spark 4.0.1", "spark 4.0.1"), ("local", "one process, without Spark")]
)
def test_it_says_what_carried_out_the_analysis(whole_run: Path, name: str, said: str) -> None:
    files = read_run(whole_run)
    files = dataclasses.replace(files, verdict={**(files.verdict or {}), "engine": {"name": name}})
    assert dict(versions_of(files))["judged by"] == said


def test_anomalies_are_ordered_and_split_by_whether_anything_was_found(report: Report) -> None:
    found = [one.anomaly for one in report.found]
    assert {a.name: a.count for a in found} == {
        "lost-write": synthetic_run.LOST, "vanished-read": 3, "lost-committed": 1, "lost-on-replica": 1,
        "inconsistent-offset": synthetic_run.LOST, "replica-divergence": 1, "phantom": 1,
        "not-linearizable": 1, "unproven-write": 10,
    }  # fmt: skip
    assert [a.name for a in found] == [
        "lost-write", "vanished-read", "lost-committed", "lost-on-replica", "inconsistent-offset",
        "replica-divergence", "phantom", "not-linearizable", "unproven-write",
    ]  # fmt: skip
    assert len(report.clean) == 66
    assert [(gap.what, gap.why) for gap in report.gaps] == [("verdict.json", UNSEALED)]


def test_availability_is_told_from_the_fault_on(report: Report) -> None:
    first = report.faults[0]
    assert first.worst_gap_ms == pytest.approx(1999.6, abs=0.1)
    assert first.full_isr == "8 s"
    assert [gone.where for gone in first.gone] == ["log-0", "log-1", "log-2"]


def test_a_lost_write_shows_what_clients_logs_and_the_final_read_have(report: Report) -> None:
    group = group_of(report, "lost-write")
    assert group.group.count == synthetic_run.LOST
    assert group.group.unbroken
    item = group.items[0]
    why = item.explanation
    send, poll, drain = why.operations
    assert (send.f, send.outcome, send.node) == ("send", "ok", "n2")
    assert send.begin_ns < (send.end_ns or 0) < synthetic_run.CUT_AT
    assert (poll.f, drain.f) == ("poll", "drain")
    assert [fault.id for fault in item.faults] == ["f3"]
    assert why.neighbourhood is not None
    names = [column.name for column in why.neighbourhood.columns]
    assert names == ["acked", "log of n1", "log of n2", "log of n3", "final read", "polls", "poll (2)"]
    culprit = next(line for line in why.neighbourhood.lines if line.culprit)
    assert culprit.offset == why.finding.offset
    assert why.finding.value in {held.value for held in culprit.cells[0].held}
    assert all(why.finding.value not in {held.value for held in cell.held} for cell in culprit.cells[1:5])
    assert all(cell.state == "differs" for cell in culprit.cells[1:5])


def test_a_divergence_marks_the_replica_that_differs(report: Report) -> None:
    why = group_of(report, "replica-divergence").items[0].explanation
    assert why.neighbourhood is not None
    assert [line.offset for line in why.neighbourhood.lines] == list(range(697, 704))
    culprit = next(line for line in why.neighbourhood.lines if line.culprit)
    assert [cell.state for cell in culprit.cells[1:4]] == ["same", "same", "differs"]
    assert [op.who for op in why.operations] == ["replica n1", "replica n3"]


def test_a_timeline_reaches_from_the_operation_to_the_fault(report: Report) -> None:
    item = group_of(report, "lost-write").items[0]
    (timeline,) = item.timelines
    assert timeline.window.begin_ns < item.explanation.operations[0].begin_ns
    assert timeline.window.end_ns > synthetic_run.CUT_AT
    drawing = ElementTree.fromstring(f"<both>{timeline.drawing}</both>")[0]
    classes = [element.get("class", "") for element in drawing.iter()]
    assert sum("culprit" in cls for cls in classes) == 2, "the send, and the poll that read it"
    assert any("f-power" in cls and "band" in cls for cls in classes)
    assert (
        sum(element.text == "1" and element.get("class") == "badge-text" for element in drawing.iter()) == 1
    )


def test_findings_of_one_operation_share_one_timeline(own_run: Path) -> None:
    """Three records of one send lost: the picture is the same."""
    cited = [100]
    findings = [
        {"test_id": "x", "anomaly": "lost-write", "topic": "log", "partition": 0, "offset": 40 + n,
         "value": 16 * n, "operations": cited, "where": "tail", "explanation": "gone"}
        for n in range(3)
    ]  # fmt: skip
    synthetic_run.write_findings(own_run, findings)
    explain(own_run)
    items = group_of(build(own_run), "lost-write").items
    assert [len(item.timelines) for item in items] == [1, 0, 0]
    assert [item.explanation.same_as for item in items] == [None, 40, 40]


def test_leaders_are_merged_where_nothing_changed_and_unknown_in_silence(whole_run: Path) -> None:
    control = History([whole_run / "history.parquet"]).control()
    spans = polled_spans(control, synthetic_run.NODES, 60 * S)
    assert list(spans) == ["log-0", "log-1", "log-2"]
    told = [
        (round(s.begin_ns / S, 1), round(s.end_ns / S, 1), s.leader, s.leader_epoch, len(s.isr))
        for s in spans["log-0"]
    ]
    assert told == [
        (1.0, 12.9, "n1", 1, 3), (12.9, 14.2, None, 1, 3), (14.2, 20.0, "n2", 2, 2),
        (20.0, 24.6, "n2", 2, 3), (24.6, 31.0, "n2", 2, 2), (31.0, 36.4, "n2", 2, 3),
        (36.4, 46.0, "n3", 3, 2), (46.0, 54.0, "n3", 3, 3),
        (55.0, 60.0, "n3", 3, 3),
    ]  # fmt: skip


def test_a_long_run_is_drawn_with_a_bounded_number_of_buckets() -> None:
    seconds = [
        {"t": t, "f": "send", "ok": 10, "fail": 0, "info": 0, "p50_ms": 2, "p99_ms": t % 60}
        for t in range(7200)
    ]
    step, series = buckets({"seconds": seconds}, 7_200)
    assert step == 24
    assert len(series["send"]) <= BUCKETS
    assert {bucket.ok for bucket in series["send"]} == {10}
    assert max(bucket.p99 or 0 for bucket in series["send"]) == 59
    drawn = run_chart({"seconds": seconds}, (), (), 7_200 * S, (), PAGE)
    ElementTree.fromstring(drawn)
    assert len(drawn) < 150_000


def test_a_crowded_timeline_merges_until_it_is_small_enough() -> None:
    events = [
        Event(n % 5, Type.OK, "send", index=n, time_ns=n * 1_000 + 400, latency_ns=400) for n in range(20_000)
    ]
    operations = pair(Excerpt(event) for event in events)
    lanes = [[op for op in operations if op.process == process] for process in range(5)]
    bars = merge_bars(lanes, Scale(0, 20_000_000, PAGE.left, PAGE.right), limit=300)
    assert sum(map(len, bars)) <= 300
    assert sum(len(members) for lane in bars for _, _, members in lane) == 20_000
    sparse = merge_bars([lanes[0][:4]], Scale(0, 30_000, PAGE.left, PAGE.right))
    assert [len(members) for _, _, members in sparse[0]] == [1, 1, 1, 1]


def a_fault(number: int, begin_s: float, length_s: float) -> Fault:
    begin, end = int(begin_s * S), int((begin_s + length_s) * S)
    return Fault(f"f{number}", "power-cut", ("n1",), "", begin, begin, end, end, True, "", (), ())


@given(st.lists(st.tuples(st.floats(0, 99), st.floats(0, 30)), max_size=25), st.sampled_from([PAGE, PHONE]))
def test_fault_bars_and_names_never_overlap(spans: list[tuple[float, float]], frame: Frame) -> None:
    faults = [a_fault(n, begin, length) for n, (begin, length) in enumerate(sorted(spans))]
    x = Scale(0, 100, frame.left, frame.right)
    lanes = pack_faults(faults, x, frame)
    by_lane: dict[int, list[tuple[float, float]]] = {}
    for fault in faults:
        label = place_label(fault, x, frame)
        assert bar_name(fault, frame).startswith(fault.id)
        assert 0 <= label.begin <= label.until <= max(frame.width, frame.right + 3)
        by_lane.setdefault(lanes[fault.id], []).append((label.begin, label.until))
    for taken in by_lane.values():
        taken.sort()
        assert all(left[1] < right[0] for left, right in pairwise(taken))


@given(st.floats(0, 1e9), st.floats(1e-6, 1e9), st.integers(1, 12))
def test_ticks_are_few_and_inside(low: float, span: float, about: int) -> None:
    high = low + span
    if high <= low:
        return
    places = ticks(low, high, about)
    slack = (high - low) * 1e-6
    assert len(places) <= about + 1
    assert all(low - slack <= place <= high + slack for place in places)


def test_numbers_read_like_a_person_wrote_them() -> None:
    assert text.value_label(value_of(3, 117)) == "p3·117"
    assert text.value_label(value_of(3, 117, 2)) == "p3·117/2"
    assert [text.value_label(v) for v in (None, -1, -2)] == ["–", "corrupt", "foreign"]
    assert [text.milliseconds(v) for v in (0.25, 12.34, 6_210, 200_000, None)] == [
        "250 µs", "12.3 ms", "6.21 s", "3 min 20 s", "–",
    ]  # fmt: skip
    assert [text.size(v) for v in (12, 45_056, 5 << 20)] == ["12 B", "44.0 KiB", "5.0 MiB"]
    assert outcome_label(Record(0, -1, value_of(1, 2))) == "p1·2 → ?"
    assert re.fullmatch(r"a\ufffdb", text.printable("a\x00b"))


def test_run_information_round_trips_into_the_facts(report: Report) -> None:
    facts = dict(report.facts)
    assert isinstance(synthetic_run.INFO, RunInfo)
    assert facts["seed"] == "8675309"
    assert facts["topics"] == "log (3 partitions, RF 3, MinISR 2)"
    assert facts["producers"] == "acks=all, idempotence off"


def test_who_was_the_active_controller_is_shown_where_it_changed() -> None:
    def told(second: int, controller: int) -> Event:
        return Event(CONTROL, Type.INFO, "cluster", time_ns=second * S, extra={"controller": controller})

    nodes = {"1": "n1", "2": "n2"}
    events = [told(1, 1), told(2, 1), told(3, -1), told(4, 2), told(5, 2)]
    spans = controller_spans(events, nodes, 6 * S)
    assert [(span.leader, span.begin_ns // S, span.end_ns // S) for span in spans] == [
        ("n1", 1, 3),
        (None, 3, 4),
        ("n2", 4, 6),
    ]
    assert span_tip(spans[2]) == "active controller, 4.000 s to 6.000 s\nn2"
    drawn = cluster_chart({"controller": spans}, ("n1", "n2"), (), 6 * S, (), (), PAGE)
    assert "none that a majority names" in drawn
    assert "None" not in drawn
    assert controller_spans(events[:2], nodes, 6 * S) == []


def test_transactions_that_were_asked_to_end_are_a_tile(whole_run: Path) -> None:
    files = read_run(whole_run)
    ends = {"transactions": 7, "ends_asked": 6, "committed": 3, "aborted": 2, "unknown": 2}
    both = dataclasses.replace(
        files, metrics={**(files.metrics or {}), "transaction_ends": {"a": ends, "b": ends}}
    )
    [tile] = [tile for tile in tiles_of(both, ()) if tile.label == "transactions asked to end"]
    assert (tile.figure, tile.note) == ("12", "6 committed, 4 aborted, 4 unknown")
    assert "transactions asked to end" not in [tile.label for tile in tiles_of(files, ())]


@given(st.lists(st.tuples(*[st.floats(0, 1_200)] * 3), min_size=1, max_size=30))
def test_strokes_are_where_they_belong_however_many_come_before(
    lines: list[tuple[float, float, float]],
) -> None:
    """Each is drawn from where the last one ended; a tenth of a unit is the finest."""
    svg = Svg(1_200, 1_200, "x")
    svg.strokes(lines, "dots")
    [path] = ElementTree.fromstring(svg.markup()).iter("path")
    number = r"(-?(?:\d+\.?\d*|\.\d+))"
    moves = re.findall(rf"m{number} ?{number}(h0|v{number})", path.get("d") or "")
    assert len(moves) == len(lines)
    x = y = 0.0
    for (right, down, _, long), line in zip(moves, lines, strict=True):
        x, y = x + float(right), y + float(down)
        ends = y + float(long or 0)
        assert all(abs(a - b) < 0.051 for a, b in zip((x, y, ends), line, strict=True))
        y = ends


def test_the_longest_span_of_a_leader_has_its_name() -> None:
    def span(begin: int, end: int, leader: str, epoch: int, isr: tuple[str, ...]) -> LeaderSpan:
        return LeaderSpan("log", 0, begin * S, end * S, leader, epoch, isr, (), ("n1", "n2"))

    spans = [
        span(0, 1, "n1", 0, ("n1", "n2")),
        span(1, 8, "n1", 0, ("n1",)),
        span(8, 9, "n2", 1, ("n2",)),
        span(9, 20, "n2", 1, ("n1", "n2")),
    ]
    for frame in (PAGE, PHONE):
        drawn = ElementTree.fromstring(
            cluster_chart({"log-0": spans}, ("n1", "n2"), (), 20 * S, (), (), frame)
        )
        x = Scale(0, 20, frame.left, frame.right)
        names = [
            (one.text, float(one.get("x", 0)))
            for one in drawn.iter("text")
            if one.get("class") == "span-name"
        ]
        assert [name for name, _ in names] == ["n1 e0", "n2 e1"]
        assert all(abs(at - x(begin) - 4) < 0.1 for (_, at), begin in zip(names, (1, 9), strict=True))
