"""Records of past runs, one ``Record`` each: for lists, trends, datasets, all that looks at many runs.

Runs are found below any folder, a night's as well as single ones, on this machine or in object storage: every
address that fsspec knows (``s3://bucket/nights``, ``webhdfs://host/nights``) will do. Histories are not read.
Nothing here raises for the content of a run: what cannot be read is said in ``Record.trouble``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import index
from pathlib import Path
from typing import Any, Final

import orjson
import yaml
from upath import UPath

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.checkers.verdict.seal import SEAL, why_broken
from wrackline.history.store.addresses import folder_at
from wrackline.history.store.folder import PARQUET, RUN_JSON, WAL
from wrackline.nemesis.follow.coverage import FOLLOW_JSON

_DEPTH: Final = 4
"""So far below the folder that was named: ``results/nights/NIGHT/runs/RUN``."""
_RUN_FILES: Final = frozenset({RUN_JSON, "verdict.json", PARQUET, WAL, "infrastructure.json"})
SAMPLE: Final = "sample"
"""The report in the repository, ``results/sample``: to be looked at, and no run of anybody's."""
JOURNAL: Final = "journal.jsonl"
"""What a night did, line by line (wrackline.harness.nights.journal)."""


GOOD: Final = (Verdict.PASS, Verdict.REPRODUCED)
BAD: Final = (Verdict.VIOLATION, Verdict.NOT_REPRODUCED)
"""Verdicts that say something of the system; the others say nothing."""


class State(StrEnum):
    """The state of a run."""

    JUDGED = "judged"
    NOT_JUDGED = "not judged"
    RECORDING = "recording"
    """It goes on, or it was killed: its write-ahead file is still there."""
    INFRASTRUCTURE = "infrastructure"
    """Hosts, SSH or deployment failed, so there is no history worth a verdict."""
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of one anomaly in a run, and what its contract says of it."""

    anomaly: str
    meaning: Meaning | str
    count: int


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident of a run: the anomalies that give it its meaning, joined by ``+``."""

    cause: str
    meaning: Meaning | str
    sentence: str


@dataclass(frozen=True, slots=True)
class FaultDone:
    """A fault of a run. Times in seconds since the run began; None where it never came so far."""

    id: str
    kind: str
    targets: tuple[str, ...]
    role: str
    began_s: float | None
    ended_s: float | None
    proved: bool


@dataclass(frozen=True, slots=True)
class Record:
    """One run."""

    run: str
    """Its id, which begins with the time."""
    folder: UPath
    state: State
    trouble: str = ""
    """Which file cannot be read and why, or what failed on our side. One line."""
    night: str = ""
    """The night's folder name; empty for a run that was made alone."""
    task: str = ""
    """What the night calls it: ``CASE``, ``CASE~twin``, ``CASE~repeat-2``; the specification's name alone."""
    name: str = ""
    """Of the specification."""
    seed: int | None = None
    started_at: str = ""
    """UTC, ISO 8601."""
    seconds: float | None = None
    """How long it took in the run's own clock, from set-up to the collected logs."""
    system: str = ""
    """Its kind: ``wrackline``, ``apache-kafka``, ..."""
    version: str = ""
    """Of the system; of the project itself where the system is ours."""
    profile: str = ""
    fleet: str = ""
    workload: str = ""
    acks: str = ""
    guided: str = ""
    """The guided schedule, if there was one."""
    defects: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    """The anomalies that it had to show."""
    must_violate: bool = False
    """Whether its specification says that it shows a known bug, and must be a violation."""
    verdict: Verdict | None = None
    sealed: bool = False
    """Whether the verdict shows that nothing was changed since; an earlier version's does not."""
    headline: str = ""
    reasons: tuple[str, ...] = ()
    contract: str = ""
    found: tuple[Found, ...] = ()
    incidents: tuple[Incident, ...] = ()
    """The first twenty of each meaning."""
    incident_counts: Mapping[str, int] = field(default_factory=dict)
    """By meaning; empty where nobody counted them."""
    faults: tuple[FaultDone, ...] = ()
    planned_faults: int = 0
    coverage: Mapping[str, Any] = field(default_factory=dict)
    """The states of the cluster that faults followed (nemesis.follow.coverage); empty where none did."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By the names of ``METRICS``; one that was not measured is absent."""

    @property
    def case(self) -> str:
        """The night's case that it belongs to, with its twin and its repeats."""
        return self.task.partition("~")[0]

    @property
    def follow_up(self) -> str:
        """``twin``, ``repeat-2``, ``smaller-0a1b2c3d-1``; empty for the case itself."""
        return self.task.partition("~")[2]

    @property
    def as_expected(self) -> bool:
        """Tells whether the run came out bad because it must: its specification says so, or a bug was put
        into the system."""
        must = self.must_violate or bool(self.defects)
        return self.verdict is Verdict.REPRODUCED or (must and self.verdict is Verdict.VIOLATION)

    @property
    def good(self) -> bool | None:
        """Tells whether the run came out as it should; None: it says nothing of the system."""
        if self.as_expected:
            return True
        if self.verdict is Verdict.PASS:
            return not (self.must_violate and self.follow_up != "twin")
        return False if self.verdict in BAD else None

    @property
    def word(self) -> str:
        """Returns the run's verdict, and whether that was expected where the verdict does not say it; empty
        before one."""
        if self.verdict is None:
            return ""
        if self.as_expected and self.verdict is not Verdict.REPRODUCED:
            return f"as expected: {self.verdict.value}"
        error = self.verdict in GOOD and not self.good
        return f"not as expected: {self.verdict.value}" if error else self.verdict.value

    @property
    def is_smaller(self) -> bool:
        """Tells whether the run tries a smaller specification: then it tells something of its case, and what
        it shows is nothing that a night was asked about."""
        return self.follow_up.startswith("small")

    @property
    def violations(self) -> tuple[str, ...]:
        """The anomalies that its contract forbids and that it showed, by name."""
        return tuple(sorted(each.anomaly for each in self.found if each.meaning == Meaning.VIOLATION))

    @property
    def causes(self) -> tuple[str, ...]:
        """Returns the causes of the incidents that its contract forbids; where there are no incidents, all
        anomalies as one."""
        causes = (one.cause for one in self.incidents if one.meaning == Meaning.VIOLATION)
        return tuple(dict.fromkeys(causes)) or tuple(filter(None, ["+".join(self.violations)]))

    @property
    def incident_ids(self) -> tuple[str, ...]:
        """Returns the ids of the incidents that its contract forbids, as the site has them."""
        return tuple(incident_id(cause, *self.signature[1:]) for cause in self.causes)

    @property
    def signature(self) -> tuple[str, str, str, str]:
        """Returns the signature by which runs show one and the same: (cause, schedule, system, version). The
        cause is all of the anomalies, the schedule the guided one's name or the kinds of faults."""
        schedule = self.guided or "+".join(sorted({fault.kind for fault in self.faults})) or "no fault"
        system = "/".join(part for part in (self.system, self.profile) if part)
        return "+".join(self.violations), schedule, system, self.version


