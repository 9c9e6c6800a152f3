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
from importlib import import_module
from typing import Any

import click

from wrackline.fleets.base import FleetError
from wrackline.harness.cli.crash import EXIT_HOSTS, crash_line
from wrackline.harness.cli.stopped import STOPPED, ending_at_once, interrupting
from wrackline.plugins.registry import version
from wrackline.systems.base import DeployError

_AS_IT_WAS = "stopped; what was there before is as it was"
_WAYS_OUT = {
    errno.ENOSPC: "; make room on that disk, nothing was left half-written",
    errno.EDQUOT: "; make room, nothing was left half-written",
    errno.EROFS: "; copy the run to a place that can be written to",
    errno.EACCES: "; run it as the owner, or copy the run elsewhere",
}
_HERE = "wrackline.harness.cli"
COMMANDS = {
    "run": (f"{_HERE}.runs:run_command", "Make a run from each specification and judge them."),
    "suite": (f"{_HERE}.nights:suite_command", "Make a night of runs, and see what follows from each."),
    "bisect": (f"{_HERE}.bisect:bisect_command", "Find the first version, or commit, that is bad."),
    "replay": (f"{_HERE}.replay:replay_command", "Do the faults of a run again, on other hosts."),
    "runs": (f"{_HERE}.analyze:runs_command", "List runs with their verdicts."),
    "prune": (f"{_HERE}.prune:prune_command", "Make room: keep of old runs that passed only the history."),
    "index": (f"{_HERE}.index:index_command", "Write a static site of all runs: nights, trends, incidents."),
    "serve": (f"{_HERE}.index:serve_command", "The same, live while a night runs."),
    "compare": (f"{_HERE}.index:compare_command", "Put two runs, versions or nights side by side."),
    "analyze": (f"{_HERE}.analyze:analyze_command", "Judge recorded runs again, any number together."),
    "dataset": (f"{_HERE}.dataset:dataset_command", "All nights as tables, for questions in SQL."),
    "report": (f"{_HERE}.analyze:report_command", "Write a run's report again from what was found."),
    "explain": (f"{_HERE}.explain:explain_command", "Why a finding is a contradiction, as text."),
    "demo": (f"{_HERE}.known_answers:demo_command", "Three short runs that show what it is for."),
    "defects": (
        f"{_HERE}.known_answers:defects_command",
        "Put historic bugs back, one by one, and see each caught.",
    ),
    "stories": (
        f"{_HERE}.known_answers:stories_command",
        "What needs no defect: settings that allow loss, outages, operations.",
    ),
    "findings": (
        f"{_HERE}.known_answers:findings_command",
        "Re-find bugs of Apache Kafka itself, each beside a control.",
    ),
    "eras": (
        f"{_HERE}.known_answers:eras_command",
        "Ten years of Kafka's replication: each story under each era's rules.",
    ),
    "init": (f"{_HERE}.specification:init_command", "Write a commented specification to start from."),
    "examples": (
        f"{_HERE}.specification:examples_command",
        "List the specifications that come with us, print or copy one.",
    ),
    "validate": (f"{_HERE}.specification:validate_command", "Check specifications; make no run."),
    "plan": (f"{_HERE}.plan:plan_command", "Show what a run would do, and when; make no host."),
    "schema": (
        f"{_HERE}.specification:schema_command",
        "Print the JSON schema of a specification, for editors.",
    ),
    "anomalies": (
        f"{_HERE}.anomalies:anomalies_command",
        "Every anomaly that is looked for, and what contracts say of it.",
    ),
    "faults": (f"{_HERE}.faults:faults_command", "Every fault: what it does, needs, and where it works."),
    "plugins": (
        f"{_HERE}.plugins:plugins_command",
        "Systems, fleets, faults, workloads and checks, and where each is from.",
    ),
    "new": (
        f"{_HERE}.plugins:new_command",
        "Write a package that adds a fault, a workload, a check, a system or a fleet.",
    ),
    "export": (
        f"{_HERE}.jepsen:export_command",
        "Write a run's history as EDN or JSON for elle-cli, Knossos or Jepsen.",
    ),
    "import": (
        f"{_HERE}.jepsen:import_command",
        "Make a run of a Jepsen Kafka or Redpanda history, to judge it here.",
    ),
    "check": (f"{_HERE}.check:check_command", "Are histories linearizable, or serializable?"),
    "jvm": (f"{_HERE}.jvm:jvm", "Knossos and Elle: get them, and see that they answer."),
    "kafka": (f"{_HERE}.kafka:kafka", "Versions of Apache Kafka: install, list, remove."),
    "spark": (f"{_HERE}.spark:spark", "What an analysis on a cluster needs: get it, and try it."),
    "fleet": (f"{_HERE}.fleet:fleet", "Hosts on this machine: make, enter, list, remove."),
    "image": (f"{_HERE}.image:image", "What virtual machines boot: build, list, remove."),
    "doctor": (
        f"{_HERE}.doctor:doctor",
        "Look at what this machine can do, and say how to mend what it cannot.",
    ),
    "simulate": (
        "wrackline.simulator.cli:simulate",
        "Run the cluster in virtual time, with random faults from a seed.",
    ),
}
"""Where each command is, and what the list of commands says of it. A command is imported when it is called:
what all of them need together takes seconds."""


