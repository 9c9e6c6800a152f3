"""Lines of progress, on standard error."""

from __future__ import annotations

import logging

import click

_PROGRESS = logging.getLogger("wrackline.progress")


def progress(line: str) -> None:
    """Said unless the user wants it quiet: ``-q`` raises the level of this logger."""
    if _PROGRESS.level <= logging.INFO:
        click.echo(line, err=True)
