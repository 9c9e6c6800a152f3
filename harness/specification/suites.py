"""The specifications that come with us: in the repository, or inside the installed package."""

from __future__ import annotations

from pathlib import Path

import click

_PLACE = Path(__file__).resolve().parents[2] / "suites"
_ONE_OF_THEM = "demo-acks-all.yaml"


class SuitesMissing(click.ClickException):
    """There is nothing to run; the message is one line."""

    exit_code = 4


def find(path: Path) -> Path:
    """``path``, or the specification of ours that it names where there is no such file: ``laptop``,
    ``laptop.yaml`` and ``suites/laptop.yaml`` are one."""
    if not path.exists():
        name = path.as_posix().removeprefix(f"{_PLACE.name}/").removesuffix(".yaml")
        ours = _PLACE / f"{name}.yaml"
        if ".." not in ours.parts and _PLACE in ours.parents and ours.is_file():
            return ours
    return path


def suites_dir() -> Path:
    """Their folder. Raises SuitesMissing."""
    place = _PLACE
    if (place / _ONE_OF_THEM).is_file():
        return place
    raise SuitesMissing(
        f"the specifications that come with us are missing (looked for {_ONE_OF_THEM} in {place})"
    )
