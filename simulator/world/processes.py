"""Actions on processes and their disks from outside: start, kill, cut the power, pause, wipe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.zookeeper_door import zookeeper_broker, zookeeper_migration
from wrackline.broker.model import events as ev
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.types import Endpoint, NodeId, Placement, TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.execution import Execution
from wrackline.simulator.world.nodes import (
    BROKER_DEFAULTS,
    CONTROLLER_DEFAULTS,
    FIRST_CONTROLLER,
    CutRule,
    Down,
    SimController,
    SimNode,
    SimServer,
    StepRecord,
)

_RACKS = 2
"""Racks of a cluster that spreads replicas over racks; brokers take turns."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Processes(Execution):
    """The part of a World that begins and ends the lives of its servers."""

    controllers: dict[NodeId, SimController]
    endpoints: tuple[Endpoint, ...]
    """Where the controllers are."""

    def node(self, node: NodeId) -> SimNode:
        return self._nodes[node]

    def server(self, node: NodeId) -> SimServer:
        result = self._nodes[node]
        if not isinstance(result, SimServer):
            raise SimulationError(f"node {node} is a client")
        return result

    def _new_disk(self) -> Disk:
        return Disk(UUID(int=self._node_random.getrandbits(128)), self.options.segment_bytes)

    def start(self, node: NodeId) -> StepRecord:
        """Begin a process on the node's disk. Raises SimulationError when one runs already."""
        server = self.server(node)
        if server.core is not None:
            raise SimulationError(f"node {node} runs already")
        if server.ended_life != server.incarnation:
            self._end(server, server.down)
        server.incarnation += 1
        server.down, server.paused, server.accepts = "never", False, False
        server.inbox.clear()
        result = server.disk.recover(rebuild_epochs=self.rules.switches.start_rebuilds_epochs)
        if not self.rules.switches.start_removes_clean_file:
            server.disk.clean_epoch = result.previous_broker_epoch
        server.core = self._make_core(node)
        incarnation = UUID(int=self._node_random.getrandbits(128))
        boot = ev.Boot(
            incarnation,
            result.logs,
            result.metadata,
            result.previous_broker_epoch,
            quorum_state=server.disk.quorum_state,
            directory_id=server.disk.directory_id,
            snapshots=result.snapshots,
            offline=tuple(sorted(server.disk.unusable)),
        )
        return self._tell(self._handle(server, boot, "boot"))

    def _make_core(self, node: NodeId) -> Any:
        options = self.options
        if node in self.controllers:
            host = f"c{node - FIRST_CONTROLLER + 1}"
            settings = {**CONTROLLER_DEFAULTS, **options.controller}
            controls = ControllerConfig(node, "simulated", host, 9093, self.endpoints, **settings)
            if self.bridges:
                return Controller(controls, self._newer, zookeeper_migration(controls, self._newer))
            return Controller(controls, self.rules_of(node))
        settings = {**BROKER_DEFAULTS, **options.broker}
        if options.controller.get("placement") is Placement.STRIPED:
            settings.setdefault("rack", f"r{node % _RACKS}")
        config = BrokerConfig(
            node, "simulated", f"n{node}", 9092, self.endpoints, replication_port=9094, **settings
        )
        make = Broker if self.zookeeper is None else zookeeper_broker
        return make(config, self.rules_of(node))

    def kill(self, node: NodeId) -> StepRecord | None:
        """End the process as ``kill -9`` does: everything written stays, and peers see resets."""
        return self._end_from_outside(node, "kill")

    def power(self, node: NodeId, keep: Mapping[TopicPartition, int] | None = None) -> StepRecord | None:
        """Cut the node's power: unsynced batches may go (``Disk.lose_power``), and peers get no message."""
        return self._end_from_outside(node, "power", keep)

    def _end_from_outside(
        self, node: NodeId, how: Down, keep: Mapping[TopicPartition, int] | None = None
    ) -> StepRecord | None:
        server = self.server(node)
        if server.core is None:
            return None
        note = self._end(server, how, keep)
        return self._tell(self._record("down", node, note=note))

    def clean_stop(self, node: NodeId) -> None:
        """Asks the core to shut down in the controlled way, as SIGTERM does. It takes its time."""
        server = self.server(node)
        if server.core is not None:
            self._put(server, ev.StopRequested(), None)

    def wipe(self, node: NodeId) -> StepRecord:
        """Put a new, empty disk under a node that is down."""
        server = self._down_server(node)
        server.disk = self._new_disk()
        return self._tell(self._record("fault", node, note="wipe"))

    def restore(self, node: NodeId, disk: Disk) -> StepRecord:
        """Put a copy of an older disk (a ``Disk.snapshot()``) under a node that is down."""
        server = self._down_server(node)
        server.disk = disk.snapshot()
        return self._tell(self._record("fault", node, note="stale restore"))

    def _down_server(self, node: NodeId) -> SimServer:
        server = self.server(node)
        if server.core is not None:
            raise SimulationError(f"node {node} is up: its disk is in use")
        return server

    def pause(self, node: NodeId) -> StepRecord:
        """Stop the process as SIGSTOP does: it handles nothing while time goes on."""
        self._nodes[node].paused = True
        return self._tell(self._record("fault", node, note="pause"))

    def resume(self, node: NodeId) -> StepRecord:
        paused = self._nodes[node]
        paused.paused = False
        self._wake(paused)
        return self._tell(self._record("fault", node, note="resume"))

    def set_clock_rate(self, node: NodeId, rate: float) -> None:
        """Change the rate of the node's clock from now on. Timers that are set keep their world time."""
        at = self._nodes[node]
        at.clock_base = (self.now_ms, at.local_ms(self.now_ms))
        at.clock_rate = rate

    def cut_process(self, node: NodeId, rule: CutRule, how: Literal["kill", "power"] = "kill") -> None:
        """End the process in the middle of the effects of one event. It is the first event for which ``rule``
        says how many of its effects are still carried out."""
        self._nodes[node].cut_rule = (rule, how)
