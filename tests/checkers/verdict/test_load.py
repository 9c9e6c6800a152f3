"""The reason of its abort decides whether a transaction counts as done (docs/anomalies.md section 9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkers.good_runs import good_figures, good_run, missing, outcomes
from tests.checkers.histories import TOPIC, History
from wrackline.checkers.engine.executor import LocalExecutor
from wrackline.checkers.inputs.phases import boundaries
from wrackline.checkers.inputs.runs import load_run
from wrackline.checkers.plan import judge
from wrackline.checkers.verdict.measures.load import load_of_main
from wrackline.checkers.verdict.measures.metrics import Outcomes
from wrackline.history.model import ABORTED_ON_PURPOSE, CRASHED_ON_PURPOSE, FAILED, UNKNOWN, TopicInfo, Type

RATE = "asked rate reached before the first fault"


def of_sends(sends: Outcomes) -> tuple[list[str], float]:
    """(what is missing, sends done a second) of a run that asked for one a second and has these in each
    segment."""
    run = good_run(rate=1)
    figures = good_figures(run)
    for number in range(1, len(boundaries(run)) + 1):
        for f in ("poll", "end"):
            figures.segments[number, f] = outcomes(1)
        figures.segments[number, "send"] = sends
    load = load_of_main(run, figures)
    assert load is not None
    return missing(run, figures), load.done


def test_a_transaction_that_was_to_be_aborted_is_done() -> None:
    lacks, done = of_sends(Outcomes(ok=10, fail=10, begun=20, done=20))
    assert lacks == []
    assert done > 60 / 60 * 0.95


def test_one_that_was_aborted_for_a_failure_is_not() -> None:
    lacks, done = of_sends(Outcomes(ok=10, fail=10, begun=20, done=10))
    assert lacks == [RATE]
    assert done < 60 / 60 * 0.95


def counted(history: History, tmp_path: Path) -> dict[str, Outcomes]:
    """By kind of operation, of a history that has one segment."""
    history.write(tmp_path)
    run = load_run(tmp_path)
    figures = judge(LocalExecutor(), [run]).figures[0]
    return {f: found for (_, f), found in figures.segments.items()}


def test_what_it_was_aborted_for_is_read_from_the_history(tmp_path: Path) -> None:
    history = History()
    for value, error in enumerate((None, ABORTED_ON_PURPOSE, "_TIMED_OUT", ABORTED_ON_PURPOSE)):
        history.invoke_send(1, value)
        kind = Type.OK if error is None else Type.FAIL
        history.complete_send(1, (value, value if error is None else FAILED), kind=kind, error=error)
    for process, error in ((2, CRASHED_ON_PURPOSE), (3, "_TIMED_OUT")):
        history.invoke_send(process, 10 + process)
        history.complete_send(process, (10 + process, UNKNOWN), kind=Type.INFO, error=error)
    assert counted(history, tmp_path)["send"] == Outcomes(ok=1, fail=3, info=2, begun=6, done=4)


def test_what_comes_along_with_a_transaction_is_not_what_the_rate_asks_for(tmp_path: Path) -> None:
    """Else a worker that makes half of its transactions would seem to make all: each has a poll and a commit
    of offsets besides its sends."""
    history = History()
    extra = {"txn": 1}
    for process, f in ((1, "send"), (2, "poll"), (3, "commit")):
        history.event(process, Type.INVOKE, f, topic=TOPIC, extra=extra)
    for process, f in ((3, "commit"), (2, "poll"), (1, "send")):
        history.event(process, Type.OK, f, topic=TOPIC, extra=extra)
    history.assign(4, 0).poll(4)
    history.event(5, Type.INVOKE, "committed", topic=TOPIC).event(5, Type.OK, "committed", topic=TOPIC)
    found = counted(history, tmp_path)
    assert {f: (one.ok, one.begun, one.done) for f, one in found.items()} == {
        "send": (1, 1, 1),
        "poll": (2, 1, 1),
        "commit": (1, 0, 0),
        "assign": (1, 0, 0),
        "committed": (1, 0, 0),
    }


def test_what_an_application_sends_is_not_asked_for_and_reads_of_its_output_are(tmp_path: Path) -> None:
    out = TopicInfo("out", 1, 3, 2, source=TOPIC)
    history = History(topics=(TopicInfo(TOPIC, 1, 3, 2), out))
    for process, topic, f in ((1, TOPIC, "send"), (2, "out", "send"), (3, "out", "end"), (4, "out", "poll")):
        history.event(process, Type.INVOKE, f, topic=topic).event(process, Type.OK, f, topic=topic)
    found = counted(history, tmp_path)
    assert {f: (one.ok, one.begun) for f, one in found.items()} == {
        "send": (2, 1),
        "end": (1, 1),
        "poll": (1, 1),
    }


def test_when_members_crashed_is_known_of_a_run(tmp_path: Path) -> None:
    history = History()
    history.assign(4, 0).poll(4).event(4, Type.OK, "crash", topic=TOPIC, extra={"group": "g"})
    crashed_ns = history.clock_ns
    history.assign(5, 0).poll(5).write(tmp_path)
    [crash] = load_run(tmp_path).crashes
    assert crash == pytest.approx(crashed_ns, abs=10**9)
