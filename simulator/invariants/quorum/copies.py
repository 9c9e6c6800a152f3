"""The copy of the metadata log that each server has, and its snapshots, looked at where they change.

``snapshot``  a snapshot is made when so many records or bytes are committed since the last one, and no
              earlier; when the disk has it the log begins at the one before it, and what is older is gone. A
              broker asks its controller for what comes after its copy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.model.config import NodeConfig
from wrackline.broker.model.effects import DeleteSnapshot, ResetLog, Send, WriteSnapshot
from wrackline.broker.model.events import ResponseReceived, SnapshotWritten
from wrackline.broker.model.messages.requests import FetchRequest
from wrackline.broker.model.types import METADATA, NodeId, SnapshotId, TopicPartition
from wrackline.simulator.invariants.quorum.voter import last_epoch
from wrackline.simulator.invariants.watchers import Scope, Watcher
from wrackline.simulator.world.disk import Disk
from wrackline.simulator.world.nodes import BROKER_DEFAULTS, CONTROLLER_DEFAULTS
from wrackline.simulator.world.world import StepRecord, World

_RECORDS = "metadata_log_max_records_between_snapshots"
_BYTES = "metadata_log_max_record_bytes_between_snapshots"
_DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(NodeConfig)}
_CHANNEL = "controller-fetch"


class Copies(Watcher):
    """Looks at the steps of servers that have effects."""

    scope = Scope.SERVERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._ends: dict[tuple[NodeId, int], int] = {}
        """(server, its life) -> what was committed to its knowledge after its last step."""

    def __call__(self, world: World, step: StepRecord) -> None:
        node, event = step.node, step.event
        stored = isinstance(event, SnapshotWritten)
        controller = world.controllers.get(node)
        if controller is None:
            answered = isinstance(event, ResponseReceived) and event.source in world.controllers
            if node not in world.brokers or not (answered or stored):
                return
        server = world.server(node)
        disk, life = server.disk, (node, server.incarnation)
        log = disk.logs.get(METADATA)
        if step.cut or disk.offline or log is None:
            return
        if controller is None:
            end = log.leo  # a broker takes what is committed alone
            self._look_at_fetch(step, disk)
        elif isinstance(controller.core, Controller):
            end = controller.core.log.high_watermark
        else:
            return
        grown = end > self._ends.get(life, end)
        self._ends[life] = end
        if stored:
            self._look_at_start(step, disk, end)
        elif grown:
            settings = (
                {**BROKER_DEFAULTS, **world.options.broker}
                if controller is None
                else {**CONTROLLER_DEFAULTS, **world.options.controller}
            )
            self._look_at_growth(step, disk, end, settings)

    def _look_at_fetch(self, step: StepRecord, disk: Disk) -> None:
        for effect in step.effects:
            if type(effect) is not Send or effect.channel != _CHANNEL:
                continue
            request = effect.request
            if isinstance(request, FetchRequest) and len(request.partitions) == 1:
                [part] = request.partitions
                log, epoch = disk.logs[METADATA], last_epoch(disk)
                values = part.fetch_offset, part.log_start, request.replica_id
                expected = log.leo, log.start, step.node
                if values != expected or (epoch is not None and part.last_fetched_epoch != epoch):
                    text = f"broker {step.node} asks {request}, its log goes from {log.start} to {log.leo}"
                    self.find(step, "snapshot", f"{text} in epoch {epoch}")

    def _look_at_growth(self, step: StepRecord, disk: Disk, end: int, settings: Mapping[str, Any]) -> None:
        made = [effect.id for effect in step.effects if type(effect) is WriteSnapshot]
        if len(disk.unfinished) > len(made):  # one at a time
            return
        newest = max(disk.snapshots, default=SnapshotId(0, 0)).end_offset
        records, most = end - newest, int(settings[_RECORDS])
        most_bytes = int(settings.get(_BYTES, _DEFAULTS[_BYTES]))
        size = 0
        if records < most:  # the size does not matter else
            log = disk.logs[METADATA]
            first, last = bisect_right(log.ends, newest), bisect_right(log.ends, end)
            size = sum(len(stored.data) for stored in log.batches[first:last])
        due = records >= most or (records > 0 and size >= most_bytes)
        own = [one for one in made if one.end_offset <= end]
        if due is not bool(own):
            since = f"{records} records of {size} bytes are committed since {newest}"
            text = f"node {step.node} makes {own or 'no snapshot'}; {since}"
            self.find(step, "snapshot", text)

    def _look_at_start(self, step: StepRecord, disk: Disk, end: int) -> None:
        log, stored = disk.logs[METADATA], sorted(disk.snapshots)
        gone = [one.id for one in step.effects if type(one) is DeleteSnapshot]
        reset = any(type(effect) is ResetLog and effect.tp == METADATA for effect in step.effects)
        start = log.start
        if reset:
            expected = step.event.id.end_offset  # type: ignore[union-attr]
        else:
            expected = min(stored[-2].end_offset, end) if len(stored) > 1 else start
        old = [one for one in stored[:-1] if one.end_offset < start]
        early = [one for one in gone if one.end_offset >= start and one != step.event.id]  # type: ignore[union-attr]
        if start != expected or old or early:
            text = f"node {step.node} has {stored} and a log from {start} on, and has deleted {gone}"
            self.find(step, "snapshot", text)
