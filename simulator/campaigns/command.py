"""``wrackline simulate campaign``: a search of a swarm within a time, which goes on from one to the next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wrackline.progress import progress
from wrackline.simulator.campaigns.campaign import ANY, INCONCLUSIVE, PASS, REPORT, VIOLATION, Campaign, Plan
from wrackline.simulator.campaigns.page import page
from wrackline.simulator.search.corpus import CorpusError, Parse
from wrackline.simulator.search.many_seeds import DoneFileError

_EXIT = {PASS: 0, VIOLATION: 1, INCONCLUSIVE: 3}
_INTERRUPTED = 130


def campaign_command(parse: Parse) -> click.Command:
    """Makes the command. ``parse``: of the options of `wrackline simulate`."""

    @click.command("campaign")
    @click.option(
        "--swarm",
        default=ANY,
        show_default=True,
        metavar="PROFILE",
        help="A profile; any: all profiles and upgrades.",
    )
    @click.option(
        "--minutes", type=click.FloatRange(0.01, 10_080), default=5.0, show_default=True, help="Of the runs."
    )
    @click.option("--seeds", type=click.IntRange(1), help="New seeds at most.")
    @click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
    @click.option(
        "--corpus",
        type=click.Path(file_okay=False),
        default=".wrack/corpus",
        show_default=True,
        help="Folder with what failed, which is run first, and with the seeds that were drawn.",
    )
    @click.option("--defect", "defects", multiple=True, metavar="NAME", help="A historic bug to put back.")
    @click.option(
        "--into",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".wrack/campaign"),
        show_default=True,
        help="Folder of the page and of what is done; a campaign that was interrupted goes on there.",
    )
    @click.pass_context
    def command(ctx: click.Context, /, **options: Any) -> None:
        """Search with new seeds for some minutes; run first what failed in campaigns before.

        \b
          wrackline simulate campaign --minutes 5 --jobs 2
          wrackline simulate campaign --swarm kip966 --seeds 1000 --minutes 60

        The seeds go on from one campaign to the next. A run that fails is kept in the corpus and made
        smaller, and the page (report.html) has it, with the rows of the rules' golden tables that were met.
        Exit code: 0, 1 for a violation, 3 when nothing is shown, 130 when it was interrupted.
        """
        plan = Plan(
            swarm=options["swarm"],
            budget_s=options["minutes"] * 60,
            corpus=options["corpus"],
            seeds=options["seeds"],
            jobs=options["jobs"],
            defects=options["defects"],
        )
        into: Path = options["into"]
        try:
            campaign = Campaign(plan, into, parse, progress)
            click.echo(f"run {into.name}  {campaign.account}")
            result = campaign.carry_out()
            (into / REPORT).write_text(page(result), encoding="utf-8")
        except (CorpusError, DoneFileError, ValueError) as error:
            raise click.UsageError(str(error)) from error
        except OSError as error:
            why = error.strerror or error
            raise click.UsageError(f"{into}: {why}; --into names another folder") from error
        click.echo(f"{result.verdict}: {result.headline}")
        click.echo(f"  {into / REPORT}")
        ctx.exit(_INTERRUPTED if result.interrupted else _EXIT[result.verdict])

    return command
