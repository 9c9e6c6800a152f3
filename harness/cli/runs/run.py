"""``wrackline run``: runs are made and judged."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.harness.cli.errors import EXIT_HOSTS
from wrackline.harness.cli.options import (
    engine_option,
    fleet_option,
    master_option,
    need_machine,
    need_writable,
    results_option,
    seed_option,
    set_option,
    with_fleet,
)
from wrackline.harness.cli.verdicts.analyze import show_verdicts
from wrackline.harness.notifications import codehost
from wrackline.harness.notifications.run_summary import RunSummary
from wrackline.harness.records import record
from wrackline.harness.run.judge import Judged, judge_outcomes, prepare
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked


@click.command("run")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC.yaml...")
@seed_option
@set_option
@fleet_option
@results_option
@click.option(
    "--keep-fleet", is_flag=True, help="Leave the hosts up for a look; `wrackline fleet clean` removes them."
)
@click.option("--no-analysis", is_flag=True, help="Record only; `wrackline analyze` judges later.")
@engine_option
@master_option
def run_command(
    specs: tuple[Path, ...],
    seed: int | None,
    settings: tuple[str, ...],
    fleet: str | None,
    results: Path,
    keep_fleet: bool,
    no_analysis: bool,
    engine: str,
    master: str,
) -> int:
    """Make a run: bring up hosts, deploy, drive, break, heal, read everything back, judge.

    \b
    The same specification and seed give the same operations and the same faults at the same times:
      wrackline run suites/demo-acks-all.yaml --seed 42
    A longer and faster one, without a copy of the file:
      wrackline run suites/demo-acks-all.yaml --set workload.duration_s=300 --set workload.rate=1000
    On other hosts than it says, where its faults can be done there:
      wrackline run suites/laptop.yaml --fleet netns
    Several specifications are run one after another and judged together:
      wrackline run suites/defects/*.yaml

    Ctrl-C ends the run early: it is healed, read back and judged like any other. Ctrl-C again stops at once.
    Exit code: 0 pass, 1 violation, 2 wrong input, 3 inconclusive, 4 hosts or deployment failed.
    """
    settings = with_fleet(settings, fleet)
    expected = [load_checked(spec, settings=settings, seed=seed) for spec in specs]
    need_machine(*expected)
    need_writable(results)
    for spec in expected:
        spec.system.reach()
    outcomes: list[Outcome] = []
    for each in expected:
        outcomes.append(run(each, Options(results, keep_fleet=keep_fleet, prepare_judge=prepare)))
        if outcomes[-1].interrupted:
            break
    if no_analysis:
        for made in outcomes:
            click.echo(f"recorded in {made.run_dir}; `wrackline analyze {made.run_dir.name}` judges it")
        return EXIT_HOSTS if any(made.troubles for made in outcomes) else 0
    judged = judge_outcomes(outcomes, engine=engine, master=master)
    codehost.tell("wrackline run", [_summary(*each) for each in zip(judged, specs, strict=False)], click.echo)
    return show_verdicts(judged)


def _summary(judged: Judged, spec: Path) -> RunSummary:
    made = record(judged.run_dir)
    file = codehost.in_repository(spec)
    return RunSummary(made.name, judged.word, made.headline, file=file, record=made, report=judged.report)
