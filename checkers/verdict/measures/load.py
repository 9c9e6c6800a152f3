"""The load that clients put on the system, beside the one that was asked for (docs/anomalies.md section 6).

Clients that wait for a dead partition leave operations out. A test whose load faints while faults are in
force proves little, so the share that was left out is a figure of every run and a condition of ``pass``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wrackline.checkers.inputs.phases import trouble
from wrackline.checkers.inputs.runs import Run
from wrackline.checkers.verdict.measures.metrics import Figures, Outcomes, counted

LEFT_OUT_LIMIT = 0.5
"""Of the operations asked for during faults this share may be left out, unless the threshold ``left_out``
says another: a partition without a leader takes none, and a quarter to a half of the partitions is what one
host leads."""


@dataclass(frozen=True, slots=True)
class Load:
    """Operations per second in one stretch of a run, of those that a rate asks for."""

    asked: float
    begun: float
    """Invoked, whatever came of them."""
    done: float
    """Aborted transactions that were meant to be count too."""

    @property
    def left_out(self) -> float:
        """Share of the operations asked for that no client began; 0.0 to 1.0."""
        return min(1.0, max(0.0, 1 - self.begun / self.asked))

    def to_dict(self) -> dict[str, float]:
        return {
            "asked_per_s": round(self.asked, 3),
            "begun_per_s": round(self.begun, 3),
            "done_per_s": round(self.done, 3),
            "left_out": round(self.left_out, 4),
        }


def load_of_main(run: Run, figures: Figures) -> Load | None:
    """Returns the load of the main phase; None when no rate was asked for or there was no main phase."""
    stretches = [(phase.begin_ns, phase.end_ns) for phase in run.phases if phase.name == "main"]
    return _load(run, figures, stretches[0]) if stretches else None


def load_during_faults(run: Run, figures: Figures) -> Load | None:
    """Returns the load from the first fault's begin to the last one's end, within the main phase; None
    without faults, or as above."""
    begin, end = trouble(run)
    main = next((phase for phase in run.phases if phase.name == "main"), None)
    if begin is None or end is None or main is None:
        return None
    return _load(run, figures, (max(begin, main.begin_ns), min(end, main.end_ns)))


def _load(run: Run, figures: Figures, stretch: tuple[int, int]) -> Load | None:
    begin, end = stretch
    if run.info.rate <= 0 or end <= begin:
        return None
    total = sum(counted(run, figures, begin, end).values(), Outcomes())
    seconds = (end - begin) / 1e9
    return Load(run.info.rate, total.begun / seconds, total.done / seconds)


def loads(run: Run, figures: Figures) -> dict[str, Any]:
    """Returns the loads for metrics.json: ``main`` and ``faults``, each null where there is nothing to
    compare."""
    result = {"main": load_of_main(run, figures), "faults": load_during_faults(run, figures)}
    return {name: load.to_dict() if load else None for name, load in result.items()}
