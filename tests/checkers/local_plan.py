"""What the plan finds in this process, before checks make findings of it."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.checkers.engine.candidates import Candidate
from wrackline.checkers.engine.executor import LocalExecutor
from wrackline.checkers.engine.fact_codec import read
from wrackline.checkers.engine.facts import Kind
from wrackline.checkers.engine.object_facts import Contradiction
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.inputs.table import Ints, T, concatenated
from wrackline.checkers.plan import Work, judge


def candidates(runs: Sequence[Run], width: int) -> tuple[Candidate[Ints], int]:
    """(the candidates of these runs, how many ranges of offsets were judged twice)."""
    judged = judge(LocalExecutor(), runs, width=width)
    return _rows(judged, Candidate[Ints], Kind.CANDIDATE), judged.again


def contradictions(runs: Sequence[Run], span: int) -> Contradiction[Ints]:
    """What is wrong with the registers and queues of these runs, as intervals of ``span`` events say it."""
    return _rows(judge(LocalExecutor(), runs, span=span), Contradiction[Ints], Kind.CONTRADICTION)


def _rows(judged: Work, of: type[T], kind: Kind) -> T:
    batches = [] if judged.rows is None else judged.rows.batches()
    return concatenated(of, [packed.rows_of(of) for packed in read(batches) if packed.kind is kind])
