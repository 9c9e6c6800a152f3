"""A specification becomes the parts of a run before any of them is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.fleets.local.state import DEFAULT_STATE_ROOT
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.harness.specification.build import build_parts
from wrackline.harness.specification.spec import parse


@pytest.mark.parametrize("named", [True, False], ids=["named", "default"])
def test_the_fleet_of_a_run_lies_where_the_fleet_command_looks(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if named:
        monkeypatch.setenv("WRACKLINE_STATE_DIR", str(tmp_path))
    else:
        monkeypatch.delenv("WRACKLINE_STATE_DIR")
    fleet = build_parts(parse("name: short\nworkload: {duration_s: 5}", "here"), "a-run").fleet
    assert isinstance(fleet, NetnsFleet)
    assert fleet.folder.root == (tmp_path if named else DEFAULT_STATE_ROOT)
