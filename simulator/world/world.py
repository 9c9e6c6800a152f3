"""A cluster in virtual time: nodes, clock, event queue. ``world.step()`` lets exactly one thing happen.

Public and stable::

    world.now_ms              virtual milliseconds since the start
    world.brokers             id -> SimBroker      (.core is None while it is down, .disk, .incarnation, ...)
    world.controllers         id -> SimController  (the same attributes)
    world.clients             id -> SimClient
    world.zookeeper           the Ensemble of profile zk08, else None
    world.image               committed ClusterImage of the active controller (the last known one if none is)
    world.step()              -> StepRecord, or None when nothing will ever happen again
    world.observers           called after EVERY step with (world, step)
    world.watchers            the same, after every step but those in which a message lies down in an inbox
    world.run(ms), world.until(condition)          many steps
    kill, power, clean_stop, wipe, restore, start, pause, resume, cut, heal, hold, release, cut_process, ...

What no node knows (what was acknowledged, the true high watermark) is the observers' business, never the
world's.

A World is made of parts, each in a file: ``clock`` (time, steps), ``transport`` (messages), ``execution``
(events and effects), ``processes`` (faults of processes and disks). Everything random comes from generators
seeded with the world's seed; ``Random(f"{seed}/network")`` and so on, so that one more draw in one place
changes nothing in the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model import events as ev
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from wrackline.broker.model.messages.requests import Request
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import Endpoint, NodeId, TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.broker.rules.profile import Rules
from wrackline.simulator.world.clock import WITHIN_MS
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.nodes import (
    FIRST_CLIENT,
    FIRST_CONTROLLER,
    PROBE,
    Call,
    Core,
    CutRule,
    Prober,
    SimBroker,
    SimClient,
    SimController,
    SimNode,
    SimServer,
    StepKind,
    StepRecord,
    WorldOptions,
)
from wrackline.simulator.world.processes import Processes

__all__ = [
    "FIRST_CLIENT",
    "FIRST_CONTROLLER",
    "PROBE",
    "Call",
    "Core",
    "CutRule",
    "SimBroker",
    "SimClient",
    "SimController",
    "SimNode",
    "SimServer",
    "StepKind",
    "StepRecord",
    "World",
    "WorldOptions",
]

_CREATE_TRIES = 5
_WATCHES_MS = 20.0
_CREATE_AGAIN = (ErrorCode.request_timed_out, ErrorCode.invalid_replication_factor)


@mypyc_attr(allow_interpreted_subclasses=True)
class World(Processes):
    def __init__(
        self, seed: int | str = 0, options: WorldOptions | None = None, *, rules: Rules | None = None
    ) -> None:
        options = options or WorldOptions()
        super().__init__(seed, options, rules)
        self.seed = seed
        self.wall_clock = options.wall_clock
        self._last_image = ClusterImage()
        self._looked_at = -2
        """End of the metadata that ``_unfenced`` is said of."""
        self._unfenced = False
        self._was_taken_over = self.zookeeper is None
        """By a controller, or there never was a ZooKeeper."""
        ids = range(FIRST_CONTROLLER, FIRST_CONTROLLER + options.controllers)
        if self.zookeeper is not None:
            ids = ids if self.bridges else ids[:0]
            level = self.rules.levels.highest if options.level is None else options.level
            self.zookeeper.begin(range(1, options.brokers + 1), level)
        self.endpoints = tuple(Endpoint(node, f"c{node - FIRST_CONTROLLER + 1}", 9093) for node in ids)
        self.brokers = {node: SimBroker(node) for node in range(1, options.brokers + 1)}
        self.controllers = {node: SimController(node) for node in ids}
        self.clients: dict[NodeId, SimClient] = {}
        self._prober = Prober()
        self._probe = SimClient(PROBE, core=self._prober, incarnation=1)
        self._nodes = {**self.controllers, **self.brokers, PROBE: self._probe}
        for server in self.servers():
            server.disk = self._new_disk()
            skew = options.max_skew
            server.clock_rate = 1.0 + (self._node_random.uniform(-skew, skew) if skew else 0.0)
        if options.boot:
            for server in self.servers():
                self.start(server.id)

    # --- what there is -------------------------------------------------------------------------------------

    def servers(self) -> list[SimServer]:
        return [*self.controllers.values(), *self.brokers.values()]

    def active_controller(self) -> SimController | None:
        """The one in charge, the newest where two think they are; None when none does."""
        result: SimController | None = None
        for controller in self.controllers.values():
            core = controller.core
            if core is not None and core.is_active and (result is None or _term(core) > _term(result.core)):
                result = controller
        return result

    @property
    def image(self) -> ClusterImage:
        active = self.active_controller()
        if active is not None and active.core is not None:
            self._last_image = active.core.committed
        if self.zookeeper is not None and not self._was_taken_over:
            if not self._last_image.zk_migration:
                return self.zookeeper.image
            self._was_taken_over, self._looked_at = True, -2
        return self._last_image

    @property
    def on_zookeeper(self) -> bool:
        """ZooKeeper is in charge: there never was a controller, or none has taken over."""
        return not self._was_taken_over and not self.image.zk_migration

    def moves(self, tp: TopicPartition) -> bool:
        """ZooKeeper has a reassignment of the partition that is not done."""
        if self.zookeeper is None or not self.on_zookeeper:
            return False
        return self.zookeeper.moves(tp)

    def adds_up(self, tp: TopicPartition) -> bool:
        """Tells whether nothing is half-written of what ZooKeeper, if it is in charge, has of the
        partition."""
        image = self.image.partition(tp)
        if self.zookeeper is None or not self.on_zookeeper or image is None:
            return True
        return self.zookeeper.adds_up(image)

    def leader(self, tp: TopicPartition) -> NodeId:
        """Returns the leader as the controller has committed it; -1: none."""
        partition = self.image.partition(tp)
        return -1 if partition is None else partition.leader

    def add_client(self, core: Core) -> SimClient:
        """Adds a client; its core gets a Boot at once, and then answers and timers, like any core."""
        node = FIRST_CLIENT + len(self.clients)
        client = SimClient(node, core=core, incarnation=1, down="never")
        self.clients[node] = self._nodes[node] = client
        self._at(self.now_ms, self._boot_client, client, None)
        return client

    def add_guest(self, node: NodeId, core: Core) -> None:
        """Adds a node that plays a broker: requests of others reach its core. It is none of ``brokers``, and
        boots no more than it asks by itself (``ask``)."""
        self._nodes[node] = SimServer(node, core=core, incarnation=1, accepts=True, disk=Disk(UUID(int=node)))

    def remove_guest(self, node: NodeId) -> None:
        """Removes it, as if its process was killed: its connections end, and nobody reaches the node."""
        self._hang_up(self._nodes[node], silent=False)
        self._nodes[node].core = None

    def _boot_client(self, client: SimClient, _: None) -> StepRecord:
        return self._handle(client, ev.Boot(UUID(int=client.id), {}), "boot")

    # --- messages ------------------------------------------------------------------------------------------

    def ask(self, node: NodeId, request: Request, timeout_ms: int = 30_000) -> Call:
        """A question from outside, over the network; time must pass before it has an answer."""
        prober = self._prober
        prober.correlation += 1
        call = prober.calls[prober.correlation] = Call(request)
        prober.queue.append((prober.correlation, node, request, timeout_ms))
        self._put(self._probe, ev.TimerFired("ask"), None)
        return call

    def asked(self, node: NodeId, request: Request, timeout_ms: int = 30_000) -> Any:
        """Asks a node, and runs until the answer is there. Raises SimulationError when none comes."""
        call = self.ask(node, request, timeout_ms)
        self.until(lambda: call.done, timeout_ms + 1_000, f"an answer of node {node} to {request}")
        if call.failed:
            raise SimulationError(f"node {node} did not answer: {call.failed}")
        return call.response

    def create_topic(
        self,
        name: str = "t",
        partitions: int = 1,
        replicas: Sequence[NodeId] | None = None,
        configs: Mapping[str, str] | None = None,
        replication_factor: int = -1,
    ) -> None:
        """And wait until every replica has it. ``replicas``: the assignment of each partition."""
        given = {} if replicas is None else dict.fromkeys(range(partitions), tuple(replicas))
        topic = NewTopic(
            name,
            -1 if given else partitions,
            -1 if given else replication_factor,
            given,
            configs or {},
        )
        error = "no answer"
        for _ in range(_CREATE_TRIES):
            self.until(self.all_unfenced, WITHIN_MS, "every broker unfenced")
            call = self.ask(next(iter(self.brokers)), CreateTopicsRequest((topic,), 10_000))
            self.until(lambda call=call: call.done, 31_000, f"an answer about topic {name}")  # type: ignore[misc]
            answer = call.response
            created = answer.topics[0] if isinstance(answer, CreateTopicsResponse) else answer
            error = call.failed if created is None else created.error.name
            if error in ("none", "topic_already_exists"):
                break
            # Too few brokers: one was fenced again meanwhile, since its heartbeats got lost.
            if created is not None and created.error not in _CREATE_AGAIN:
                raise SimulationError(f"topic {name} was not created: {error}")
            if self.zookeeper is not None:
                self.run(_WATCHES_MS)  # the broker has yet to hear of the others
        else:
            raise SimulationError(f"topic {name} was not created: {error}")
        self.until(lambda: self._everywhere(name, partitions), WITHIN_MS, f"topic {name} on its replicas")

    def _everywhere(self, name: str, partitions: int) -> bool:
        for number in range(partitions):
            partition = self.image.partition(TopicPartition(name, number))
            if partition is None:
                return False
            for node in partition.replicas:
                core = self.brokers[node].core
                replica = None if core is None else core.replica(partition.tp)
                if replica is None or replica.leader_epoch != partition.leader_epoch:
                    return False
        return True

    def all_unfenced(self) -> bool:
        image = self.image
        if image.metadata_offset != self._looked_at:
            self._looked_at, self._unfenced = image.metadata_offset, self._is_unfenced(image)
        return self._unfenced

    def _is_unfenced(self, image: ClusterImage) -> bool:
        return all((seen := image.brokers.get(node)) is not None and not seen.fenced for node in self.brokers)


def _term(core: Any) -> int:
    return int(core.raft.epoch)
