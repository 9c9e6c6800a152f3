"""``wrackline known`` and ``demo``: runs whose verdicts are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from wrackline.harness.cli.options import master_option, need_root, need_writable, results_option
from wrackline.harness.expectations import cases as suites
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.cases import PROFILES, Case
from wrackline.harness.expectations.demo import demo, demo_on_vms
from wrackline.harness.expectations.runs import play, seconds
from wrackline.needs import require

_list_option = click.option(
    "--list", "only_list", is_flag=True, help="Say what there is and how long it takes; make no run."
)


def _runs_option(of: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    return click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help=of)


def _with_tables(command: Callable[..., int]) -> Callable[..., int]:
    """Adds the options that every kind has: where the table, the runs and Spark are."""
    json_option = click.option(
        "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here."
    )
    return json_option(results_option(master_option(command)))


def _with_controls(command: Callable[..., int]) -> Callable[..., int]:
    no_controls_option = click.option(
        "--no-controls", is_flag=True, help="Leave the runs that must be clean out."
    )
    names = click.argument("names", nargs=-1, metavar="[NAME]...")
    return names(_list_option(_runs_option("Of each, and of its control.")(no_controls_option(command))))


def _make_runs(
    cases: Sequence[Case],
    show: Callable[[Sequence[Case]], None],
    row: Callable[[Case], dict[str, Any]],
    *,
    runs: int,
    no_controls: bool = False,
    json_file: Path | None,
    results: Path,
    master: str,
    forecast: bool = True,
) -> int:
    """Make the runs, show the table, write it as JSON where it was asked for; the exit code."""
    need_root()
    need_writable(results)
    if forecast:
        minutes = seconds(cases, runs, controls=not no_controls) / 60
        click.echo(
            f"the runs take about {minutes:.0f} minutes on two quiet cores, and their judging a few more"
        )
    play(cases, results, runs=runs, controls=not no_controls, master=master)
    show(cases)
    if json_file is not None:
        rows = orjson.dumps([row(case) for case in cases], option=orjson.OPT_INDENT_2)
        json_file.write_bytes(rows + b"\n")
    return 0 if all(case.is_expected for case in cases) else 1


@click.command("demo")
@click.option(
    "--fleet",
    type=click.Choice(["netns", "qemu"]),
    default="netns",
    show_default=True,
    help="qemu: run 1 alone, at a lower rate, on virtual machines.",
)
@results_option
@master_option
def demo_command(fleet: str, results: Path, master: str) -> int:
    """Three runs on three hosts each, under five minutes together:

    \b
      1. acks=all: a leader cut off, the active controller killed, a host's power cut. Nothing acknowledged
       may be lost.
      2. acks=1 and a power cut of the leader. Acknowledged writes are lost, and every one is shown.
      3. A broker with a known, historic defect. If the checkers do not catch it, the demo fails.

    \b
      sudo wrackline demo
      sudo wrackline demo --fleet qemu
    """
    need_root()
    require(fleet, "the demo")
    need_writable(results)
    return demo_on_vms(results, master=master) if fleet == "qemu" else demo(results, master=master)


@click.command("defects")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_runs_option("Of each, and of its twin.")
@click.option("--no-twins", is_flag=True, help="Leave the runs without the defect out.")
@_with_tables
def defects_command(names: tuple[str, ...], no_twins: bool, **wanted: Any) -> int:
    """Run the suites of suites/defects: brokers with one known defect each, under faults that let it do its
    harm.

    Every run with the defect must be a violation (or, where the defect takes no record but only time, miss
    the suite's threshold), and its twin (same seed and faults, the broker as it is) must pass. NAME is a
    suite's file name without .yaml; all of them by default, half a minute a run.

    \b
      wrackline known defects trunc-hw                 one, and its twin
      wrackline known defects --runs 5 --json table.json

    Exit code: 0 when all is as it must be, 1 when not.
    """
    cases = suites.defects(names)
    return _make_runs(
        cases, tables.show_defects, tables.defect_row, no_controls=no_twins, forecast=False, **wanted
    )


@click.command("stories")
@_with_controls
@_with_tables
def stories_command(names: tuple[str, ...], only_list: bool, **wanted: Any) -> int:
    """Run what needs no defect (suites/stories): settings that allow loss, outages, recoveries, operations.

    Every run must come out as it is known to (pass, a violation, or a loss that the contract allows), and its
    control, where it has one (the same but for one setting), must pass and lose nothing. NAME is a suite's
    file name without .yaml; all of them by default, half a minute a run.

    \b
      wrackline known stories --list                   what there is, and how long it takes
      wrackline known stories last-replica-standing    one, and its control

    Exit code: 0 when all is as it must be, 1 when not.
    """
    return _listed_or_made(suites.stories(names, checked=not only_list), only_list, wanted)


@click.command("findings")
@_with_controls
@_with_tables
def findings_command(names: tuple[str, ...], only_list: bool, **wanted: Any) -> int:
    """Re-find what Apache Kafka itself does wrong, and what its settings allow (suites/findings).

    Every run must come out as it is known to (a violation, or a loss that the contract allows), and its
    control (the same but for the one thing that mends it) must pass and lose nothing. The versions that are
    needed are installed first. NAME is a suite's file name without .yaml; all of them by default.

    \b
      wrackline known findings --list                  what there is, and how long it takes
      wrackline known findings b59                     one, and its control: about three minutes
      wrackline known findings b10 b59 --runs 5 --json table.json

    Exit code: 0 when all is as it must be, 1 when not.
    """
    return _listed_or_made(suites.findings(names, checked=not only_list), only_list, wanted)


def _listed_or_made(cases: Sequence[Case], only_list: bool, wanted: dict[str, Any]) -> int:
    if only_list:
        tables.list_cases(cases)
        return 0
    return _make_runs(cases, tables.show_cases, tables.case_row, **wanted)


@click.command("eras")
@click.argument("names", nargs=-1, metavar="[STORY]...")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(PROFILES),
    help="Only under these rules; may be repeated.",
)
@_list_option
@_runs_option("Of each.")
@_with_tables
def eras_command(names: tuple[str, ...], profiles: tuple[str, ...], only_list: bool, **wanted: Any) -> int:
    """Tell the stories of ten years of Kafka's replication on hosts, under the rules of each era.

    The rules are profiles of our broker: zk08, in which replicas race for a node in a real ZooKeeper, then
    kip101, kraft35 and kip966, which have a controller. A story is the same faults in the same order under
    each (suites/eras). zk08 must show the loss, the replicas that differ or the stale read that the story is
    about; the others must pass and show nothing of it. STORY is a suite's file name without .yaml; all by
    default.

    \b
      wrackline known eras --list                      what there is, and how long it takes
      wrackline known eras split                       one story under every profile: about four minutes
      wrackline known eras split zombie-leader --profile zk08 --profile kip966 --runs 2 --json table.json
      wrackline simulate eras                          the same stories in the simulator: seconds

    Exit code: 0 when all is as it must be, 1 when not.
    """
    cases = suites.eras(names, profiles or PROFILES, checked=not only_list)
    if only_list:
        tables.list_eras(cases)
        return 0
    return _make_runs(cases, tables.show_eras, tables.era_row, **wanted)
