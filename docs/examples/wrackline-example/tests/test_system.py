"""The system on a fleet that is not up: nothing is installed."""

from __future__ import annotations

from pathlib import Path

from wrackline_example.system import SmallSegmentsSpec

from wrackline.api import Layout, NetnsSpec, WantedTopic, WracklineSystem


def test_the_broker_takes_its_settings(tmp_path: Path) -> None:
    fleet = NetnsSpec(brokers=1).build("rehearsal", tmp_path)
    layout = Layout(("n1",), ("c1",), (), cluster_id="AAAAAAAAAAAAAAAAAAAAAA", cache=tmp_path)
    system = SmallSegmentsSpec(segment_bytes=4096).build(fleet, layout)
    assert isinstance(system, WracklineSystem)
    assert "segment_bytes = 4096" in system.config_for(system.brokers[0])
    assert system.refusals(WantedTopic("log", 1, 1, {})) == ()
