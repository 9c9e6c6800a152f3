"""Tables on the screen, the same for all commands."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Column, Table


def table(*headings: Column | str) -> Table:
    """An empty table without lines. Of columns that are named by a heading alone only the last is broken into
    lines."""
    columns = (
        one if isinstance(one, Column) else Column(one, no_wrap=one is not headings[-1]) for one in headings
    )
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def lines(made: Table, *, width: int | None, markup: bool = True) -> list[str]:
    """The table as text, ``width`` characters wide at most (none: the terminal's), without blanks at the ends
    of lines."""
    console = Console(highlight=False, width=width, markup=markup)
    with console.capture() as text:
        console.print(made)
    return [line.rstrip() for line in text.get().splitlines()]


def put(made: Table, *, width: int | None) -> None:
    """Print it."""
    click.echo("\n".join(lines(made, width=width)))
