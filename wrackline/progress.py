"""Lines of progress, of commands and of searches alike, and whether they are said."""

from __future__ import annotations

import logging

import click

PROGRESS = logging.getLogger("wrackline.progress")
"""Progress is said where it is enabled for INFO, more of it where it is enabled for DEBUG."""
PROGRESS.setLevel(logging.INFO)


def progress(line: str, *, err: bool = True) -> None:
    """A line of progress, on standard error unless the command says another."""
    if PROGRESS.isEnabledFor(logging.INFO):
        click.echo(line, err=err)
