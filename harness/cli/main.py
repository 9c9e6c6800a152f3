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

from wrackline.fleets.base import FleetError
from wrackline.harness.cli.commands import FORMER, HEADINGS, MEANT
from wrackline.harness.cli.crash import EXIT_HOSTS, crash_line
from wrackline.harness.cli.lazy import LazyGroup
from wrackline.harness.cli.numbers import in_our_words
from wrackline.harness.cli.stopped import STOPPED, interrupting
from wrackline.harness.cli.verbosity import Terminal, restored, with_verbosity
from wrackline.release import revision, version
from wrackline.systems.base import DeployError

_AS_IT_WAS = "stopped; what was there before is as it was"
_WAYS_OUT = {
    errno.ENOSPC: "; make room on that disk, nothing was left half-written",
    errno.EDQUOT: "; make room, nothing was left half-written",
    errno.EROFS: "; copy the run to a place that can be written to",
    errno.EACCES: "; run it as the owner, or copy the run elsewhere",
}


def _say_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"wrackline {version()}" + (f", revision {revision()}" if revision() else ""))
        ctx.exit()


@click.group(
    cls=LazyGroup,
    headings=HEADINGS,
    former=FORMER,
    meant=MEANT,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Say which version and revision this is.",
)
def wrackline() -> None:
    """Break a replicated, Kafka-protocol broker and find out whether it lost or reordered what it
    acknowledged.

    \b
      wrackline doctor                  can this machine do it? what is missing?
      wrackline demo                    three short runs that show what it is for
      wrackline init first.yaml         a commented specification
      wrackline plan first.yaml         what would happen, and when
      wrackline run first.yaml          a run, its verdict and its report
      wrackline report last             the report of the newest run again
    """


with_verbosity(wrackline)
assert isinstance(wrackline, LazyGroup)
COMMANDS = wrackline.entries
"""Those that are listed, by name."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs the command and exits with its code; every error is one line on standard error."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[Terminal()])
    with interrupting(), restored():
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
    except click.exceptions.NoArgsIsHelpError as asked:
        asked.show()
        return 2
    except click.UsageError as wrong:
        name = wrong.ctx.command_path if wrong.ctx is not None else "wrackline"
        return _fail(f"{name}: {in_our_words(wrong)} (see `{name} --help`)", 2)
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
    from wrackline.harness.run.live.outcome import Interrupted
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
    from wrackline.harness.run.live.outcome import CannotRecord
    from wrackline.harness.run.results import NoSuchRun
    from wrackline.harness.specification.spec import SpecError
    from wrackline.history.addresses import Unreachable
    from wrackline.history.folder import HistoryError
    from wrackline.history.jepsen.imports import ImportFailed
    from wrackline.history.jepsen.text import TextError
    from wrackline.maven import MavenFailed
    from wrackline.needs import Missing
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
        Missing,
    )


def _fail(line: str, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
