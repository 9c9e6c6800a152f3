"""All five in one specification."""

from __future__ import annotations

from pathlib import Path

from wrackline_example.fault import OneCoreSpec
from wrackline_example.workload import ManyReadersSpec

from wrackline.api import load


def test_the_specification_names_a_part_at_every_door() -> None:
    spec = load(Path(__file__).parents[1] / "everything.yaml")
    assert (spec.fleet.kind, spec.system.kind) == ("netns-xfs", "small-segments")
    assert spec.workload == ManyReadersSpec(duration_s=14, rate=60, readers=3)
    assert spec.nemesis.schedule[0].inject == OneCoreSpec(fault="one-core", target="leader(log-0)")
    assert spec.contract.expected == ("slow-write",)
