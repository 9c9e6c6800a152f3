"""The plan of a nemesis in virtual time: roles are resolved from the world's own metadata when a fault
begins, and what is recorded of it is what a run on hosts records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from wrackline.fleets.base import Disk
from wrackline.harness.run.live.live import GUIDED_S
from wrackline.harness.run.simulated.follow import follow_state
from wrackline.harness.run.simulated.guided import play
from wrackline.harness.specification.virtual_time import as_happened
from wrackline.history.model import NEMESIS, Event, Type
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.guided.steps import Aim, Inject
from wrackline.nemesis.inject import missed, settings_of
from wrackline.nemesis.schedule import Plan, PlannedFault
from wrackline.nemesis.targets.memory import Leaders
from wrackline.nemesis.targets.roles import Situation, TargetError, resolve
from wrackline.nemesis.targets.states import Occurrence
from wrackline.simulator.faults.driver import Begun, host
from wrackline.simulator.faults.kinds import Fault, Kind
from wrackline.simulator.faults.replayed import in_virtual_time
from wrackline.simulator.output.nemesis_rows import NemesisRows
from wrackline.simulator.run.recorded import RecordedRun
from wrackline.simulator.world.world import FIRST_CONTROLLER, World
from wrackline.systems.base import ClusterState, Node, PartitionState

RESOLVE_MS = 5_000.0
"""How long a role may be vacant."""
_LOOK_MS = 50.0
_REMEMBER_MS = 500.0
_NUMBERS = {"f": 0, "g": 100_000, "s": 200_000}
"""By the letter of an id: of the plan's own faults, of a guided schedule's, of those that follow a state."""
_KINDS: Mapping[Any, Kind] = {Disk.KEPT: "power", Disk.WIPED: "wipe", Disk.STALE: "restore"}
"""Power cuts, by the disk that comes back: they lose what was not synced, or everything."""


@dataclass(slots=True)
class _InForce:
    id: str
    name: str
    role: str
    hosts: tuple[str, ...]
    how: dict[str, Any]


class PlannedFaults:
    """The faults of a plan. ``nodes``: of the cluster, as a run on hosts has them."""

    def __init__(self, plan: Plan, nodes: tuple[Node, ...], topics: tuple[str, ...]) -> None:
        self._plan = plan
        self._nodes = nodes
        self._topics = topics
        self._held: dict[str, str] = {}
        """Host -> the fault that has taken its node."""
        self._last: tuple[str, ...] = ()
        self._leaders = Leaders()
        self._here: dict[int, _InForce] = {}
        """By the number that the driver knows a fault by."""
        self._guided: dict[str, tuple[Fault, Begun]] = {}
        """Of the guided schedule, by their ids."""
        self._run: RecordedRun
        self._rows: _Rows

    def begin(self, run: RecordedRun) -> None:
        self._run, self._rows = run, _Rows(run.world, run.history)
        self._rows.here = self._here
        start_ms = run.world.now_ms
        for planned in self._plan.faults:
            self._at(start_ms + planned.at_s * 1000, lambda planned=planned: self._due(planned))  # type: ignore[misc]
        self._remember()

    def guide(self) -> None:
        guided, run = self._plan.guided, self._run
        if self._plan.follow is not None:
            follow_state(self._plan, run, self._topics, self)
        if guided is not None:
            play(guided, run, guided.topic or self._topics[0], self, run.ends_ms + GUIDED_S * 1000)

    def begun(self, fault: Fault, begun: Begun) -> None:
        self._rows.begun(fault, begun)

    def ended(self, fault: Fault, begun: Begun) -> None:
        for name, fault_id in list(self._held.items()):
            if fault_id == self._here[fault.id].id:
                del self._held[name]
        self._rows.ended(fault, begun)

    # --- of a guided schedule ------------------------------------------------------------------------------

    def aim(self, topic: str, partition: int) -> Aim:
        return Aim(self.state(), {node.node_id: node for node in self._nodes}, topic, partition)

    def note_begin(self, step: Inject, nodes: Sequence[int]) -> None:
        world, fault = self._run.world, step.fault
        number = _number(step.id)
        if fault.holds_node:
            self._held |= dict.fromkeys(step.hosts, step.id)
        self._here[number] = _InForce(step.id, fault.name, step.role, step.hosts, settings_of(fault))
        parts = [part.id for node in nodes for part in self._run.driver.machine(node)]
        down = frozenset(part for part in parts if not world.server(part).up)
        begun = Begun(f"{fault.name} of {', '.join(step.hosts)}", lambda: None, tuple(nodes), down)
        kind = _KINDS.get(getattr(fault, "disk", None), "kill")
        self._guided[step.id] = made = Fault(number, kind, world.now_ms, 0.0, "any", 0, number), begun
        self.begun(*made)

    def note_end(self, step: Inject) -> None:
        self.ended(*self._guided.pop(step.id))

    def note_miss(self, id_: str, fault: str, role: str, why: str) -> None:
        """Records a fault that never happened."""
        for row in missed(id_, role, why):
            self._rows.say(id_, fault, role, row)

    # --- of what follows the state ------------------------------------------------------------------------

    def nodes_on(self, hosts: Collection[str]) -> frozenset[int]:
        return frozenset(node.node_id for node in self._nodes if node.host.name in hosts)

    def names_in_force(self) -> Collection[str]:
        return [self._here[fault.id].name for fault in self._run.driver.in_force]

    def hosts_of(
        self, fault: FaultSpec, about: Occurrence, pick: int, spared: Collection[int]
    ) -> tuple[str, ...]:
        return self._hosts(fault, pick, spared, place=about.place, subject=about.nodes)

    def inject(
        self, id_: str, fault: FaultSpec, about: Occurrence, pick: int, hosts: tuple[str, ...]
    ) -> Callable[[], None] | None:
        role = f"{fault.target}, {about.state or 'to begin with'}"
        planned = PlannedFault(id_, 0.0, self._plan.duration_s, fault, pick)
        return self._begin(planned, hosts, role)

    # --- of the plan ---------------------------------------------------------------------------------------

    def _at(self, at_ms: float, then: Callable[[], None]) -> None:
        self._run.world.at(at_ms, lambda: None if self._run.driver.stopped else then())

    def _remember(self) -> None:
        self._leaders.see(self.state())
        self._at(self._run.world.now_ms + _REMEMBER_MS, self._remember)

    def _due(self, planned: PlannedFault, until_ms: float | None = None) -> None:
        now_ms = self._run.world.now_ms
        until_ms = now_ms + RESOLVE_MS if until_ms is None else until_ms
        try:
            hosts = self._hosts(planned.spec, planned.pick)
        except TargetError as nobody:
            if now_ms < until_ms:
                self._at(now_ms + _LOOK_MS, lambda: self._due(planned, until_ms))
            else:
                self._missed(planned, str(nobody))
            return
        if self._begin(planned, hosts, planned.spec.target) is None:
            self._missed(planned, "there was nothing left to do it to")

    def _hosts(
        self, fault: FaultSpec, pick: int, spared: Collection[int] = (), **about: Any
    ) -> tuple[str, ...]:
        """Returns those that have its role now. Raises TargetError."""
        held = {node.host.name for node in self._nodes if node.node_id in spared}
        if fault.build().holds_node:
            held |= set(self._held)
        now = Situation(
            self._nodes,
            self.state(),
            held=held,
            topics=self._topics,
            last=self._last,
            former=self._leaders.former,
            **about,
        )
        self._last = resolve(fault.target, now, pick)
        return self._last

    def _begin(self, planned: PlannedFault, hosts: tuple[str, ...], role: str) -> Callable[[], None] | None:
        """Returns what ends it before its time; None: nothing could be done."""
        begun = self._inject(planned, hosts, role)
        if begun is None:
            return None
        if planned.spec.build().holds_node:
            self._held |= dict.fromkeys(hosts, planned.id)
        return self._run.driver.put_in_force(*begun)

    def _missed(self, planned: PlannedFault, why: str) -> None:
        self.note_miss(planned.id, planned.spec.fault, planned.spec.target, why)

    def _inject(self, planned: PlannedFault, hosts: tuple[str, ...], role: str) -> tuple[Fault, Begun] | None:
        """Does what the fault is in virtual time, to every target. None: nothing could be done."""
        run, as_record = self._run, as_happened(planned.spec, hosts)
        number = _number(planned.id)
        servers = [server.id for server in run.world.servers()]
        parts: list[tuple[Kind, Begun]] = []
        for kind, nodes in in_virtual_time(as_record, servers):
            partitions = range(run.setup.partitions) if not nodes else (0,)
            for partition in partitions:
                fault = Fault(number, kind, 0.0, 0.0, "any", partition, number, on=nodes)
                draw = Random(f"{run.setup.seed}/{planned.id}/{len(parts)}")
                begun = run.driver.actions[kind](run.driver, fault, draw)
                if begun is not None:
                    parts.append((kind, begun))
        if not parts:
            return None
        spec = planned.spec
        self._here[number] = _InForce(planned.id, spec.fault, role, hosts, dict(as_record.how))
        duration_ms = planned.duration_s * 1000
        fault = Fault(number, parts[0][0], run.world.now_ms, duration_ms, "any", 0, number)
        return fault, _together([begun for _, begun in parts])

    def state(self) -> ClusterState:
        world = self._run.world
        partitions = tuple(
            PartitionState(
                one.tp.topic,
                one.tp.partition,
                one.leader,
                one.leader_epoch,
                tuple(one.replicas),
                tuple(one.isr),
                tuple(one.elr),
                tuple(one.last_known_elr),
            )
            for one in world.image.partitions()
        )
        there = tuple(id_ for id_, broker in sorted(world.image.brokers.items()) if not broker.fenced)
        return ClusterState(self._controller(world), there, partitions)

    def _controller(self, world: World) -> int:
        """Returns the id of the node with the active controller; beside a broker it is the broker's."""
        active = world.active_controller()
        if active is None:
            return -1
        return active.id - FIRST_CONTROLLER + 1 if self._run.setup.combined else active.id


