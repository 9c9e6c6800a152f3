"""``wrackline analyze``, ``report`` and ``runs``: recorded runs are judged, shown and listed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Column

from wrackline.harness.cli.options import (
    WrongInput,
    conf_option,
    contract_option,
    engine_option,
    master_option,
    need_verdict,
    output_option,
    results_option,
)
from wrackline.harness.records import in_json, records
from wrackline.harness.run import results as stored
from wrackline.harness.run.judge import Judged, exit_code, judge_with_progress
from wrackline.harness.run.live.progress import on_stderr
from wrackline.harness.screen import put, table
from wrackline.history.store.addresses import is_elsewhere


def show_verdicts(judged: Sequence[Judged]) -> int:
    """One line and the report's place per run; the exit code of the worst."""
    for each in judged:
        click.echo(each.line)
        told = each.verdict.get("headline")
        for reason in each.verdict.get("reasons", ())[:8]:
            if reason != told:  # where hosts failed, the line above has said it
                click.echo(f"  {reason}")
        if each.report is not None:
            click.echo(f"  report: {each.shown_report}")
    return exit_code(each.word for each in judged)


@click.command("runs")
@results_option
@output_option("a list of objects, the runs of nights as well.")
def runs_command(results: Path, output: str) -> int:
    """List the runs in the results folder, oldest first, with verdict, acknowledged records, and faults
    proved/planned.

    \b
      wrackline runs
      wrackline runs --output json | jq '.[] | select(.verdict == "violation") | [.run, .headline]'
    """
    if not results.is_dir() and results != stored.default_dir():
        raise WrongInput(f"{results}: no such folder; --results names the one that the runs are in")
    if output == "json":
        click.echo(in_json(records(results) if results.is_dir() else []))
        return 0
    rows = stored.table(results)
    if not rows:
        click.echo(f"no runs in {results}; `wrackline run suites/demo-acks-all.yaml` makes one")
        return 0
    shown = table(
        Column("run", no_wrap=True),
        Column("verdict"),
        Column("acked", justify="right"),
        Column("faults", justify="right"),
        Column(""),
    )
    for row in rows:
        shown.add_row(row.run_id, row.verdict, row.acked, row.faults, row.headline)
    put(shown, width=None if sys.stdout.isatty() else 240)
    return 0


@click.command("analyze")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@results_option
@contract_option
@engine_option
@master_option
@conf_option
def analyze_command(
    runs: tuple[str, ...],
    results: Path,
    contract: str | None,
    engine: str,
    master: str,
    properties: dict[str, str],
) -> int:
    """Judge recorded runs again. RUN is a run's directory, its id, the beginning of its id, or `last`; or
    the address of runs that lie elsewhere, to which verdicts and reports are written back.

    \b
      wrackline analyze last
      wrackline analyze last --contract acks-all        what if acks=all had been promised?
      wrackline analyze last --engine spark             by Spark, however small the run is
      wrackline analyze results/*/                      a whole night in one Spark session
      wrackline analyze 's3a://bucket/night/*' --master spark://host:7077
      wrackline analyze hdfs://host:8020/night --master yarn

    A run whose harness was killed has a write-ahead file; it is turned into a history first.
    """
    far = [name for name in runs if is_elsewhere(name)]
    if far and len(far) < len(runs):
        near = next(name for name in runs if name not in far)
        raise WrongInput(f"{near} is on this machine and {far[0]} is not; judge them in two calls")
    if far and engine == "local":
        raise WrongInput(f"{far[0]} is not on this machine, and Spark judges it; leave --engine local out")
    if far:
        from wrackline.harness.run.remote_judging import find_runs, judge_elsewhere  # late: few lie elsewhere

        with on_stderr() as progress:
            judged = judge_elsewhere(
                find_runs(far),
                contract=contract,
                master=master,
                properties=properties,
                progress=progress.say,
                status=progress.status,
            )
    else:
        result = [stored.find(name, results) for name in runs]
        judged = judge_with_progress(
            result, contract=contract, engine=engine, master=master, properties=properties
        )
    return show_verdicts(judged)


@click.command("report")
@click.argument("name", metavar="RUN")
@results_option
def report_command(name: str, results: Path) -> int:
    """Write report.html and junit.xml again from the run's own files; analyses nothing.

    \b
      wrackline report last
      wrackline report 20261123T0100

    Where an older judge left no explanations.json, that is written too.
    """
    run_dir = stored.find(name, results)
    need_verdict(run_dir)
    from wrackline.checkers.explain.step import explained  # late, like all that draws (harness/run/judge.py)
    from wrackline.harness.report import write_report

    explained(run_dir)

    click.echo(write_report(run_dir))
    return 0
