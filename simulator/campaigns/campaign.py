"""A campaign: the runs that failed before, then new seeds of a swarm, for as long as it may last; what fails
is kept in the corpus and made smaller.

FOLDER/campaign.json  how far it came, and at the end its outcome
FOLDER/seeds.jsonl    the seeds that are done
FOLDER/report.html    the page
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wrackline.history.store.folder import whole_file
from wrackline.history.wording import plural
from wrackline.simulator.campaigns.ledger import Entry, Ledger
from wrackline.simulator.coverage.rows import Coverage, coverage
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run import Result, run
from wrackline.simulator.search.corpus import Parse
from wrackline.simulator.search.many_seeds import (
    Row,
    Totals,
    drawn_as,
    profile_of,
    run_seeds,
    signals_interrupt,
)
from wrackline.simulator.search.shrink import shrink

CAMPAIGN, SEEDS, REPORT = "campaign.json", "seeds.jsonl", "report.html"
ANY = "any"
"""The swarm that draws profiles and upgrades too."""
MOST_VIOLATIONS = 10
"""Of new seeds; then the campaign ends. More are most often the same bug, and each will be run first."""
_ENDLESS = 1_000_000
_SAY_EVERY_S = 2.0
_LINES = 60
"""Of the timeline of a violation on the page."""
_LEAST_SHRINKING_S = 60.0

PASS, VIOLATION, INCONCLUSIVE = "pass", "violation", "inconclusive"


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of a campaign."""

    swarm: str
    """``any``, or a profile."""
    budget_s: float
    """Of the runs. Smaller forms of violations take as long again at most, or a minute."""
    corpus: str
    """The folder."""
    seeds: int | None = None
    """New seeds at most."""
    jobs: int = 1
    defects: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Returns what campaigns have in common that are compared."""
        return f"{self.swarm} with {', '.join(self.defects)}" if self.defects else self.swarm

    @property
    def vary(self) -> str:
        return "swarm-any" if self.swarm == ANY else "swarm"

    def setup(self, parse: Parse, first: int) -> Setup:
        """Returns what is the same in all runs. Raises ValueError for what there is not."""
        if self.defects and self.swarm == ANY:
            raise ValueError(
                f"defects: {', '.join(self.defects)}: swarm any draws the profile too; name the profile that "
                "has the bug, such as swarm: kip966"
            )
        words = ["--seed", str(first), *(word for name in self.defects for word in ("--defect", name))]
        return parse([*words, *(() if self.swarm == ANY else ("--profile", self.swarm))])


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest run that still fails the same oracle."""

    command: str
    faults_before: int
    runs: int
    """How many were tried."""
    seconds: float
    """Virtual length of its main phase."""
    faults: tuple[str, ...]
    """``at 3.120 s: f4 power n2 for 800 ms``."""
    timeline: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A run that failed."""

    seed: int
    profile: str
    oracle: str
    text: str
    command: str
    kept: bool
    """It was in the corpus before."""
    smallest: Smallest | None = None
    """None: there was no time for it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold so that a campaign without a violation is a pass."""

    name: str
    ok: bool
    detail: str


@dataclass(slots=True)
class Outcome:
    """The outcome of a campaign."""

    name: str
    plan: Plan
    began_at: str
    """UTC, ISO 8601."""
    first: int
    """The first of its new seeds."""
    kept: int
    """Runs in the corpus when it began."""
    spent_s: float
    totals: Totals
    covered: Coverage
    before: list[Entry]
    """Campaigns of this swarm before it, oldest first."""
    interrupted: bool
    findings: list[Finding] = field(default_factory=list)

    @property
    def new_seeds(self) -> int:
        return self.totals.seeds - self.totals.kept

    @property
    def conditions(self) -> list[Condition]:
        kept = self.totals.kept
        return [
            Condition("ended", not self.interrupted, "interrupted; the same command goes on"),
            Condition("kept runs", kept == self.kept, f"{kept} of {self.kept} kept runs fit into its time"),
            Condition("new seeds", self.new_seeds > 0, "no new seed fitted into its time"),
            Condition("acknowledged", self.totals.acked > 0, "no record was acknowledged"),
        ]

    @property
    def verdict(self) -> str:
        if self.findings:
            return VIOLATION
        return PASS if all(condition.ok for condition in self.conditions) else INCONCLUSIVE

    @property
    def reasons(self) -> list[str]:
        failed = [f"seed {one.seed} ({one.profile}): {one.oracle}: {one.text}" for one in self.findings]
        return failed + [condition.detail for condition in self.conditions if not condition.ok]

    @property
    def headline(self) -> str:
        oracles = ", ".join(dict.fromkeys(one.oracle for one in self.findings))
        made = plural(len(self.findings), "violation") + (f" ({oracles})" if oracles else "")
        first = f" and {plural(self.totals.kept, 'kept run')}" if self.totals.kept else ""
        change = f", {self.change:+d} since the campaign before" if self.before else ""
        return f"{made} in {plural(self.new_seeds, 'new seed')}{first}; {self.covered}{change}"

    @property
    def lacking(self) -> tuple[str, ...]:
        """Rows of the golden tables that were not met."""
        tables = self.covered.tables
        return tuple(f"{one.name} {row}" for one in tables for row, met in one.rows.items() if not met)

    @property
    def change(self) -> int:
        """Returns how many more rows were met than in the campaign before."""
        return self.covered.met - self.before[-1].met if self.before else 0

    @property
    def entry(self) -> Entry:
        return Entry(
            at=self.began_at,
            swarm=self.plan.label,
            first=self.first,
            after=max(self.totals.last, self.first - 1) + 1,
            seeds=self.new_seeds,
            violations=len(self.findings),
            met=self.covered.met,
            lacking=self.lacking,
        )

    def as_json(self) -> dict[str, Any]:
        """Returns the content of ``campaign.json``, in which a harness has all that it judges by."""
        sums = ("seeds", "simulated_s", "cpu_s", "faults", "operations", "acked", "read")
        return {
            "state": "interrupted" if self.interrupted else "ended",
            **{name: getattr(self, name) for name in ("began_at", "first", "spent_s", "headline", "verdict")},
            "plan": asdict(self.plan),
            "reasons": self.reasons,
            "conditions": [asdict(one) for one in self.conditions],
            "kept": self.totals.kept,
            "totals": {name: getattr(self.totals, name) for name in sums},
            "rows_met": self.covered.met,
            "findings": [asdict(one) for one in self.findings],
        }


class Campaign:
    """Makes a campaign in a folder. One that was interrupted, or killed, goes on there."""

    def __init__(self, plan: Plan, folder: Path, parse: Parse, say: Callable[[str], None]) -> None:
        """Raises CorpusError, ValueError, OSError."""
        self._plan, self._folder, self._say = plan, folder, say
        self._ledger = Ledger(Path(plan.corpus), parse)
        self._ledger.check()
        self._kept = {one.command(): one for one in self._ledger.corpus.setups()}
        """Runs of the corpus, by their commands."""
        before = self._under_way()
        if before is None:
            (folder / SEEDS).unlink(missing_ok=True)
            first = self._ledger.first_seed(datetime.now(UTC).date())
            before = {"began_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "first": first, "spent_s": 0.0}
        self._began_at, self.first, self._spent_before_s = (
            str(before["began_at"]),
            int(before["first"]),
            float(before["spent_s"]),
        )
        self._setup = plan.setup(parse, self.first)
        self._opened = self._reported_at = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        self._save({"state": "under way"})

    @property
    def account(self) -> str:
        """``seeds from 242300000, 3 kept runs first``."""
        first = f", {plural(len(self._kept), 'kept run')} of {self._plan.corpus} first" if self._kept else ""
        return f"seeds from {self.first}{first}"

    @property
    def _spent_s(self) -> float:
        return self._spent_before_s + time.monotonic() - self._opened

    def _under_way(self) -> dict[str, Any] | None:
        """Returns what was saved of this very campaign before it came to its end; None where there is
        nothing to go on with."""
        try:
            saved = json.loads((self._folder / CAMPAIGN).read_text(encoding="utf-8"))
            same = saved["state"] != "ended" and saved["plan"] == json.loads(json.dumps(asdict(self._plan)))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return saved if same else None

    def _save(self, content: dict[str, Any]) -> None:
        head = {"began_at": self._began_at, "first": self.first, "spent_s": round(self._spent_s, 1)}
        with whole_file(self._folder / CAMPAIGN) as part:
            saved = {**head, "plan": asdict(self._plan), **content}
            part.write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")

    def carry_out(self) -> Outcome:
        """Makes the runs, and the smaller forms of those that failed. Raises CorpusError, DoneFileError,
        OSError."""
        before = self._ledger.before(self._plan.label, self.first)
        totals = run_seeds(
            self._setup,
            self._plan.seeds or _ENDLESS,
            jobs=self._plan.jobs,
            vary=self._plan.vary,
            keep_going=True,
            covered=True,
            first=list(self._kept.values()),
            done=self._folder / SEEDS,
            progress=self._progress,
            enough=self._is_enough,
        )
        result = Outcome(
            name=self._folder.name,
            plan=self._plan,
            began_at=self._began_at,
            first=self.first,
            kept=len(self._kept),
            spent_s=round(self._spent_s, 1),
            totals=totals,
            covered=coverage(totals.ways),
            before=before,
            interrupted=totals.interrupted,
        )
        setups = [self._setup_of(row) for row in totals.violations]
        for row, setup in zip(totals.violations, setups, strict=True):
            profile, is_kept = profile_of(setup), row.command in self._kept
            finding = Finding(row.seed, profile, row.oracle, row.text, row.command, is_kept)
            result.findings.append(finding)
        try:
            with signals_interrupt():
                self._shrink(result, setups)
        except KeyboardInterrupt:
            result.interrupted = True
        self._ledger.add(result.entry)
        self._save(result.as_json())
        return result

    # --- runs -------------------------------------------------------------------------------------------

    def _is_enough(self, totals: Totals) -> bool:
        new = sum(row.command not in self._kept for row in totals.violations)
        return self._spent_s >= self._plan.budget_s or new >= MOST_VIOLATIONS

    def _progress(self, row: Row, totals: Totals) -> None:
        if row.oracle:
            self._ledger.corpus.keep(row.command, f"{row.oracle}: {row.text}")
            self._say(f"seed {row.seed}  VIOLATION {row.oracle}: {row.text}\n  again: {row.command}")
        elif time.monotonic() - self._reported_at < _SAY_EVERY_S:
            return
        self._reported_at = time.monotonic()
        self._save({"state": "under way"})
        new, most = totals.seeds - totals.kept, self._plan.seeds
        parts = [
            f"{new} of {plural(most, 'seed')}" if most else plural(new, "seed"),
            *([f"{totals.kept} of {len(self._kept)} kept runs"] if self._kept else ()),
            *([plural(len(totals.violations), "violation")] if totals.violations else ()),
            str(coverage(totals.ways)),
            f"{_clock(self._remaining_s(totals))} left",
        ]
        self._say(", ".join(parts))

    def _remaining_s(self, totals: Totals) -> float:
        remaining = max(self._plan.budget_s - self._spent_s, 0.0)
        if self._plan.seeds:
            missing = self._plan.seeds + len(self._kept) - totals.seeds
            remaining = min(remaining, self._spent_s / totals.seeds * missing)
        return remaining

    # --- violations -------------------------------------------------------------------------------------

    def _setup_of(self, row: Row) -> Setup:
        return self._kept.get(row.command) or drawn_as(self._plan.vary, replace(self._setup, seed=row.seed))

    def _shrink(self, result: Outcome, setups: Sequence[Setup]) -> None:
        """Makes the runs that failed smaller, one of each oracle first, unless it was interrupted."""
        until = time.monotonic() + max(self._plan.budget_s, _LEAST_SHRINKING_S)
        for at in _one_of_each_first(result.findings):
            if result.interrupted or time.monotonic() >= until:
                break
            failing = result.findings[at]
            self._say(f"seed {failing.seed} fails {failing.oracle}; making it smaller")
            result.findings[at] = replace(failing, smallest=smallest(setups[at]))


def _one_of_each_first(findings: Sequence[Finding]) -> Iterator[int]:
    """Yields indexes of the findings: new ones before those of the corpus, and of each oracle one first."""
    order = sorted(range(len(findings)), key=lambda at: findings[at].kept)
    first = {findings[at].oracle: at for at in reversed(order)}
    yield from (at for at in order if first[findings[at].oracle] == at)
    yield from (at for at in order if first[findings[at].oracle] != at)


def smallest(setup: Setup) -> Smallest:
    """Makes a run that fails smaller. Raises ValueError for one that does not fail."""
    shrunk = shrink(run(setup))
    again = run(shrunk.result.setup, timeline=_LINES)
    return Smallest(
        command=f"{again.setup.command()} --no-shrink",
        faults_before=shrunk.faults_before,
        runs=shrunk.runs,
        seconds=again.setup.seconds,
        faults=tuple(_faults(again)),
        timeline=again.timeline,
    )


def _faults(result: Result) -> Iterator[str]:
    for at_ms, fault, what in result.faults:
        yield f"at {at_ms / 1000:.3f} s: f{fault.id} {fault.kind} {what} for {fault.for_ms:.0f} ms"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
