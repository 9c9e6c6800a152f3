"""``wrackline run``, ``runs``, ``analyze`` and ``report``: runs are made, listed, judged and shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import click
from rich.console import Console
from rich.table import Table

from wrackline.harness.cli.crash import EXIT_HOSTS
from wrackline.harness.cli.fleet import need_root
from wrackline.harness.cli.options import (
    WrongInput,
    conf_option,
    contract_option,
    engine_option,
    fleet_option,
    master_option,
    need_verdict,
    need_writable,
    results_option,
    seed_option,
    set_option,
    with_fleet,
)
from wrackline.harness.exits import codehost
from wrackline.harness.exits.run_summary import RunSummary
from wrackline.harness.records import in_json, record, records
from wrackline.harness.run import Judged, Options, Outcome, run
from wrackline.harness.run import results as stored
from wrackline.harness.run.elsewhere import find_runs, judge_elsewhere
from wrackline.harness.run.judge import broken_down, exit_code, judge
from wrackline.harness.run.progress import on_stderr
from wrackline.harness.specification.check import load_checked
from wrackline.history.addresses import is_elsewhere


@click.command("run")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC.yaml...")
@seed_option
@set_option
@fleet_option
@results_option
@click.option(
    "--keep-fleet", is_flag=True, help="Leave the hosts up for a look; `wrackline fleet clean` removes them."
)
@click.option("--no-analysis", is_flag=True, help="Record only; `wrackline analyze` judges later.")
@engine_option
@master_option
def run_command(
    specs: tuple[Path, ...],
    seed: int | None,
    settings: tuple[str, ...],
    fleet: str | None,
    results: Path,
    keep_fleet: bool,
    no_analysis: bool,
    engine: str,
    master: str,
) -> int:
    """Make a run: bring up hosts, deploy, drive, break, heal, read everything back, judge.

    \b
    The same specification and seed give the same operations and the same faults at the same times:
      wrackline run suites/demo-acks-all.yaml --seed 42
    A longer and faster one, without a copy of the file:
      wrackline run suites/demo-acks-all.yaml --set workload.duration_s=300 --set workload.rate=1000
    On other hosts than it says, where its faults can be done there:
      wrackline run suites/laptop.yaml --fleet netns
    Several specifications are run one after another and judged together:
      wrackline run suites/defects/*.yaml

    Ctrl-C ends the run early: it is healed, read back and judged like any other. Ctrl-C again stops at once.
    Exit code: 0 pass, 1 violation, 2 wrong input, 3 inconclusive, 4 hosts or deployment failed.
    """
    settings = with_fleet(settings, fleet)
    wanted = [load_checked(spec, settings=settings, seed=seed) for spec in specs]
    if any(spec.fleet.needs_root for spec in wanted):
        need_root()
    need_writable(results)
    for spec in wanted:
        spec.system.reach()
    outcomes: list[Outcome] = []
    for each in wanted:
        outcomes.append(run(each, Options(results, keep_fleet=keep_fleet)))
        if outcomes[-1].interrupted:
            break
    if no_analysis:
        for made in outcomes:
            click.echo(f"recorded in {made.run_dir}; `wrackline analyze {made.run_dir.name}` judges it")
        return EXIT_HOSTS if any(made.troubles for made in outcomes) else 0
    judged = judge_outcomes(outcomes, engine=engine, master=master)
    codehost.tell("wrackline run", [_summary(*each) for each in zip(judged, specs, strict=False)], click.echo)
    return show_verdicts(judged)


def _summary(judged: Judged, spec: Path) -> RunSummary:
    made = record(judged.run_dir)
    file = codehost.in_repository(spec)
    return RunSummary(made.name, judged.word, made.headline, file=file, record=made, report=judged.report)


def judge_outcomes(outcomes: Sequence[Outcome], *, engine: str = "auto", master: str) -> list[Judged]:
    """Judge runs that were just made, together."""
    driven = [each.run_dir for each in outcomes if each.driven]
    judged = judge_shown(driven, engine=engine, master=master) if driven else []
    found = {each.run_dir: each for each in judged}
    return [found.get(each.run_dir) or broken_down(each.run_dir, each.troubles) for each in outcomes]


def judge_shown(
    runs: Sequence[Path],
    *,
    contract: str | None = None,
    engine: str = "auto",
    master: str,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> list[Judged]:
    """Judge, while standard error shows how far it is."""
    with on_stderr() as progress:
        return judge(
            runs,
            contract=contract,
            engine=engine,
            master=master,
            properties=properties,
            progress=progress.say,
            status=progress.status,
        )


def show_verdicts(judged: Sequence[Judged]) -> int:
    """One line and the report's place per run; the exit code of the worst."""
    for each in judged:
        click.echo(each.line)
        for reason in each.verdict.get("reasons", ())[:8]:
            click.echo(f"  {reason}")
        if each.report is not None:
            click.echo(f"  report: {each.shown_report}")
    return exit_code(each.word for each in judged)


@click.command("runs")
@results_option
@click.option(
    "--json", "as_json", is_flag=True, help="As JSON: a list of objects, the runs of nights as well."
)
def runs_command(results: Path, as_json: bool) -> int:
    """List the runs in the results folder, oldest first, with verdict, acknowledged records, and faults
    proved/planned.

    \b
      wrackline runs
      wrackline runs --json | jq '.[] | select(.verdict == "violation") | [.run, .headline]'
    """
    if as_json:
        click.echo(in_json(records(results) if results.is_dir() else []))
        return 0
    rows = stored.table(results)
    if not rows:
        click.echo(f"no runs in {results}; `wrackline run suites/demo-acks-all.yaml` makes one")
        return 0
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading, style in (("run", "nowrap"), ("verdict", ""), ("acked", ""), ("faults", ""), ("", "")):
        shown.add_column(
            heading, no_wrap=style == "nowrap", justify="right" if heading in ("acked", "faults") else "left"
        )
    for row in rows:
        shown.add_row(row.run_id, row.verdict, row.acked, row.faults, row.headline)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 240)
    with console.capture() as text:
        console.print(shown)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))
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
    if far:
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
        found = [stored.find(name, results) for name in runs]
        judged = judge_shown(found, contract=contract, engine=engine, master=master, properties=properties)
    return show_verdicts(judged)


@click.command("report")
@click.argument("name", metavar="RUN")
@results_option
def report_command(name: str, results: Path) -> int:
    """Write report.html and junit.xml again from the run's own files; analyses nothing.

    Where an older judge left no explanations.json, that is written too.
    """
    run_dir = stored.find(name, results)
    need_verdict(run_dir)
    from wrackline.checkers.explain.step import explained  # late, like all that draws (harness/run/judge.py)
    from wrackline.harness.report import write_report

    explained(run_dir)

    click.echo(write_report(run_dir))
    return 0
