"""``wrackline simulate storage``: plays the broker's storage on a disk of any legal crash, seed by seed."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click

from wrackline.simulator.storage.play import Play, Violation

VIOLATION = 1
_IN_MEMORY = Path("/dev/shm")
"""Where the files of a play lie, if it is there: none of their syncs has to reach a disk."""


def play_seed(seed: int) -> tuple[Play, Violation | None]:
    """Plays one seed, in a folder that is gone when it is done."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None) as folder:
        play = Play(seed, Path(folder))
        return play, play.run()


@click.command("storage")
@click.option("--seed", type=int, default=0, show_default=True, help="The first of the search.")
@click.option(
    "--search",
    "runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Play N seeds, up to the first violation.",
)
@click.option("--cpu", type=click.FloatRange(0.1), help="End the search after so many seconds of CPU.")
@click.option("--keep-going", is_flag=True, help="A search does not end at the first violation.")
@click.pass_context
def command(ctx: click.Context, *, seed: int, runs: int, cpu: float | None, keep_going: bool) -> None:
    """Play the broker's storage, and crash its disk in ways that a file system allows.

    \b
      wrackline simulate storage --search 1000    seeds 0 to 999, up to the first violation
      wrackline simulate storage --seed 17        one of them again

    Unsynced writes are kept sector by sector in any order, unsynced names one by one; then the next start
    must find what was promised. Exit codes: 0 clean, 1 a violation, 2 a wrong call.
    """
    began, violations = time.process_time(), 0
    plays = lives = steps = calls = 0
    for number in range(seed, seed + runs):
        play, violation = play_seed(number)
        plays, lives, steps, calls = plays + 1, lives + play.lives, steps + play.steps, calls + play.calls
        if violation is not None:
            violations += 1
            click.echo(f"seed {number:>6}  VIOLATION in life {violation.life}: {violation.text}")
            click.echo(f"  again: wrackline simulate storage --seed {number}")
            if not keep_going:
                break
        if cpu is not None and time.process_time() - began > cpu:
            break
    spent = time.process_time() - began
    noun = "violation" if violations == 1 else "violations"
    click.echo(
        f"{violations} {noun} in {plays} seeds: {lives} lives, {steps} steps, "
        f"{calls} calls that change the disk, {spent:.1f} s of CPU"
    )
    if violations:
        ctx.exit(VIOLATION)