METRICS: Final[Mapping[str, str]] = {
    "acknowledged": "records acknowledged",
    "read": "records read",
    "operations": "operations begun",
    "acknowledged_per_s": "operations that succeeded per second while there was load",
    "send_p50_ms": "median time of an operation before the first fault, ms",
    "send_p99_ms": "99th percentile before the first fault, ms",
    "faulted_p50_ms": "median time of an operation while a fault was on, ms",
    "faulted_p99_ms": "99th percentile while a fault was on, ms",
    "longest_gap_ms": "longest time without an acknowledgement, ms",
    "left_out": "share of the operations asked for that were not begun",
    "seconds": "how long the run took, s",
    "judged_in_s": "how long its analysis took, s",
}
"""Name -> what it is, with its unit."""


KNOWN: Final = "known.yaml"
"""In the folder of the results: a line for each incident that somebody works on, ``i-0a1b2c3d4e: LINK``. The
name is what the link to it on the site ends with."""


class NotKnown(Exception):
    """The list of known incidents cannot be read. One line."""


def incident_id(cause: str, schedule: str, system: str, version: str) -> str:
    """Returns the end of a link to an incident: the same on every machine. With another version it is
    another."""
    return f"i-{hashlib.sha256(chr(0).join((cause, schedule, system, version)).encode()).hexdigest()[:10]}"


def known_incidents(place: Path | UPath) -> dict[str, str]:
    """Returns the link to where each known incident is worked on, by `incident_id`; empty without a list.
    Raises NotKnown."""
    try:
        said = yaml.load((UPath(place) / KNOWN).read_bytes(), _LOADER) or {}
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise NotKnown(f"{place}/{KNOWN}: cannot be read: {why}; a line is i-0a1b2c3d4e: LINK") from error
    if not isinstance(said, dict):
        raise NotKnown(f"{place}/{KNOWN}: is no list of lines such as i-0a1b2c3d4e: LINK")
    for name, link in said.items():
        if not (isinstance(name, str) and name.startswith("i-") and isinstance(link, str)):
            raise NotKnown(
                f"{place}/{KNOWN}: {name}: a line is i-0a1b2c3d4e: LINK, as the site names incidents"
            )
    return said


def records(where: str | Path) -> list[Record]:
    """Every run below a folder or an fsspec address, oldest first; empty when there is none. Raises OSError
    when the place itself cannot be listed."""
    result = [record(folder, night) for folder, night in folders(where)]
    return sorted(result, key=lambda one: (one.started_at or one.run, one.run))