def _number(id_: str) -> int:
    """Returns the number that the driver knows a fault by."""
    return _NUMBERS[id_[0]] + int(id_[1:])


def _together(parts: list[Begun]) -> Begun:
    """Several things that were done, as one."""

    def undo() -> None:
        for part in reversed(parts):
            part.undo()

    nodes = tuple(dict.fromkeys(node for part in parts for node in part.nodes))
    down = frozenset(node for part in parts for node in part.down)
    return Begun("; ".join(part.description for part in parts), undo, nodes, down)


class _Rows(NemesisRows):
    """Rows with the names of the specification."""

    here: dict[int, _InForce]

    def _row(self, fault: Fault, begun: Begun, phase: str, **more: Any) -> None:
        one = self.here[fault.id]
        if phase == "begin":
            more["how"] = one.how
        if phase == "ended":
            away = [host(node) for node in begun.down if not self._world.server(node).up]
            text = (
                f"{', '.join(away)} did not start" if away else "every node runs, and nothing is cut or held"
            )
            more |= {"restored": not away, "restoration": text}
        self.say(one.id, one.name, one.role, {"phase": phase, "targets": list(one.hosts), **more})

    def say(self, id_: str, name: str, role: str, extra: dict[str, Any]) -> None:
        event = Event(NEMESIS, Type.INFO, name, extra={"id": id_, "role": role, **extra})
        self._history.record(self._world.now_ms, event)
