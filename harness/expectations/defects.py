"""``wrackline defects``: real runs in which a historic defect must be called a violation, and its safe twin
must pass.

The twin is the same specification, seed and schedule of faults, with the broker as it is. Without it a
violation could come from the schedule, or from a judge that calls everything one.

Where a defect takes no record but only time, nothing is forbidden: its suite sets a threshold instead, the
run with the defect must miss it, and the twin must keep it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.driving import drive
from wrackline.harness.run.judge import Judged, judge
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec, SpecError
from wrackline.harness.specification.suites import suites_dir
from wrackline.plugins.nearest import instead_of

_SHOWN_REASONS = 4
ALLOWED: Mapping[str, str] = {
    "no-offset-not-available": "how fresh a read is, is a matter of +linearizable-reads alone",
}
"""Suites whose anomaly the contract allows, and why: the run with the defect must show it and the twin must
not."""
UNMET: Mapping[str, str] = {
    "added-needs-epoch": "every fault proved",
    "continue-after-io-error": "final read complete",
    "hw-passes-joining": "every fault proved",
    "touch-wipes-elr": "every fault proved",
}
"""Suites whose run with the defect must fail a condition that is no threshold: its name."""
_ARMS = {True: "with the defect", False: "the twin"}


@dataclass(frozen=True, slots=True)
class Case:
    """One specification of ``suites/defects``."""

    path: Path
    spec: Spec

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def allowed(self) -> bool:
        """Whether the contract allows what the defect does."""
        return self.name in ALLOWED

    @property
    def unmet(self) -> tuple[str, ...]:
        """The conditions of a pass that the run with the defect must fail, where it shows no anomaly."""
        limits = self.spec.contract.thresholds.limits()
        return (*(f"threshold {name}" for name in limits), *filter(None, [UNMET.get(self.name)]))

    @property
    def with_defect(self) -> Spec:
        """Judged like any other run: what the defect does must be forbidden, not only found."""
        return self.spec.model_copy(
            update={"contract": self.spec.contract.model_copy(update={"expected": ()})}
        )

    @property
    def twin(self) -> Spec:
        healthy = self.spec.system.model_copy(update={"defects": ()})
        return self.with_defect.model_copy(update={"name": f"{self.spec.name}-twin", "system": healthy})


@dataclass
class Tally:
    """What came of a case's runs."""

    case: Case
    caught: int = 0
    runs: int = 0
    clean: int = 0
    twins: int = 0
    found: dict[str, int] = field(default_factory=dict)
    """Forbidden anomaly, or condition that was not met -> in how many runs with the defect."""
    wrong: list[str] = field(default_factory=list)

    @property
    def as_it_must_be(self) -> bool:
        return 0 < self.runs == self.caught and self.clean == self.twins

    def add_defect(self, judged: Judged) -> None:
        self.runs += 1
        case = self.case
        if case.unmet:
            found, must = _failed(judged.verdict), Verdict.INCONCLUSIVE
        elif case.allowed:
            found, must = _anomalies(judged.verdict, Meaning.ALLOWED), Verdict.PASS
        else:
            found, must = _anomalies(judged.verdict, Meaning.VIOLATION), Verdict.VIOLATION
        for one in found:
            self.found[one] = self.found.get(one, 0) + 1
        absent = [name for name in (*case.spec.contract.expected, *case.unmet) if name not in found]
        if judged.word is must and not absent:
            self.caught += 1
        else:
            why = f"without {', '.join(absent)}; " if absent else ""
            self._note(judged, f"with the defect: {why}{judged.word.value}, not {must.value}")

    def add_twin(self, judged: Judged) -> None:
        self.twins += 1
        shown = _anomalies(judged.verdict, Meaning.ALLOWED) & set(self.case.spec.contract.expected)
        if judged.word is Verdict.PASS and not shown:
            self.clean += 1
        else:
            why = f"{', '.join(sorted(shown))}; " if shown else ""
            self._note(judged, f"the twin: {why}{judged.word.value}, not pass")

    def _note(self, judged: Judged, what: str) -> None:
        reasons = "; ".join(judged.verdict.get("reasons", ())[:_SHOWN_REASONS])
        self.wrong.append(f"{judged.run_dir.name}: {what} ({reasons})")

    def to_dict(self) -> dict[str, Any]:
        return {
            "case": self.case.name,
            "defects": list(self.case.spec.system.configured().defects),
            "schedule": _schedule(self.case.spec),
            "expected": [*self.case.spec.contract.expected, *self.case.unmet],
            "runs": self.runs,
            "caught": self.caught,
            "found": dict(sorted(self.found.items())),
            "twins": self.twins,
            "clean": self.clean,
            "wrong": list(self.wrong),
        }


def cases(names: Iterable[str] = ()) -> list[Case]:
    """Those named, or all. Raises SpecError for a name that is none, and for a file that does not fit."""
    files = {path.stem: path for path in sorted((suites_dir() / "defects").glob("*.yaml"))}
    wanted = list(dict.fromkeys(names)) or list(files)
    for name in wanted:
        if name not in files:
            there = instead_of(name, files, "`wrackline list specs` lists them", are="there are")
            raise SpecError(f"no defect suite {name!r}{there}")
    found = [Case(files[name], load_checked(files[name])) for name in wanted]
    for case in found:
        if not case.spec.system.configured().defects or not (case.spec.contract.expected or case.unmet):
            raise SpecError(
                f"{case.path}: a defect suite names system.defects, and contract.expected or a threshold"
            )
    return found


def defects(
    wanted: Sequence[Case], results: Path, *, runs: int = 1, twins: bool = True, master: str = "local[*]"
) -> list[Tally]:
    """Make all the runs, then judge them in one Spark session."""
    tallies = [Tally(case) for case in wanted]
    arms = [
        (tally, broken, f"{tally.case.name}, {_ARMS[broken]}, {number} of {runs}")
        for number in range(1, runs + 1)
        for tally in tallies
        for broken in ((True, False) if twins else (True,))
    ]
    asked = [(says, tally.case.with_defect if broken else tally.case.twin) for tally, broken, says in arms]
    judged = drive(asked, results, run=run, judge=judge, master=master)
    for (tally, broken, _), each in zip(arms, judged, strict=False):  # fewer after Ctrl-C
        (tally.add_defect if broken else tally.add_twin)(each)
    return tallies


def show(tallies: Sequence[Tally]) -> None:
    table = tables.table("defect", "schedule", "caught", "twin clean", "found (runs)")
    for tally in tallies:
        found = ", ".join(f"{name} ({count})" for name, count in sorted(tally.found.items()))
        table.add_row(
            "+".join(tally.case.spec.system.configured().defects),
            _schedule(tally.case.spec),
            f"{tally.caught} of {tally.runs}",
            f"{tally.clean} of {tally.twins}",
            found or "none",
        )
    tables.put(table, width=160)
    for tally in tallies:
        for wrong in tally.wrong:
            click.echo(f"NOT AS IT MUST BE: {wrong}")


def _schedule(spec: Spec) -> str:
    guided = spec.nemesis.guided
    return guided.name if guided is not None else "timed"


def _anomalies(verdict: Mapping[str, Any], meaning: Meaning) -> set[str]:
    return {each["anomaly"] for each in verdict["anomalies"] if each["count"] and each["meaning"] == meaning}


def _failed(verdict: Mapping[str, Any]) -> set[str]:
    """The conditions that do not hold."""
    return {each["name"] for each in verdict.get("conditions", ()) if not each["ok"]}
