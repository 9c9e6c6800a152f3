"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.harness.run import results as stored

seed_option = click.option(
    "--seed", type=click.IntRange(0), help="Seed of every random choice; the file's by default."
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key, e.g. workload.rate=500. May be repeated.",
)
results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=stored.default_dir,
    show_default="$WRACKLINE_RESULTS, or ./results",
    help="Folder with the runs.",
)
