"""The fleet, not up."""

from __future__ import annotations

from pathlib import Path

from wrackline_example.fleet import NetnsXfsSpec


def test_its_hosts_are_those_of_the_specification(tmp_path: Path) -> None:
    fleet = NetnsXfsSpec(brokers=2, spares=1).build("rehearsal", tmp_path)
    assert [host.name for host in fleet.hosts] == ["n1", "n2", "n3", "c1"]
