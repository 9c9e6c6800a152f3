"""Runs with a verdict that is known beforehand: they are made one after another and judged together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from wrackline.harness.run import Judged, Options, Outcome
from wrackline.harness.run.judge import broken_down
from wrackline.harness.specification.spec import Spec

Make = Callable[[Spec, Options], Outcome]
Judge = Callable[..., list[Judged]]


def drive(
    wanted: Sequence[tuple[str, Spec]], results: Path, *, run: Make, judge: Judge, master: str
) -> list[Judged]:
    """``wanted``: what is said of a run when it begins, and its specification. ``run`` makes one, ``judge``
    judges all of them in one Spark session.

    In the order in which they are wanted; fewer when the user asked for an end."""
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for says, spec in wanted:
        click.echo(f"--- {says}")
        outcomes.append(run(spec, Options(results)))
        if outcomes[-1].interrupted:
            break
    click.echo("--- judging")
    driven = [each.run_dir for each in outcomes if each.driven]
    judged = {each.run_dir: each for each in judge(driven, master=master)} if driven else {}
    click.echo(f"--- {len(outcomes)} runs, {time.monotonic() - began:.0f} s")
    return [judged.get(each.run_dir) or broken_down(each.run_dir, each.troubles) for each in outcomes]
