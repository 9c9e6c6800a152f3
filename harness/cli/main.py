"""The command ``wrackline``.

Exit codes: 0 pass, 1 violation, 2 wrong call or wrong input, 3 inconclusive, 4 infrastructure, 130 stopped at
once. 1 comes from a verdict only: whatever nobody expected is 4. Every error is one line: what, where, how to
mend.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import orjson
from rich.console import Console
from rich.table import Table

from wrackline.checkers.contracts import UnknownContract, named
from wrackline.checkers.jvm.classpath import JvmUnavailable
from wrackline.checkers.runs import AnalysisError
from wrackline.checkers.session import SparkUnavailable, check_master
from wrackline.fleets.base import FleetError
from wrackline.harness.cli.anomalies import anomalies_command
from wrackline.harness.cli.crash import told
from wrackline.harness.cli.fleet import EXIT_HOSTS, doctor, fleet, need_root
from wrackline.harness.cli.jepsen import export_command, import_command
from wrackline.harness.cli.jvm import check_command, jvm
from wrackline.harness.cli.options import results_option, seed_option, set_option
from wrackline.harness.cli.plan import plan_command
from wrackline.harness.cli.specification import (
    examples_command,
    init_command,
    schema_command,
    validate_command,
)
from wrackline.harness.report import ReportError, write_report
from wrackline.harness.run import CannotRecord, Interrupted, Judged, Options, Outcome, run
from wrackline.harness.run import results as stored
from wrackline.harness.run.judge import broken_down, exit_code, judge
from wrackline.harness.run.setup import harness_version
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import SpecError
from wrackline.history import HistoryError
from wrackline.history.files import private_folder
from wrackline.history.jepsen.imports import ImportFailed
from wrackline.history.jepsen.text import TextError
from wrackline.simulator.cli import simulate
from wrackline.systems.base import DeployError

STOPPED = 130
_WAYS_OUT = {
    errno.ENOSPC: "; make room on that disk, nothing was left half-written",
    errno.EDQUOT: "; make room, nothing was left half-written",
    errno.EROFS: "; copy the run to a place that can be written to",
    errno.EACCES: "; run it as the owner, or copy the run elsewhere",
}
WRONG_INPUT = (
    SpecError,
    stored.NoSuchRun,
    HistoryError,
    AnalysisError,
    UnknownContract,
    SparkUnavailable,
    ReportError,
    ImportFailed,
    TextError,
    JvmUnavailable,
    CannotRecord,
)


def _known(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    """Raises UnknownContract."""
    if given is not None:
        named(given)
    return given


contract_option = click.option(
    "--contract",
    metavar="NAME",
    callback=_known,
    help="Judge by this contract (for example acks-all) instead of the one the configuration promises.",
)


def _there(_context: click.Context, _option: click.Parameter, given: str) -> str:
    """Before a run is made that nobody could judge. Raises SparkUnavailable."""
    check_master(given)
    return given


master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    metavar="URL",
    callback=_there,
    help="Spark master to analyse on.",
)


class WrongInput(click.ClickException):
    """One line, exit code 2."""

    exit_code = 2


class _Group(click.Group):
    """Keeps the order in which commands are written."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(harness_version(), prog_name="wrackline")
def wrackline() -> None:
    """Break a replicated, Kafka-protocol broker and find out whether it lost or reordered what it
    acknowledged.

    \b
      wrackline doctor                      can this machine do it? what is missing?
      wrackline demo                        three short runs that show what it is for
      wrackline defects                     historic bugs put back, and each of them caught
      wrackline examples                    specifications that come with it
      wrackline init first.yaml             a commented specification to start from
      wrackline plan first.yaml             what would happen, and when
      wrackline run suites/demo-acks-all.yaml
      wrackline runs                        what was run, and with what verdict
      wrackline report last                 write the newest run's report again
      wrackline analyze last --contract acks-all
    """


