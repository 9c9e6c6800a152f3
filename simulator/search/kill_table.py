"""The kill table: which oracle catches which defect, and how soon (docs/protocol.md 4.4).

Each defect is put back twice. By its guided schedule, which must end badly with the defect and well without;
and in random runs from seeds, until an oracle fires or the budget is spent. The profiles without any defect
do the same random runs beside it, and must stay clean. ``wrackline simulate kill-table`` prints it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from wrackline.broker.defects import REGISTRY
from wrackline.pages.template import Templates
from wrackline.progress import progress
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.guided.catalogue import SCHEDULES
from wrackline.simulator.guided.schedule import Guided, play
from wrackline.simulator.search.first_violation import Search, search

SAFE_PROFILES = ("kip966", "kraft35", "kip101")


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget for the random runs of one row."""

    runs: int = 100
    seconds: float = 20.0
    """Virtual length of each."""
    cpu_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Hunt:
    """Random runs. ``oracle`` is None when none fired."""

    runs: int
    simulated_s: float
    cpu_s: float
    oracle: str | None = None
    text: str = ""
    again: str = ""
    """The command that repeats the failing run."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    id: str
    defects: tuple[str, ...]
    profile: str
    oracles: tuple[str, ...]
    """That fired in the guided schedule, in that order."""
    simulated_s: float
    """To the first of them."""
    expected: tuple[str, ...]
    noise: tuple[str, ...] = ()
    """What fired in the arm without the defect: must be empty."""
    hunt: Hunt | None = None
    what: tuple[str, ...] = ()
    """Each defect in a sentence, with its reference."""

    @property
    def killed(self) -> bool:
        return bool(set(self.oracles) & set(self.expected)) and not self.noise


@dataclass(frozen=True, slots=True)
class Safe:
    profile: str
    hunt: Hunt


@dataclass(frozen=True, slots=True)
class KillTable:
    rows: tuple[Row, ...]
    safe: tuple[Safe, ...] = ()
    budget: Budget = field(default_factory=Budget)

    @property
    def hunted(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.hunt is not None)

    @property
    def found(self) -> tuple[Row, ...]:
        """Returns the rows that random runs found."""
        return tuple(row for row in self.hunted if row.hunt is not None and row.hunt.oracle is not None)

    @property
    def cpu_s(self) -> float:
        """Returns the processor seconds of the random runs with defects."""
        return sum(row.hunt.cpu_s for row in self.hunted if row.hunt is not None)

    @property
    def good(self) -> bool:
        return all(row.killed for row in self.rows) and all(line.hunt.oracle is None for line in self.safe)

    def as_dict(self) -> dict[str, Any]:
        rows = [{**asdict(row), "killed": row.killed} for row in self.rows]
        return {
            "good": self.good,
            "budget": asdict(self.budget),
            "schedules": {"caught": sum(row.killed for row in self.rows), "of": len(self.rows)},
            "random": {"found": len(self.found), "of": len(self.hunted), "cpu_s": round(self.cpu_s, 1)},
            "rows": rows,
            "safe": [asdict(line) for line in self.safe],
        }


# --- filling it ------------------------------------------------------------------------------------------


def guided_row(guided: Guided, seed: int = 0) -> Row:
    broken, clean = play(guided, broken=True, seed=seed), play(guided, broken=False, seed=seed)
    profile = guided.exposing.get("profile", guided.setting.profile)
    return Row(
        guided.name,
        guided.id,
        guided.defects,
        profile,
        broken.oracles,
        round(broken.at_ms / 1000, 3),
        tuple(sorted(guided.oracles)),
        clean.oracles,
        what=tuple(_summary(REGISTRY[name]) for name in guided.defects)
        or (guided.text or _summary(guided.play),),
    )


def _summary(documented: object) -> str:
    """The first paragraph of a docstring, in one line, without its marks."""
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(first.split()).replace("``", "")


def hunt(
    budget: Budget,
    profile: str,
    defects: tuple[str, ...] = (),
    seed: int = 1,
    *,
    hunted: Mapping[str, Any] | None = None,
    harmless: tuple[str, ...] = (),
) -> Hunt:
    """Random runs, each in the surroundings its seed draws: the same for every defect but for ``hunted``.
    Without an ELR no lossy shutdown is survived, so the older profiles get none (K26). ``harmless``: those of
    the defects that a find must not be due to."""
    setup = Setup(
        seed=seed,
        seconds=budget.seconds,
        profile=profile,
        defects=defects,
        max_lossy=None if profile == "kip966" else 0,
        **(hunted or {}),
    )
    return _hunted(search(setup, budget.runs, swarming=True, cpu_limit_s=budget.cpu_s, unless=harmless))


def _hunted(found: Search) -> Hunt:
    spent = found.runs, round(found.simulated_s, 1), round(found.cpu_s, 1)
    result = found.found
    if result is None or result.violation is None:
        return Hunt(*spent)
    return Hunt(*spent, result.violation.oracle, result.violation.text, result.setup.command())


def kill_table(
    schedules: Iterable[Guided],
    budget: Budget,
    *,
    random: bool = True,
    safe: Sequence[str] = SAFE_PROFILES,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> KillTable:
    """``random``: look for each defect by random runs too. Rows of mere configuration are not hunted."""
    rows = []
    for guided in schedules:
        row = guided_row(guided, seed)
        if random and guided.defects and not guided.exposing:
            result = hunt(
                budget, row.profile, guided.defects, seed, hunted=guided.hunted, harmless=guided.harmless
            )
            row = replace(row, hunt=result)
        rows.append(row)
        progress(line_of(row))
    lines = []
    for profile in safe if random else ():
        lines.append(Safe(profile, hunt(budget, profile, seed=seed)))
        progress(safe_line(lines[-1]))
    return KillTable(tuple(rows), tuple(lines), budget)


# --- showing it ------------------------------------------------------------------------------------------


def line_of(row: Row) -> str:
    verdict = "caught" if row.killed else "NOT CAUGHT"
    guided = f"{','.join(row.oracles) or '-':<34.34} {row.simulated_s:8.1f} s"
    noise = f"  clean arm: {','.join(row.noise)}" if row.noise else ""
    head = f"{row.id:<4} {row.name:<34.34} {row.profile:<8} {verdict:<10}"
    return f"{head} {guided}  {_hunt_line(row.hunt)}{noise}"


def _hunt_line(found: Hunt | None) -> str:
    if found is None:
        return "not hunted"
    effort = f"{found.runs:>4} runs {found.simulated_s:9.1f} s"
    return f"{found.oracle or 'nothing':<18.18} {effort}"


def safe_line(line: Safe) -> str:
    verdict = "clean" if line.hunt.oracle is None else "VIOLATED"
    return f"safe {'no defect':<34} {line.profile:<8} {verdict:<10} {'':<45}  {_hunt_line(line.hunt)}"


def text(table: KillTable) -> str:
    head = (
        f"{'':<4} {'defect':<34} {'profile':<8} {'schedule':<10} {'oracles of the schedule':<34} "
        f"{'after':>10}  "
        "random runs"
    )
    caught = sum(row.killed for row in table.rows)
    tail = [f"{caught} of {len(table.rows)} schedules distinguish the defect from the rule"]
    if table.hunted:
        tail.append(
            f"random runs found {len(table.found)} of {len(table.hunted)} in {table.cpu_s:.0f} s of CPU "
            f"({table.budget.cpu_s:g} s at most for each)"
        )
    return "\n".join([head, *map(line_of, table.rows), *map(safe_line, table.safe), *tail])


def oracles_of(table: KillTable) -> list[str]:
    """Every oracle that fired: invariants first, in order, then those with names."""
    fired = {oracle for row in table.rows for oracle in row.oracles}
    fired |= {row.hunt.oracle for row in table.found if row.hunt is not None and row.hunt.oracle}
    return sorted(fired, key=lambda oracle: (not oracle[1:].isdigit(), oracle))


def html(table: KillTable) -> str:
    return Templates("wrackline.simulator.search").render(
        "kill_table.html.j2", table=table, oracles=oracles_of(table)
    )


# --- the command -----------------------------------------------------------------------------------------


@click.command("kill-table")
@click.option("--defect", "names", multiple=True, metavar="NAME", help="Only schedules with this defect.")
@click.option("--runs", type=click.IntRange(1), default=100, show_default=True, help="Random runs per row.")
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=20.0, show_default=True, help="Virtual length of a run."
)
@click.option(
    "--cpu", type=click.FloatRange(0.1), default=20.0, show_default=True, help="Seconds of CPU per row."
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--guided-only", is_flag=True, help="No random runs.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write it here too."
)
@click.option("--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="And as a page.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Put every known defect back and report which oracle catches it, and how soon.

    \b
      wrackline simulate kill-table --defect trunc_hw
      wrackline simulate kill-table --guided-only --html table.html

    Exit codes: 0 when every schedule distinguishes its defect from the rule and the safe profiles are clean,
    else 1.
    """
    names: tuple[str, ...] = options["names"]
    chosen = [g for g in SCHEDULES.values() if not names or set(names) & {g.name, *g.defects}]
    if not chosen:
        raise click.BadParameter(f"no schedule for {', '.join(names)}", param_hint="--defect")
    budget = Budget(options["runs"], options["seconds"], options["cpu"])
    table = kill_table(
        chosen,
        budget,
        random=not options["guided_only"],
        seed=options["seed"],
        progress=progress,
    )
    click.echo(text(table))
    if options["json_file"] is not None:
        options["json_file"].write_text(json.dumps(table.as_dict(), indent=2) + "\n")
    if options["html_file"] is not None:
        options["html_file"].write_text(html(table))
    ctx.exit(0 if table.good else 1)
