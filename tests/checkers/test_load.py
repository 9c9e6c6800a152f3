"""The reason of its abort decides whether a transaction counts as done (docs/anomalies.md section 9)."""

from __future__ import annotations

from pathlib import Path

from tests.checkers.good_runs import good_figures, good_run, missing
from tests.checkers.histories import History
from tests.checkers.without_spark import ingested
from wrackline.checkers import stages
from wrackline.checkers.context import context_of
from wrackline.checkers.load import load_of_main
from wrackline.checkers.metrics import Figures, Outcomes, boundaries, take_counts
from wrackline.checkers.packets import COLUMNS, Kind, unpack
from wrackline.checkers.registry import marks
from wrackline.checkers.runs import load_run
from wrackline.checkers.tallies import figures_of
from wrackline.history.model import ABORTED_AS_MEANT, FAILED, Type

RATE = "asked rate reached before the first fault"


def of_sends(outcomes: Outcomes) -> tuple[list[str], float]:
    """(what is missing, sends done a second) of a run that asked for one a second and has these in each
    segment."""
    run = good_run(rate=1)
    figures = good_figures(run)
    for number in range(1, len(boundaries(run)) + 1):
        for f in ("poll", "end"):
            figures.segments[number, f] = Outcomes(1)
        figures.segments[number, "send"] = outcomes
    load = load_of_main(run, figures)
    assert load is not None
    return missing(run, figures), load.done


def test_a_transaction_that_was_to_be_aborted_is_done() -> None:
    lacks, done = of_sends(Outcomes(ok=10, fail=10, aborted=10))
    assert lacks == []
    assert done > 60 / 60 * 0.95


def test_one_that_was_aborted_for_a_failure_is_not() -> None:
    lacks, done = of_sends(Outcomes(ok=10, fail=10, aborted=0))
    assert lacks == [RATE]
    assert done < 60 / 60 * 0.95


def test_what_it_was_aborted_for_is_read_from_the_history(tmp_path: Path) -> None:
    history = History()
    for value, error in enumerate((None, ABORTED_AS_MEANT, "_TIMED_OUT", ABORTED_AS_MEANT)):
        history.invoke_send(1, value)
        kind = Type.OK if error is None else Type.FAIL
        history.complete_send(1, (value, value if error is None else FAILED), kind=kind, error=error)
    history.write(tmp_path)
    run = load_run(tmp_path)
    context = context_of([run], marks())
    rows = [
        unpack(data, n, COLUMNS[Kind.TALLY])
        for _, _, kind, n, data in ingested([run], context, stages.EVERYTHING)
        if kind is Kind.TALLY
    ]
    figures = Figures()
    take_counts(figures, figures_of(0, rows, context))
    (sends,) = (outcomes for (_, f), outcomes in figures.segments.items() if f == "send")
    assert sends == Outcomes(ok=1, fail=3, info=0, aborted=2)
    assert sends.done == 3