@wrackline.command("run", short_help="Make a run from each specification and judge them.")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC.yaml...")
@seed_option
@set_option
@results_option
@click.option(
    "--keep-fleet", is_flag=True, help="Leave the hosts up for a look; `wrackline fleet clean` removes them."
)
@click.option("--no-analysis", is_flag=True, help="Record only; `wrackline analyze` judges later.")
@master_option
def run_command(
    specs: tuple[Path, ...],
    seed: int | None,
    settings: tuple[str, ...],
    results: Path,
    keep_fleet: bool,
    no_analysis: bool,
    master: str,
) -> int:
    """Make a run: bring up hosts, deploy, drive, break, heal, read everything back, judge.

    \b
    The same specification and seed give the same operations and the same faults at the same times:
      wrackline run suites/demo-acks-all.yaml --seed 42
    A longer and faster one, without a copy of the file:
      wrackline run suites/demo-acks-all.yaml --set workload.duration_s=300 --set workload.rate=1000
    Several specifications are run one after another and judged together:
      wrackline run suites/defects/*.yaml

    Ctrl-C ends the run early: it is healed, read back and judged like any other. Ctrl-C again stops at once.
    Exit code: 0 pass, 1 violation, 2 wrong input, 3 inconclusive, 4 hosts or deployment failed.
    """
    wanted = [load_checked(spec, settings=settings, seed=seed) for spec in specs]
    need_root()
    _writable(results)
    outcomes: list[Outcome] = []
    for each in wanted:
        outcomes.append(run(each, Options(results, keep_fleet=keep_fleet)))
        if outcomes[-1].interrupted:
            break
    if no_analysis:
        for made in outcomes:
            click.echo(f"recorded in {made.run_dir}; `wrackline analyze {made.run_dir.name}` judges it")
        return EXIT_HOSTS if any(made.troubles for made in outcomes) else 0
    return show_verdicts(judge_outcomes(outcomes, master=master))


def judge_outcomes(outcomes: Sequence[Outcome], *, master: str) -> list[Judged]:
    """Judge runs that were just made, in one Spark session."""
    driven = [each.run_dir for each in outcomes if each.driven]
    judged = judge(driven, master=master, progress=_say) if driven else []
    found = {each.run_dir: each for each in judged}
    return [found.get(each.run_dir) or broken_down(each.run_dir, each.troubles) for each in outcomes]


def show_verdicts(judged: Sequence[Judged]) -> int:
    """One line and the report's place per run; the exit code of the worst."""
    for each in judged:
        click.echo(each.line)
        for reason in each.verdict.get("reasons", ())[:8]:
            click.echo(f"  {reason}")
        if each.report is not None:
            click.echo(f"  report: {each.report}")
    return exit_code(each.word for each in judged)


@wrackline.command("runs", short_help="List runs with their verdicts.")
@results_option
def runs_command(results: Path) -> int:
    """List the runs in the results folder, oldest first, with verdict, acknowledged records, and faults
    proved/planned."""
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


