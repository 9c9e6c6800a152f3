"""``wrackline check``: is what clients saw of an object, or of transactions, possible?"""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.jvm.classpath import CLASSPATH_VARIABLE
from wrackline.harness.check.files import Judge, Question, histories, models
from wrackline.harness.check.formatting import answer, details, headline, summary
from wrackline.harness.check.listing import lines
from wrackline.harness.check.results import Judged, Verdict, exit_code, plain
from wrackline.harness.cli.options import memory_size, output_option, print_json
from wrackline.harness.cli.signals import STOPPED
from wrackline.progress import PROGRESS

_MANY = 20
"""Of a file with more objects than this, those in order are counted and not listed."""
_UNITS = {"k": 10, "m": 20, "g": 30}


def _model(_context: click.Context, _option: click.Parameter, given: str) -> str:
    if ":" not in given and given not in models():
        raise click.BadParameter(
            f"there is no model {given!r}: {', '.join(models())}, or one of your own as FILE.py:CLASS"
        )
    return given


def _bytes(context: click.Context, option: click.Parameter, given: str) -> int:
    size = memory_size(context, option, given)
    return int(size[:-1]) << _UNITS[size[-1].lower()]


def _value(_context: click.Context, _option: click.Parameter, given: str | None) -> Any:
    """JSON, or the text itself where it is none."""
    if given is None:
        return None
    try:
        return orjson.loads(given)
    except orjson.JSONDecodeError:
        return given


def _list(context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given and not context.resilient_parsing:
        for line in lines():
            click.echo(line)
        context.exit()


def _settings(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    result = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{one!r} is no NAME=VALUE")
        result[name] = _value(context, option, value)
    return result


@click.command("check")
@click.argument(
    "given", metavar="HISTORY...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option(
    "-m",
    "--model",
    required=True,
    callback=_model,
    metavar="NAME",
    help="What is asked: a model, a checker (--list says what each means), or FILE.py:CLASS.",
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="Say what each NAME means, and Jepsen's name of it, and end.",
)
@click.option("--independent", is_flag=True, help="Values are [key value]: each key is an object of its own.")
@click.option(
    "--holes", is_flag=True, help="Of a log: offsets without a record are no loss (transactions, compaction)."
)
@click.option(
    "--initial",
    metavar="JSON",
    callback=_value,
    help="What a register, a counter or a key holds at first, or an account has; a map for each key its own.",
)
@click.option(
    "--total",
    metavar="JSON",
    callback=_value,
    help="Of bank-totals: the sum of all balances; else all reads must agree with the first.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=JSON",
    callback=_settings,
    help="An argument of the model: --set negative=true lets a bank's balances fall below 0.",
)
@click.option(
    "--consistency",
    default="strict-serializable",
    show_default=True,
    help="What transactions should be: serializable, snapshot-isolation, ...; several with commas between "
    "them, each with a verdict of its own.",
)
@click.option(
    "--by",
    type=click.Choice(["search", "knossos", "both", "elle"]),
    help="Search even where the exact checks could decide; ask Knossos; or ask both and compare. Of "
    "transactions: by our own search alone, or by Elle alone.",
)
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds for each object; what is not decided by then is unknown.",
)
@click.option(
    "--memory",
    "memory_bytes",
    default="2g",
    show_default=True,
    metavar="SIZE",
    callback=_bytes,
    help="Most memory of a search in all its processes, beside the program and the history, and of the JVM: "
    "512m, 4g. Where it does not suffice the answer is unknown.",
)
@output_option("what was decided, and nothing else.")
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.html",
    help="Write a page with drawings: of cycles, and of what has no place. It needs no network.",
)
@click.option(
    "--classpath",
    metavar="PATH",
    help=f"Jars of Knossos and Elle, separated by colons; ${CLASSPATH_VARIABLE} "
    "or what was installed by default.",
)
def check_command(
    given: tuple[Path, ...], output: str, report: Path | None, by: str | None, **question: Any
) -> int:
    """Judge each HISTORY: an EDN or JSON file as Jepsen and elle-cli write them, one of Porcupine's, etcd's,
    dbcop's or PolySI's, or a folder of them.

    \b
      wrackline check -m register history.edn              is it linearizable?
      wrackline check -m cas-register --independent store/ every key of every history below store/
      wrackline check -m log history.kafka.edn             each partition of `wrackline history export`
      wrackline check -m bank --initial 100 history.edn    accounts that begin with 100 each
      wrackline check -m bank-totals --total 80 h.edn      the sums of balances alone, as Jepsen's bank test
      wrackline check -m mine.py:Counter history.edn       a model of your own
      wrackline check -m list-append history.json          are transactions strictly serializable?
      wrackline check -m register --by both history.edn    Knossos as referee of our answer
      wrackline check -m mutex --report why.html h.edn     draw what has no place

    Registers, FIFO queues and logs with offsets whose values are written once are decided exactly, at any
    size. So are Jepsen's checkers of one rule; --list says what each means. Other objects are searched for an
    order of their operations, in native code, which may run into a limit: then the answer is unknown.
    Transactions that our own check does not decide need Elle, and --by knossos or both needs Knossos (see
    `wrackline get jvm`): one JVM for all files and keys.

    A file that cannot be read is told in one line, and the others are judged. What was decided before Ctrl-C
    is printed. Exit code, the first that holds: 1 something is not what it should be, 2 a file
    could not be judged, 3 something is unknown, 0 all is in order; 130 stopped.
    """
    files: list[Judged] = []
    status, stopped = _Status(), False
    with Judge(Question(by=by or "", **question), status.show) as judge:
        try:
            paths = histories(given)
            for path in paths:
                files.append(file := Judged(str(path)))
                lines = _Lines(file, status, file.file if len(paths) > 1 else "")
                judge.judge(file, (lambda _verdict: None) if output == "json" else lines.show)
                status.clear()
                if output != "json":
                    lines.end()
                if file.wrong:
                    click.echo(f"wrackline: {file.wrong}", err=True)
        except KeyboardInterrupt:
            stopped = True
        status.clear()
        jvms = judge.jvms
    if output == "json":
        _print_json(files, jvms, stopped)
    else:
        for line in summary(files, jvms):
            click.echo(line)
    if report is not None:
        from wrackline.harness.check.page import write_page

        write_page(report, files)
        click.echo(f"the page is {report}", err=True)
    if stopped:
        click.echo("wrackline: stopped; this is what was decided until then", err=True)
        return STOPPED
    return exit_code(files)