def in_json(found: Iterable[Record]) -> str:
    """A list with an object for each run: the fields of ``Record``, and what follows from them. The fields of
    a run that has no verdict are null or empty."""
    derived = ("case", "follow_up", "violations", "causes", "signature")
    told = []
    for one in found:
        said = {each.name: getattr(one, each.name) for each in fields(one)}
        told.append({**said, "folder": str(one.folder), **{name: getattr(one, name) for name in derived}})
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode()


def record(folder: UPath | Path, night: Night | None = None) -> Record:
    """One run's."""
    folder = UPath(folder)
    trouble: list[str] = []
    run, verdict, metrics = (
        _json(folder / name, trouble) for name in (RUN_JSON, "verdict.json", "metrics.json")
    )
    if why := _seal_broken(folder, verdict):
        trouble.append(why)
        verdict = {}
    failure = _json(folder / "infrastructure.json", trouble)
    files = {"run": run, "verdict": verdict, "metrics": metrics}
    try:
        return _record(folder, night, failure, trouble, **files)
    except _NOT_AS_WRITTEN:
        for name in files:
            try:
                _record(folder, night, {}, [], **{name: files[name]})
            except _NOT_AS_WRITTEN as error:
                trouble.append(f"{name}.json: not as it is written here: {error}")
                files[name] = {}
        return _record(folder, night, failure, trouble, **files)


_NOT_AS_WRITTEN: Final = (TypeError, ValueError, KeyError, AttributeError)
"""What values of other types than ours bring about."""
_NOTHING: Final[dict[str, Any]] = {}


def _record(
    folder: UPath,
    night: Night | None,
    failure: Mapping[str, Any],
    trouble: list[str],
    *,
    run: Mapping[str, Any] = _NOTHING,
    verdict: Mapping[str, Any] = _NOTHING,
    metrics: Mapping[str, Any] = _NOTHING,
) -> Record:
    """Raises one of ``_NOT_AS_WRITTEN``."""
    judged = verdict.get("verdict") in set(Verdict)
    if verdict and not judged:
        raise ValueError(f"no verdict is called {verdict.get('verdict')!r}")
    trouble = [*trouble, str(failure["error"])] if failure.get("error") else trouble
    plan = run.get("plan") or {}
    spec = _spec(folder)
    kind = str(run.get("system_kind") or run.get("system") or "")
    return Record(
        run=folder.name,
        folder=folder,
        state=_state(folder, judged=judged, failed=bool(failure), trouble=trouble),
        trouble="; ".join(trouble),
        night=night.name if night else "",
        task=(night.tasks.get(folder.name) if night else None) or str(run.get("name") or folder.name),
        name=str(run.get("name") or folder.name),
        seed=None if run.get("seed") is None else index(run["seed"]),
        started_at=str(run.get("started_at") or ""),
        seconds=_seconds(metrics),
        system=kind,
        version=str(run.get("system_version") or run.get("harness_version") or ""),
        profile=str(run.get("profile") or ""),
        fleet=str(_of(spec, "fleet", "kind") or ""),
        workload=str(run.get("workload") or ""),
        acks=str(run.get("acks") or ""),
        guided=str(plan.get("guided") or ""),
        defects=tuple(map(str, run.get("defects") or ())),
        expected=tuple(map(str, run.get("expected") or ())),
        must_violate=_of(spec, "contract", "verdict") == Verdict.VIOLATION,
        verdict=Verdict(verdict["verdict"]) if judged else None,
        sealed=SEAL in verdict,
        headline=str(verdict.get("headline") or ""),
        reasons=tuple(map(str, verdict.get("reasons") or ())),
        contract=str((verdict.get("contract") or {}).get("name") or ""),
        found=tuple(
            Found(str(each["anomaly"]), str(each["meaning"]), int(each["count"]))
            for each in verdict.get("anomalies") or ()
            if each.get("count")
        ),
        incidents=tuple(_incident(each) for each in verdict.get("incidents") or ()),
        incident_counts=dict(verdict.get("incident_counts") or {}),
        faults=tuple(_fault(each) for each in verdict.get("faults") or () if each.get("asked_for", True)),
        planned_faults=int(verdict.get("planned_faults") or 0),
        coverage=_json(folder / FOLLOW_JSON, []) if plan.get("follows") else {},
        metrics=_metrics(verdict, metrics),
    )


@dataclass(frozen=True, slots=True)
class Night:
    """A night's folder: its name, and run id -> what the night calls that run."""

    name: str
    tasks: Mapping[str, str]