@wrackline.command("analyze", short_help="Judge recorded runs again, many in one Spark session.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@results_option
@contract_option
@master_option
def analyze_command(runs: tuple[str, ...], results: Path, contract: str | None, master: str) -> int:
    """Judge recorded runs again. RUN is a run's directory, its id, the beginning of its id, or `last`.

    \b
      wrackline analyze last
      wrackline analyze last --contract acks-all        what if acks=all had been promised?
      wrackline analyze results/*/                      a whole night in one Spark session

    A run whose harness was killed has a write-ahead file; it is turned into a history first.
    """
    found = [stored.find(name, results) for name in runs]
    return show_verdicts(judge(found, contract=contract, master=master, progress=_say))


@wrackline.command("report", short_help="Write a run's report again from what was found.")
@click.argument("name", metavar="RUN")
@results_option
def report_command(name: str, results: Path) -> int:
    """Write report.html and junit.xml again from the run's own files; analyses nothing."""
    run_dir = stored.find(name, results)
    if not (run_dir / "verdict.json").exists():
        raise WrongInput(f"{run_dir.name} was not judged yet: `wrackline analyze {run_dir.name}` does it")
    click.echo(write_report(run_dir))
    return 0


@wrackline.command("demo", short_help="Three short runs that show what it is for.")
@results_option
@master_option
def demo_command(results: Path, master: str) -> int:
    """Three runs on three hosts each, under five minutes together:

    \b
      1. acks=all: a leader cut off, the active controller killed, a host's power cut. Nothing acknowledged
       may be lost.
      2. acks=1 and a power cut of the leader. Acknowledged writes are lost, and every one is shown.
      3. A broker with a known, historic defect. If the checkers do not catch it, the demo fails.
    """
    from wrackline.harness.known_answers.demo import demo

    need_root()
    _writable(results)
    return demo(results, master=master)


@wrackline.command("defects", short_help="Put historic bugs back, one by one, and see each caught.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, help="Of each, and of its twin."
)
@click.option("--no-twins", is_flag=True, help="Leave the runs without the defect out.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here."
)
@results_option
@master_option
def defects_command(
    names: tuple[str, ...], runs: int, no_twins: bool, json_file: Path | None, results: Path, master: str
) -> int:
    """Run the suites of suites/defects: brokers with one known defect each, under faults that let it do its
    harm.

    Every run with the defect must be a violation, and its twin (same seed and faults, the broker as it is)
    must pass. NAME is a suite's file name without .yaml; all of them by default, half a minute a run.

    \b
      wrackline defects trunc-hw                 one, and its twin
      wrackline defects --runs 5 --json table.json

    Exit code: 0 when all is as it must be, 1 when not.
    """
    from wrackline.harness.known_answers.defects import cases, defects, show

    wanted = cases(names)
    need_root()
    _writable(results)
    tallies = defects(wanted, results, runs=runs, twins=not no_twins, master=master)
    show(tallies)
    if json_file is not None:
        json_file.write_bytes(
            orjson.dumps([each.to_dict() for each in tallies], option=orjson.OPT_INDENT_2) + b"\n"
        )
    return 0 if all(each.as_it_must_be for each in tallies) else 1


wrackline.add_command(init_command)
wrackline.add_command(examples_command)
wrackline.add_command(validate_command)
wrackline.add_command(plan_command)
wrackline.add_command(schema_command)
wrackline.add_command(anomalies_command)
wrackline.add_command(export_command)
wrackline.add_command(import_command)
wrackline.add_command(check_command)
wrackline.add_command(jvm)
wrackline.add_command(fleet)
wrackline.add_command(doctor)
wrackline.add_command(simulate)


def _say(line: str) -> None:
    click.echo(line, err=True)


def _writable(results: Path) -> None:
    try:
        private_folder(results)
    except OSError as wrong:
        raise WrongInput(
            f"{results}: cannot be used for results: {wrong.strerror}; --results names another"
        ) from wrong


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs the command and exits with its code; every error is one line on standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[_Quiet()])
    sys.exit(
        _guarded(
            lambda: wrackline.main(
                args=list(arguments) if arguments is not None else None,
                prog_name="wrackline",
                standalone_mode=False,
            )
        )
    )


def _guarded(command: Callable[[], Any]) -> int:
    try:
        code = command()
    except click.UsageError as wrong:
        name = wrong.ctx.command_path if wrong.ctx is not None else "wrackline"
        return _fail(f"{name}: {wrong.format_message()} (see `{name} --help`)", 2)
    except click.ClickException as wrong:
        return _fail(f"wrackline: {wrong.format_message()}", wrong.exit_code)
    except WRONG_INPUT as wrong:
        return _fail(f"wrackline: {wrong}", 2)
    except (FleetError, DeployError) as wrong:
        return _fail(f"wrackline: {wrong}", EXIT_HOSTS)
    except OSError as wrong:  # a full or read-only disk below the results
        hint = _WAYS_OUT.get(wrong.errno or 0, "")
        return _fail(f"wrackline: {wrong.filename or 'results'}: {wrong.strerror or wrong}{hint}", 2)
    except (Interrupted, click.Abort, KeyboardInterrupt) as stopped:
        return _fail(f"wrackline: {str(stopped) or 'stopped; what was there before is as it was'}", STOPPED)
    except Exception as broken:  # the supervisor of every command: exit code 1 is a verdict's alone
        logging.getLogger(__name__).debug("broke down", exc_info=True)
        return _fail(told(broken), EXIT_HOSTS)
    return code if isinstance(code, int) else 0


def _fail(line: str, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


class _Quiet(logging.StreamHandler[Any]):
    """Warnings of our own reach the terminal; the chatter of libraries does not."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.name.startswith("wrackline.history") and super().filter(record) is not False


if __name__ == "__main__":
    main()