class _Status:
    """One line on a terminal's standard error that says what is being done."""

    def __init__(self) -> None:
        self._shown = False

    def show(self, line: str) -> None:
        if sys.stderr.isatty() and PROGRESS.isEnabledFor(logging.INFO):
            width = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{line[:width]}", err=True, nl=False)
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)
            self._shown = False


class _Lines:
    """The verdicts of one file as lines, as soon as each is there. Of many objects those in order are only
    counted."""

    def __init__(self, file: Judged, status: _Status, name: str) -> None:
        self._file, self._status = file, status
        self._prefix = f"{name}: " if name else ""
        self._in_order: list[Verdict] = []

    def show(self, verdict: Verdict) -> None:
        if verdict.answer is Answer.VALID and not verdict.note:
            self._in_order.append(verdict)
            if len(self._in_order) > _MANY:
                return
        self._status.clear()
        click.echo(f"{self._prefix}{headline(verdict)}")
        for line in details(verdict):
            click.echo(line)

    def end(self) -> None:
        unlisted = len(self._in_order) - _MANY
        if unlisted > 0:
            click.echo(f"{self._prefix}{unlisted:,} more objects: {answer(self._in_order[-1])}")


def _print_json(files: Sequence[Judged], jvms: int, stopped: bool) -> None:
    said = {"exit_code": STOPPED if stopped else exit_code(files), "jvms": jvms, "files": plain(files)}
    print_json(said, options=orjson.OPT_NON_STR_KEYS)
