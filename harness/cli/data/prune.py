"""``wrackline prune``: what is no longer kept of runs that passed."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.harness.cli.options import WrongInput, results_option
from wrackline.harness.nights import retention
from wrackline.harness.notifications.spec import Keeping

_USUAL = Keeping()


@click.command("prune")
@results_option
@click.option(
    "--days",
    type=click.FloatRange(0),
    default=_USUAL.days,
    show_default=True,
    help="Runs that passed and are older are cut down to their history and verdict.",
)
@click.option(
    "--drop-days",
    type=click.FloatRange(0),
    help="Runs that passed and are older than this are removed; none by default.",
)
@click.option(
    "--max-gb",
    type=click.FloatRange(0, min_open=True),
    help="Keep no more than this (10^9 bytes): of what passed the oldest is cut down first, then removed.",
)
@click.option("--yes", is_flag=True, help="Do it; without this it is only said what would be done.")
def prune_command(
    results: Path, days: float, drop_days: float | None, max_gb: float | None, yes: bool
) -> int:
    """Make room: cut runs that passed down to their history, or remove them. Says what it would do; --yes
    does it.

    What did not pass is kept, whole, and so is a run that is being recorded, one that nobody has judged, and
    every run of a night that may go on. Nights are looked through like single runs. A run that was cut down
    can be judged again (`wrackline analyze`), and its report be written again (`wrackline report`).

    \b
      wrackline prune
      wrackline prune --days 7 --yes
      wrackline prune --days 7 --drop-days 90 --max-gb 200 --yes
    """
    if not results.is_dir():
        raise WrongInput(f"{results}: no such folder; --results names another")
    made = retention.plan(results, Keeping(days=days, drop_days=drop_days, max_gb=max_gb))
    for step in made.steps:
        click.echo(f"{step.does.value:<7} {step.bytes / 1e6:>10,.1f} MB  {step.folder}  ({step.why})")
    if yes:
        retention.carry_out(made)
    click.echo(f"{made}{'' if yes or not made.steps else '; nothing was done yet: --yes does it'}")
    return 0
