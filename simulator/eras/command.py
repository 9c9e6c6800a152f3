"""``wrackline simulate eras``: every story under every profile, as the table of docs/known-bugs.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.page import NOTHING, HostsFileError, hosts_of, outcome, page, row_of
from wrackline.simulator.eras.story import ERAS, Story, ends_as_told, tell
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.zookeeper_door import of_zookeeper


def rows(stories: Sequence[Story], seeds: int) -> Iterator[tuple[Story, list[str], bool]]:
    """Story, one cell for each profile, and whether all ended as the story says."""
    for story in stories:
        cells, right = [], True
        for profile in ERAS:
            ends: dict[str, int] = {}
            for seed in range(seeds):
                try:
                    played = tell(story, profile, seed)
                except SimulationError as error:
                    ends[f"cannot be played: {error}"] = 1
                    right = False
                    continue
                right = right and ends_as_told(story, profile, played)
                ends[outcome(played.oracles)] = ends.get(outcome(played.oracles), 0) + 1
            cells.append("; ".join(ends) if len(ends) == 1 else _shares(ends))
        yield story, cells, right


def _shares(ends: dict[str, int]) -> str:
    return "; ".join(f"{words} ({count})" for words, count in ends.items())


def table(found: Sequence[tuple[Story, list[str], bool]]) -> str:
    """Returns the table in Markdown."""
    lines = [
        f"| story | told by | {' | '.join(f'`{era}`' for era in ERAS)} |",
        "|---" * (len(ERAS) + 2) + "|",
    ]
    for story, cells, _ in found:
        marked = [cell if cell == NOTHING else f"**{cell}**" for cell in cells]
        lines.append(f"| {story.name} | {story.told} | {' | '.join(marked)} |")
    return "\n".join(lines)


@click.command("eras")
@click.option(
    "--seeds", type=click.IntRange(1, 100), default=5, show_default=True, help="Tell each so many times."
)
@click.option("--story", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("--log", is_flag=True, help="What happens in each, line by line, with seed 0.")
@click.option(
    "--search",
    "searched",
    type=click.IntRange(1),
    metavar="N",
    help="Tell none: print in how many of N random runs of zk08 each comes about by chance.",
)
@click.option(
    "--html",
    "html_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table as one page, too, with what happens in each cell.",
)
@click.option(
    "--hosts-json",
    "hosts_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Runs on hosts for that page: the table of `wrackline eras --json` "
    "(docs/known-bugs.md has another form).",
)
@click.pass_context
def eras(
    ctx: click.Context,
    seeds: int,
    names: tuple[str, ...],
    log: bool,
    searched: int | None,
    html_file: Path | None,
    hosts_file: Path | None,
) -> None:
    """Tell Kafka's own stories under the rules of each era, and print how they end.

    \b
      wrackline simulate eras
      wrackline simulate eras --story split --log

    Exit codes: 0 when each ends as it is told, 1 when one does not.
    """
    known = {story.name: story for story in STORIES}
    if error := [name for name in names if name not in known]:
        raise click.UsageError(f"no story {error[0]!r}; there are {', '.join(known)}")
    chosen = [known[name] for name in names] or list(STORIES)
    if searched is not None:
        if html_file is not None or log:
            raise click.UsageError("--search tells no story: leave out --html and --log")
        click.echo(of_zookeeper("random stories")([story.name for story in chosen], searched))
        return
    if html_file is not None:
        _write_page(chosen, html_file, hosts_file)
    elif hosts_file is not None:
        raise click.UsageError("--hosts-json is for the page: name one with --html")
    if log:
        for story in chosen:
            for era in ERAS:
                _show(story, era)
    result = list(rows(chosen, seeds))
    click.echo(table(result))
    ctx.exit(0 if all(right for _, _, right in result) else 1)


def _write_page(stories: Sequence[Story], file: Path, hosts_file: Path | None) -> None:
    try:
        hosts = {} if hosts_file is None else hosts_of(hosts_file, STORIES)
        file.write_text(page([row_of(story, hosts) for story in stories]), encoding="utf-8")
    except (HostsFileError, SimulationError) as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}; --html names another file") from error


def _show(story: Story, era: str) -> None:
    click.echo(f"{story.name} under {era}: {story.what}")
    try:
        played = tell(story, era)
    except SimulationError as error:
        click.echo(f"  cannot be played: {error}")
        return
    for line in played.log:
        click.echo(f"  {line}")
    for finding in played.findings:
        click.echo(f"  {finding.at_ms:10.1f}  FOUND {finding.oracle}: {finding.text}")
