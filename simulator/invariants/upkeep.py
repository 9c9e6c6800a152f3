"""What servers do by the clock, and at their end, looked at as a run goes.

``timer``       work that is done again and again has its timer, which is set to the interval of the settings
``checkpoint``  a file of checkpoints that has just had its turn says what is so (docs/protocol.md 2.14)
``retention``   when retention has its turn, every log that has limits is looked at, up to what is committed
``heartbeat``   a broker says in its heartbeats what is so, and the next one is due when it should be
``rebalance``   when the balance of leaders is looked at, whoever prefers too many that others lead gets them
``idle log``    a record is written when the log has not grown since the last look (docs/protocol.md 2.12.8)
``end``         a process that was asked to stop writes and asks nothing when its logs are closed; exit code 0
                is that of a clean end alone
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.controller.controller import LEAVING, Controller
from wrackline.broker.core.controller.periodic import IMBALANCE, NOOP, PERIODIC
from wrackline.broker.core.lifecycle import State
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.effects import (
    Append,
    CancelTimer,
    Checkpoint,
    CloseLogs,
    Exit,
    NoReply,
    Reply,
    Retain,
    Send,
    SetTimer,
    Trace,
    WriteCheckpoint,
)
from wrackline.broker.model.events import (
    Boot,
    DiskFailed,
    LogsClosed,
    ResponseReceived,
    SendFailed,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from wrackline.broker.model.messages.requests import FetchResponse
from wrackline.broker.model.types import METADATA, FlushMode, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.invariants.watchers import HAIR_MS, Scope, Watcher
from wrackline.simulator.world.nodes import PROBE, SimBroker, SimServer
from wrackline.simulator.world.world import StepRecord, World

_LOOK_EVERY_MS = 250.0
_HEARTBEAT = "heartbeat"
_DEADLINE = "shutdown-deadline"
_TRIES = (_HEARTBEAT, "register", _DEADLINE)
"""Timers of a broker's life."""
_CLOSES = (StopRequested, TimerFired, ResponseReceived, SendFailed)
"""Events at which a server may close its logs."""
_HANDLED = frozenset({Boot, *_CLOSES})
_AFTER_CLOSING = (Reply, NoReply, Exit, Trace, CancelTimer)


_OF_INTEREST = frozenset(
    {
        *PERIODIC,
        *_TRIES,
        *("isr-shrink", "checkpoint-hw", "checkpoint-recovery", "retention", "producer-expiration", "flush"),
        LEAVING,
    }
)
"""Timers at which there is something to look at."""


def _intervals(core: Any) -> Mapping[str, float]:
    """Timer -> interval, of the work that this core does again and again now."""
    config = core.config
    if isinstance(core, Controller):
        balances = config.auto_leader_rebalance
        every = {
            NOOP: config.noop_interval_ms,
            IMBALANCE: config.leader_imbalance_check_interval_ms if balances else 0,
        }
        return {key: ms for key, ms in every.items() if ms > 0} if core.is_active else {}
    if core.state is State.CLOSED:
        return {}
    every = {
        "isr-shrink": config.replica_lag_time_max_ms / 2,
        "checkpoint-hw": config.high_watermark_checkpoint_interval_ms,
        "checkpoint-recovery": config.recovery_point_checkpoint_interval_ms,
        "retention": config.log_retention_check_interval_ms,
        "producer-expiration": config.producer_id_expiration_check_interval_ms,
    }
    if config.flush_mode is FlushMode.EVERY_INTERVAL:
        every["flush"] = config.flush_ms
    return every


def _soon_ms(config: BrokerConfig) -> float:
    """Until a request to the controllers that failed is sent again."""
    return max(20.0, min(config.heartbeat_interval_ms / 10, 200.0))


