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
from typing import Any

import click

from wrackline.checkers.contracts import UnknownContract
from wrackline.checkers.jvm.classpath import JvmUnavailable
from wrackline.checkers.runs import AnalysisError
from wrackline.checkers.session import SparkUnavailable
from wrackline.fleets.base import FleetError
from wrackline.harness.cli.anomalies import anomalies_command
from wrackline.harness.cli.crash import crash_line
from wrackline.harness.cli.doctor import doctor
from wrackline.harness.cli.fleet import EXIT_HOSTS, fleet
from wrackline.harness.cli.jepsen import export_command, import_command
from wrackline.harness.cli.jvm import check_command, jvm
from wrackline.harness.cli.kafka import kafka
from wrackline.harness.cli.known_answers import defects_command, demo_command
from wrackline.harness.cli.plan import plan_command
from wrackline.harness.cli.plugins import new_command, plugins_command
from wrackline.harness.cli.runs import analyze_command, report_command, run_command, runs_command
from wrackline.harness.cli.specification import (
    examples_command,
    init_command,
    schema_command,
    validate_command,
)
from wrackline.harness.report import ReportError
from wrackline.harness.run import CannotRecord, Interrupted
from wrackline.harness.run.results import NoSuchRun
from wrackline.harness.specification.spec import SpecError
from wrackline.history import HistoryError
from wrackline.history.jepsen.imports import ImportFailed
from wrackline.history.jepsen.text import TextError
from wrackline.plugins.registry import PluginError, version
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
    NoSuchRun,
    HistoryError,
    AnalysisError,
    UnknownContract,
    SparkUnavailable,
    ReportError,
    ImportFailed,
    TextError,
    JvmUnavailable,
    CannotRecord,
    PluginError,
)


class _Group(click.Group):
    """Keeps the order in which commands are written."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version(), prog_name="wrackline")
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


for command in (
    run_command,
    runs_command,
    analyze_command,
    report_command,
    demo_command,
    defects_command,
    init_command,
    examples_command,
    validate_command,
    plan_command,
    schema_command,
    anomalies_command,
    plugins_command,
    new_command,
    export_command,
    import_command,
    check_command,
    jvm,
    kafka,
    fleet,
    doctor,
    simulate,
):
    wrackline.add_command(command)


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
        return _fail(crash_line(broken), EXIT_HOSTS)
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
