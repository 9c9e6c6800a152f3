"""The workload, driven against librdkafka's own mock cluster."""

from __future__ import annotations

from wrackline_example.workload import ManyReadersSpec

from wrackline.api import rehearse


def test_every_kind_of_operation_is_done_and_recorded() -> None:
    events = rehearse(ManyReadersSpec(rate=200, writers=2, readers=3))
    assert {(event["f"], event["type"]) for event in events} >= {("send", "ok"), ("poll", "ok")}