class Timers(Watcher):
    """Looks now and then whether the timers of periodic work are set."""

    scope = Scope.EVERY

    def __call__(self, world: World, step: StepRecord) -> None:
        self.next_ms = step.at_ms + _LOOK_EVERY_MS
        for server in world.servers():
            if server.core is None or server.paused or server.inbox or not server.incarnation:
                continue
            if server.id in world.brokers and not isinstance(server.core, Broker):
                continue
            intervals = _intervals(server.core)
            for key in intervals.keys() ^ (server.timers.keys() & {*intervals, *PERIODIC}):
                word = "no" if key in intervals else "a"
                self.find(step, "timer", f"node {server.id} has {word} timer for {key}")
            if isinstance(server.core, Broker) and server.core.timers != server.timers.keys():
                waits = sorted(server.core.timers ^ server.timers.keys())
                self.find(
                    step, "timer", f"broker {server.id} waits for one of {waits}, or it is set, not both"
                )


class Upkeep(Watcher):
    """Looks at the steps of servers that have effects."""

    scope = Scope.SERVERS

    def __init__(self, watched: tuple[TopicPartition, ...]) -> None:
        super().__init__(watched)
        self._files: dict[tuple[NodeId, int, Checkpoint], Mapping[TopicPartition, int]] = {}
        """(node, its life, file) -> what was written last."""
        self._lives: dict[NodeId, Boot] = {}
        self._fenced: dict[tuple[NodeId, int], bool] = {}
        """(broker, its life) -> whether it was fenced when it last heard of that."""
        self._closing: dict[NodeId, int] = {}
        """Node -> the life that has closed its logs."""
        self._ends: dict[NodeId, tuple[Controller, int, int]] = {}
        """Controller -> (its life, its epoch, end of its log) when it last looked whether the log is idle."""

    def __call__(self, world: World, step: StepRecord) -> None:
        event = step.event
        node = step.node
        if node >= PROBE or step.cut or event is None:
            return
        last = step.effects[-1]
        fetched = isinstance(event, ResponseReceived) and type(event.response) is FetchResponse
        idle = not self._closing and type(last) is not Exit
        if idle and (fetched or type(event) not in _HANDLED):  # most steps
            return
        server: Any = world.brokers.get(node) or world.controllers.get(node)
        if server is None:
            return
        if type(last) is Exit:
            self._look_at_exit(step, last)
            self._closing.pop(node, None)
        elif self._closing.get(node) == server.incarnation:
            for effect in step.effects:
                if not isinstance(effect, _AFTER_CLOSING):
                    self.find(step, "end", f"node {node} has closed its logs, and asks for {effect}")
        if not isinstance(event, _CLOSES):
            if type(event) is Boot:
                self._lives[node] = event
                self._look_at_intervals(world, step, server)
            return
        if fetched or (type(event) is TimerFired and event.key not in _OF_INTEREST):
            return
        core = server.core
        if core is None or server.disk.offline:
            return
        if type(event) is TimerFired:
            self._look_at_intervals(world, step, server)
        if type(event) is TimerFired and isinstance(core, Controller) and core.is_active:
            self._look_at_office(step, core, event.key)
        if isinstance(core, Broker):
            if type(event) is TimerFired:
                self._look_at_turn(world, step, server, event.key)
            elif type(event) is ResponseReceived and type(event.response) is BrokerHeartbeatResponse:
                self._look_at_heartbeat(step, server, event.response)
        for effect in step.effects:
            if type(effect) is CloseLogs:
                self._closing[node] = server.incarnation
                if isinstance(core, Broker):
                    self._look_at_closing(step, server, core, effect)
            elif type(effect) is Send and type(effect.request) is BrokerHeartbeatRequest:
                self._look_at_request(step, core, effect.request)
            elif type(effect) is SetTimer and effect.key in _TRIES and type(event) is not TimerFired:
                self._look_at_try(step, server, core, effect)

    def _look_at_exit(self, step: StepRecord, effect: Exit) -> None:
        clean = isinstance(step.event, LogsClosed)
        right = 0 if clean else 3 if isinstance(step.event, DiskFailed) and step.node < 100 else 1
        if effect.code != right:
            self.find(step, "end", f"node {step.node} ends with exit code {effect.code}: {effect.reason}")

    def _look_at_intervals(self, world: World, step: StepRecord, server: SimServer) -> None:
        core: Any = server.core
        if core is None or (server.id in world.brokers and not isinstance(core, Broker)):
            return
        now_ms, intervals = server.local_ms(step.at_ms), _intervals(core)
        for effect in step.effects:
            if type(effect) is SetTimer and effect.key in intervals:
                after_ms = effect.at_ms - now_ms
                if abs(after_ms - intervals[effect.key]) > HAIR_MS:
                    right = f"and {intervals[effect.key]} is its interval"
                    self.find(step, "timer", f"node {server.id} does {effect.key} after {after_ms}, {right}")

    def _look_at_turn(self, world: World, step: StepRecord, server: SimBroker, key: str) -> None:
        """``key``: of the timer that has fired."""
        core: Any = server.core
        if core.state is State.CLOSED or key not in ("checkpoint-hw", "checkpoint-recovery", "retention"):
            return
        for effect in step.effects:
            if type(effect) is WriteCheckpoint:
                self._files[server.id, server.incarnation, effect.kind] = effect.offsets
        logs, everyone = server.disk.logs, world.rules_of(server.id).switches.checkpoints_leaderless
        tps = (*logs, *server.disk.unusable)
        replicas = [replica for tp in tps if (replica := core.replica(tp)) is not None]
        if key == "retention":
            limits = {
                (replica.tp, settings.retention_bytes, settings.retention_ms, replica.high_watermark)
                for replica in replicas
                if not (settings := replica.settings).retains_all and not replica.failed
            }
            actual = {
                (one.tp, one.retention_bytes, one.retention_ms, one.upto)
                for one in step.effects
                if type(one) is Retain
            }
            if actual != limits:
                self.find(step, "retention", f"node {server.id} retains by {actual}, and not by {limits}")
        elif key == "checkpoint-hw":
            right = {METADATA: logs[METADATA].leo}
            right |= {one.tp: one.high_watermark for one in replicas if everyone or one.leader_id >= 0}
            self._look_at_file(step, server, Checkpoint.HIGH_WATERMARK, right)
        else:
            metadata = logs[METADATA]
            right = {METADATA: metadata.synced, **{one.tp: one.log.flushed for one in replicas}}
            self._look_at_file(step, server, Checkpoint.RECOVERY_POINT, right)
            right = {METADATA: metadata.start, **{one.tp: one.log.log_start for one in replicas}}
            self._look_at_file(step, server, Checkpoint.LOG_START, right)

    def _look_at_office(self, step: StepRecord, core: Controller, key: str) -> None:
        """``key``: of the timer that has fired at an active controller."""
        if key == NOOP:
            now, before = (core, core.raft.epoch), self._ends.get(step.node, (None, -1, -1))
            end = min((one.base_offset for one in step.effects if type(one) is Append), default=core.log.leo)
            if (before == (*now, end)) != (end < core.log.leo):
                grown = f"its log ended at {before[2]}, then at {end}, and now at {core.log.leo}"
                self.find(step, "idle log", f"controller {step.node}: {grown}")
            self._ends[step.node] = *now, core.log.leo
        elif key == IMBALANCE:
            image, percent = core.speculative, core.config.leader_imbalance_per_broker_percent
            for broker in image.brokers.values():
                mine = [one for one in image.partitions() if one.replicas[0] == broker.id]
                others = [one for one in mine if one.leader != broker.id]
                movable = [str(one.tp) for one in others if broker.active and broker.id in one.isr]
                if movable and len(others) * 100 > percent * len(mine):
                    self.find(step, "rebalance", f"broker {broker.id} could lead {movable}, and does not")

    def _look_at_file(
        self, step: StepRecord, server: SimBroker, kind: Checkpoint, right: Mapping[TopicPartition, int]
    ) -> None:
        now = self._files.get((server.id, server.incarnation, kind))
        if now != right:
            text = f"the file {kind} of node {server.id} says {now}, and not {right}"
            self.find(step, "checkpoint", text)

    def _look_at_request(self, step: StepRecord, core: Broker, request: BrokerHeartbeatRequest) -> None:
        now = request.broker_epoch, request.current_metadata_offset
        wishes = request.want_fence, request.want_shut_down
        state = core.state
        right = core.broker_epoch, core.image.metadata_offset
        if now != right or wishes != (state is State.STARTING, state is State.STOPPING):
            self.find(
                step, "heartbeat", f"broker {step.node} is {state.value}, at {right}, and says {request}"
            )

    def _look_at_try(self, step: StepRecord, server: SimBroker, core: Broker, timer: SetTimer) -> None:
        """Looks at what follows when a request has failed, or the broker is asked to stop."""
        config = core.config
        right_ms = _soon_ms(config)
        if timer.key == _DEADLINE:
            right_ms = max(5_000.0, 5.0 * config.heartbeat_interval_ms)
        elif timer.key == _HEARTBEAT and type(step.event) is not SendFailed:
            return
        after_ms = timer.at_ms - server.local_ms(step.at_ms)
        if abs(after_ms - right_ms) > HAIR_MS:
            text = f"broker {step.node} sets its timer {timer.key} to {after_ms} ms, not {right_ms}"
            self.find(step, "heartbeat", text)

    def _look_at_heartbeat(
        self, step: StepRecord, server: SimBroker, answer: BrokerHeartbeatResponse
    ) -> None:
        """``answer``: to a heartbeat, which the broker has just taken."""
        core: Any = server.core
        state, config = core.state, core.config
        good = answer.error is NO_ERROR
        if state is State.CLOSED:
            return
        if good and state is State.RECOVERY and not answer.is_fenced:
            self.find(step, "heartbeat", f"broker {step.node} is unfenced, and does not know it")
        if good and state is State.STOPPING and answer.should_shut_down:
            self.find(step, "heartbeat", f"broker {step.node} may go, and stays")
        life = server.id, server.incarnation
        if good and answer.is_fenced != self._fenced.get(life, True):
            self._fenced[life] = answer.is_fenced
            kind = "fence" if answer.is_fenced else "unfence"
            if not any(type(effect) is Trace and effect.kind == kind for effect in step.effects):
                self.find(step, "heartbeat", f"broker {step.node} does not say that it has met {kind}")
        waits = state is State.STOPPING or (state is State.RECOVERY and answer.is_fenced)
        right_ms = config.heartbeat_interval_ms if good and not waits else _soon_ms(config)
        for effect in step.effects:
            if type(effect) is Send and type(effect.request) is BrokerHeartbeatRequest:
                return
            if type(effect) is SetTimer and effect.key == _HEARTBEAT:
                after_ms = effect.at_ms - server.local_ms(step.at_ms)
                if abs(after_ms - right_ms) > HAIR_MS:
                    text = f"broker {step.node} is {state.value}, and beats after {after_ms}, not {right_ms}"
                    self.find(step, "heartbeat", text)
                return
        self.find(step, "heartbeat", f"broker {step.node} has no next heartbeat")

    def _look_at_closing(self, step: StepRecord, server: SimBroker, core: Broker, effect: CloseLogs) -> None:
        right = {METADATA: server.disk.logs[METADATA].leo}
        right |= {
            tp: replica.high_watermark
            for tp in server.disk.logs
            if (replica := core.replica(tp)) is not None and not replica.failed
        }
        now = effect.high_watermarks
        if core.state is not State.CLOSED or any(now.get(tp) != at for tp, at in right.items()):
            text = f"broker {server.id} closes its logs at {dict(now)}, not at {right}"
            self.find(step, "end", f"{text}, and is {core.state.value}")
        epoch = core.broker_epoch if core.broker_epoch >= 0 else self._lives[step.node].previous_broker_epoch
        if effect.broker_epoch != epoch:
            text = f"broker {server.id} signs its end with epoch {effect.broker_epoch}, not {epoch}"
            self.find(step, "end", text)
        if timers := server.timers.keys() & set(_TRIES):
            self.find(step, "end", f"broker {server.id} has closed its logs, and waits for {sorted(timers)}")
