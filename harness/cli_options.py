"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

from harness import results as stored

results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=stored.default_dir,
    show_default="$WRACKLINE_RESULTS, or ./results",
    help="Folder with the runs.",
)
