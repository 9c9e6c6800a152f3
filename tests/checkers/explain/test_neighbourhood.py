"""What each log and reader has around an offset, and what their operations are."""

from __future__ import annotations

from wrackline.checkers.explain.model import OPEN
from wrackline.checkers.explain.neighbourhood import neighbourhood
from wrackline.checkers.explain.observations import LogEnd, Observations, Sighting
from wrackline.checkers.explain.operations import pair
from wrackline.history.excerpts import Excerpt
from wrackline.history.model import Event, Type, value_of


def test_a_log_that_ends_too_early_is_shown_as_missing() -> None:
    acked = Sighting("log", 0, 41, "send", None, value_of(3, 117), -1)
    held = Sighting("log", 0, 40, "replica", "n1", value_of(3, 116), 2)
    ends = {("log", 0, "n1"): LogEnd(0, 41, hw=41, in_isr=True), ("log", 0, None): LogEnd(0, 41)}
    table = neighbourhood("log", 0, 41, Observations({acked: 1, held: 1}, ends))
    assert table is not None
    line = next(line for line in table.lines if line.culprit)
    assert [(cell.state, cell.note) for cell in line.cells] == [
        ("same", ""), ("missing", "past the end"), ("missing", "past the end"), ("", ""),
    ]  # fmt: skip
    before = next(line for line in table.lines if line.offset == 40)
    assert before.cells[1].held[0].leader_epoch == 2


def test_pairs_open_operations_unless_the_rows_were_cut_off() -> None:
    events = [
        Event(1, Type.INVOKE, "send", index=0, time_ns=0),
        Event(2, Type.OK, "send", index=1, time_ns=50, latency_ns=90),
        Event(1, Type.INFO, "send", index=2, time_ns=60, latency_ns=60),
        Event(3, Type.INVOKE, "poll", index=3, time_ns=70),
    ]
    operations = pair(Excerpt(event) for event in events)
    assert [(op.process, op.outcome, op.begin_ns, op.end_ns) for op in operations] == [
        (2, "ok", -40, 50), (1, "info", 0, 60), (3, OPEN, 70, None),
    ]  # fmt: skip
    assert [op.process for op in pair((Excerpt(e) for e in events), complete=False)] == [2, 1]
