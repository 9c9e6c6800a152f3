"""The suites whose verdicts are known beforehand, each with what must come out of it and of its control.

The suites lie in the folder of their kind in ``suites``; ``catalogue.yaml`` has what is expected of them.

- ``defects``: our broker with a historic defect, and its twin: the same specification, seed and schedule of
  faults, with the broker as it is. Where a defect takes no record but only time, nothing is forbidden: its
  suite sets a threshold instead, the run with the defect must miss it, and the twin must keep it.
- ``stories``: our broker where no defect is needed: settings that allow loss, outages, recoveries,
  operations.
- ``findings``: what Apache Kafka itself does wrong, or what its settings allow.
- ``eras``: the stories of docs/known-bugs.md under the rules of each era. A suite is written for profile
  zk08; its other arms are the same but for the profile, and for whom the brokers ask: ZooKeeper there, a
  controller later. ``wrackline simulate eras`` plays the same stories in the simulator.

A control is the same specification but for the one thing that mends it. Without it what is shown could come
from the faults, or from a judge that calls everything a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations.expectation import DefectExpectation, Expectation
from wrackline.harness.run.judge import Judged
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import Spec, SpecError, load
from wrackline.harness.specification.suites import suites_dir
from wrackline.plugins.nearest import instead_of

CONTROL = "-control"
FIRST = "zk08"
"""The profile that an era's story harms."""
PROFILES = (FIRST, "kip101", "kraft35", "kip966")
"""In the order of time."""
_WITH_CONTROLLER = ("fleet.zookeeper=0", "fleet.controllers=1")
_DEFECT_S = 30
_SHOWN_REASONS = 4
_NO_CAUSE: Any = {"name": True, "contract": {"verdict": True}}


@cache
def catalogue() -> Mapping[str, Mapping[str, Any]]:
    """Kind -> name of a suite -> what is expected of it; and ``not_on_hosts``, defect -> why."""
    content: dict[str, dict[str, Any]] = yaml.safe_load(
        files("wrackline.harness.expectations").joinpath("catalogue.yaml").read_text()
    )
    return content


@dataclass(frozen=True, slots=True)
class Result:
    """One run and how it differs from what must come out of it."""

    judged: Judged
    expectation: Expectation

    @property
    def wrong(self) -> list[str]:
        return self.expectation.differences(self.judged.verdict)

    def row(self) -> dict[str, Any]:
        """Returns the row of a table: the run's folder, its verdict, the counts, the nodes' own words."""
        verdict = self.judged.verdict
        return {
            "run": self.judged.run_dir.name,
            "verdict": verdict["verdict"],
            "acknowledged": verdict["counts"]["acked_records"],
            "shown": self.expectation.counts(verdict),
            "node_words": _node_lines(verdict),
            "wrong": self.wrong,
            "reasons": list(verdict.get("reasons", ()))[:_SHOWN_REASONS] if self.wrong else [],
            "report": str(self.judged.report) if self.judged.report else None,
        }

    @property
    def account(self) -> str:
        """``640 lost-write of 900``."""
        verdict = self.judged.verdict
        counts = self.expectation.counts(verdict).items()
        shown = ", ".join(f"{count:,} {name}" for name, count in counts)
        return f"{shown} of {verdict['counts']['acked_records']:,}"

    @property
    def complaints(self) -> list[str]:
        reasons = "; ".join(self.judged.verdict.get("reasons", ())[:_SHOWN_REASONS])
        return [f"{self.judged.run_dir.name}: {wrong} ({reasons})" for wrong in self.wrong]


@dataclass(slots=True)
class Arm:
    """A specification, what must come out of it, and what came of its runs."""

    label: str
    """``b59, the control``."""
    spec: Spec
    expectation: Expectation
    results: list[Result] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        self.results.append(Result(judged, self.expectation))

    @property
    def runs(self) -> int:
        return len(self.results)

    @property
    def right(self) -> int:
        return sum(not result.wrong for result in self.results)


@dataclass(slots=True)
class Case:
    """A suite whose verdict is known, and its control where it has one."""

    name: str
    main: Arm
    control: Arm | None
    what: str = ""
    """One line for the list."""
    run_s: int = _DEFECT_S
    """How long one of its runs takes, roughly, without the judging."""

    @property
    def arms(self) -> list[Arm]:
        return [self.main] if self.control is None else [self.main, self.control]

    @property
    def is_expected(self) -> bool:
        """Tells whether there was a run, and all came out as they must."""
        return self.main.runs > 0 and all(arm.right == arm.runs for arm in self.arms)

    @property
    def results(self) -> Iterator[tuple[Result, bool]]:
        """Yields the results in the order of the runs, each with whether it is the control."""
        for number, result in enumerate(self.main.results):
            yield result, False
            if self.control is not None and number < self.control.runs:
                yield self.control.results[number], True

    @property
    def version(self) -> str:
        """Returns the version of Apache Kafka; for our own broker the profile."""
        configured = self.main.spec.system.configured()
        return configured.version or configured.profile

    @property
    def changed(self) -> tuple[str, ...]:
        """Returns how the control differs: ``system.version: 3.9.2 -> 4.4.0``. Another library has
        versions of its own; what is expected of the two is no cause."""
        if self.control is None:
            return ()
        pair = (arm.spec.model_dump(mode="json", exclude=_NO_CAUSE) for arm in self.arms)
        result = tuple(_differences("", *pair))
        if any(line.startswith("workload.client.library:") for line in result):
            result = tuple(line for line in result if not line.startswith("workload.client.version:"))
        return result