def night_of(folder: UPath) -> Night | None:
    """Returns the night of a folder; None when the folder is no night's."""
    try:
        lines = (folder / JOURNAL).read_bytes().splitlines()
    except OSError:
        return None
    tasks = {}
    for line in lines:
        try:
            said = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # torn by a crash: it is the last one
        if isinstance(said, dict) and isinstance(said.get("run"), str) and isinstance(said.get("task"), str):
            tasks[said["run"]] = said["task"]
    return Night(folder.name, tasks)


def folders(where: str | Path | UPath) -> Iterator[tuple[UPath, Night | None]]:
    """The folder of every run below a place, with its night; nothing of a run is read. Raises OSError as
    above."""
    yield from _folders(folder_at(where), 0, None)


def _folders(place: UPath, depth: int, night: Night | None) -> Iterator[tuple[UPath, Night | None]]:
    """Every run's folder, with its night. A run's own folder is not looked into."""
    entries = sorted(place.iterdir(), key=lambda one: one.name)
    names = {entry.name for entry in entries}
    if names & _RUN_FILES:
        if not (place.name == SAMPLE and depth and RUN_JSON not in names):
            yield place, night
        return
    if JOURNAL in names:
        night = night_of(place)
    if depth < _DEPTH:
        for entry in entries:
            if not entry.name.startswith(".") and entry.is_dir():
                yield from _folders(entry, depth + 1, night)


def _json(path: UPath, trouble: list[str]) -> dict[str, Any]:
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, orjson.JSONDecodeError) as error:
        trouble.append(f"{path.name}: not readable: {error}")
        return {}
    if not isinstance(content, dict):
        trouble.append(f"{path.name}: not a JSON object")
        return {}
    return content


def _seal_broken(folder: UPath, verdict: Mapping[str, Any]) -> str:
    try:
        return why_broken(folder, verdict)
    except OSError as error:
        return f"the seal of verdict.json cannot be checked: {error}"


def _state(folder: UPath, *, judged: bool, failed: bool, trouble: Iterable[str]) -> State:
    if judged:
        return State.JUDGED
    if failed:
        return State.INFRASTRUCTURE
    if any(trouble):
        return State.DAMAGED
    return State.RECORDING if (folder / WAL).exists() else State.NOT_JUDGED


def _spec(folder: UPath) -> object:
    """The specification, as it was saved; None where it cannot be read."""
    try:
        return yaml.load((folder / "spec.yaml").read_bytes(), _LOADER)
    except (OSError, yaml.YAMLError):
        return None


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a specification in a tenth of the time."""


def _of(spec: object, section: str, key: str) -> object:
    inside = spec.get(section) if isinstance(spec, dict) else None
    return inside.get(key) if isinstance(inside, dict) else None


def _incident(said: Mapping[str, Any]) -> Incident:
    own = {str(one["anomaly"]) for one in said["anomalies"] if one["meaning"] == said["meaning"]}
    return Incident("+".join(sorted(own)), str(said["meaning"]), str(said["sentence"]))


def _fault(said: Mapping[str, Any]) -> FaultDone:
    return FaultDone(
        id=str(said.get("id") or ""),
        kind=str(said.get("fault") or ""),
        targets=tuple(map(str, said.get("targets") or ())),
        role=str(said.get("role") or ""),
        began_s=None if (began := said.get("begin_ns")) is None else began / 1e9,
        ended_s=None if (ended := said.get("ended_ns")) is None else ended / 1e9,
        proved=bool(said.get("proved")),
    )


def _seconds(metrics: Mapping[str, Any]) -> float | None:
    ends = [phase["end_ns"] for phase in metrics.get("phases") or () if phase.get("end_ns") is not None]
    return max(ends) / 1e9 if ends else None


def _metrics(verdict: Mapping[str, Any], metrics: Mapping[str, Any]) -> dict[str, float]:
    counts = verdict.get("counts") or {}
    latency, load = metrics.get("latency") or {}, metrics.get("load") or {}
    parts = (latency.get("before"), latency.get("faults"), load.get("main"))
    before, during, main = (part or {} for part in parts)
    result = {
        "acknowledged": counts.get("acked_records"),
        "read": counts.get("read_records"),
        "operations": counts.get("operations"),
        "acknowledged_per_s": main.get("done_per_s", main.get("succeeded_per_s")),  # as it was called once
        "send_p50_ms": before.get("p50_ms"),
        "send_p99_ms": before.get("p99_ms"),
        "faulted_p50_ms": during.get("p50_ms"),
        "faulted_p99_ms": during.get("p99_ms"),
        "longest_gap_ms": metrics.get("longest_gap_ms"),
        "left_out": main.get("left_out"),
        "seconds": _seconds(metrics),
        "judged_in_s": (verdict.get("engine") or {}).get("seconds"),
    }
    return {name: float(value) for name, value in result.items() if isinstance(value, int | float)}
