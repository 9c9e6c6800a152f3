"""Tables on the screen, the same for all commands."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table


def table(*headings: str) -> Table:
    """Only its last column is broken into lines."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        made.add_column(heading, no_wrap=heading in headings[:-1])
    return made


def put(made: Table, *, width: int | None) -> None:
    """Print it, ``width`` characters wide at most (none: the terminal's), without blanks at the ends of
    lines."""
    console = Console(highlight=False, width=width)
    with console.capture() as text:
        console.print(made)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))
