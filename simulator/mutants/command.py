"""``wrackline simulate mutants``: draws mutants, runs each against search or tests, names the survivors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import click

import wrackline.broker
from wrackline.compiled import PURE
from wrackline.mutation import Mutation, mutations_of
from wrackline.pages.template import Templates

ROOMS = ("broker/core", "broker/rules")
_OF_NO_DECISION = ("metrics.py", "trace.py")
"""What these files do is told, and decides nothing."""
_TESTS = ("tests/broker/core", "tests/broker/rules", "tests/broker/defects")
_MOST_S_PER_CPU_S = 30
"""A mutant that takes longer than this, on the busiest machine, does not end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one mutant. ``oracle`` is empty when it survived."""

    mutation: Mutation
    oracle: str
    text: str
    cpu_s: float
    runs: int
    reached: bool

    @property
    def word(self) -> str:
        return self.oracle or ("survived" if self.reached else "not reached")

    @property
    def line(self) -> str:
        what = f"  ({self.text[:120]})" if self.text else ""
        return f"{self.word:<16.16} {self.cpu_s:6.1f} s {self.runs:>4} runs  {self.mutation.text}{what}"


def equivalents() -> dict[tuple[str, str, str], str]:
    """(file, line, change) -> why the mutant is no deviation; marked by hand."""
    text = files("wrackline.simulator.mutants").joinpath("equivalent.txt").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line and not line.startswith("#")]
    return {(file, line, change): reason for file, line, change, reason in rows}


def all_mutations(only: str = "") -> list[Mutation]:
    """Every mutation of the rooms that is not marked as equivalent, in the order of files and lines."""
    (broker,), known = wrackline.broker.__path__, equivalents()
    root = Path(broker).parent
    result: list[Mutation] = []
    for room in ROOMS:
        for file in sorted((root / room).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            if only in name and file.name not in _OF_NO_DECISION:
                result += mutations_of(name, file.read_text(encoding="utf-8"))
    return [each for each in result if (each.file, each.source, each.change) not in known]


def outcome_of(mutation: Mutation, request: dict[str, Any]) -> Outcome:
    """Runs one mutant in a process of its own."""
    asked = {
        "file": mutation.file,
        "number": mutation.number,
        "seed": 1,
        "setup": {},
        "runs": 1_000_000,
        **request,
    }
    command = [sys.executable, "-m", "wrackline.simulator.mutants.child", json.dumps(asked)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60 + _MOST_S_PER_CPU_S * request["cpu_s"],
            check=False,
            env={**os.environ, PURE: "1"},  # a mutation is one of the source
        )
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode == -signal.SIGXCPU:
        return Outcome(mutation, "hang", "", request["cpu_s"], 0, reached=True)
    try:
        answer = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return Outcome(mutation, "exit", done.stderr.strip()[-200:], 0.0, 0, reached=True)
    return Outcome(
        mutation,
        answer["oracle"],
        answer.get("text", ""),
        answer["cpu_s"],
        answer["runs"],
        answer["reached"],
    )


def summary(outcomes: Sequence[Outcome]) -> str:
    noticed = [each for each in outcomes if each.oracle]
    by = ", ".join(
        f"{oracle} {count}" for oracle, count in Counter(each.oracle for each in noticed).most_common()
    )
    unreached = sum(not each.oracle and not each.reached for each in outcomes)
    spent = sum(each.cpu_s for each in outcomes)
    return (
        f"{len(noticed)} of {len(outcomes)} mutants were noticed ({by or 'by nobody'}); "
        f"{len(outcomes) - len(noticed)} survived, {unreached} of them never executed; {spent:.0f} s of CPU"
    )


def _outcomes(chosen: Iterable[Mutation], request: dict[str, Any], jobs: int) -> Iterator[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda mutation: outcome_of(mutation, request), chosen)


@click.command("mutants")
@click.option(
    "--count", type=click.IntRange(1), default=20, show_default=True, help="Mutants that are drawn."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the draw.")
@click.option(
    "--cpu", type=click.FloatRange(0.1), default=60.0, show_default=True, help="Seconds of CPU for each."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Mutants at a time.")
@click.option("--only", default="", metavar="TEXT", help="Only files with this in their path.")
@click.option("--profile", default=None, help="Of the search.  [default: drawn by each seed]")
@click.option(
    "--against",
    type=click.Choice(["search", "drills", "tests"]),
    default="search",
    show_default=True,
    help="Who has to notice: the search, its drills alone, or the unit tests (of a checkout).",
)
@click.option(
    "--mutant", metavar="FILE:NUMBER", help="Only this one, as a survivor is named, broker/rules/x.py:12."
)
@click.option("--at-least", type=click.IntRange(0), default=0, help="Exit with 1 where fewer are noticed.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the survivors to a page, too.",
)
def command(**options: Any) -> None:
    """Change one operator or one line of the broker, many times, and count who notices.

    \b
      wrackline simulate mutants --count 50 --cpu 60 --jobs 2
      wrackline simulate mutants --count 20 --cpu 20 --at-least 6
      wrackline simulate mutants --only replication/isr --against tests
      wrackline simulate mutants --mutant broker/rules/replication/isr.py:14

    Mutants are drawn over broker/core and broker/rules; those that change nothing are listed by hand in
    simulator/mutants/equivalent.txt, each with its reason, and are never drawn.
    """
    known = all_mutations(options["only"])
    if options["mutant"]:
        chosen = [each for each in known if str(each) == options["mutant"]]
        if not chosen:
            raise click.BadParameter(f"there is no mutant {options['mutant']}", param_hint="--mutant")
    else:
        chosen = Random(options["seed"]).sample(known, min(options["count"], len(known)))
    if not chosen:
        raise click.BadParameter(f"no file has {options['only']!r} in its path", param_hint="--only")
    request: dict[str, Any] = {"cpu_s": options["cpu"]}
    match options["against"]:
        case "drills":
            request |= {"drills": "all", "runs": 5}
        case "tests":
            request["tests"] = list(_TESTS)
    if options["profile"]:
        request["setup"] = {"profile": options["profile"]}
    outcomes = []
    for outcome in _outcomes(chosen, request, options["jobs"]):
        click.echo(outcome.line)
        if not outcome.oracle:
            click.echo(f"  again: wrackline simulate mutants --mutant {outcome.mutation}")
        outcomes.append(outcome)
    click.echo(summary(outcomes))
    if options["page"] is not None:
        survivors = [each for each in outcomes if not each.oracle]
        page = Templates("wrackline.simulator.mutants").render(
            "survivors.html.j2", survivors=survivors, summary=summary(outcomes)
        )
        options["page"].write_text(page, encoding="utf-8")
    if sum(bool(each.oracle) for each in outcomes) < options["at_least"]:
        click.echo(f"that is fewer than {options['at_least']}", err=True)
        click.get_current_context().exit(1)