def defects(names: Iterable[str] = ()) -> list[Case]:
    """The suites of ``suites/defects`` that are named, or all. Raises SpecError for a name that is none, and
    for a file that does not fit."""
    paths = {path.stem: path for path in sorted((suites_dir() / "defects").glob("*.yaml"))}
    result = []
    for name in _resolve(names, paths, "defect suite", "`wrackline list specs` lists them"):
        spec = load_checked(paths[name])
        known = catalogue()["defects"].get(name, {})
        unmet = [f"threshold {limit}" for limit in spec.contract.thresholds.limits()]
        unmet += filter(None, [known.get("unmet")])
        shows = (*spec.contract.expected, *unmet)
        if not spec.system.configured().defects or not shows:
            raise SpecError(
                f"{paths[name]}: a defect suite names system.defects, and contract.expected or a threshold"
            )
        allowed = Verdict.PASS if "allowed" in known else Verdict.VIOLATION
        expectation = DefectExpectation(Verdict.INCONCLUSIVE if unmet else allowed, shows)
        # Judged like any other run: what the defect does must be forbidden, not only found.
        spec = spec.model_copy(update={"contract": spec.contract.model_copy(update={"expected": ()})})
        healthy = spec.system.model_copy(update={"defects": ()})
        twin = spec.model_copy(update={"name": f"{spec.name}-twin", "system": healthy})
        result.append(
            Case(
                name,
                Arm(f"{name}, with the defect", spec, expectation),
                Arm(f"{name}, the twin", twin, expectation.of_control),
            )
        )
    return result


def stories(names: Iterable[str] = (), *, checked: bool = True) -> list[Case]:
    """The suites of ``suites/stories`` that are named, or all; raises as `defects` does. ``checked``: the
    system and the client library are asked, too."""
    return _with_controls("stories", "story", names, checked)


def findings(names: Iterable[str] = (), *, checked: bool = True) -> list[Case]:
    """The suites of ``suites/findings`` that are named, or all; as `stories`."""
    return _with_controls("findings", "finding", names, checked)


def eras(
    names: Iterable[str] = (), profiles: Collection[str] = PROFILES, *, checked: bool = True
) -> list[Case]:
    """A case for each story that is named, or for all, under each of these profiles; as `stories`."""
    known = catalogue()["eras"]
    return [
        _era(name, profile, known[name], load_checked if checked else load)
        for name in _resolve(names, known, "story", "--list shows them")
        for profile in PROFILES
        if profile in profiles
    ]


def era_settings(name: str, profile: str) -> tuple[str, ...]:
    """Returns the settings that ``wrackline run --set`` must be given for this arm of a story."""
    if profile == FIRST:
        return ()
    harmed = catalogue()["eras"][name]["verdict"] == Verdict.VIOLATION
    passes = ("contract.verdict=null",) if harmed else ()
    return (f"name=era-{name}-{profile}", f"system.profile={profile}", *_WITH_CONTROLLER, *passes)


def _era(name: str, profile: str, known: Mapping[str, Any], read: Callable[..., Spec]) -> Case:
    spec = read(suites_dir() / "eras" / f"{name}.yaml", settings=era_settings(name, profile))
    harm = _expectation(known)
    main = Arm(f"{name} under {profile}", spec, harm if profile == FIRST else harm.of_control)
    return Case(name, main, None, known["what"], known["run_s"])


def _with_controls(kind: str, noun: str, names: Iterable[str], checked: bool) -> list[Case]:
    read, folder, result = load_checked if checked else load, suites_dir() / kind, []
    for name in _resolve(names, catalogue()[kind], noun, "--list shows them"):
        known, path = catalogue()[kind][name], folder / f"{name}{CONTROL}.yaml"
        expectation = _expectation(known)
        main = Arm(name, read(folder / f"{name}.yaml"), expectation)
        control = Arm(f"{name}, the control", read(path), expectation.of_control) if path.exists() else None
        result.append(Case(name, main, control, known["what"], known["run_s"]))
    return result


def _expectation(known: Mapping[str, Any]) -> Expectation:
    shows = tuple(known["shows"])
    return Expectation(Verdict(known["verdict"]), shows, () if shows else ("lost-write",))


def _resolve(names: Iterable[str], known: Collection[str], noun: str, listed: str) -> list[str]:
    """The names, each once, or all that are known. Raises SpecError."""
    expected = list(dict.fromkeys(names)) or list(known)
    for name in expected:
        if name not in known:
            raise SpecError(f"no {noun} {name!r}{instead_of(name, known, listed, are='there are')}")
    return expected


def _node_lines(verdict: Mapping[str, Any]) -> list[str]:
    """The lines of the nodes' files that tell of the first incident, with their places."""
    lines = [line for one in verdict.get("incidents", ())[:1] for line in one.get("lines", ())]
    return [f"{line['file']}:{line['number']}: {line['text']}" for line in lines]


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
