"""Actions by which the driver begins each kind of fault."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.simulator.faults.driver import Begin
from wrackline.simulator.faults.kinds import Kind
from wrackline.simulator.faults.network import NETWORK
from wrackline.simulator.faults.operators import ADMINISTRATION
from wrackline.simulator.faults.processes import PROCESSES
from wrackline.simulator.world.zookeeper_door import of_zookeeper


def actions() -> Mapping[Kind, Begin]:
    """Returns the action of every kind in ``kinds.KINDS``."""
    return {**PROCESSES, **NETWORK, **ADMINISTRATION, **of_zookeeper("actions")}
