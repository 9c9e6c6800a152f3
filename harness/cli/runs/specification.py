"""Commands for who writes a specification: ``init``, ``validate`` and ``list specs``. None makes a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import click
import yaml

from wrackline.harness.cli.options import fleet_option, print_json, seed_option, set_option, with_fleet
from wrackline.harness.specification.access import access_of
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.schema import schema
from wrackline.harness.specification.spec import SpecError
from wrackline.harness.specification.suites import suites_dir
from wrackline.plugins.nearest import nearest

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME = 40
WRONG = 2


@click.command("validate")
@click.argument("specs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SPEC.yaml...")
@seed_option
@set_option
@fleet_option
def validate_command(
    specs: tuple[Path, ...], seed: int | None, settings: tuple[str, ...], fleet: str | None
) -> int:
    """Check all that `wrackline run` checks before it makes a host: keys and values, whether the parts fit
    each other, and what the broker and librdkafka would say to their settings. Needs no root.

    \b
      wrackline validate suites/*.yaml
      wrackline validate mine.yaml --set workload.duration_s=3m

    A line for each file that is fine, on standard output, and below it what a run uses in a cluster that
    runs already, with the rights that it needs there; a line for each mistake, on standard error.
    Exit code: 0 when all are fine, 2 when one is not.
    """
    error = False
    for spec in specs:
        try:
            checked = load_checked(spec, settings=with_fleet(settings, fleet), seed=seed)
        except SpecError as refused:
            error = True
            for mistake in refused.mistakes:
                click.echo(" ".join(mistake.split()), err=True)
        else:
            if warning := checked.system.warning():
                click.echo(f"{spec}: warning: {warning}", err=True)
            click.echo(f"{spec}: fine")
            for one in access_of(checked):
                click.echo(f"  uses {one}")
    return WRONG if error else 0


@click.command("init")
@click.argument(
    "file", type=click.Path(dir_okay=False, path_type=Path), default=Path("wrackline.yaml"), metavar="[FILE]"
)
def init_command(file: Path) -> int:
    """Write a specification with every part explained, to start from: three brokers, a log, three faults in
    a minute. FILE is wrackline.yaml by default; one that exists is left as it is.

    \b
      wrackline init first.yaml
      wrackline plan first.yaml
      sudo wrackline run first.yaml

    Exit code: 0, or 2 when FILE exists or cannot be written.
    """
    text = files("wrackline.harness.cli.runs").joinpath("init.yaml").read_text()
    _write_new(file, text.replace("name: NAME", f"name: {_name_from(file)}"))
    click.echo(f"{file}: written; `wrackline plan {file}` shows what it would do")
    return 0


def _name_from(file: Path) -> str:
    return _NOT_IN_A_NAME.sub("-", file.stem.lower()).strip("-")[:_LONGEST_NAME].strip("-") or "first-run"


@click.command("specs")
@click.argument("name", required=False)
@click.option(
    "-o",
    "--out",
    "--output",
    "out",
    type=click.Path(path_type=Path),
    help="Write it to this file, or into this folder, instead of printing it.",
)
@click.option("--schema", "schema_only", is_flag=True, help="Print the JSON schema of specifications.")
def specs_command(name: str | None, out: Path | None, schema_only: bool) -> int:
    """List the specifications that come with Wrackline, or print the one called NAME.

    \b
      wrackline list specs
      wrackline list specs register
      wrackline run laptop                          as it is; validate, plan and suite know the names, too
      wrackline list specs growth -o mine.yaml      a copy to change; a file that exists is left as it is
      wrackline list specs --schema > wrackline.schema.json

    The schema has the keys of a specification, what each is for and what it takes. An editor with a YAML
    language server checks a file that begins with `# yaml-language-server: $schema=wrackline.schema.json`.
    How one part must fit another no schema can say; `wrackline validate` can.

    Exit code: 0, or 2 for a NAME that is none and a file that exists.
    """
    if schema_only:
        if name is not None or out is not None:
            raise click.UsageError("--schema takes neither NAME nor --out")
        print_json(schema())
        return 0
    there = _examples()
    if name is None:
        if out is not None:
            raise click.UsageError("--out needs the NAME of the specification to copy")
        width = max(map(len, there))
        for each, path in there.items():
            click.echo(f"{each:<{width}}  {_about(path)}")
        return 0
    chosen = there.get(name) or there.get(f"defects/{name}")
    if chosen is None:
        known = nearest(name, {*there, *(each.partition("/")[2] for each in there)})
        raise click.UsageError(
            f"there is no example {name!r}{known or ';'} `wrackline list specs` lists them"
        )
    if out is None:
        click.echo(chosen.read_text(), nl=False)
        return 0
    target = out / chosen.name if out.is_dir() else out
    _write_new(target, chosen.read_text())
    click.echo(f"{target}: written; `wrackline plan {target}` shows what it would do")
    return 0


def _examples() -> Mapping[str, Path]:
    """Returns the examples by name: ``register``, ``defects/trunc-hw``."""
    folder = suites_dir()
    result = sorted(folder.rglob("*.yaml"), key=lambda path: (len(path.parts), path))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in result}


def _about(path: Path) -> str:
    """The first sentence of the file's opening comment."""
    opening: list[str] = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        opening.append(line.removeprefix("#").strip())
    text = " ".join(opening) or str(yaml.safe_load(path.read_text()).get("name", ""))
    return re.split(r"(?<=[^.]\.) (?=[A-Z])", text, maxsplit=1)[0].rstrip(".")


def _write_new(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError as there:
        raise click.UsageError(f"{file} exists, and is left as it is; name another file") from there
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror}; name another file") from error
