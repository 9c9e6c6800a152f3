"""Runs with a verdict that is known beforehand: they are made one after another and judged together."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.judge import Judged, broken_down, prepare
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.run.live.progress import on_stderr
from wrackline.harness.specification.spec import Spec

Make = Callable[[Spec, Options], Outcome]
Judge = Callable[..., list[Judged]]
TOO_SLOW = 2.0
"""Times as long as on two quiet cores: from here on sessions end and replicas lag without a fault."""


def slowness(took_s: float, usual_s: float) -> str:
    """That the machine is too slow for a run's timing; empty where it is not."""
    if took_s <= TOO_SLOW * usual_s:
        return ""
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    return (
        f"this machine is too slow for its timing: the run took {took_s:.0f} s, {usual_s:.0f} are usual, and "
        f"the load is {load:.1f} on {processors} processors; its verdict may be another when that is over"
    )


def judge_telling(judge: Judge, runs: Sequence[Path], **asked: object) -> list[Judged]:
    """Judge, while standard error shows how far it is."""
    with on_stderr() as progress:
        return judge(runs, progress=progress.say, status=progress.status, **asked)


def drive(
    wanted: Sequence[tuple[str, Spec]], results: Path, *, run: Make, judge: Judge, master: str
) -> list[Judged]:
    """``wanted``: what is said of a run when it begins, and its specification. ``run`` makes one, ``judge``
    judges all of them in one Spark session, and says meanwhile how far it is. A run that took much longer
    than is usual is named: what it shows depends on times that such a machine does not keep.

    In the order in which they are wanted; fewer when the user asked for an end."""
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for says, spec in wanted:
        click.echo(f"--- {says}")
        run_began = time.monotonic()
        outcomes.append(run(spec, Options(results, prepare_judge=prepare)))
        if slow := slowness(time.monotonic() - run_began, forecast(spec).usual_s):
            click.echo(f"{says}: {slow}")
        if outcomes[-1].interrupted:
            break
    click.echo("--- judging")
    driven = [each.run_dir for each in outcomes if each.driven]
    judged = {each.run_dir: each for each in judge_telling(judge, driven, master=master)} if driven else {}
    click.echo(f"--- {len(outcomes)} runs, {time.monotonic() - began:.0f} s")
    return [judged.get(each.run_dir) or broken_down(each.run_dir, each.troubles) for each in outcomes]
