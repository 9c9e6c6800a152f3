"""``wrackline demo``, ``defects``, ``stories``, ``findings`` and ``eras``: verdicts that are known before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import click
import orjson

from wrackline.harness.cli.options import master_option, need_root, need_writable, results_option
from wrackline.harness.expectations import eras as told
from wrackline.harness.expectations import findings as known
from wrackline.harness.expectations.defects import cases, defects, show
from wrackline.harness.expectations.demo import demo, demo_on_vms
from wrackline.harness.expectations.stories import stories
from wrackline.needs import require

_json_option = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the table here."
)
_list_option = click.option(
    "--list", "only_list", is_flag=True, help="Say what there is and how long it takes; make no run."
)
_runs_option = click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, help="Of each, and of its control."
)
_no_controls_option = click.option(
    "--no-controls", is_flag=True, help="Leave the runs that must be clean out."
)


class _Tally(Protocol):
    @property
    def as_it_must_be(self) -> bool: ...

    def to_dict(self) -> dict[str, Any]: ...


def _written(tallies: Sequence[_Tally], json_file: Path | None) -> int:
    """The table as JSON, where it was asked for; the exit code."""
    if json_file is not None:
        json_file.write_bytes(
            orjson.dumps([each.to_dict() for each in tallies], option=orjson.OPT_INDENT_2) + b"\n"
        )
    return 0 if all(each.as_it_must_be for each in tallies) else 1


def _beside_controls(command: Callable[..., int]) -> Callable[..., int]:
    """The argument and the options of a command whose runs have controls: those of `_refound`."""
    for given in (
        master_option,
        results_option,
        _json_option,
        _no_controls_option,
        _runs_option,
        _list_option,
        click.argument("names", nargs=-1, metavar="[NAME]..."),
    ):
        command = given(command)
    return command


def _refound(
    wanted: Sequence[known.Finding],
    *,
    only_list: bool,
    runs: int,
    no_controls: bool,
    json_file: Path | None,
    results: Path,
    master: str,
) -> int:
    controls = not no_controls
    if only_list:
        known.list_them(wanted)
        return 0
    _begin(results, known.seconds(wanted, runs, controls))
    tallies = known.refind(wanted, results, runs=runs, controls=controls, master=master)
    known.show(tallies)
    return _written(tallies, json_file)


def _begin(results: Path, runs_take_s: float) -> None:
    need_root()
    need_writable(results)
    minutes = runs_take_s / 60
    click.echo(f"the runs take about {minutes:.0f} minutes on two quiet cores, and their judging a few more")


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
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, help="Of each, and of its twin."
)
@click.option("--no-twins", is_flag=True, help="Leave the runs without the defect out.")
@_json_option
@results_option
@master_option
def defects_command(
    names: tuple[str, ...], runs: int, no_twins: bool, json_file: Path | None, results: Path, master: str
) -> int:
    """Run the suites of suites/defects: brokers with one known defect each, under faults that let it do its
    harm.

    Every run with the defect must be a violation (or, where the defect takes no record but only time, miss
    the suite's threshold), and its twin (same seed and faults, the broker as it is) must pass. NAME is a
    suite's file name without .yaml; all of them by default, half a minute a run.

    \b
      wrackline defects trunc-hw                 one, and its twin
      wrackline defects --runs 5 --json table.json

    Exit code: 0 when all is as it must be, 1 when not.
    """
    wanted = cases(names)
    need_root()
    need_writable(results)
    tallies = defects(wanted, results, runs=runs, twins=not no_twins, master=master)
    show(tallies)
    return _written(tallies, json_file)


@click.command("stories")
@_beside_controls
def stories_command(names: tuple[str, ...], **asked: Any) -> int:
    """Run what needs no defect (suites/stories): settings that allow loss, outages, recoveries, operations.

    Every run must come out as it is known to (pass, a violation, or a loss that the contract allows), and its
    control, where it has one (the same but for one setting), must pass and lose nothing. NAME is a suite's
    file name without .yaml; all of them by default, half a minute a run.

    \b
      wrackline stories --list                   what there is, and how long it takes
      wrackline stories last-replica-standing    one, and its control

    Exit code: 0 when all is as it must be, 1 when not.
    """
    return _refound(stories(names), **asked)


@click.command("findings")
@_beside_controls
def findings_command(names: tuple[str, ...], **asked: Any) -> int:
    """Re-find what Apache Kafka itself does wrong, and what its settings allow (suites/findings).

    Every run must come out as it is known to (a violation, or a loss that the contract allows), and its
    control (the same but for the one thing that mends it) must pass and lose nothing. The versions that are
    needed are installed first. NAME is a suite's file name without .yaml; all of them by default.

    \b
      wrackline findings --list                  what there is, and how long it takes
      wrackline findings b59                     one, and its control: about three minutes
      wrackline findings b10 b59 --runs 5 --json table.json

    Exit code: 0 when all is as it must be, 1 when not.
    """
    return _refound(known.findings(names), **asked)


@click.command("eras")
@click.argument("names", nargs=-1, metavar="[STORY]...")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Choice(told.PROFILES),
    help="Only under these rules; may be repeated.",
)
@_list_option
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="Of each.")
@_json_option
@results_option
@master_option
def eras_command(
    names: tuple[str, ...],
    profiles: tuple[str, ...],
    only_list: bool,
    runs: int,
    json_file: Path | None,
    results: Path,
    master: str,
) -> int:
    """Tell the stories of ten years of Kafka's replication on hosts, under the rules of each era.

    The rules are profiles of our broker: zk08, in which replicas race for a node in a real ZooKeeper, then
    kip101, kraft35 and kip966, which have a controller. A story is the same faults in the same order under
    each (suites/eras). zk08 must show the loss, the replicas that differ or the stale read that the story is
    about; the others must pass and show nothing of it. STORY is a suite's file name without .yaml; all by
    default.

    \b
      wrackline eras --list                      what there is, and how long it takes
      wrackline eras split                       one story under every profile: about four minutes
      wrackline eras split zombie-leader --profile zk08 --profile kip966 --runs 2 --json table.json
      wrackline simulate eras                    the same stories in the simulator: seconds

    Exit code: 0 when all is as it must be, 1 when not.
    """
    wanted = told.arms(names, profiles)
    if only_list:
        told.list_them(wanted)
        return 0
    _begin(results, told.seconds(wanted, runs))
    told.play(wanted, results, runs=runs, master=master)
    told.show(wanted)
    return _written(wanted, json_file)
