"""``wrackline bisect``: which version, or which commit of ours, broke a promise first?"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from wrackline.harness.cli.errors import EXIT_HOSTS
from wrackline.harness.cli.options import (
    WrongInput,
    master_option,
    need_machine,
    need_writable,
    results_option,
    set_option,
)
from wrackline.harness.cli.runs.suite import stop_on_signals
from wrackline.harness.cli.signals import STOPPED
from wrackline.harness.nights.bisecting import Bisector, Candidate
from wrackline.harness.nights.driver import DiskFull, Stopped
from wrackline.harness.nights.journal import Did, Journal
from wrackline.harness.nights.queue import Task
from wrackline.harness.nights.spec import word
from wrackline.harness.specification.check import load_checked
from wrackline.plugins.fields import SECONDS
from wrackline.progress import progress

FOLDER = "bisects"
SOURCES = Path(__file__).resolve().parents[3]


@click.command("bisect")
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.yaml")
@click.argument("values", nargs=-1, metavar="[GOOD ... BAD]")
@click.option("--key", default="system.version", show_default=True, help="The setting that has these values.")
@click.option(
    "--commits", metavar="GOOD..BAD", help="Commits of this repository instead of values of a setting."
)
@click.option(
    "--tries",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Runs without a violation after which a version counts as good.",
)
@click.option(
    "--budget", default="8h", show_default=True, metavar="TIME", help="No run begins after this time."
)
@set_option
@results_option
@click.option("--fresh", is_flag=True, help="Forget the runs that the same command made before.")
@master_option
def bisect_command(
    spec: Path,
    values: tuple[str, ...],
    key: str,
    commits: str | None,
    tries: int,
    budget: str,
    settings: tuple[str, ...],
    results: Path,
    fresh: bool,
    master: str,
) -> int:
    """Find the first version, or the first commit, with which SPEC is a violation, by halving.

    \b
    The values of a setting, oldest first; the first is known as good, the last as bad:
      wrackline bisect suites/findings/b10.yaml 3.7.0 3.8.0 3.9.2
      wrackline bisect mine.yaml kip101 kraft35 kip966 --key system.profile
    Commits of this repository: the broker and the harness are those of the commit, the judge is today's.
      wrackline bisect suites/demo-acks-all.yaml --commits v0.3..main

    Both ends are run first. A version is bad after one violation, and good after --tries runs without. The
    same command goes on where it was stopped.

    Exit code: 0 when it was found, 2 for wrong input, 3 when the ends are not good and bad, 4 when the disk
    is full, 130 when it was stopped.
    """
    if bool(values) == bool(commits) or (values and len(values) < 2):
        raise WrongInput("give two values or more, oldest first, or --commits GOOD..BAD")
    try:
        budget_s = float(SECONDS.number(budget))
    except ValueError as error:
        raise WrongInput(f"--budget {budget}: {error}") from error
    need_writable(results)
    identity = "\0".join((str(spec.resolve()), *values, key, commits or "", *settings, str(tries)))
    folder = results / FOLDER / f"{spec.stem}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    candidates = (
        _commits(commits, spec, settings, folder)
        if commits
        else [_with_value(spec, settings, key, value) for value in values]
    )
    if fresh and folder.exists():
        (folder / "journal.jsonl").unlink(missing_ok=True)
    for below in ("specs", "runs", "logs"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    journal = Journal(folder)
    try:
        journal.write(Did.OPENED)
        bisector = _Checkouts(
            folder,
            journal,
            candidates,
            tries=tries,
            budget_s=budget_s,
            master=master,
            say=partial(progress, err=False),
        )
        return _drive(bisector, candidates)
    finally:
        journal.close()


def _drive(bisector: _Checkouts, candidates: Sequence[Candidate]) -> int:
    click.echo(f"{len(candidates)} from {candidates[0].name} to {candidates[-1].name}: {bisector.folder}")
    with stop_on_signals(bisector):
        try:
            bisector.drive()
        except Stopped as end:
            click.echo(f"{end}: {bisector.account()}; the same command goes on")
            return EXIT_HOSTS if isinstance(end, DiskFull) else STOPPED
        finally:
            bisector.remove_checkouts()
    result = bisector.found
    if result.trouble or result.bad is None:
        click.echo(f"no answer: {result.trouble} ({bisector.account()})")
        return 3
    before = candidates[result.good or 0].name
    click.echo(f"first bad: {candidates[result.bad].name}; {before} is good ({bisector.account()})")
    return 0


def _with_value(spec: Path, settings: Sequence[str], key: str, value: str) -> Candidate:
    made = load_checked(spec, settings=[*settings, f"{key}={value}"])
    need_machine(made)
    return Candidate(word(value), made.to_yaml())


# --- commits ------------------------------------------------------------------------------------------------


def _commits(asked: str, spec: Path, settings: Sequence[str], folder: Path) -> list[Candidate]:
    """Oldest first, each with the specification as it is now: every commit reads it for itself."""
    good, dots, bad = asked.partition("..")
    if not (good and dots and bad):
        raise WrongInput(f"--commits {asked}: give two, GOOD..BAD")
    made = load_checked(spec, settings=settings)
    need_machine(made)
    first = _git("rev-parse", "--verify", f"{good}^{{commit}}")
    between = _git("rev-list", "--reverse", "--ancestry-path", f"{good}..{bad}").split()
    if not between:
        raise WrongInput(f"--commits {asked}: {bad} does not come after {good}")
    return [
        Candidate(commit[:12], made.to_yaml(), str(folder / "code" / commit[:12]))
        for commit in (first, *between)
    ]


class _Checkouts(Bisector):
    """Checks a commit out before its first run."""

    def _begin(self, task: Task) -> None:
        if task.code and not Path(task.code).exists():
            _git("worktree", "add", "--detach", task.code, Path(task.code).name)
        super()._begin(task)

    def remove_checkouts(self) -> None:
        for path in sorted((self.folder / "code").glob("*")):
            _git("worktree", "remove", "--force", str(path))


def _git(*arguments: str) -> str:
    """Raises WrongInput."""
    try:
        done = subprocess.run(["git", "-C", SOURCES, *arguments], capture_output=True, text=True, check=False)
    except OSError as missing:
        raise WrongInput(f"git cannot be run: {missing}; install it") from missing
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["git said nothing"]
        raise WrongInput(f"git {arguments[0]}: {lines[-1]}")
    return done.stdout.strip()
