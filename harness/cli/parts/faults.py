"""``wrackline list faults``: what can go wrong, and where."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click
import orjson

from wrackline.harness.cli.options import output_option, print_json
from wrackline.harness.extend.faults import Known, fleets_with_hosts, known_faults
from wrackline.nemesis.presets import PRESETS
from wrackline.nemesis.targets.words import HELP, HELP_CLIENTS
from wrackline.plugins.nearest import nearest

_WIDTH = 110


@click.command("faults")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@output_option("everything about every fault.")
def faults_command(names: tuple[str, ...], output: str) -> int:
    """List every fault: what it does, and on which fleets it can be done. With NAMEs: all about these, with
    their settings, what hosts must give for them, and why a fleet or system is refused.

    \b
      wrackline list faults
      wrackline list faults power-cut change-config

    What is said here of a fleet is said of its usual settings; `wrackline validate` knows yours.
    Exit code: 0, or 2 for a NAME that is no fault's.
    """
    known = {one.name: one for one in known_faults()}
    for name in names:
        if name not in known:
            near = nearest(name, known) or ";"
            raise click.UsageError(f"there is no fault {name!r}{near} `wrackline list faults` lists them")
    chosen = [known[name] for name in names] or list(known.values())
    if output == "json":
        print_json(chosen, default=str)
    elif names:
        click.echo("\n\n".join("\n".join(_whole(one)) for one in chosen))
    else:
        click.echo("\n".join(_table(chosen)))
    return 0


def _table(faults: Sequence[Known]) -> Iterator[str]:
    fleets = fleets_with_hosts()
    longest = max(len(one.name) for one in faults)
    widths = [max(len(fleet), 4) for fleet in fleets]
    head = "  ".join(f"{fleet:<{width}}" for fleet, width in zip(fleets, widths, strict=True))
    yield f"{'':<{longest}}  {head}"
    for one in faults:
        cells = [f"{works(one, fleet):<{width}}" for fleet, width in zip(fleets, widths, strict=True)]
        begin = f"{one.name:<{longest}}  {'  '.join(cells)}  "
        yield from textwrap.wrap(begin + one.what, _WIDTH + 20, subsequent_indent=" " * len(begin))
    yield ""
    yield "`part`: with some systems. `wrackline list faults NAME` says why not, and what a fault takes."
    yield ""
    yield "presets (nemesis: {preset: NAME})"
    longest = max(map(len, PRESETS))
    for name, preset in PRESETS.items():
        yield f"  {name:<{longest}}  {preset.what}"
    yield ""
    yield from textwrap.wrap(f"targets: {HELP}", _WIDTH, subsequent_indent="  ")
    those = " and ".join(one.name for one in faults if one.clients)
    if those:
        yield from textwrap.wrap(f"of {those} also {HELP_CLIENTS}", _WIDTH, subsequent_indent="  ")


def works(one: Known, fleet: str) -> str:
    """``yes``, ``no``, or ``part``: with some systems."""
    if fleet in one.refused:
        return "no"
    return "part" if any(where.startswith(f"{fleet} ") for where in one.refused) else "yes"


def _whole(one: Known) -> Iterator[str]:
    yield click.style(one.name, bold=True) + f"   ({one.module})"
    yield from textwrap.wrap(one.what, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    yield f"  target: {one.target}, where nobody says another"
    if one.clients:
        yield f"  target may also be {HELP_CLIENTS}"
    for need in one.needs:
        yield f"  needs {need}"
    for setting in one.settings:
        default = "must be given" if setting.required else f"default {_yaml(setting.default)}"
        line = f"{setting.name} ({default}): {setting.what}"
        yield from textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="      ")
    for where, why in one.refused.items():
        line = f"not on {' with '.join(where.split(' ', 1))}: {why}"
        yield from textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="      ")
    for where, why in one.clients_refused.items():
        line = f"not of clients on {where}: {why}"
        yield from textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="      ")


def _yaml(value: object) -> str:
    return orjson.dumps(value, default=str).decode()