class _Group(click.Group):
    """Imports a command when it is called, and none to list them. They keep the order of ``COMMANDS``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        with ending_at_once():
            command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Click answers Ctrl-C with an empty line of its own, which only a terminal that shows ^C needs."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            if sys.stderr.isatty():
                click.echo(err=True)
            raise click.Abort(*stopped.args) from stopped

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version(), prog_name="wrackline")
def wrackline() -> None:
    """Break a replicated, Kafka-protocol broker and find out whether it lost or reordered what it
    acknowledged.

    \b
      wrackline doctor                      can this machine do it? what is missing?
      wrackline demo                        three short runs that show what it is for
      wrackline defects                     historic bugs put back, and each of them caught
      wrackline findings --list             bugs of Apache Kafka itself, re-found by real runs
      wrackline eras --list                 ten years of Kafka's replication, story by story
      wrackline examples                    specifications that come with it
      wrackline init first.yaml             a commented specification to start from
      wrackline plan first.yaml             what would happen, and when
      wrackline run suites/demo-acks-all.yaml
      wrackline runs                        what was run, and with what verdict
      wrackline report last                 write the newest run's report again
      wrackline analyze last --contract acks-all
    """


for _name in COMMANDS:
    wrackline.add_command(click.Command(_name))  # stands in, so that a name that is none gets the nearest


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs the command and exits with its code; every error is one line on standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[_Quiet()])
    with interrupting():
        code = _guarded(
            lambda: wrackline.main(
                args=list(arguments) if arguments is not None else None,
                prog_name="wrackline",
                standalone_mode=False,
            )
        )
    sys.exit(code)


def _guarded(command: Callable[[], Any]) -> int:
    try:
        code = command()
    except click.UsageError as wrong:
        name = wrong.ctx.command_path if wrong.ctx is not None else "wrackline"
        return _fail(f"{name}: {wrong.format_message()} (see `{name} --help`)", 2)
    except click.ClickException as wrong:
        return _fail(f"wrackline: {wrong.format_message()}", wrong.exit_code)
    except (click.Abort, KeyboardInterrupt) as stopped:
        return _fail(f"wrackline: {str(stopped) or _AS_IT_WAS}", STOPPED)
    except Exception as wrong:  # the supervisor of every command: exit code 1 is a verdict's alone
        logging.getLogger(__name__).debug("the command ended early", exc_info=True)
        return _explained(wrong)
    return code if isinstance(code, int) else 0


def _explained(wrong: Exception) -> int:
    """Its line on standard error, and its exit code. What else can be raised is imported now: a command that
    goes well need not wait for it."""
    from wrackline.checkers.inputs.broken import JudgeBroken
    from wrackline.harness.run.outcome import Interrupted
    from wrackline.workloads.clients.base import Unavailable

    if isinstance(wrong, _wrong_input()):
        return _fail(f"wrackline: {wrong}", 2)
    if isinstance(wrong, FleetError | DeployError | Unavailable | JudgeBroken):
        return _fail(f"wrackline: {wrong}", EXIT_HOSTS)
    if isinstance(wrong, OSError):  # a full or read-only disk below the results
        hint = _WAYS_OUT.get(wrong.errno or 0, "")
        return _fail(f"wrackline: {wrong.filename or 'results'}: {wrong.strerror or wrong}{hint}", 2)
    if isinstance(wrong, Interrupted):
        return _fail(f"wrackline: {str(wrong) or _AS_IT_WAS}", STOPPED)
    return _fail(crash_line(wrong), EXIT_HOSTS)


def _wrong_input() -> tuple[type[Exception], ...]:
    """What is raised for input that is wrong. Imported late, as above."""
    from wrackline.checkers.engine.spark.masters import SparkUnavailable
    from wrackline.checkers.inputs.runs import AnalysisError
    from wrackline.checkers.jvm.classpath import JvmUnavailable
    from wrackline.checkers.models.protocol import ModelError
    from wrackline.checkers.verdict.contracts import UnknownContract
    from wrackline.harness.report.read.files import ReportError
    from wrackline.harness.run.outcome import CannotRecord
    from wrackline.harness.run.results import NoSuchRun
    from wrackline.harness.specification.spec import SpecError
    from wrackline.history.addresses import Unreachable
    from wrackline.history.folder import HistoryError
    from wrackline.history.jepsen.imports import ImportFailed
    from wrackline.history.jepsen.text import TextError
    from wrackline.maven import MavenFailed
    from wrackline.plugins.registry import PluginError

    return (
        SpecError,
        NoSuchRun,
        HistoryError,
        AnalysisError,
        UnknownContract,
        SparkUnavailable,
        ReportError,
        ImportFailed,
        TextError,
        JvmUnavailable,
        ModelError,
        CannotRecord,
        PluginError,
        Unreachable,
        MavenFailed,
    )


def _fail(line: str, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


class _Quiet(logging.StreamHandler[Any]):
    """Warnings of our own reach the terminal; the chatter of libraries does not."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.name.startswith("wrackline.history") and super().filter(record) is not False


if __name__ == "__main__":
    main()
