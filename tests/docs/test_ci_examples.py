"""The examples of docs/ci.md can be copied: they are YAML, and the commands in them are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.notifications.summaries import NIGHT
from wrackline.harness.cli.main import wrackline
from wrackline.harness.notifications.openmetrics import Ended, text

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text()
JOBS: list[Any] = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)]
COMMAND = re.compile(r"(?:\bwrackline|\./tool/wrack) ((?:suite|prune|runs)\b[^'|`\n]*)")


def test_there_is_one_for_each_of_them() -> None:
    github, gitlab, prometheus = JOBS
    assert "night" in github["jobs"]
    assert set(gitlab["night"]["artifacts"]["reports"]) == {"junit", "codequality"}
    assert prometheus["groups"]


@pytest.mark.parametrize("command", COMMAND.findall(PAGE))
def test_a_command_takes_the_options_that_it_is_given(command: str) -> None:
    name, *words = shlex.split(command)
    found = wrackline.get_command(None, name)  # type: ignore[arg-type]
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_rules_for_prometheus_ask_for_metrics_that_there_are() -> None:
    written = text(Ended("nightly", 0.0, 0.0, 0.0), NIGHT).decode()
    asked = re.findall(r"\bwrackline_\w+", str(JOBS[2]["groups"]))
    assert len(asked) == 2
    assert not [name for name in asked if f"# TYPE {name} gauge" not in written]
    named = re.findall(r"^\| `(wrackline_\w+)`", PAGE, re.M)
    assert len(named) == 6
    assert not [name for name in named if name not in written]
