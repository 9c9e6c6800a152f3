"""A run in which nothing is missing, as the judge knows it; tests take something away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.checkers.histories import NODES, TOPIC, info
from wrackline.checkers.checks.registry import anomalies, names
from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.course import Course
from wrackline.checkers.inputs.final_reads import FinalRead, ReplicaRead
from wrackline.checkers.inputs.runs import Fault, Phase, Run, Sample
from wrackline.checkers.verdict.conditions.condition import Condition
from wrackline.checkers.verdict.conditions.conditions import conditions
from wrackline.checkers.verdict.contracts import contract_for
from wrackline.checkers.verdict.measures.metrics import Figures, Outcomes, Written
from wrackline.checkers.verdict.verdict import Found, verdict
from wrackline.history.model import PlanInfo

PLACE = (TOPIC, 0)
SECOND = 1_000_000_000


def good_run(**changes: Any) -> Run:
    """A minute of main phase, one proved fault from 20 to 25 s, everything read to its end."""
    run = Run(Path("r"), info(**{"plan": PlanInfo(60.0, {"f1": "kill"})} | changes), [])
    run.course = Course(over=True, stuck=(), repairs=(), files=dict.fromkeys(NODES.values(), ("broker.log",)))
    run.nodes, run.assignment, run.end_ns = dict(NODES), {PLACE: (1, 2, 3)}, 70 * SECOND
    run.phases = [Phase("main", 0, 60 * SECOND), Phase("drain", 60 * SECOND, 70 * SECOND)]
    run.faults = [
        Fault(
            *("f1", "kill", ("n1",), "one"),
            *(20 * SECOND, 20 * SECOND, 24 * SECOND, 25 * SECOND, True),
            restored=True,
        )
    ]
    run.final = {PLACE: FinalRead(0, 100, True)}
    run.replicas = {PLACE: {host: ReplicaRead(0, 100, 100, True, True) for host in NODES.values()}}
    return run


def outcomes(ok: int, fail: int = 0, info: int = 0) -> Outcomes:
    """Of operations that a rate asks for."""
    return Outcomes(ok, fail, info, ok + fail + info, ok)


def good_figures(run: Run, ok: int = 1_000) -> Figures:
    figures = Figures(acked_records=1_000)
    for number in range(1, len(phases.boundaries(run)) + 1):
        for f in ("send", "poll", "end"):
            figures.segments[number, f] = outcomes(ok, 1, 1)
        figures.written[PLACE, number] = Written(ok, ok)
    return figures


def found(**counts: int) -> Found:
    given = {name.replace("_", "-"): count for name, count in counts.items()}
    return Found({name: {PLACE: given[name]} if name in given else {} for name in names()})


def decided(run: Run, figures: Figures | None = None, **counts: int) -> dict[str, Any]:
    return verdict(contract_for(run, anomalies()), found(**counts), figures or good_figures(run), {})


def unmet(run: Run, figures: Figures | None = None) -> list[Condition]:
    return [one for one in conditions(run, figures or good_figures(run)) if not one.ok]


def missing(run: Run, figures: Figures | None = None) -> list[str]:
    return [one.name for one in unmet(run, figures)]


def seen(run: Run, leader: int, isr: tuple[int, ...], begin_s: int = 20, end_s: int = 25) -> None:
    """What metadata showed, twice a second."""
    run.cluster[PLACE] = [
        Sample(half * SECOND // 2, leader, 1, isr, (1, 2, 3)) for half in range(2 * begin_s, 2 * end_s + 1)
    ]
