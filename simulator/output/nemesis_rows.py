"""The rows of nemesis and metadata in a simulated run's history: what was done to the cluster, what it cost,
and who was in the ISR when. The contract a run is judged by rests on them
(``wrackline.checkers.verdict.contracts``).

Unlike a nemesis on real machines the world knows what it did: a fault is proved by its node's disk and life.
"""

from __future__ import annotations

from typing import Any

from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import NodeId, TopicPartition
from wrackline.history.model import CONTROL, NEMESIS, PARTITION, Event, Type
from wrackline.simulator.clients.history import History
from wrackline.simulator.faults.driver import Begun, host
from wrackline.simulator.faults.kinds import Fault
from wrackline.simulator.output.timeline import node_name
from wrackline.simulator.world.world import SimServer, StepRecord, World

_REPLACED = ("wipe", "restore")
_RECOVERING = 1


class NemesisRows:
    """A driver's ``rows``."""

    def __init__(self, world: World, history: History) -> None:
        self._world = world
        self._history = history
        self._before: dict[int, dict[NodeId, tuple[int, int]]] = {}
        """Fault -> node -> (losses, life) when it began."""
        self._seen: dict[NodeId, int] = {}
        """Losses that an earlier fault has answered for."""

    def begun(self, fault: Fault, begun: Begun) -> None:
        self._before[fault.id] = {
            server.id: (self._seen.get(server.id, 0), server.incarnation) for server in self._servers(begun)
        }
        self._row(fault, begun, "begin", how=dict(begun.how))
        self._row(fault, begun, "active", **self._lost(fault, begun), proved=True, proof=begun.description)

    def ended(self, fault: Fault, begun: Begun) -> None:
        self._row(fault, begun, "undo")
        lost = self._lost(fault, begun)
        self._row(fault, begun, "ended", **lost, **self._proof(fault, begun, lost))
        for server in self._servers(begun):
            self._seen[server.id] = len(server.losses)

    def _servers(self, begun: Begun) -> list[SimServer]:
        return [self._world.server(node) for node in sorted({*begun.nodes, *begun.down})]

    def _lost(self, fault: Fault, begun: Begun) -> dict[str, Any]:
        """Returns what power cuts took since the fault began; all of it where the disk was replaced."""
        lost: dict[str, dict[str, int]] = {}
        for server in self._servers(begun):
            first, _ = self._before[fault.id][server.id]
            files: dict[str, int] = {}
            for _, gone in server.losses[first:]:
                file = f"{gone.tp.topic}-{gone.tp.partition}/{gone.from_offset:020d}.log"
                files[file] = files.get(file, 0) + gone.size_bytes
            if files:
                lost[host(server.id)] = files
        lossy = set(lost)
        if fault.kind in _REPLACED:
            lossy |= {host(node) for node in begun.nodes}
        return {"lost": lost, "lossy": sorted(lossy)}

    def _proof(self, fault: Fault, begun: Begun, lost: dict[str, Any]) -> dict[str, Any]:
        bytes_lost = sum(size for files in lost["lost"].values() for size in files.values())
        proved, proof = True, begun.description
        if fault.kind.endswith("-midway"):
            proved = any(
                server.ended_life >= self._before[fault.id][server.id][1] for server in self._servers(begun)
            )
            proof += "" if proved else ": no event had several effects in time"
        if "power" in fault.kind:
            proof += f"; {bytes_lost} unsynced bytes are gone"
        return {"proved": proved, "proof": proof}

    def _row(self, fault: Fault, begun: Begun, phase: str, **more: Any) -> None:
        extra: dict[str, Any] = {
            "id": f"f{fault.id}",
            "phase": phase,
            "targets": [host(node) for node in begun.nodes],
            "role": f"{fault.role}({fault.partition})",
            **more,
        }
        event = Event(NEMESIS, Type.INFO, fault.kind, extra=extra)
        self._history.record(self._world.now_ms, event)


class ClusterRows:
    """An observer of the world. Whenever committed metadata of a partition have changed it writes two kinds
    of rows: what brokers answer to clients, as the runner on real machines does, and of each partition the
    change itself, as it was committed."""

    def __init__(self, history: History, watched: tuple[TopicPartition, ...]) -> None:
        self._history = history
        self._watched = watched
        self._known: dict[TopicPartition, tuple[int, int]] = {}
        self._at = -1
        """Offset of the metadata that was looked at."""
        self._replicas: dict[str, list[NodeId]] = {}

    def __call__(self, world: World, step: StepRecord) -> None:
        if world.controllers and (step.node not in world.controllers or not step.effects):
            return
        image = world.image
        if image.metadata_offset == self._at:
            return
        self._at = image.metadata_offset
        result = [partition for tp in self._watched if (partition := image.partition(tp)) is not None]
        now = {partition.tp: (partition.leader_epoch, partition.partition_epoch) for partition in result}
        if now == self._known:
            return
        before, self._known = self._known, now
        replicas = {str(partition.tp.partition): sorted(partition.replicas) for partition in result}
        if replicas != self._replicas:
            self._replicas = replicas
            nodes = {str(node): host(node) for node in world.brokers}
            extra: dict[str, Any] = {"assignment": replicas, "nodes": nodes}
            self._row(world, "assignment", extra, self._watched[0].topic)
        rows = [
            {
                "topic": partition.tp.topic,
                "partition": partition.tp.partition,
                "leader": partition.leader,
                "leader_epoch": partition.leader_epoch,
                "isr": list(partition.isr),
                "elr": list(partition.elr),
                "replicas": list(partition.replicas),
            }
            for partition in result
        ]
        self._row(world, "cluster", {"partitions": rows})
        for partition in result:
            if before.get(partition.tp) != now[partition.tp]:
                self._change(world, partition)

    def _change(self, world: World, partition: PartitionImage) -> None:
        active = world.active_controller()
        extra = {
            "at_ns": int(world.now_ms * 1_000_000),
            "place": f"offset {world.image.metadata_offset}",
            "leader": partition.leader,
            "partition_epoch": partition.partition_epoch,
            "replicas": list(partition.replicas),
            "isr": list(partition.isr),
            "elr": list(partition.elr),
            "last_known_elr": list(partition.last_known_elr),
            "recovering": partition.leader_recovery_state == _RECOVERING,
        }
        event = Event(
            CONTROL,
            Type.INFO,
            PARTITION,
            topic=partition.tp.topic,
            partition=partition.tp.partition,
            leader_epoch=partition.leader_epoch,
            node=None if active is None else node_name(active.id),
            extra=extra,
        )
        self._history.record(world.now_ms, event)

    def _row(self, world: World, f: str, extra: dict[str, Any], topic: str | None = None) -> None:
        self._history.record(world.now_ms, Event(CONTROL, Type.INFO, f, topic, extra=extra))
