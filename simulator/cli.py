"""``wrackline simulate``: run seeds under virtual time, shrink what fails, print it as a timeline.

Exit codes: 0 clean, 1 a violation, 2 a wrong call, 3 no record was acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from wrackline.broker.defects import UnknownDefect
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.types import FlushMode, Placement, RecoveryStrategy
from wrackline.broker.rules.profile import profile as rules_of
from wrackline.history.store.folder import HistoryError
from wrackline.progress import progress as say
from wrackline.simulator.campaigns.command import campaign_command
from wrackline.simulator.clients.client import LOADS, Load
from wrackline.simulator.coverage.rows import coverage
from wrackline.simulator.eras.command import eras
from wrackline.simulator.faults.kinds import DEFAULT_KINDS, KINDS, Kind
from wrackline.simulator.faults.replayed import as_recorded
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.headings import HEADINGS, with_headings
from wrackline.simulator.mutants.command import command as mutants
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import Result, run
from wrackline.simulator.search.corpus import Corpus, CorpusError
from wrackline.simulator.search.kill_table import command as kill_table
from wrackline.simulator.search.many_seeds import DoneFileError, Row, Totals, drawn_as, run_seeds
from wrackline.simulator.search.shrink import shrink
from wrackline.simulator.storage.command import command as storage
from wrackline.simulator.world.world import World, WorldOptions

VIOLATION = 1
INCONCLUSIVE = 3
INTERRUPTED = 130
NOTHING_SHOWN = "no record was acknowledged, so nothing is shown; let it last longer, or give it producers"
FEW = 50
"""A search of at most this many seeds prints a line for each of them."""
REPORT_EVERY_S = 10.0
_DEFAULT = Setup()
FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)


class WrongCall(click.ClickException):
    """One line, exit code 2."""

    exit_code = 2


_ENUMS = {each.__name__: each for each in (FlushMode, Placement, RecoveryStrategy)}
"""Types of settings whose values are words."""


def _numbers(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if value in ("none", ""):
        return ()
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of numbers like 0,3,4, and not none") from None


def _kinds(_: click.Context, __: click.Parameter, value: str | None) -> tuple[Kind, ...]:
    if value is None:
        return DEFAULT_KINDS
    if value == "all":
        return KINDS
    if value == "none":
        return ()
    expected = value.split(",")
    if error := [name for name in expected if name not in KINDS]:
        raise click.BadParameter(f"no fault {', '.join(error)}; there are: {', '.join(KINDS)}, and all, none")
    return tuple(kind for kind in KINDS if kind in expected)


def _loads(_: click.Context, __: click.Parameter, value: str) -> tuple[Load, ...]:
    if value in ("all", "none"):
        return LOADS if value == "all" else ()
    given = value.split(",")
    if unknown := [word for word in given if word not in LOADS]:
        raise click.BadParameter(
            f"no load {', '.join(unknown)}; there are: {', '.join(LOADS)}, and all, none"
        )
    return tuple(word for word in LOADS if word in given)


def _settings(config: type, pairs: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """``key=value`` by the types of the configuration's fields. Raises WrongCall."""
    types: Mapping[str, Any] = {item.name: item.type for item in fields(config)}
    result: list[tuple[str, Any]] = []
    for text in pairs:
        name, _, value = text.partition("=")
        kind = types.get(name)
        try:
            match kind:
                case "int":
                    result.append((name, int(value)))
                case "bool":
                    result.append((name, {"true": True, "false": False}[value]))
                case "str":
                    result.append((name, value))
                case "FlushMode" | "Placement" | "RecoveryStrategy":
                    result.append((name, _ENUMS[kind](value)))
                case _:
                    raise WrongCall(f"{text}: there is no setting {name!r} of that kind")
        except (ValueError, KeyError):
            raise WrongCall(f"{text}: {value!r} is no {kind}") from None
    return tuple(result)


def _of_setup(field: str, text: str = "", *, name: str = "", **more: Any) -> Callable[[FC], FC]:
    """An option for a field of the setup, with the field's own default. A switch has a form without, too."""
    default, flag = getattr(_DEFAULT, field), f"--{(name or field).replace('_', '-')}"
    if isinstance(default, bool):
        flag = f"{flag}/--no-{flag[2:]}"
    elif default is not None and "type" not in more:
        more["type"] = type(default)
    return click.option(flag, field, default=default, show_default=default != "", help=text or None, **more)


