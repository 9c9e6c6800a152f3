"""Rolling upgrades of one schedule follow each other: each begins with what the one before has left."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from wrackline.harness.specification.spec import SpecError, apply_setting, parse
from wrackline.systems.kafka.releases import NEWEST, parsed


def schedule(*versions: str) -> str:
    rows = (
        f"{{at_s: {at_s}, duration_s: 1, fault: rolling-upgrade, to: {to}}}"
        for at_s, to in enumerate(versions)
    )
    return f"name: x\nsystem: {{profile: kraft35}}\nnemesis: {{schedule: [{', '.join(rows)}]}}"


@pytest.mark.parametrize("versions", [("kip966",), ("kip966", "kraft35"), ("kip966", "kraft35", "kip966")])
def test_nodes_go_to_a_later_version_and_back(versions: tuple[str, ...]) -> None:
    parse(schedule(*versions), "x.yaml")


@pytest.mark.parametrize(("versions", "at"), [(("kraft35",), 0), (("kip966", "kip966"), 1)])
def test_nodes_that_are_of_the_version_are_not_upgraded(versions: tuple[str, ...], at: int) -> None:
    with pytest.raises(
        SpecError, match=rf"nemesis\.schedule\[{at}\]: .* nodes of profile {versions[at]} cannot"
    ):
        parse(schedule(*versions), "x.yaml")


def test_the_order_is_that_of_the_times() -> None:
    text = (
        "name: x\nsystem: {profile: kraft35}\nnemesis: {schedule: ["
        "{at_s: 50, duration_s: 1, fault: rolling-upgrade, to: kraft35}, "
        "{at_s: 5, duration_s: 1, fault: rolling-upgrade, to: kip966}]}"
    )
    parse(text, "x.yaml")


@pytest.mark.parametrize(("more", "may"), [("", True), (", refused: true", False)])
def test_a_level_that_was_lowered_permits_an_earlier_version(more: str, may: bool) -> None:
    text = (
        "name: x\nsystem: {kind: apache-kafka, version: 4.2.1}\nnemesis: {schedule: ["
        f"{{at_s: 1, duration_s: 1, fault: update-feature, feature: metadata.version, level: 27{more}}}, "
        "{at_s: 5, duration_s: 1, fault: rolling-upgrade, to: 4.1.2}]}"
    )
    if may:
        parse(text, "x.yaml")
        return
    with pytest.raises(SpecError, match=r"may not know: give it one .*, or lower it by update-feature"):
        parse(text, "x.yaml")


def test_the_pairs_of_the_example_follow_each_other() -> None:
    """Each release of Apache Kafka goes to the next one and back, and its level is the one before's goal."""
    root = Path(__file__).parents[3]
    night = yaml.safe_load((root / "docs/examples/upgrades.yaml").read_text())
    pairs = []
    for run in night["runs"]:
        if run["spec"] != "kafka-upgrade.yaml":
            continue
        spec = yaml.safe_load((root / "suites" / run["spec"]).read_text())
        for key, value in run.get("set", {}).items():
            apply_setting(spec, f"{key}={value}")
        early, up, _, back, again, late, *_, lower = spec["nemesis"]["schedule"]
        assert spec["system"]["version"] == back["to"]
        assert up["to"] == again["to"]
        assert early["level"] == late["level"] > lower["level"]
        pairs.append((back["to"], up["to"], lower["level"], late["level"]))
    for newer, older in pairwise(pairs):
        assert (older[1], older[3]) == (newer[0], newer[2])
    assert pairs[0][1] == NEWEST
    lines = [parsed(one)[:2] for one in (pairs[-1][0], *(one[1] for one in reversed(pairs)))]
    assert lines == [(3, 9), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4)]
