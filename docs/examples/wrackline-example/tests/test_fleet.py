"""The fleet, not up."""

from __future__ import annotations

from wrackline_example.fleet import NetnsXfsSpec


def test_its_hosts_are_those_of_the_specification() -> None:
    fleet = NetnsXfsSpec(brokers=2, spares=1).build("rehearsal")
    assert [host.name for host in fleet.hosts] == ["n1", "n2", "n3", "c1"]
