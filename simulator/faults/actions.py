"""Actions by which the driver begins each kind of fault."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.simulator.faults.driver import Begin
from wrackline.simulator.faults.kinds import Kind
from wrackline.simulator.faults.network import NETWORK
from wrackline.simulator.faults.operators import ADMINISTRATION
from wrackline.simulator.faults.processes import PROCESSES
from wrackline.simulator.faults.zookeeper import ZOOKEEPER_FAULTS

ACTIONS: Mapping[Kind, Begin] = {**PROCESSES, **NETWORK, **ADMINISTRATION, **ZOOKEEPER_FAULTS}
"""Of every kind in ``kinds.KINDS``."""
