"""The specifications that come with us: in the repository, or inside the installed package."""

from __future__ import annotations

from pathlib import Path

import click

_ONE_OF_THEM = "demo-acks-all.yaml"


class SuitesMissing(click.ClickException):
    """There is nothing to run; the message is one line."""

    exit_code = 4


def suites_dir() -> Path:
    """Their folder. Raises SuitesMissing."""
    place = Path(__file__).resolve().parents[2] / "suites"
    if (place / _ONE_OF_THEM).is_file():
        return place
    raise SuitesMissing(
        f"the specifications that come with us are missing (looked for {_ONE_OF_THEM} in {place})"
    )
