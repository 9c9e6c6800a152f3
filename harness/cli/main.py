"""The command ``wrackline``.

Exit codes: 0 pass, 1 violation, 2 wrong call or wrong input, 3 inconclusive, 4 infrastructure, 130 stopped at
once. 1 comes from a verdict only: whatever nobody expected is 4. Every error is one line: what, where, how to
mend.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

import click

from wrackline.harness.cli.commands import FORMER, HEADINGS, SUGGESTIONS
from wrackline.harness.cli.errors import run_guarded
from wrackline.harness.cli.lazy import LazyGroup
from wrackline.harness.cli.signals import interrupt_on_sigterm
from wrackline.harness.cli.verbosity import Terminal, restore_levels, with_verbosity
from wrackline.release import revision, version


def _say_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"wrackline {version()}" + (f", revision {revision()}" if revision() else ""))
        ctx.exit()


@click.group(
    cls=LazyGroup,
    headings=HEADINGS,
    former=FORMER,
    suggestions=SUGGESTIONS,
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
    with interrupt_on_sigterm(), restore_levels():
        code = run_guarded(
            lambda: wrackline.main(
                args=list(arguments) if arguments is not None else None,
                prog_name="wrackline",
                standalone_mode=False,
            )
        )
    sys.exit(code)


if __name__ == "__main__":
    main()
