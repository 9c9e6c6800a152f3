"""Rolling upgrades of one schedule follow each other: each begins with what the one before has left."""

from __future__ import annotations

import pytest

from wrackline.harness.specification.spec import SpecError, parse


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
