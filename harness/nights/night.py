"""A night: its file, whole, and the runs that it wants, in a folder of its own.

NIGHT/night.json      the file, and the runs in their order; beside what `driver` keeps there
NIGHT/smallest/       violations made smaller
NIGHT/summary.markdown, junit.xml
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import yaml

from wrackline.checkers.findings import Verdict
from wrackline.harness.nights.campaigns import CampaignRun
from wrackline.harness.nights.driver import Driver, Limits, Say
from wrackline.harness.nights.journal import Did, Journal
from wrackline.harness.nights.queue import Saved, Task, agenda, as_yaml
from wrackline.harness.nights.shrinking import Raw
from wrackline.harness.nights.spec import Case, Night
from wrackline.harness.nights.subprocesses import Child
from wrackline.harness.records import record
from wrackline.harness.run.replay import replay_of
from wrackline.nemesis.follow.coverage import merged

NIGHT_JSON = "night.json"


def begin(folder: Path, night: Night, cases: Sequence[Case]) -> None:
    """Writes everything that the night needs to know into its folder. Raises OSError."""
    specs = folder / "specs"
    for below in (specs, folder / "runs", folder / "logs"):
        below.mkdir(parents=True)
    for case in cases:
        if case.spec is not None:
            (specs / f"{case.name}.yaml").write_text(case.spec.to_yaml())
        if case.twin is not None:
            (specs / f"{case.name}~twin.yaml").write_text(case.twin.to_yaml())
    said = {
        "night": night.model_dump(mode="json"),
        "cases": [case.name for case in cases],
        "files": {case.name: str(case.file.absolute()) for case in cases},
        "campaigns": {
            case.name: CampaignRun.of(case.campaign).model_dump(mode="json")
            for case in cases
            if case.campaign is not None
        },
    }
    (folder / NIGHT_JSON).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")


def saved(folder: Path) -> tuple[Night, list[Saved]]:
    """Returns what `begin` wrote. Raises OSError, and ValueError for what nobody of us wrote."""
    said = orjson.loads((folder / NIGHT_JSON).read_bytes())
    specs = folder / "specs"

    def text(name: str) -> str | None:
        path = specs / f"{name}.yaml"
        return path.read_text() if path.exists() else None

    files, campaigns = said.get("files", {}), said.get("campaigns", {})
    cases = []
    for name in said["cases"]:
        campaign = CampaignRun.model_validate(campaigns[name], strict=False) if name in campaigns else None
        own = campaign.text if campaign else text(name) or ""
        cases.append(Saved(name, own, text(f"{name}~twin"), files.get(name, ""), campaign))
    return Night.model_validate(said["night"], strict=False), cases


def reached_before(text: str) -> dict[str, int]:
    """Returns the pairs that a specification is told of as reached."""
    follow = ((yaml.safe_load(text) or {}).get("nemesis") or {}).get("follow") or {}
    return dict(follow.get("reached") or {})


def with_reached(text: str, pairs: Mapping[str, int]) -> str:
    """Returns a specification that knows of these pairs, so that it prefers others; as it was where no fault
    follows a state."""
    raw = yaml.safe_load(text) or {}
    follow = (raw.get("nemesis") or {}).get("follow")
    if follow is None or not pairs:
        return text
    follow["reached"] = {**(follow.get("reached") or {}), **pairs}
    return as_yaml(raw)


class NightDriver(Driver):
    """A whole night."""

    def __init__(self, folder: Path, journal: Journal, *, master: str, say: Say) -> None:
        self.night, self.cases = saved(folder)
        limits = Limits(self.night.budget, self.night.slots, self.night.keep_free_mb)
        super().__init__(folder, journal, limits, master=master, say=say)
        self._replayed: dict[str, Raw] = {}
        self._campaigns = {case.name: case.campaign for case in self.cases if case.campaign is not None}

    def _begin(self, task: Task) -> None:
        super()._begin(replace(task, text=with_reached(task.text, self._reached(task))))

    def _arguments(self, name: str) -> Sequence[str | Path]:
        campaign = self._campaigns.get(name)
        if campaign is None:
            return super()._arguments(name)
        return campaign.arguments(self.folder / "runs")

    def _made(self, name: str, child: Child) -> None:
        """A campaign is judged by what it wrote, at once; one that was interrupted has a page, and goes on
        another time."""
        campaign = self._campaigns.get(name)
        if campaign is None:
            super()._made(name, child)
            return
        verdict = campaign.judge(self.folder / "runs")
        if self.stopping:
            if verdict is not None:
                self._say(f"{name}, so far: {self.folder / 'runs' / campaign.run / 'report.html'}")
        elif verdict is None:
            self._judged(name, "", Verdict.INFRASTRUCTURE, child.last_line(), ())
        else:
            self.journal.write(Did.MADE, task=name, run=campaign.run, seconds=round(child.seconds, 1))
            self._take(name, campaign.run, verdict)

    def _reached(self, task: Task) -> Mapping[str, int]:
        """Returns the pairs of state and fault that the runs so far have reached; for a run that is made
        again, those that it had."""
        runs = self.folder / "runs"
        case, _, again = task.name.partition("~")
        if again:
            of = self.state.results[case].run
            return reached_before((runs / of / "spec.yaml").read_text()) if of else {}
        pairs: Mapping[str, int] = merged([record(one).coverage for one in sorted(runs.iterdir())])["pairs"]
        return pairs

    def agenda(self) -> Iterable[Task]:
        return agenda(self.night, self.cases, self.state, self.replayed)

    def replayed(self, run: str) -> Raw:
        """A run's specification, with its faults as a schedule where they were drawn; nobody may change it.
        Its history is read once: this is asked for as long as the run is made smaller. Raises SpecError."""
        if run not in self._replayed:
            folder = self.folder / "runs" / run
            raw: Raw = yaml.safe_load((folder / "spec.yaml").read_text())
            guided = bool((raw.get("nemesis") or {}).get("guided"))
            self._replayed[run] = raw if guided else yaml.safe_load(replay_of(folder).text)
        return self._replayed[run]

    def account(self) -> str:
        """``3 of 12 runs, 1 violation, 5 min of 8 h``."""
        state = self.state
        done = sum(case.name in state.results for case in self.cases)
        bad = sum(state.results[case.name].violates for case in self.cases if case.name in state.results)
        beside = len(state.results) - done
        parts = [f"{done} of {len(self.cases)} runs"]
        if beside:
            parts.append(f"{beside} for violations")
        if bad:
            parts.append(f"{bad} violation{'s' if bad > 1 else ''}")
        return ", ".join((*parts, self.spent))
