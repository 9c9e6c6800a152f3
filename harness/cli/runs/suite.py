"""``wrackline suite``: a night of runs, from one file."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType

import click

from wrackline.harness.cli.errors import EXIT_HOSTS
from wrackline.harness.cli.options import (
    WrongInput,
    master_option,
    need_machine,
    need_writable,
    results_option,
)
from wrackline.harness.cli.signals import STOPPED
from wrackline.harness.nights import summary
from wrackline.harness.nights.driver import DiskFull, Driver, Stopped
from wrackline.harness.nights.journal import Did, Journal, read
from wrackline.harness.nights.night import NIGHT_JSON, NightDriver, begin
from wrackline.harness.nights.order import before, nights, ordered
from wrackline.harness.nights.post_actions import carry_out, check_after, known_before
from wrackline.harness.nights.spec import Case, Night, cases, load_night
from wrackline.harness.notifications import codehost
from wrackline.harness.notifications.run_summary import RunSummary
from wrackline.harness.run.judge import exit_code
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.screen import put, table
from wrackline.nemesis.follow.coverage import merged
from wrackline.nemesis.follow.coverage import summary as summary_of
from wrackline.progress import progress

FOLDER = "nights"
STAMP = "%Y%m%dT%H%M%SZ"


@click.command("suite")
@click.argument("file", type=click.Path(path_type=Path), metavar="NIGHT.yaml")
@results_option
@click.option("--fresh", is_flag=True, help="Begin a new night, also if the last one was not finished.")
@click.option("--list", "list_only", is_flag=True, help="Say what would be run, in which order; make no run.")
@master_option
def suite_command(file: Path, results: Path, fresh: bool, list_only: bool, master: str) -> int:
    """Make a night of runs: specifications times seeds times settings, within a budget of time.

    \b
    name: nightly
    budget: 8h
    runs:
      - spec: demo-acks-all.yaml            # beside this file
        seeds: [1, 2, 3]
        matrix: {system.profile: [kip101, kip966]}
      - simulate: {swarm: any, budget: 5m}  # beside runs on hosts, a campaign in virtual time

    A campaign runs what failed in virtual time before (corpus: .wrack/corpus), then new seeds of all profiles
    and upgrades; the seeds go on from night to night. Its page has what failed, made smaller.

    What failed in one of the last nights is run first, then what was never run, then what has not been run
    for longest. A violation is run again with its seed (repeat: 3), beside its twin (the same without faults,
    or with the settings that `twin` names), and made smaller: what is left is a specification in
    NIGHT/smallest.

    After Ctrl-C, a full disk or a crash the same command goes on where the night stopped; at most the runs
    that were under way are made again. What a spent budget leaves is first the next night.

    \b
      wrackline suite nightly.yaml --list
      wrackline suite nightly.yaml
      wrackline suite nightly.yaml --fresh

    Exit code: that of the worst run; 4 when the disk is full; 130 when it was stopped. A violation that its
    specification expects (contract.verdict) counts as a pass, and a pass of that run as a violation.
    """
    folder = results / FOLDER
    night = load_night(file)
    earlier = nights(folder, night.name)
    unfinished = None if fresh else _unfinished(earlier)
    if list_only:
        return _list(file, night, earlier, unfinished)
    need_writable(results)
    check_after(night.after)
    here = unfinished or _begin_night(file, night, folder, earlier)
    return _drive(here, gone_on=unfinished is not None, master=master)


def _unfinished(earlier: list[Path]) -> Path | None:
    """The night that goes on. Of one whose journal alone was kept, for what it knows, nothing can."""
    last = earlier[-1] if earlier else None
    return last if last and not read(last).ended and (last / NIGHT_JSON).exists() else None


def _begin_night(file: Path, night: Night, folder: Path, earlier: list[Path]) -> Path:
    expected = _in_order(cases(night, file), earlier)
    specs = [case.spec for case in expected if case.spec is not None]
    need_machine(*specs)
    for spec in specs:
        spec.system.reach()
    here = folder / f"{night.name}-{datetime.now(UTC).strftime(STAMP)}"
    begin(here, night, expected)
    return here


def _in_order(wanted: list[Case], earlier: list[Path]) -> list[Case]:
    by_name = {case.name: case for case in wanted}
    return [by_name[name] for name in ordered(by_name, before(earlier))]


def _list(file: Path, night: Night, earlier: list[Path], unfinished: Path | None) -> int:
    if unfinished is not None:
        state = read(unfinished)
        click.echo(f"{unfinished.name} is not finished: {len(state.results)} runs are judged; it goes on")
    known = before(earlier)
    for case in _in_order(cases(night, file), earlier):
        there = known.get(case.name)
        when = "never run" if there is None else f"last run {there.last} nights ago"
        click.echo(f"{case.name:<50} {when}{', failed lately' if there and there.failed else ''}")
    return 0


def _drive(here: Path, *, gone_on: bool, master: str) -> int:
    journal = Journal(here)
    try:
        if not journal.claim():
            raise WrongInput(f"{here}: another process is at work on this night; wait for it, or stop it")
        journal.write(Did.OPENED)
        driver = NightDriver(here, journal, master=master, say=partial(progress, err=False))
        click.echo(f"{'going on with' if gone_on else 'night'} {here}: {driver.account()}")
        end = None
        with stop_on_signals(driver):
            try:
                driver.drive()
            except Stopped as stopped:
                end = stopped
        return _summarize(here, driver, end)
    except OSError as full:
        raise WrongInput(
            f"{here}: {full.strerror or full}: make room, and give the same command again: it goes on"
        ) from full
    finally:
        journal.close()


@contextmanager
def stop_on_signals(driver: Driver) -> Iterator[None]:
    """A line says how far the runs under way are. Ctrl-C and SIGTERM end it in good order; a second one at
    once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del frame
        if driver.stopping:
            raise KeyboardInterrupt
        driver.stopping = f"stopped by {signal.Signals(number).name}"
        click.echo("stopping: the run under way is healed and removed; again to stop at once", err=True)

    former = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with Progress() as progress:
            driver.status = progress.status
            yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _summarize(here: Path, driver: NightDriver, end: Stopped | None) -> int:
    accounts_of_runs = list(summary.accounts(driver.night, driver.cases, driver.state, driver.replayed))
    known = known_before(here, driver.night)
    summaries = summary.summarized(here, accounts_of_runs, known)
    written = summary.write(here, driver.night, accounts_of_runs, summaries)
    _show(summaries)
    if reached := followed(summaries):
        click.echo(f"states followed: {reached}")
    for path in written:
        click.echo(f"  {path}")
    codehost.tell(driver.night.name, summaries, click.echo)
    if driver.state.over:
        carry_out(here, driver.night, driver.journal, summaries, known, click.echo)
    if end is not None:
        further = "what is left comes first the next night" if end.over else "the same command goes on"
        click.echo(f"{end}: {driver.account()}; {further}")
    if isinstance(end, DiskFull):
        return EXIT_HOSTS
    if end is not None and not end.over:
        return STOPPED
    return exit_code(each.counts_as for each in summaries if each.counts_as is not None)


def followed(summaries: Sequence[RunSummary]) -> str:
    """Returns how many states of the cluster faults have followed in these runs; empty where none did."""
    return summary_of(merged([one.record.coverage for one in summaries if one.record is not None]))


def _show(summaries: Sequence[RunSummary]) -> None:
    made = table("run", "verdict", "what followed")
    for each in summaries:
        made.add_row(each.name, each.word, each.beside)
    put(made, width=160)
