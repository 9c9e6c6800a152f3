"""``-v`` and ``-q``: how much a command says beside its answer, for all commands alike.

Progress is said where the logger `PROGRESS` is enabled for INFO, more of it where it is for DEBUG. Answers,
verdicts and errors are said in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from wrackline.progress import PROGRESS

_OURS = logging.getLogger("wrackline")
_SAID = "wrackline.history"
_CLIENTS = "wrackline.client"
_KEY = "wrackline.verbosity"


class Terminal(logging.StreamHandler[Any]):
    """Warnings of our own reach the terminal, with -v all that we log. The chatter of libraries does not:
    what clients say of a broker that is down is in the log of the run."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = _OURS.name if _OURS.isEnabledFor(logging.DEBUG) else _SAID
        ours = record.name.startswith(said) and not record.name.startswith(_CLIENTS)
        return ours and super().filter(record) is not False


@contextmanager
def restore_levels() -> Iterator[None]:
    """Restores the log levels at the end of the context."""
    before = [(logger, logger.level) for logger in (_OURS, PROGRESS)]
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)


def with_verbosity(command: click.Command) -> click.Command:
    """The command, and those below it, with ``-v`` and ``-q``. A command that hands words on to another
    program has neither: they may be meant for that."""
    if not command.context_settings.get("ignore_unknown_options") and not any(
        one.name == "verbose" for one in command.params
    ):
        command.params += [
            click.Option(
                ["-v", "--verbose"],
                is_flag=True,
                expose_value=False,
                callback=_verbose,
                help="Say more: progress as it comes, the log, tracebacks.",
            ),
            click.Option(
                ["-q", "--quiet"], is_flag=True, expose_value=False, callback=_quiet, help="Say no progress."
            ),
        ]
    if isinstance(command, click.Group):
        for below in command.commands.values():
            with_verbosity(below)
    return command


def _verbose(context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        _set(context, "-v", {_OURS: logging.DEBUG, PROGRESS: logging.DEBUG})


def _quiet(context: click.Context, _option: click.Parameter, given: bool) -> None:
    if given:
        _set(context, "-q", {PROGRESS: logging.WARNING})


def _set(context: click.Context, option: str, levels: dict[logging.Logger, int]) -> None:
    if context.meta.setdefault(_KEY, option) != option:
        raise click.UsageError("-v and -q exclude each other", context)
    for logger, level in levels.items():
        logger.setLevel(level)
