"""The kill table as text and as a page."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, select_autoescape

from wrackline.pages import policy
from wrackline.simulator.search.kill_rows import Hunt, KillTable, Row, Safe


def line_of(row: Row) -> str:
    verdict = "caught" if row.killed else "NOT CAUGHT"
    guided = f"{','.join(row.oracles) or '-':<34.34} {row.simulated_s:8.1f} s"
    noise = f"  clean arm: {','.join(row.noise)}" if row.noise else ""
    return f"{row.id:<4} {row.name:<34.34} {row.profile:<8} {verdict:<10} {guided}  {_hunt(row.hunt)}{noise}"


def _hunt(found: Hunt | None) -> str:
    if found is None:
        return "not hunted"
    effort = f"{found.runs:>4} runs {found.simulated_s:9.1f} s"
    return f"{found.oracle or 'nothing':<18.18} {effort}"


def safe_line(line: Safe) -> str:
    verdict = "clean" if line.hunt.oracle is None else "VIOLATED"
    return f"safe {'no defect':<34} {line.profile:<8} {verdict:<10} {'':<45}  {_hunt(line.hunt)}"


def text(table: KillTable) -> str:
    head = (
        f"{'':<4} {'defect':<34} {'profile':<8} {'schedule':<10} {'oracles of the schedule':<34} "
        f"{'after':>10}  "
        "random runs"
    )
    caught = sum(row.killed for row in table.rows)
    tail = [f"{caught} of {len(table.rows)} schedules tell the defect from the rule"]
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
    environment = Environment(
        loader=PackageLoader("wrackline.simulator.search", "templates"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    name, loader = "kill_table.html", environment.loader
    assert loader is not None
    inline = policy(loader.get_source(environment, name)[0])
    return environment.get_template(name).render(table=table, oracles=oracles_of(table), policy=inline)
