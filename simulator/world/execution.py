"""Execution of a node: it handles the events of its inbox, and the effects that its core asks for are carried
out.

A process ends here too, however it ends, since an effect may end it (``Exit``, or a cut in the middle of one
event's effects).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heappush
from pkgutil import resolve_name
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.core.lifecycle import State
from wrackline.broker.defects import apply
from wrackline.broker.model import coordination as zk
from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.messages.requests import Refused
from wrackline.broker.model.types import METADATA, NodeId, SnapshotId, TopicPartition
from wrackline.broker.model.values import mypyc_attr
from wrackline.broker.rules.profile import Rules, profile
from wrackline.simulator.world.errors import DiskRefused, SimulationError
from wrackline.simulator.world.network import Message
from wrackline.simulator.world.nodes import (
    Down,
    SimBroker,
    SimNode,
    SimServer,
    StepKind,
    StepRecord,
    WorldOptions,
)
from wrackline.simulator.world.transport import Transport
from wrackline.simulator.world.zookeeper_door import ZooKeeper, of_zookeeper

_HAIR_MS = 1e-6
"""A timer of a skewed clock fires so much late: the core must never find it fired too early."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Execution(Transport):
    """The part of a World that lets cores handle events, and carries their effects out."""

    def __init__(self, seed: int | str, options: WorldOptions, rules: Rules | None) -> None:
        super().__init__(seed, options.network)
        if options.codec:
            # By name: a run without it has no use for the wire, which takes a while to import.
            self.wire = resolve_name("wrackline.simulator.world.wire:Wire")(seed)
        self.options = options
        self.rules = rules if rules is not None else apply(profile(options.profile), options.defects)
        self._newer = (
            apply(profile(options.upgrade_to), options.defects) if options.upgrade_to else self.rules
        )
        self._upgraded: set[NodeId] = set()
        self._handle_ms = options.handle_ms
        self._disk_random = Random(f"{seed}/disk")
        self._node_random = Random(f"{seed}/nodes")
        self._snapshot_random = Random(f"{seed}/snapshots")
        self.retains = True
        """Logs are cut at their beginning where their settings ask for it."""
        self.retained: dict[TopicPartition, int] = {}
        """The highest start of a log that retention has brought about."""
        self.zookeeper: ZooKeeper | None = None
        """Of profile zk08, which has no controllers."""
        if not self.rules.switches.has_controller:
            self.zookeeper = of_zookeeper("ensemble")(self, seed)

    @property
    def bridges(self) -> bool:
        """The cluster is ZooKeeper's, and is to become one with controllers, which are there already."""
        return self.zookeeper is not None and self._newer.switches.has_controller

    def rules_of(self, node: NodeId) -> Rules:
        """Returns the rules that the node is started with; all nodes have the same but in an upgrade."""
        return self._newer if node in self._upgraded else self.rules

    def upgrade(self, node: NodeId) -> None:
        """Gives the node the later profile from its next start on."""
        self._upgraded.add(node)

    def is_upgraded(self, node: NodeId) -> bool:
        return node in self._upgraded

    # --- what ZooKeeper needs to know ----------------------------------------------------------------------

    def life(self, node: NodeId) -> int:
        """Returns which life of its process the node is in; 0 while it is down."""
        result = self._nodes[node]
        return result.incarnation if result.core is not None else 0

    def is_paused(self, node: NodeId) -> bool:
        return self._nodes[node].paused

    def tell(self, node: NodeId, event: zk.SessionChanged | zk.Coordinated | zk.WatchFired) -> None:
        result = self._nodes[node]
        if result.core is not None:
            self._put(result, event, None)

    # --- events --------------------------------------------------------------------------------------------

    def _put(self, node: SimNode, event: Event, message: Message | None) -> None:
        node.inbox.append((event, message))
        self._wake(node)

    def _wake(self, node: SimNode) -> None:
        if node.handling or not node.inbox or node.paused or node.core is None:
            return
        node.handling = True
        self._numbers = number = self._numbers + 1
        when = self.now_ms + self._node_random.random() * self._handle_ms
        heappush(self._queue, (when, number, self._handle_next, node, None))

    def _handle_next(self, node: SimNode, _: None) -> StepRecord | None:
        node.handling = False
        if node.core is None or node.paused or not node.inbox:
            return None
        event, message = node.inbox.popleft()
        record = self._handle(node, event, "handle", message)
        if node.inbox:
            self._wake(node)
        return record

    def _handle(
        self, node: SimNode, event: Event, kind: StepKind, message: Message | None = None
    ) -> StepRecord:
        now_ms = self.now_ms
        world, local = node.clock_base
        effects = node.core.handle(event, local + (now_ms - world) * node.clock_rate)
        self.steps += 1
        record = StepRecord(self.steps, now_ms, kind, node.id, event, effects, message)
        limit = None if node.cut_rule is None else node.cut_rule[0](event, effects)
        if limit is not None and node.cut_rule is not None:
            ending = node.cut_rule[1]
            record.effects = effects[:limit]
            record.cut = True
            self._carry_out_all(node, record.effects)
            if node.core is not None:
                # Observers see the disk as the effects left it first, and what a power cut takes a step
                # later.
                node.last_core = node.core
                node.core, node.down, node.cut_rule = None, ending, None
                heappush(self._queue, (self.now_ms, -self._numbers, self._end_of_cut, node, ending))
            return record
        done = self._carry_out_all(node, effects)
        if done < len(effects):
            record.effects = effects[:done]
        if not node.accepts and node.core is not None and isinstance(node, SimServer):
            node.accepts = not isinstance(node, SimBroker) or node.core.state is not State.STARTING
        return record

    def _carry_out_all(self, node: SimNode, effects: Sequence[Effect]) -> int:
        """Returns how many were carried out. Those after an Exit are not."""
        at = 0
        self._cut_short = False
        try:
            for at, effect in enumerate(effects):
                kind = type(effect)
                if kind is fx.Trace:
                    continue
                _CARRIERS[kind](self, node, effect)
                if kind is fx.Exit:
                    return at + 1
        except DiskRefused as refused:
            return self._disk_refused(node, effects, at, refused)
        return len(effects)

    def _disk_refused(self, node: Any, effects: Sequence[Effect], at: int, refused: DiskRefused) -> int:
        """Do what the shell does: the core gets the failure before any other event. It asked for the effects
        that follow in the belief that all went well, so askers get an error of storage and the rest is left
        undone (B57). Returns how many effects were carried out."""
        self._report(node, ev.DiskFailed(refused.tp, refused.reason))
        if not self.rules.switches.stops_on_disk_failure:
            return at + 1 + self._carry_out_all(node, effects[at + 1 :])
        node.disk.offline = refused.reason
        for effect in effects[at + 1 :]:
            if isinstance(effect, fx.Reply):
                refusal = Refused(ErrorCode.kafka_storage_error, refused.reason)
                self._reply(node, fx.Reply(effect.request_id, refusal))
            elif isinstance(effect, fx.NoReply):
                self._no_reply(node, fx.NoReply(effect.request_id, close=True))
            elif isinstance(effect, fx.Exit):
                self._exit(node, effect)
        return at

    def _set_timer(self, node: SimNode, effect: fx.SetTimer) -> None:
        self._numbers = ticket = self._numbers + 1
        key, when = effect.key, effect.at_ms
        node.timers[key] = ticket
        world, local = node.clock_base
        if node.clock_rate != 1.0 or world:
            when = world + (when - local) / node.clock_rate + _HAIR_MS
        if when < self.now_ms:
            when = self.now_ms
        heappush(self._queue, (when, ticket, self._fire, node, key))

    def _cancel_timer(self, node: SimNode, effect: fx.CancelTimer) -> None:
        node.timers.pop(effect.key, None)

    def _fire(self, node: SimNode, key: str) -> StepRecord | None:
        if node.timers.get(key) != self._number or node.core is None:
            return None
        del node.timers[key]
        if node.paused:
            node.inbox.append((ev.TimerFired(key), None))
            return None
        return self._handle(node, ev.TimerFired(key), "timer")

    def _exit(self, node: SimNode, effect: fx.Exit) -> None:
        node.exits.append(effect)
        self._end(node, "clean" if effect.code == 0 else "exit")

    # --- disk ----------------------------------------------------------------------------------------------

    def _append(self, node: SimServer, effect: fx.Append) -> None:
        if node.disk.append(effect):
            self._flush(node, fx.Flush(effect.tp, effect.end_offset))

    def _truncate(self, node: SimServer, effect: fx.Truncate) -> None:
        end = node.disk.truncate(effect)
        if end < effect.to_offset:
            # Whatever the core asks for in its belief is not sent.
            self._cut_short = True
            self._report(node, ev.LogCut(effect.tp, end))

    def _report(self, node: SimNode, event: ev.LogCut | ev.DiskFailed) -> None:
        """Before any other event of the node: what the core believes of its logs is wrong."""
        heappush(self._queue, (self.now_ms, -self._numbers, self._reported, node, (event, node.incarnation)))

    def _reported(self, node: SimNode, what: tuple[ev.LogCut | ev.DiskFailed, int]) -> StepRecord | None:
        event, life = what
        if node.incarnation != life or node.core is None:
            return None
        return self._handle(node, event, "handle")

    def _retain(self, node: SimServer, effect: fx.Retain) -> None:
        if not self.retains or (start := node.disk.retain(effect, self.now_ms)) is None:
            return
        self.retained[effect.tp] = max(start, self.retained.get(effect.tp, 0))
        self._put(node, ev.LogStartMoved(effect.tp, start), None)

    def _flush(self, node: SimServer, effect: fx.Flush) -> None:
        if node.disk.begin_flush(effect.tp):
            self._flush_later(node, effect.tp)

    def _flush_later(self, node: SimServer, tp: TopicPartition) -> None:
        options = self.options
        delay = self._disk_random.uniform(options.flush_min_ms, options.flush_max_ms) + node.disk.slow_ms
        self._at(self.now_ms + delay, self._flushed, node, (tp, node.disk.logs[tp], node.incarnation))

    def _flushed(self, node: SimServer, what: tuple[TopicPartition, Any, int]) -> StepRecord | None:
        tp, log, life = what
        if node.incarnation != life or node.disk.logs.get(tp) is not log or node.core is None:
            return None
        if node.disk.flush_fails:
            self._flush_failed(node, tp)
            return None
        upto, again = node.disk.end_flush(node.disk.logs[tp])
        if again and node.disk.begin_flush(tp):
            self._flush_later(node, tp)
        if node.paused:
            node.inbox.append((ev.Flushed(tp, upto), None))
            return None
        return self._handle(node, ev.Flushed(tp, upto), "flushed")

    def _flush_failed(self, node: SimServer, tp: TopicPartition) -> None:
        """What was to be flushed stays unsynced, and may never be: the directory is used no more."""
        reason, node.disk.flush_fails = node.disk.flush_fails, ""
        if self.rules.switches.stops_on_disk_failure:
            node.disk.offline = reason
        self._put(node, ev.DiskFailed(tp, reason), None)

    def _write_snapshot(self, node: SimServer, effect: fx.WriteSnapshot) -> None:
        node.disk.begin_snapshot(effect)
        options = self.options
        delay = self._snapshot_random.uniform(options.flush_min_ms, 4 * options.flush_max_ms)
        self._at(self.now_ms + delay, self._snapshot_written, node, (effect.id, node.incarnation))

    def _snapshot_written(self, node: SimServer, what: tuple[SnapshotId, int]) -> StepRecord | None:
        snapshot, life = what
        if node.incarnation != life or node.core is None or snapshot not in node.disk.unfinished:
            return None
        reason = node.disk.end_snapshot(snapshot)
        if reason:
            if self.rules.switches.stops_on_disk_failure:
                node.disk.offline = reason
            self._put(node, ev.DiskFailed(METADATA, reason), None)
            return None
        if node.paused:
            node.inbox.append((ev.SnapshotWritten(snapshot), None))
            return None
        return self._handle(node, ev.SnapshotWritten(snapshot), "flushed")

    def _close_logs(self, node: SimServer, effect: fx.CloseLogs) -> None:
        self._put(node, ev.LogsClosed(node.disk.close_cleanly(effect)), None)

    # --- the end of a process ------------------------------------------------------------------------------

    def _end(self, node: SimNode, how: Down, keep: Mapping[TopicPartition, int] | None = None) -> str:
        """End the process. Returns the note on how it ended."""
        node.core, node.down, node.paused, node.cut_rule = None, how, False, None
        node.ended_life = node.incarnation
        node.timers.clear()
        node.inbox.clear()
        node.requests.clear()
        note: str = how
        if isinstance(node, SimServer):
            node.accepts = False
            node.disk.stopped()
            node.disk.abandon_snapshots(self._snapshot_random)
            if how == "power":
                lost = node.disk.lose_power(self._disk_random, keep)
                node.losses += [(self.now_ms, item) for item in lost]
                note += "".join(
                    f" {item.tp}:{item.from_offset}..{item.to_offset}{' torn' if item.torn else ''}"
                    for item in lost
                )
        self._hang_up(node, silent=how == "power")
        return note

    def _end_of_cut(self, node: SimNode, how: Down) -> StepRecord | None:
        if node.core is not None or node.ended_life == node.incarnation:
            return None
        return self._record("down", node.id, note=self._end(node, how))


