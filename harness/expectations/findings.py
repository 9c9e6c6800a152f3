"""``wrackline findings``: what Apache Kafka itself does wrong, or what its settings allow, re-found by real
runs.

Each finding is a specification in ``suites/findings`` and a control, the same specification but for the one
thing that mends it. Without the control a finding could come from the faults, or from a judge that calls
everything a violation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.driving import drive
from wrackline.harness.expectations.known import Known, account, complaints
from wrackline.harness.run.judge import Judged, judge
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec, SpecError
from wrackline.harness.specification.suites import suites_dir
from wrackline.plugins.nearest import instead_of

CONTROL = "-control"
_LATE = "{}: a late EndTxn of librdkafka ends the producer's next transaction"
_LATE_SHOWS = ("aborted-read", "torn-transaction", "lost-write")
"""A late commit shows what was aborted, a late abort takes what was committed: which one comes late is
chance."""
FINDINGS: Mapping[str, Known] = {
    "b10": Known("3.9.2 elects whoever is alone in the ISR, with what a power cut left", Verdict.VIOLATION),
    "b10-elr": Known("4.0.0 without eligible leader replicas does the same", Verdict.VIOLATION),
    "b59": Known("4.4.0 elects the last known leader, with what a power cut left", Verdict.VIOLATION),
    "all-power": Known("all hosts lose their power at once, and nothing was synced", Verdict.PASS),
    "acks-one": Known("with acks=1 the leader alone has what it acknowledges", Verdict.PASS),
    "min-isr-one": Known("with min.insync.replicas=1 so does a leader alone in the ISR", Verdict.PASS),
    "unclean-on": Known("with unclean election on a replica that lacks records leads", Verdict.PASS),
    "abort-position": Known(
        "after an abort a consumer stays where it is, and what it was given is never processed",
        Verdict.PASS,
        ("unprocessed-input",),
        run_s=60,
    ),
    "late-end-txn": Known(_LATE.format("4.4.0"), Verdict.VIOLATION, _LATE_SHOWS, run_s=150),
    "b01": Known("0.10.2.2 truncates to the high watermark, and elects who did", Verdict.VIOLATION, run_s=60),
    "b02": Known(
        "0.10.2.2: two replicas differ after the leader had lost its power",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=75,
    ),
    "b03": Known(
        "2.0.1 with the protocol of 1.1: two replicas differ after a fast fail-over",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=75,
    ),
    "b03-111": Known(
        "1.1.1: two replicas differ after a fast fail-over",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=75,
    ),
    "b15": Known("2.0.0 lets a replica join the ISR that lacks committed records", Verdict.VIOLATION),
    "b52": Known(
        "0.8.2.2 by default elects a replica that was cut off, and replicas differ afterwards",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=60,
    ),
    "b52-lost": Known(
        "0.8.2.2 by default elects a replica that was cut off: what was acknowledged is lost",
        Verdict.PASS,
        run_s=60,
    ),
    "late-end-txn-392": Known(_LATE.format("3.9.2"), Verdict.VIOLATION, _LATE_SHOWS, run_s=150),
}


_NO_CAUSE: Any = {"name": True, "contract": {"verdict": True}}


@dataclass(frozen=True, slots=True)
class Finding:
    """A pair of specifications, and what must come out of them."""

    name: str
    known: Known
    spec: Spec
    control: Spec | None

    @property
    def version(self) -> str:
        """Of Apache Kafka; of our own broker the profile."""
        configured = self.spec.system.configured()
        return configured.version or configured.profile

    @property
    def changed(self) -> tuple[str, ...]:
        """How the control differs: ``system.version: 3.9.2 -> 4.4.0``. Another library has versions of its
        own; what is expected of the two is no cause."""
        if self.control is None:
            return ()
        pair = (one.model_dump(mode="json", exclude=_NO_CAUSE) for one in (self.spec, self.control))
        found = tuple(_differences("", *pair))
        if any(line.startswith("workload.client.library:") for line in found):
            found = tuple(line for line in found if not line.startswith("workload.client.version:"))
        return found


@dataclass
class Tally:
    """What came of a finding's runs."""

    finding: Finding
    shown: int = 0
    runs: int = 0
    clean: int = 0
    controls: int = 0
    made: list[dict[str, Any]] = field(default_factory=list)
    """A row for each run, as ``Known.row`` makes it, and whether it is the control."""

    @property
    def as_it_must_be(self) -> bool:
        return 0 < self.runs == self.shown and self.clean == self.controls

    def add(self, judged: Judged, *, control: bool) -> None:
        known = self.finding.known
        wrong = (known.wrong_with_control if control else known.wrong_with)(judged.verdict)
        if control:
            self.controls += 1
            self.clean += not wrong
        else:
            self.runs += 1
            self.shown += not wrong
        self.made.append(known.row(judged, wrong) | {"control": control})

    def to_dict(self) -> dict[str, Any]:
        return {
            "finding": self.finding.name,
            "version": self.finding.version,
            "must_be": self.finding.known.verdict.value,
            "must_show": list(self.finding.known.shows),
            "control_differs_in": list(self.finding.changed),
            "runs": self.runs,
            "shown": self.shown,
            "controls": self.controls,
            "clean": self.clean,
            "made": list(self.made),
        }


