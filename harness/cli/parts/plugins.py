"""Commands for who adds parts: ``list parts`` and ``new``."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.harness.cli.options import output_option, print_json
from wrackline.harness.extend.listing import listed
from wrackline.harness.extend.skeletons import KINDS, SkeletonError, write


@click.command("parts")
@output_option("kind, name, distribution, version, module, problem.")
def plugins_command(output: str) -> int:
    """List every system, fleet, fault, workload and check that is installed: its name, the distribution and
    version that it comes with, and its module. What is built in comes by the same door (entry points) as what
    others add; `wrackline new` writes a package that adds one.

    \b
      wrackline list parts
      wrackline list parts --output json

    A part that cannot be used stands here with the reason. Exit code: 0, whatever is listed.
    """
    rows = listed()
    if output == "json":
        print_json(rows)
        return 0
    widths = [
        max(len(cell) for cell in column)
        for column in zip(*((row.name, f"{row.distribution} {row.version}") for row in rows), strict=True)
    ]
    kind = ""
    for row in rows:
        if row.kind != kind:
            click.secho(("\n" if kind else "") + f"{row.kind}s", bold=True)
            kind = row.kind
        origin = f"{row.distribution} {row.version}"
        click.echo(f"  {row.name:<{widths[0]}}  {origin:<{widths[1]}}  {row.module}")
        if row.problem:
            click.echo(f"      cannot be used: {row.problem}")
    return 0


@click.command("new")
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Folder to write it into; the current one by default.",
)
def new_command(kind: str, name: str, into: Path) -> int:
    """Write a small package that adds one part: a module that works, its entry point, and a test that passes.
    Change the module to what you want; docs/plugins.md says what each kind must do.

    \b
      wrackline new fault slow-disk
      wrackline new check late-read --into ~/src

    Exit code: 0, or 2 for a NAME that is none or is taken, and for a folder that exists.
    """
    try:
        made = write(kind, name, into)
    except SkeletonError as refused:
        raise click.UsageError(str(refused)) from refused
    for file in made.files:
        click.echo(f"{file}: written")
    click.echo(f"""
next:
  pip install --no-deps --editable {made.folder}
  wrackline list parts                   it is listed
  python -m pytest {made.folder / "tests"}
and in a specification:
  {made.use}""")
    return 0
