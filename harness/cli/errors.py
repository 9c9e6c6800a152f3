"""The message for an error, and its exit code: one line on standard error; 2 for a wrong call or wrong
input, 4 where infrastructure failed or we did, 130 where a user stopped it. The exit code of a verdict is
never among them."""

from __future__ import annotations

import errno
import logging
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

import click

from wrackline.errors import InfrastructureError, InputError
from wrackline.harness.cli.signals import STOPPED
from wrackline.needs import Missing

EXIT_HOSTS = 4
"""Infrastructure failed, or we did: nothing is proved."""
_AS_IT_WAS = "stopped; what was there before is as it was"
_WAYS_OUT = {
    errno.ENOSPC: "; make room on that disk, nothing was left half-written",
    errno.EDQUOT: "; make room, nothing was left half-written",
    errno.EROFS: "; copy the run to a place that can be written to",
    errno.EACCES: "; run it as the owner, or copy the run elsewhere",
}


def run_guarded(command: Callable[[], Any]) -> int:
    """Runs a command. Returns its exit code, or that of the error that ended it, which is said."""
    try:
        code = command()
    except click.exceptions.NoArgsIsHelpError as asked:
        asked.show()
        return 2
    except click.UsageError as error:
        name = error.ctx.command_path if error.ctx is not None else "wrackline"
        return _fail(f"{name}: {_usage_line(error)} (see `{name} --help`)", 2)
    except click.ClickException as error:
        return _fail(f"wrackline: {error.format_message()}", error.exit_code)
    except (click.Abort, KeyboardInterrupt) as stopped:
        return _fail(f"wrackline: {str(stopped) or _AS_IT_WAS}", STOPPED)
    except Exception as error:  # the supervisor of every command: exit code 1 is a verdict's alone
        logging.getLogger(__name__).debug("the command ended early", exc_info=True)
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(wrong: Exception) -> int:
    if isinstance(wrong, InputError | Missing):
        return _fail(f"wrackline: {wrong}", 2)
    if isinstance(wrong, InfrastructureError):
        return _fail(f"wrackline: {wrong}", EXIT_HOSTS)
    if isinstance(wrong, OSError):  # a full or read-only disk below the results
        hint = _WAYS_OUT.get(wrong.errno or 0, "")
        return _fail(f"wrackline: {wrong.filename or 'results'}: {wrong.strerror or wrong}{hint}", 2)
    from wrackline.harness.run.live.outcome import Interrupted  # late: a command that goes well needs none

    if isinstance(wrong, Interrupted):
        return _fail(f"wrackline: {str(wrong) or _AS_IT_WAS}", STOPPED)
    return _fail(_crash_line(wrong), EXIT_HOSTS)


def _fail(line: str, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


def _crash_line(error: BaseException) -> str:
    """The line for an exception that nobody expected; its traceback goes into a file."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"wrackline broke down: {what[:300]}; nothing is proved by that. {_kept(error)}"


def _kept(error: BaseException) -> str:
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="wrackline-", suffix=".traceback", delete=False, encoding="utf-8", errors="replace"
        ) as file:
            file.writelines(traceback.format_exception(error))
    except OSError as full:
        place = traceback.extract_tb(error.__traceback__)[-1:]
        where = f"{place[0].filename}:{place[0].lineno}" if place else "a place nobody knows"
        return f"It happened at {where}; there is no room for the traceback ({full.strerror or full})"
    return f"The traceback is in {file.name}: please report it"


def _usage_line(wrong: click.UsageError) -> str:
    """Returns click's message for a wrong call; for an option that takes a number: ``--seed: give a whole
    number of 0 or more, not 'abc'``."""
    kind = wrong.param.type if isinstance(wrong, click.BadParameter) and wrong.param is not None else None
    given, is_of_the_type, _ = wrong.message.partition(" is not ")
    if not isinstance(kind, click.types.IntParamType | click.types.FloatParamType) or not is_of_the_type:
        return wrong.format_message()
    assert isinstance(wrong, click.BadParameter)
    assert wrong.param is not None
    what = "a whole number" if isinstance(kind, click.types.IntParamType) else "a number"
    name = wrong.param.opts[-1] if isinstance(wrong.param, click.Option) else wrong.param.human_readable_name
    return f"{name}: give {what}{_range(kind)}, not {given}"


def _range(kind: click.ParamType[Any]) -> str:
    """Returns the range of a number in words: ``from 1 to 5``, ``of 0 or more``, or nothing."""
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    match kind.min, kind.max:
        case None, None:
            return ""
        case None, most:
            return f" up to {most:g}"
        case least, None:
            return f" above {least:g}" if kind.min_open else f" of {least:g} or more"
        case least, most:
            return f" from {least:g} to {most:g}"
