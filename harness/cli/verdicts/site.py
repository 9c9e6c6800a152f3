"""``wrackline site`` and ``compare``: what many runs have come to."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import click
from rich.table import Column

from wrackline.harness.cli.options import WrongInput
from wrackline.harness.index import collect as gathering
from wrackline.harness.index import site as sites
from wrackline.harness.index.baseline import change, figure
from wrackline.harness.index.comparing import Comparison, Unlike, compared, side
from wrackline.harness.index.pages import Site, page
from wrackline.harness.index.reader.bundle import NoReader, reader
from wrackline.harness.index.runs import Link, below, beside, shown
from wrackline.harness.index.serving import Renewal, Server
from wrackline.harness.index.site import Reader
from wrackline.harness.records import NotKnown, State, known_incidents
from wrackline.harness.run.results import ENVIRONMENT, default_dir
from wrackline.harness.screen import put, table
from wrackline.history.store.folder import whole_file
from wrackline.progress import progress

_IN_RESULTS = "site"
_SHUTDOWN_S = 5.0
where_option = click.option(
    "--results",
    default=lambda: str(default_dir()),
    show_default=f"${ENVIRONMENT}, or ./results",
    metavar="FOLDER",
    help="Folder with the runs, or its address in object storage (s3://bucket/nights).",
)


@click.command("build")
@where_option
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the site; `site` in the folder of the results by default.",
)
@click.option(
    "--links",
    metavar="URL",
    help="What links to reports begin with where the results are not reached from the site by a path.",
)
def index_command(results: str, out: Path | None, links: str | None) -> int:
    """Write a static site of all runs below a folder: nights, suites, trends, incidents, latency, search.

    \b
      wrackline site build                                        results/site/index.html
      wrackline site build --results /srv/nights --out /srv/www
      wrackline site build --results s3://ci/nights --out www --links https://ci.example/nights

    It needs no server and no network. Run it again after more runs: what has not changed is not read again.
    """
    began = time.monotonic()
    try:
        place = gathering.place_of(results)
        if out is None:
            if place.protocol:
                raise WrongInput(f"{results}: is not on this machine; --out names a folder for the site")
            out = Path(results) / _IN_RESULTS
        if not (place.protocol or place.is_dir()):  # before a folder is made in it
            raise gathering.NothingThere(f"{results}: no such folder; --results names the one of the runs")
        kept = gathering.load(out / sites.KEPT)
        entries = gathering.gather(place, kept)
        sites.claim(out)
        link: Link = beside(out) if links is None else below(place, links.rstrip("/") + "/")
        known = known_incidents(place)
        built = sites.build(results, entries, out, kept, link=link, reader=_reader(), live=False, known=known)
    except (gathering.NothingThere, sites.NotASite, NotKnown) as error:
        raise WrongInput(str(error)) from error
    click.echo(
        f"{out / 'index.html'}: {built.runs} runs, {built.written} pages written, "
        f"{built.bytes / 1e6:.1f} MB, in {time.monotonic() - began:.1f} s"
    )
    damaged = [one.record for one in entries if one.record.state is State.DAMAGED]
    for record in damaged[:5]:
        click.echo(f"  {record.run} cannot be read whole: {record.trouble}", err=True)
    return 0


def _reader() -> Reader:
    """Returns the reader for the site; without the reader the site lacks one page, which says why."""
    try:
        return Reader(reader())
    except NoReader as error:
        click.echo(f"the page of whole histories is left out: {error}", err=True)
        return Reader("", str(error))


@click.command("compare")
@click.argument("before")
@click.argument("after")
@where_option
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write it as a page, too.")
@click.option("--across", is_flag=True, help="Also runs of different systems.")
def compare_command(before: str, after: str, results: str, html: Path | None, across: bool) -> int:
    """Put two runs, versions or nights side by side. Each is a run's id (or how it begins), a suite (its
    newest run), a version of the system, a profile, or the name of a night's folder.

    \b
      wrackline compare 20261122T0100 20261123T0100
      wrackline compare demo-acks-all demo-canary
      wrackline compare 4.1.1 4.4.0 --html upgrade.html
      wrackline compare nightly-20261122T010000Z nightly-20261123T010000Z

    A figure is worse when it is outside of what the noise of the runs before explains. Exit code: 0 AFTER is
    no worse, 1 it is worse (an anomaly that BEFORE does not show, or a figure), 2 wrong input, 3 nothing can
    be said, since one of them has no run that was judged.
    """
    try:
        place = gathering.place_of(results)
        link = beside(html.parent) if html is not None else below(place, "")
        entries = gathering.gather(place, gathering.Kept(), histories=False)
        runs = shown(entries, link)
        comparison = compared(side(before, runs), side(after, runs), runs, across=across)
    except (gathering.NothingThere, Unlike) as error:
        raise WrongInput(str(error)) from error
    _print(comparison)
    if html is not None:
        site = Site(results, runs, (), (), (), "", pages=())
        with whole_file(html) as part:
            part.write_text(page(site, html.name, "comparison.html.j2", comparison=comparison)[1])
        click.echo(f"  {html}")
    return comparison.outcome.value


def _print(comparison: Comparison) -> None:
    made = table(
        Column("", overflow="fold"),
        Column("before", justify="right", overflow="fold"),
        Column("after", justify="right", overflow="fold"),
        Column("change", overflow="fold"),
        Column("expected after", justify="right", overflow="fold"),
    )
    made.add_row("", comparison.before.name, comparison.after.name)
    made.add_row("verdict", comparison.before.verdicts, comparison.after.verdicts)
    for what, was, is_ in comparison.apart:
        made.add_row(what, was, is_)
    for each in comparison.anomalies:
        before = f"{each.before} of {len(comparison.before.runs)}"
        after = f"{each.after} of {len(comparison.after.runs)}"
        made.add_row(each.name, before, after, "new" if each.new else "gone" if not each.after else "")
    for moved in (*comparison.moved, *comparison.by_suite):
        told = change(moved.before, moved.after)
        word = " worse" if moved.worse else " better" if moved.outside else ""
        expected = ""
        if moved.noise is not None:
            low, high = (figure(moved.metric, edge) for edge in (moved.noise.low, moved.noise.high))
            expected = f"{low} to {high}"
        was, is_ = (figure(moved.metric, value) for value in (moved.before, moved.after))
        suite = f"{moved.suite}: " if moved in comparison.by_suite else ""
        made.add_row(suite + moved.label, was, is_, told + word, expected)
    put(made, width=150)
    click.echo(comparison.sentence)


@click.command("serve")
@where_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0: any.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.2, 3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How often it looks for runs that have ended.",
)
def serve_command(results: str, host: str, port: int, every_s: float) -> int:
    """Serve the site live while a night runs: pages follow the runs as they end. Ctrl-C ends it.

    \b
      wrackline site serve
      wrackline site serve --results s3://ci/nights --every 60

    It listens on this machine alone unless --host says otherwise: reports and histories hold what clients
    sent, and nobody is asked who they are.
    """
    with tempfile.TemporaryDirectory(prefix="wrackline-site-") as folder:
        try:
            place = gathering.place_of(results)
            renewal = Renewal(place, Path(folder), _reader(), progress)
            renewal.once()
        except gathering.NothingThere as error:
            raise WrongInput(str(error)) from error
        try:
            server = Server(host, port, place, Path(folder))
        except OSError as error:
            raise WrongInput(
                f"{host}:{port}: {error.strerror or error}; --port and --host name others"
            ) from error
        end = threading.Event()
        following = threading.Thread(target=renewal.follow, args=(end, every_s), daemon=True)
        try:
            following.start()
            click.echo(f"{server.url} shows the runs of {results}; Ctrl-C ends it")
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            click.echo("ended", err=True)
        finally:
            end.set()
            server.server_close()
            following.join(timeout=_SHUTDOWN_S)  # it may be writing into the folder that goes away
    return 0