def _zookeeper(world: Execution) -> ZooKeeper:
    if world.zookeeper is None:
        raise SimulationError("there is no ZooKeeper in this profile")
    return world.zookeeper


_CARRIERS: dict[type, Callable[[Execution, Any, Any], None]] = {
    fx.Send: Execution._send,
    fx.Reply: Execution._reply,
    fx.NoReply: Execution._no_reply,
    fx.CreateLog: lambda _, node, effect: node.disk.create(effect),
    fx.DeleteLog: lambda _, node, effect: node.disk.delete(effect),
    fx.Append: Execution._append,
    fx.Flush: Execution._flush,
    fx.Truncate: Execution._truncate,
    fx.ResetLog: lambda _, node, effect: node.disk.reset(effect),
    fx.MoveLogStart: lambda _, node, effect: node.disk.move_log_start(effect),
    fx.Retain: Execution._retain,
    # The simulated log lies on the disk in one way.
    fx.ConfigureLog: lambda _, node, effect: node.disk.layouts.update({effect.tp: effect.overrides}),
    fx.WriteEpochs: lambda _, node, effect: node.disk.write_epochs(effect),
    fx.WriteCheckpoint: lambda _, node, effect: node.disk.write_checkpoint(effect),
    fx.WriteQuorumState: lambda _, node, effect: node.disk.write_quorum_state(effect),
    fx.WriteSnapshot: Execution._write_snapshot,
    fx.DeleteSnapshot: lambda _, node, effect: node.disk.delete_snapshot(effect),
    fx.CloseLogs: Execution._close_logs,
    fx.SetTimer: Execution._set_timer,
    fx.CancelTimer: Execution._cancel_timer,
    zk.OpenSession: lambda world, node, effect: _zookeeper(world).open(node.id, effect),
    zk.Coordinate: lambda world, node, effect: _zookeeper(world).ask(node.id, effect),
    zk.CloseSession: lambda world, node, effect: _zookeeper(world).close(node.id),  # noqa: ARG005
    fx.Exit: Execution._exit,
}
