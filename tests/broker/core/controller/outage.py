"""A power outage as the controller sees it: everybody is fenced, some come back uncleanly."""

from __future__ import annotations

from tests.broker.core.controller.driver import Driver
from wrackline.broker.model.effects import Trace
from wrackline.broker.model.types import NO_LEADER


def outage(driver: Driver, *back: int) -> Driver:
    """Brokers 1, 2, 3 fall silent one by one, then some come back, uncleanly."""
    driver.start(1, 2, 3)
    driver.create()
    driver.let_expire(1, 2, 3)
    for broker in (1, 2, 3):
        driver.register(broker)
    assert driver.state() == (NO_LEADER, set(), set(), {2, 3})
    for broker in back:
        driver.beat(broker)
    return driver


def recoveries(driver: Driver) -> list[Trace]:
    return [trace for trace in driver.traces if trace.kind == "recovery"]
