"""A group of commands that imports a command when it is called, and none to list them.

What all commands need together takes seconds to import.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from wrackline.harness.cli.commands import SUGGESTIONS, Entry
from wrackline.harness.cli.signals import exit_on_signal
from wrackline.harness.cli.verbosity import with_verbosity


class LazyGroup(click.Group):
    """A group by headings. ``headings``: of the list of commands in the help, with the commands under each.
    ``former``: names that are not listed, and the words that they stand for. ``suggestions``: names of no
    command, and the command that is suggested instead."""

    def __init__(
        self,
        name: str | None = None,
        *,
        headings: Mapping[str, Mapping[str, Entry]],
        former: Mapping[str, str] | None = None,
        suggestions: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        self.headings = headings
        self.entries = {name: one for under in headings.values() for name, one in under.items()}
        self.former, self.suggestions = former or {}, suggestions or {}
        # Click looks for the nearest name among these.
        stand_ins = {name: click.Command(name, short_help=one.words) for name, one in self.entries.items()}
        super().__init__(name, commands=stand_ins, **attributes)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = self.entries.get(cmd_name)
        return None if entry is None else with_verbosity(_load_command(cmd_name, entry))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = self._current_names(args)
        suggested = self.suggestions.get(args[0]) if args[0] not in self.entries else None
        if suggested is not None and not ctx.resilient_parsing:
            raise click.UsageError(
                f"No such command {args[0]!r}. Did you mean `{ctx.find_root().command_path} {suggested}`?",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def _current_names(self, args: list[str]) -> list[str]:
        """Returns the arguments with a former command name replaced by the current words. Of a former
        group by itself: the help of its heir."""
        for length in (2, 1):
            now = self.former.get(" ".join(args[:length]))
            if now is not None and len(args) >= length:
                return [*now.split(), *args[length:]]
        heirs = {name.split()[1]: now for name, now in self.former.items() if name.split()[0] == args[0]}
        if not heirs:
            return args
        heir = next(iter(heirs.values())).split(" --")[0]
        if len(args) > 1 and not args[1].startswith("-"):
            raise click.UsageError(
                f"No such command '{args[0]} {args[1]}'; {', '.join(heirs)} are `wrackline {heir}` now"
            )
        return [*heir.split(), "--help"]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        listed = [CompletionItem(name, help=one.words) for name, one in self.entries.items()]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [one for one in listed if one.value.startswith(incomplete)] + options

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        width = max(map(len, self.entries))
        for heading, under in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), one.words) for name, one in under.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Click answers Ctrl-C with an empty line of its own, which only a terminal that shows ^C needs."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            if sys.stderr.isatty():
                click.echo(err=True)
            raise click.Abort(*stopped.args) from stopped


def _load_command(name: str, entry: Entry) -> click.Command:
    if entry.below:
        text = "\n\n".join(filter(None, [entry.words, entry.text, "\b"]))
        text += "".join(f"\n  {line}" for line in entry.examples.splitlines())
        suggestions = {
            word.split()[1]: is_ for word, is_ in SUGGESTIONS.items() if word.startswith(f"{name} ")
        }
        return LazyGroup(name, headings={"Commands": entry.below}, suggestions=suggestions, help=text)
    module, _, attribute = entry.at.partition(":")
    with exit_on_signal():
        command = getattr(import_module(module, __package__), attribute)
    assert isinstance(command, click.Command)
    return command
