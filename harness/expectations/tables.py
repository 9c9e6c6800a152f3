"""The tables of cases and of results, on the screen and as rows of JSON, for each kind of suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations.cases import FIRST, PROFILES, Arm, Case
from wrackline.harness.screen import put, table
from wrackline.harness.specification.spec import Spec

_WIDTH = 200


def list_cases(cases: Sequence[Case]) -> None:
    """Stories and findings: what must come out of each, and how its control differs."""
    made = table("name", "system", "must be", "a run", "what", "the control differs in")
    for case in cases:
        must = case.main.expectation.must_be
        made.add_row(case.name, case.version, must, f"{case.run_s} s", case.what, "; ".join(case.changed))
    put(made, width=_WIDTH)


def list_eras(cases: Sequence[Case]) -> None:
    made = table("story", "under", "must be", "a run", "what happens")
    before = ""
    for case in cases:
        story, what = (case.name, case.what) if case.name != before else ("", "")
        made.add_row(story, case.version, _must_be_in_era(case), f"{case.run_s} s", what)
        before = case.name
    put(made, width=_WIDTH)


def show_defects(cases: Sequence[Case]) -> None:
    made = table("defect", "schedule", "caught", "twin clean", "found (runs)")
    for case in cases:
        result = ", ".join(f"{name} ({count})" for name, count in _found(case.main).items())
        defects = "+".join(case.main.spec.system.configured().defects)
        made.add_row(defects, _schedule(case.main.spec), *_of_runs(case), result or "none")
    put(made, width=160)
    _complain(cases)


def show_cases(cases: Sequence[Case]) -> None:
    """Stories and findings, with the nodes' own words."""
    made = table(
        "name", "system", "must be", "shown", "control clean", "of the acknowledged records, each run"
    )
    for case in cases:
        accounts = "; ".join(result.account for result in case.main.results)
        must = case.main.expectation.must_be
        made.add_row(case.name, case.version, must, *_of_runs(case), accounts)
    put(made, width=_WIDTH)
    for case in cases:
        for result, _ in case.results:
            for line in result.row()["node_words"]:
                click.echo(f"{result.judged.run_dir.name}/{line}")
            _complain_of(result.complaints)


def show_eras(cases: Sequence[Case]) -> None:
    profiles = [profile for profile in PROFILES if any(case.version == profile for case in cases)]
    made = table("story", *profiles)
    for story in dict.fromkeys(case.name for case in cases):
        cells = {case.version: _verdicts(case) for case in cases if case.name == story}
        made.add_row(story, *(cells[profile] for profile in profiles))
    put(made, width=_WIDTH)
    for case in cases:
        accounts = "; ".join(result.account for result in case.main.results)
        click.echo(f"{case.main.label}: {accounts or 'no run'}")
        _complain([case])


def defect_row(case: Case) -> dict[str, Any]:
    return {
        "case": case.name,
        "defects": list(case.main.spec.system.configured().defects),
        "schedule": _schedule(case.main.spec),
        "expected": list(case.main.expectation.shows),
        "runs": case.main.runs,
        "caught": case.main.right,
        "found": _found(case.main),
        "twins": _control(case).runs,
        "clean": _control(case).right,
        "wrong": [line for result, _ in case.results for line in result.complaints],
    }


def case_row(case: Case) -> dict[str, Any]:
    """Returns the row of a story or a finding."""
    return {
        "finding": case.name,
        "version": case.version,
        "must_be": case.main.expectation.verdict.value,
        "must_show": list(case.main.expectation.shows),
        "control_differs_in": list(case.changed),
        "runs": case.main.runs,
        "shown": case.main.right,
        "controls": _control(case).runs,
        "clean": _control(case).right,
        "made": [result.row() | {"control": control} for result, control in case.results],
    }


def era_row(case: Case) -> dict[str, Any]:
    return {
        "story": case.name,
        "profile": case.version,
        "must_be": _must_be_in_era(case),
        "runs": case.main.runs,
        "right": case.main.right,
        "made": [result.row() for result, _ in case.results],
    }


def _control(case: Case) -> Arm:
    return case.control or Arm("none", case.main.spec, case.main.expectation)


def _of_runs(case: Case) -> tuple[str, str]:
    """Returns how many runs came out as they must, and how many runs of the control."""
    main, control = case.main, _control(case)
    return f"{main.right} of {main.runs}", f"{control.right} of {control.runs}"


def _found(arm: Arm) -> Mapping[str, int]:
    """Forbidden anomaly, or condition that was not met -> in how many runs, by name."""
    each = [name for result in arm.results for name in arm.expectation.found(result.judged.verdict)]
    return {name: each.count(name) for name in sorted(set(each))}


def _schedule(spec: Spec) -> str:
    guided = spec.nemesis.guided
    return guided.name if guided is not None else "timed"


def _must_be_in_era(case: Case) -> str:
    must = case.main.expectation
    with_or_no = "with" if case.version == FIRST else "no"
    return f"{must.verdict.value}, {with_or_no} {' or '.join(must.shows or must.absent)}"


def _verdicts(case: Case) -> str:
    """``violation``; of several runs ``violation (2), pass``."""
    words = [Verdict(result.judged.verdict["verdict"]).value for result in case.main.results]
    counts = {word: words.count(word) for word in words}
    shown = ", ".join(word if count == 1 else f"{word} ({count})" for word, count in counts.items())
    return (shown or "no run") + ("" if case.is_expected else " (!)")


def _complain(cases: Sequence[Case]) -> None:
    for case in cases:
        for result, _ in case.results:
            _complain_of(result.complaints)


def _complain_of(complaints: Sequence[str]) -> None:
    for line in complaints:
        click.echo(f"NOT AS IT MUST BE: {line}")
