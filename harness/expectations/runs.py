"""Runs with a verdict that is known beforehand: they are made one after another and judged together."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import click

from wrackline.harness.expectations.cases import Case
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.judge import judge_outcomes, prepare
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.run.runner import run

TOO_SLOW = 2.0
"""Times as long as on two quiet cores: from here on sessions end and replicas lag without a fault."""


def slowness(took_s: float, usual_s: float) -> str:
    """Says that the machine is too slow for a run's timing; empty where it is not."""
    if took_s <= TOO_SLOW * usual_s:
        return ""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"this machine is too slow for its timing: the run took {took_s:.0f} s, {usual_s:.0f} are usual, and "
        f"the load is {load:.1f} on {processors} processors; its verdict may be another when that is over"
    )


def play(
    cases: Sequence[Case], results: Path, *, runs: int = 1, controls: bool = True, master: str = "local[*]"
) -> None:
    """Bring what the systems need to this machine, make all the runs, then judge them in one Spark session,
    which says meanwhile how far it is. The arms are given what came of them; fewer when the user asked for an
    end. A run that took much longer than is usual is named: what it shows depends on times that such a
    machine does not keep. Raises DeployError for what cannot be installed."""
    arms = [arm for case in cases for arm in (case.arms if controls else [case.main])]
    for arm in arms:
        arm.spec.system.prepare(click.echo)
    began = time.monotonic()
    outcomes: list[Outcome] = []
    turns = [(arm, f"{arm.label}, {number} of {runs}") for number in range(1, runs + 1) for arm in arms]
    for arm, title in turns:
        click.echo(f"--- {title}")
        run_began = time.monotonic()
        outcomes.append(run(arm.spec, Options(results, prepare_judge=prepare)))
        if slow := slowness(time.monotonic() - run_began, forecast(arm.spec).usual_s):
            click.echo(f"{title}: {slow}")
        if outcomes[-1].interrupted:
            break
    click.echo("--- judging")
    judged = judge_outcomes(outcomes, master=master)
    click.echo(f"--- {len(outcomes)} runs, {time.monotonic() - began:.0f} s")
    for (arm, _), each in zip(turns, judged, strict=False):  # fewer after Ctrl-C
        arm.add(each)


def seconds(cases: Sequence[Case], runs: int, *, controls: bool = True) -> int:
    """Returns roughly how long the runs of these cases take, without the judging."""
    return sum(case.run_s * (len(case.arms) if controls else 1) for case in cases) * runs
