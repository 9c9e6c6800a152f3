"""``wrackline list anomalies``: what the judge looks for."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import click

from wrackline.checkers.checks.registry import checks
from wrackline.harness.cli.options import output_option, print_json
from wrackline.harness.report.glossary import METRICS

COUNTED = "counted, never a violation"


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    family: str
    jepsen: str
    meaning: str
    contract: str


def rows() -> list[Row]:
    """Every anomaly in the order of the documents, then what is counted only."""
    result = [Row(one.name, str(one.family), one.jepsen, one.meaning, one.rule) for one in checks()]
    return result + [Row(*metric, COUNTED) for metric in METRICS]


@click.command("anomalies")
@output_option("name, family, jepsen, meaning, contract.")
def anomalies_command(output: str) -> int:
    """List every anomaly that `wrackline analyze` looks for: what it is, the nearest anomaly of
    jepsen.tests.kafka, and which contracts forbid it. `wrackline analyze RUN --contract NAME` judges a run by
    another contract.

    \b
      wrackline list anomalies
      wrackline list anomalies --output json
    """
    listed = rows()
    if output == "json":
        print_json(listed)
        return 0
    family = ""
    for one in listed:
        if one.family != family:
            family = one.family
            click.secho(("\n" if one is not listed[0] else "") + family, bold=True)
        jepsen = "" if one.jepsen == "–" else f"  (Jepsen: {one.jepsen})"
        click.echo(f"  {one.name}{jepsen}")
        for text in (one.meaning, one.contract):
            click.echo(textwrap.fill(text, 96, initial_indent="      ", subsequent_indent="      "))
    return 0