def findings(names: Iterable[str] = ()) -> list[Finding]:
    """Those named, or all. Raises SpecError for a name that is none, and for a file that does not fit."""
    return known_in("findings", FINDINGS, names, "finding")


def known_in(folder: str, catalogue: Mapping[str, Known], names: Iterable[str], what: str) -> list[Finding]:
    """Those of a catalogue whose specifications are in this folder of the suites. ``what`` one is called."""
    wanted = list(dict.fromkeys(names)) or list(catalogue)
    for name in wanted:
        if name not in catalogue:
            there = instead_of(name, catalogue, "--list shows them", are="there are")
            raise SpecError(f"no {what} {name!r}{there}")
    files = suites_dir() / folder
    found = []
    for name in wanted:
        control = files / f"{name}{CONTROL}.yaml"
        found.append(
            Finding(
                name,
                catalogue[name],
                load_checked(files / f"{name}.yaml"),
                load_checked(control) if control.exists() else None,
            )
        )
    return found


def refind(
    wanted: Sequence[Finding],
    results: Path,
    *,
    runs: int = 1,
    controls: bool = True,
    master: str = "local[*]",
) -> list[Tally]:
    """Install the versions that are needed, make all the runs, then judge them in one Spark session. Raises
    DeployError for a version that cannot be installed."""
    tallies = [Tally(finding) for finding in wanted]
    arms: list[tuple[Tally, bool, str, Spec]] = []
    for number in range(1, runs + 1):
        for tally in tallies:
            name, control = tally.finding.name, tally.finding.control
            arms.append((tally, False, f"{name}, {number} of {runs}", tally.finding.spec))
            if controls and control is not None:
                arms.append((tally, True, f"{name}, the control, {number} of {runs}", control))
    asked = [(says, spec) for _, _, says, spec in arms]
    for _, spec in asked:
        spec.system.prepare(click.echo)
    judged = drive(asked, results, run=run, judge=judge, master=master)
    for (tally, is_control, *_), each in zip(arms, judged, strict=False):  # fewer after Ctrl-C
        tally.add(each, control=is_control)
    return tallies


def seconds(wanted: Sequence[Finding], runs: int, controls: bool) -> int:
    """How long the runs of these take, roughly, without the judging."""
    return (
        sum(
            finding.known.run_s * (2 if controls and finding.control is not None else 1) for finding in wanted
        )
        * runs
    )


def list_them(wanted: Sequence[Finding]) -> None:
    table = tables.table("name", "system", "must be", "a run", "what", "the control differs in")
    for each in wanted:
        table.add_row(
            each.name,
            each.version,
            each.known.must_be,
            f"{each.known.run_s} s",
            each.known.what,
            "; ".join(each.changed),
        )
    tables.put(table, width=200)


def show(tallies: Sequence[Tally]) -> None:
    table = tables.table(
        "name", "system", "must be", "shown", "control clean", "of the acknowledged records, each run"
    )
    for tally in tallies:
        table.add_row(
            tally.finding.name,
            tally.finding.version,
            tally.finding.known.must_be,
            f"{tally.shown} of {tally.runs}",
            f"{tally.clean} of {tally.controls}",
            "; ".join(account(row) for row in tally.made if not row["control"]),
        )
    tables.put(table, width=200)
    for tally in tallies:
        for row in tally.made:
            for words in row["node_words"]:
                click.echo(f"{row['run']}/{words}")
            for line in complaints(row):
                click.echo(line)


def _differences(path: str, one: Any, other: Any) -> Iterator[str]:
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            yield from _differences(f"{path}.{key}" if path else key, one.get(key), other.get(key))
    else:
        yield f"{path}: {_brief(one)} -> {_brief(other)}"


def _brief(value: Any) -> str:
    """A setting's value; of a whole section its name."""
    if isinstance(value, dict):
        return str(value.get("name", "set"))
    return "unset" if value is None else str(value)