@click.group(
    "simulate",
    cls=with_headings(HEADINGS),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@_of_setup("seed", "The run's, or the first of the search.")
@click.option(
    "--search",
    "runs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Run N seeds, up to the first violation.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes of a search."
)
@click.option("--keep-going", is_flag=True, help="A search does not end at the first violation.")
@click.option(
    "--coverage",
    is_flag=True,
    help="A search says how many rows of the rules' golden tables it has met; with --full all tables.",
)
@click.option(
    "--guided",
    is_flag=True,
    help="Some runs of a search change the plan of one that came somewhere new.",
)
@click.option(
    "--vary",
    is_flag=True,
    help="A search draws partitions (1, 2), idempotence and TCP's help from each seed.",
)
@click.option(
    "--done",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Remember the seeds a search has done here, and go on after them.",
)
@click.option(
    "--graft", callback=_numbers, metavar="LIST", help="Changes of the plan (3,17), one after another."
)
@click.option(
    "--corpus",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the runs that failed in this file, one command a line, and run them first.",
)
@_of_setup("seconds", "Virtual length of the main phase.")
@_of_setup("steps", "End the main phase after so many steps.", type=int)
@_of_setup("profile", "Rules of the protocol; zk08 has no MinISR.")
@_of_setup("upgrade_to", "Nodes of kraft35 become kip966 one after another.", metavar="PROFILE")
@click.option(
    "--defect", "defects", multiple=True, metavar="NAME", help="A historic bug to put back; may be repeated."
)
@_of_setup("brokers", type=click.IntRange(1, 9))
@_of_setup("controllers", type=click.IntRange(1, 5))
@_of_setup("partitions", type=click.IntRange(1, 32))
@_of_setup("replication_factor", type=click.IntRange(1, 9))
@_of_setup("min_isr", type=click.IntRange(1, 9))
@_of_setup("producers")
@_of_setup("consumers")
@_of_setup("askers", "Clients that ask for end offsets.")
@click.option("--acks", type=click.Choice(["-1", "all", "0", "1"]), default="all", show_default=True)
@_of_setup("idempotent")
@click.option(
    "--load",
    callback=_loads,
    default="none",
    show_default=True,
    metavar="WORDS",
    help=f"Comma-separated: {', '.join(LOADS)}; or all, none.",
)
@_of_setup("weak", "Further producers, with acks=1.")
@_of_setup("produce_every_ms", "Mean pause of a producer.")
@_of_setup("ask_every_ms", "Mean pause of an asker.")
@_of_setup("combined", "The first brokers and the controllers are one machine each.")
@click.option(
    "--swarm/--no-swarm",
    default=False,
    show_default=True,
    help="Each seed draws its surroundings too: time-outs, load, brokers; the profile unless one is given.",
)
@click.option(
    "--faults",
    callback=_kinds,
    metavar="KINDS",
    help="Comma-separated kinds, all, or none.  [default: all but wipe and restore]",
)
@_of_setup("fault_every_ms", "Mean pause between faults.")
@_of_setup("pairs", "Share of faults that come in pairs.")
@_of_setup("sequences", "Share of faults that wait for each other.", name="chains")
@_of_setup("overlap", "Profile zk08: faults also while another one lasts.")
@_of_setup("max_lossy", "Lossy faults at a time.  [default: MinISR - 1]", type=int)
@_of_setup("unclean", "Unclean leader election.")
@_of_setup("drills", "Ask the cluster, after the faults, for what is promised within a time.")
@_of_setup("invariants", "Check state after every step.")
@_of_setup("liveness")
@_of_setup("tcp", "Without: messages are lost, doubled and overtaken too.")
@_of_setup("codec", "Encode each message with the broker's codec; receivers get what is decoded.")
@_of_setup("max_skew", "Clocks run at rates of 1 +- this.")
@click.option("--broker-setting", multiple=True, metavar="KEY=VALUE", help="A setting of every broker.")
@click.option(
    "--controller-setting", multiple=True, metavar="KEY=VALUE", help="A setting of every controller."
)
@click.option(
    "--replay",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="RUN",
    help="The faults of this run on real hosts instead, with its brokers, topic and acks.",
)
@click.option(
    "--keep-faults", callback=_numbers, metavar="LIST", help="Only these faults of the plan (0,3,4 or none)."
)
@click.option("--keep-clients", callback=_numbers, metavar="LIST", help="Only these clients.")
@click.option(
    "--shrink/--no-shrink",
    "shrinks",
    default=True,
    show_default=True,
    help="Make a failing run smaller first.",
)
@click.option(
    "--timeline/--no-timeline", "always", default=False, help="Print the timeline of a clean run too."
)
@click.option("--full", is_flag=True, help="Every step in the timeline, housekeeping too.")
@click.option(
    "--lines",
    type=click.IntRange(0),
    default=120,
    show_default=True,
    help="Print this many lines of the timeline, from its end; 0: all.",
)
@click.option("--digest", is_flag=True, help="Print a hash of everything that happened.")
@click.option(
    "--history",
    type=click.Path(file_okay=False, path_type=Path),
    help="Make this folder a run's: `wrackline analyze` judges it.",
)
@click.pass_context
def simulate(ctx: click.Context, /, **options: Any) -> None:
    """Run the cluster in virtual time, with random faults from a seed; judge every step and the history.

    \b
      wrackline simulate --seed 7                         one run
      wrackline simulate --search 1000 --jobs 2 --swarm   the first of 1,000 seeds that fails
      wrackline simulate --defect trunc_hw --search 500   a historic bug, until it is found
      wrackline simulate --search 200 --swarm --coverage  which rows of the rules' golden tables it meets
      wrackline simulate --seed 7 --history found         a run's folder, for `wrackline analyze`

    A failing seed is made smaller and printed as a timeline with the command that repeats it.
    """
    if ctx.invoked_subcommand is not None:
        return
    setup = _setup(options)
    _try_world(setup)
    if options["swarm"] and options["runs"] == 1:
        setup = drawn_as(_swarm(ctx, setup), setup)
    if options["runs"] > 1 or options["coverage"] or options["corpus"]:
        _search(ctx, setup, options)
    else:
        _show(run(setup, digest=options["digest"], traced=options["history"] is not None), options)


simulate.add_command(kill_table)
simulate.add_command(eras)
simulate.add_command(mutants)
simulate.add_command(campaign_command(lambda words: parse_setup(words)))
simulate.add_command(storage)


def _setup(options: Mapping[str, Any]) -> Setup:
    kept = {item.name for item in fields(Setup)}
    values = {name: value for name, value in options.items() if name in kept}
    values["kinds"] = options["faults"]
    values["acks"] = -1 if options["acks"] == "all" else int(options["acks"])
    values["defects"] = tuple(options["defects"])
    values["broker"] = _settings(BrokerConfig, options["broker_setting"])
    values["controller"] = _settings(ControllerConfig, options["controller_setting"])
    values["replay"] = ""
    values["graft"] = options["graft"] or ()
    setup = Setup(**values)
    if options["replay"] is not None:
        setup = _replaying(setup, options["replay"])
    if setup.replication_factor > setup.brokers:
        raise WrongCall(f"--replication-factor {setup.replication_factor}: there are {setup.brokers} brokers")
    return setup


def _replaying(setup: Setup, run_dir: Path) -> Setup:
    """Raises WrongCall."""
    try:
        same, omissions = as_recorded(setup, run_dir)
    except HistoryError as error:
        raise WrongCall(str(error)) from error
    for line in omissions:
        click.echo(f"left out: {line}", err=True)
    return same


def _try_world(setup: Setup) -> None:
    """Names of profiles and defects are checked where they are known."""
    try:
        rules_of(setup.profile)
        setup.check()
        World(
            0,
            WorldOptions(
                profile=setup.profile, upgrade_to=setup.upgrade_to, defects=setup.defects, boot=False
            ),
        )
    except (UnknownDefect, ValueError) as error:
        raise WrongCall(str(error)) from error


def _show(result: Result, options: Mapping[str, Any]) -> None:
    """Print a run; exits with 1 when it failed."""
    lines: int = options["lines"]
    if result.violation is None:
        if options["always"]:
            click.echo(run(result.setup, timeline=lines, full=options["full"]).timeline)
        click.echo(_line(result))
        if options["digest"]:
            click.echo(f"digest {result.digest}")
        _write_history(result, options["history"])
        if not result.acked:
            click.echo(NOTHING_SHOWN, err=True)
            click.get_current_context().exit(INCONCLUSIVE)
        return
    if options["shrinks"]:
        click.echo(f"seed {result.setup.seed} fails {result.violation.oracle}; making it smaller")
        shrunk = shrink(result)
        fewer = f"{shrunk.faults_before} faults -> {shrunk.faults_after}"
        click.echo(f"{fewer} in {shrunk.runs} runs, {shrunk.result.setup.seconds:g} s")
        result = shrunk.result
    traced = options["history"] is not None
    shown = run(result.setup, timeline=lines, full=options["full"], digest=options["digest"], traced=traced)
    click.echo(shown.timeline)
    assert shown.violation is not None
    click.echo(
        f"VIOLATION {shown.violation.oracle} at {shown.violation.at_ms / 1000:.4f} s: {shown.violation.text}"
    )
    for at_ms, fault, what in shown.faults:
        click.echo(
            f"  fault {at_ms / 1000:9.4f} s  f{fault.id} {fault.kind} {what} for {fault.for_ms:.0f} ms"
        )
    if options["digest"]:
        click.echo(f"digest {shown.digest}")
    click.echo(f"again: {shown.setup.command()} --no-shrink")
    _write_history(shown, options["history"])
    click.get_current_context().exit(VIOLATION)


def _shown(acked: int) -> str:
    """Returns what a run without a violation came to."""
    return "clean" if acked else "inconclusive"


def _line(result: Result) -> str:
    verdict = _shown(result.acked) if result.violation is None else f"VIOLATION {result.violation.oracle}"
    return (
        f"seed {result.setup.seed:>6}  {verdict:<28} {result.simulated_s:8.1f} s simulated  "
        f"{result.steps:>7} steps  "
        f"{len(result.faults):>3} faults  {result.acked:>6} records acknowledged"
    )


def _swarm(ctx: click.Context, setup: Setup) -> str:
    """A profile is drawn, too, where nobody has asked for one, nor for a bug of one."""
    chosen = ctx.get_parameter_source("profile") is not ParameterSource.DEFAULT
    return "swarm" if chosen or setup.upgrade_to or setup.defects else "swarm-any"


def parse_setup(words: Sequence[str]) -> Setup:
    """Makes the set-up of a command's options, and tries it. Raises ValueError."""
    try:
        setup = _setup(simulate.make_context("simulate", list(words)).params)
        _try_world(setup)
        return setup
    except click.ClickException as error:
        raise ValueError(error.format_message()) from error


def _show_coverage(totals: Totals, *, full: bool) -> None:
    met = coverage(totals.ways)
    for line in met.lines(full=full):
        click.echo(f"  {line}")
    click.echo(str(met))


def _search(ctx: click.Context, setup: Setup, options: Mapping[str, Any]) -> None:
    """Exits with 1 when there was a violation, 130 after Ctrl-C."""
    runs: int = options["runs"]
    vary = _swarm(ctx, setup) if options["swarm"] else "vary" if options["vary"] else ""
    reported_at = time.monotonic()
    corpus = None if options["corpus"] is None else Corpus(options["corpus"], parse_setup)

    def progress(row: Row, totals: Totals) -> None:
        nonlocal reported_at
        if row.oracle and corpus is not None:
            corpus.keep(row.command, f"{row.oracle}: {row.text}")
        if row.oracle:
            click.echo(f"seed {row.seed:>6}  VIOLATION {row.oracle}: {row.text}\n  again: {row.command}")
        elif runs <= FEW:
            click.echo(
                f"seed {row.seed:>6}  {_shown(row.acked)} {row.simulated_s:8.1f} s simulated  "
                f"{row.steps:>7} steps  {row.faults:>3} faults  {row.acked:>6} records acknowledged"
            )
        elif time.monotonic() - reported_at > REPORT_EVERY_S:
            reported_at = time.monotonic()
            left = totals.cpu_s / totals.seeds * (runs - totals.seeds)
            say(
                f"{totals.seeds} of {runs} seeds, {len(totals.violations)} violations, "
                f"{totals.cpu_s:.0f} s of CPU, some {left:.0f} s to go"
                + (f", {coverage(totals.ways)}" if options["coverage"] else "")
            )

    if options["guided"] and (options["done"] or options["jobs"] > 1):
        raise WrongCall("--guided: each run depends on those before it; leave --jobs and --done out")
    try:
        kept = [] if corpus is None else corpus.setups()
        if kept:
            say(f"{len(kept)} runs of {options['corpus']} first")
        totals = run_seeds(
            setup,
            runs,
            jobs=options["jobs"],
            vary=vary,
            keep_going=options["keep_going"],
            covered=options["coverage"],
            guided=options["guided"],
            first=kept,
            done=options["done"],
            progress=progress,
        )
    except (DoneFileError, CorpusError) as error:
        raise WrongCall(str(error)) from error
    click.echo(totals.text() + (f" ({totals.resumed} of them done before)" if totals.resumed else ""))
    if options["coverage"]:
        _show_coverage(totals, full=options["full"])
    if totals.interrupted:
        click.echo("interrupted; --done FILE lets the same command go on from here", err=True)
        ctx.exit(INTERRUPTED)
    if totals.violations and not options["keep_going"]:
        row = totals.violations[0]
        first = drawn_as(vary, replace(setup, seed=row.seed))
        again = next((one for one in kept if one.command() == row.command), replace(first, graft=row.graft))
        _show(run(again), options)
    if totals.violations:
        ctx.exit(VIOLATION)
    if not totals.acked:
        click.echo(NOTHING_SHOWN, err=True)
        ctx.exit(INCONCLUSIVE)


def _write_history(result: Result, run_dir: Path | None) -> None:
    if run_dir is None:
        return
    try:
        write_run(result.setup, result.events, run_dir, result.traces)
    except OSError as error:
        what = f"{run_dir}: {error.strerror}" if error.strerror else str(error)
        raise WrongCall(f"{what}; --history names another folder") from error


def main() -> None:
    simulate()
