"""One schedule per defect: the shortest way to see the harm that it does (docs/protocol.md 4.2, 4.3).

A schedule is a function of a ``Stage``. It runs twice, with the defect and without it; with the defect an
oracle must fire, without it none may. ``SCHEDULES`` has them all, by name. In their docstrings the brokers
are 1, 2, 3 (and 4), broker 1 leads the only partition at first unless the text says otherwise, and records
are named by their values (m1, m2, x, y). To isolate a broker is to cut it off from all others until the
controller has fenced it.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.scenarios import SCENES
from wrackline.simulator.guided import (
    config,
    isr,
    lifecycle,
    migration,
    outages,
    quorum,
    requests,
    truncation,
)
from wrackline.simulator.guided.scene import schedules
from wrackline.simulator.guided.schedule import Guided

_FAMILIES = (truncation, isr, lifecycle, requests, quorum, outages, config, migration)
SCHEDULES: Mapping[str, Guided] = {
    guided.name: guided
    for guided in (
        *(guided for scene in SCENES.values() for guided in schedules(scene)),
        *(guided for family in _FAMILIES for guided in family.SCHEDULES),
    )
}
