"""Options that several commands have, and how they refuse what they are given."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson

from wrackline.checkers.verdict.seal import why_broken
from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.history.store.folder import private_folder
from wrackline.needs import require

if TYPE_CHECKING:
    from wrackline.harness.specification.spec import Spec

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _default_results() -> Path:
    # Late, as below: what judges a run takes a second to import, and many commands judge none.
    from wrackline.harness.run.results import default_dir

    return default_dir()


def memory_size(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Refuses what is no size of memory as a JVM takes it."""
    if not re.fullmatch(r"[1-9]\d*[kKmMgG]", value):
        raise click.BadParameter(f"{value!r} is no size; say 512m or 4g")
    return value


seed_option = click.option(
    "--seed", type=click.IntRange(0), help="Seed of every random choice; the file's by default."
)
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change one key, e.g. workload.rate=500. May be repeated.",
)
fleet_option = click.option(
    "--fleet",
    metavar="KIND",
    help="Hosts of another kind, e.g. process; the same as --set fleet.kind=KIND.",
)
results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    default=_default_results,
    show_default="$WRACKLINE_RESULTS, or ./results",
    help="Folder with the runs.",
)
state_dir_option = click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_STATE_ROOT,
    envvar="WRACKLINE_STATE_DIR",
    show_default=True,
    help="Folder where fleets keep their keys, disks and logs.",
)


def _check_contract(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Raises UnknownContract."""
    if value is not None:
        from wrackline.checkers.verdict.contracts import named  # late: see `_default_results`

        named(value)
    return value


contract_option = click.option(
    "--contract",
    metavar="NAME",
    callback=_check_contract,
    help="Judge by this contract (for example acks-all) instead of the one the configuration promises.",
)


def _check_master(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """Refuse a master before a run is made that nobody could judge. Raises SparkUnavailable."""
    from wrackline.checkers.engine.spark.masters import check_master  # late: see `_default_results`

    check_master(value)
    return value


master_option = click.option(
    "--master",
    default="local[*]",
    show_default=True,
    metavar="URL",
    callback=_check_master,
    help="Spark master to analyse on.",
)


engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "spark", "local"]),
    default="auto",
    show_default=True,
    help="What judges: Spark, or this process without Java; auto: this process for one run of up to "
    "5,000,000 records and events, and where there is no Java.",
)


def _spark_properties(
    _context: click.Context, _option: click.Parameter, value: Sequence[str]
) -> dict[str, str]:
    error = next((one for one in value if not re.fullmatch(r"spark\.[^=]+=.*", one)), None)
    if error is not None:
        raise click.BadParameter(f"{error!r} is no property of Spark; give spark.NAME=VALUE")
    return {name: value for name, _, value in (one.partition("=") for one in value)}


conf_option = click.option(
    "--conf",
    "properties",
    multiple=True,
    metavar="spark.NAME=VALUE",
    callback=_spark_properties,
    help="A property of Spark's own, e.g. spark.yarn.queue=nightly. May be repeated.",
)


def output_option(of_json: str) -> Callable[[_Command], _Command]:
    """``--output``, as the argument ``output``: ``table`` or ``json``, which is `of_json`. Its former name is
    ``--json``."""

    def add_option(command: _Command) -> _Command:
        command = click.option("--json", "output", flag_value="json", hidden=True)(command)
        return click.option(
            "--output",
            "output",
            type=click.Choice(["table", "json"]),
            default="table",
            show_default=True,
            help=f"json: {of_json}",
        )(command)

    return add_option


def print_json(value: object, *, options: int = 0, default: Callable[[Any], Any] | None = None) -> None:
    """Prints the answer of ``--output json``; dataclasses are objects. ``options``: orjson's, besides the
    indent."""
    click.echo(orjson.dumps(value, default, orjson.OPT_INDENT_2 | options).decode())


def with_fleet(settings: Sequence[str], fleet: str | None) -> tuple[str, ...]:
    """The settings of ``--set`` and that of ``--fleet``."""
    return (*settings, *([f"fleet.kind={fleet}"] if fleet is not None else []))


class WrongInput(click.ClickException):
    """One line, exit code 2."""

    exit_code = 2


def need_root() -> None:
    if os.geteuid() != 0:
        raise click.UsageError(
            "fleets need root (network namespaces, mounts, loop devices): run it with sudo"
        )


def need_machine(*specs: Spec) -> None:
    """Checks before a run begins that this machine has what runs need: root, and programs. Raises
    UsageError, Missing."""
    if any(spec.fleet.needs_root for spec in specs):
        need_root()
    for spec in specs:
        for need in spec.fleet.needs:
            require(need, f"the fleet {spec.fleet.kind}")
        for need in spec.system.needs:
            require(need, f"the system {spec.system.kind}")


def need_writable(results: Path) -> None:
    """Refuse a folder before a run is made that could not be kept there. Raises WrongInput."""
    try:
        private_folder(results)
    except OSError as error:
        raise WrongInput(
            f"{results}: cannot be used for results: {error.strerror}; --results names another"
        ) from error


def need_verdict(run_dir: Path) -> None:
    """Raises WrongInput for a run that was not judged yet, or that was changed since."""
    try:
        verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
        why = why_broken(run_dir, verdict) if isinstance(verdict, dict) else ""
    except FileNotFoundError:
        raise WrongInput(
            f"{run_dir.name} was not judged yet: `wrackline analyze {run_dir.name}` does it"
        ) from None
    except (OSError, orjson.JSONDecodeError):
        return  # what cannot be read is told where it is shown
    if why:
        raise WrongInput(f"{run_dir}: {why}")
