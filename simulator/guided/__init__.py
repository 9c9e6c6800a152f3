"""One schedule per defect: the shortest way to see it do its harm (docs/protocol.md 4.2, 4.3).

A schedule is a function of a ``Stage``. It runs twice, with the defect and without; with it an oracle must
fire, without it none may. ``SCHEDULES`` has them all, by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.simulator.guided import (
    administration,
    config,
    elections,
    isr,
    lifecycle,
    quorum,
    requests,
    truncation,
    watermark,
)
from wrackline.simulator.guided.schedule import Guided

SCHEDULES: Mapping[str, Guided] = {
    guided.name: guided
    for family in (truncation, watermark, isr, elections, lifecycle, requests, administration, quorum, config)
    for guided in family.SCHEDULES
}
