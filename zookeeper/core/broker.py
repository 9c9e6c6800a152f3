"""The broker of profile zk08: one object, no I/O. It extends the dispatcher that it shares with the broker
under a controller (``broker/core/dispatcher.py``) by what ZooKeeper says.

``ZookeeperBroker(config, rules).handle(event, now_ms) -> list[Effect]``
"""

from __future__ import annotations

from typing import ClassVar

from wrackline.broker.core.dispatcher import Dispatcher
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.coordination import (
    Answer,
    CloseSession,
    Coordinated,
    Create,
    Get,
    Outcome,
    SessionChanged,
    WatchFired,
)
from wrackline.broker.model.effects import CloseLogs, Exit
from wrackline.broker.model.events import Boot, Event, Flushed, LogsClosed
from wrackline.broker.model.messages.metadata import CreateTopicsRequest
from wrackline.broker.model.messages.requests import OffsetForLeaderEpochRequest
from wrackline.broker.model.types import NO_EPOCH, NodeId, RecoveredLog, TopicPartition
from wrackline.broker.rules.profile import Rules
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.level import ClusterLevel
from wrackline.zookeeper.core.replicas.assigned import Assigned
from wrackline.zookeeper.core.replicas.checkpoints import Checkpoints
from wrackline.zookeeper.core.replicas.duties import Duties
from wrackline.zookeeper.core.replicas.elections import Elections
from wrackline.zookeeper.core.replicas.leading import Leading
from wrackline.zookeeper.core.replicas.local import Local
from wrackline.zookeeper.core.state_changes import StateChanges
from wrackline.zookeeper.core.succession import Succession
from wrackline.zookeeper.core.topics import Topics
from wrackline.zookeeper.core.view import Registered, View
from wrackline.zookeeper.core.znodes import StateRequest

_REGISTER_AGAIN_MS = 200.0


class ZookeeperBroker(Dispatcher):
    server: ClassVar = "profile zk08"
    on_zookeeper: ClassVar = True

    def __init__(self, config: BrokerConfig, rules: Rules, later: Rules | None = None) -> None:
        """``later``: what holds when a controller has taken over (``zookeeper/core/bridging.py``); None: this
        broker knows of none."""
        ctx = Context(config, rules)
        fetchers = Fetchers(ctx)
        self._assigned = assigned = Assigned(ctx, fetchers)
        super().__init__(ctx, assigned, fetchers)
        self.coordination = Coordination(
            ctx,
            config.zookeeper_session_timeout_ms,
            on_session=self._register,
            on_reconnected=self._look_at_all,
            on_lost=self._lost,
        )
        self.view = View(
            ctx,
            self.coordination,
            on_partition=self._partition,
            on_deleted=self._deleted,
            on_brokers=self._brokers,
        )
        self._level = ClusterLevel(
            ctx,
            self.coordination,
            on_raised=lambda: self._elections.level_rose(),
            bridges=later is not None,
            obeys=later is None or later.switches.fences_zookeeper,
        )
        self._leading = Leading(
            ctx,
            self.coordination,
            self.view,
            self._level,
            waits_for_isr=later is not None and later.switches.opening_waits_for_isr,
        )
        self._succession = None if later is None else Succession(ctx, self.coordination, self._level, later)
        self._elections = Elections(
            ctx, self.coordination, self.view, assigned, fetchers, self._leading, self._level
        )
        self._duties = Duties(ctx, self.coordination, self.view, self._leading)
        self._leading.on_ruled_out = self._elections.resign
        self._leading.on_open = self._duties.begin
        self._leading.on_progress = self._duties.progress
        self._leading.on_stop = self._duties.end
        self._duties.resign = self._elections.resign
        self._state_changes = StateChanges(ctx, self.coordination, self._state_request)
        self._checkpoints = Checkpoints(ctx, assigned)
        self._serve[OffsetForLeaderEpochRequest] = self._for_leader_epoch
        self._serve[CreateTopicsRequest] = Topics(ctx, self.coordination, self.view).create
        self._members: tuple[NodeId, ...] = ()
        """Of the cluster, as an administrator has created it."""
        self._state = State.STARTING

    @property
    def state(self) -> State:
        return self._state

    @property
    def handed_over(self) -> bool:
        """Nobody leads by ZooKeeper any more."""
        return self._level.handed_over

    @property
    def previous_epoch(self) -> int:
        """Returns the epoch with which the core that comes after this one registers."""
        return NO_EPOCH if self._succession is None else self._succession.previous_epoch

    def local(self, tp: TopicPartition) -> Local | None:
        return self._assigned.locals.get(tp)

    # --- events --------------------------------------------------------------------------------------------

    def _comes_too_late(self, event: Event) -> bool:
        return not isinstance(event, LogsClosed)

    def _other(self, event: Event) -> None:
        if not isinstance(event, SessionChanged | Coordinated | WatchFired):
            raise TypeError(f"profile zk08 knows no {type(event).__name__}")
        self.coordination.handle(event)

    def _look_at(self, replica: Replica) -> None:
        local = self._assigned.locals.get(replica.tp)
        if local is not None and local.replica is replica and local.leads:
            self._leading.look(local)
        super()._look_at(replica)

    def _flushed(self, event: Flushed) -> None:
        super()._flushed(event)
        if (replica := self._assigned.get(event.tp)) is not None:
            self._checkpoints.flushed(replica)

    def _for_leader_epoch(self, request_id: int, request: OffsetForLeaderEpochRequest) -> None:
        """Answers OffsetForLeaderEpoch from the level on that has epochs, and refuses it below."""
        asks = self._ctx.rules.switches.asks_epoch_first
        (self._offsets.for_leader_epoch if asks else self._refuse)(request_id, request)

    # --- start and session ---------------------------------------------------------------------------------

    def _boot(self, boot: Boot) -> None:
        super()._boot(boot)
        self.coordination.keep(znodes.BROKERS, self._cluster)
        self._level.start()
        self.view.start()
        if self._succession is not None:
            self._succession.start(boot)
        self._checkpoints.start()
        self.coordination.open()

    def _cluster(self, answer: Answer) -> None:
        """``create cluster with brokers`` (Z02): whoever is not in the list does not register."""
        self._members = znodes.to_ids(answer.data)
        if self._ctx.broker_epoch == NO_EPOCH and self.coordination.session:
            self._register()

    def _register(self) -> None:
        """brokerStartup (Z43), in each session."""
        config, session = self._ctx.config, self.coordination.session
        if not session or config.node_id not in self._members:
            return
        self._ctx.broker_epoch = NO_EPOCH
        address = znodes.of_address(znodes.Address(config.host, config.port, config.replication_port))
        create = Create(znodes.broker(config.node_id), address, ephemeral=True)
        self.coordination.ask(create, lambda answer: self._registered(session, answer))

    def _registered(self, session: int, answer: Answer) -> None:
        """A former session of this broker may have the node still: it goes when that one ends. Which session
        has it tells the answer to another try, too, when the first answer was lost."""
        if session != self.coordination.session or self._ctx.broker_epoch != NO_EPOCH:
            return
        stat = answer.stat
        if stat is not None and stat.owner == session:
            self._ctx.broker_epoch = stat.created
            self._ctx.trace("registered", session=session, created=stat.created)
            self._state = State.RUNNING
            self._level.registered()
            if self._succession is not None:
                self._succession.registered(stat.created)
            self._look_at_all()
            return
        if answer.outcome is Outcome.NODE_EXISTS:
            self.coordination.ask(
                Get(znodes.broker(self._ctx.config.node_id)), lambda found: self._found_node(session, found)
            )
            return
        self._ctx.set_timer("register", self._ctx.now_ms + _REGISTER_AGAIN_MS, self._register_again)

    def _found_node(self, session: int, answer: Answer) -> None:
        if answer.stat is not None and answer.stat.owner == session:
            self._registered(session, answer)
        else:
            self._ctx.set_timer("register", self._ctx.now_ms + _REGISTER_AGAIN_MS, self._register_again)

    def _register_again(self) -> None:
        if self._ctx.broker_epoch == NO_EPOCH:
            self._register()

    def _lost(self, why: str) -> None:
        """The session is over, or may be: this broker leads nothing any more. Followers go on: whom they
        follow may lead still."""
        self._ctx.trace("session_lost", why=why)
        for local in list(self._assigned.locals.values()):
            self._elections.fence(local, f"session: {why}")

    # --- what ZooKeeper tells ------------------------------------------------------------------------------

    def _look_at_all(self) -> None:
        if self._ctx.broker_epoch == NO_EPOCH:
            self._register()
            return
        for partition in list(self._ctx.image.partitions()):
            self._look(partition.tp)

    def _partition(self, registered: Registered) -> None:
        if self._ctx.broker_epoch != NO_EPOCH:
            self._look(registered.tp)

    def _look(self, tp: TopicPartition) -> None:
        known, me = self.view.of(tp), self._ctx.config.node_id
        image = self._ctx.image.partition(tp)
        if known is None or image is None:
            return
        if me in image.replicas:
            self._state_changes.listen(tp)
            self._assigned.opened(image)
        elif me in known.states:
            self._state_changes.listen(tp)
        local = self._assigned.locals.get(tp)
        if local is not None and local.leads:
            self._duties.replicas_changed(local, image.replicas)
        self._elections.look(tp)

    def _brokers(self) -> None:
        """Looks at all leaders after the set of live brokers has changed: a leader that waits for its ISR
        may have nobody to wait for."""
        for local in list(self._assigned.locals.values()):
            if local.leads:
                local.replica.touch()

    def _deleted(self, tp: TopicPartition) -> None:
        """The topic is gone from ZooKeeper."""
        local = self._assigned.locals.get(tp)
        self._state_changes.stop(tp)
        if local is not None:
            self._elections.fence(local, "deleted")
            self._assigned.deleted(local)

    def _state_request(self, tp: TopicPartition, request: StateRequest) -> None:
        image, local = self._ctx.image.partition(tp), self._assigned.locals.get(tp)
        match request:
            case StateRequest.BECOME_FOLLOWER | StateRequest.REPLICA_ASSIGNED:
                if image is not None:
                    self._assigned.opened(image)
                    self._elections.look(tp)
            case StateRequest.REPLICA_UNASSIGNED | StateRequest.DELETE_REPLICA:
                if image is not None and self._ctx.config.node_id in image.replicas:
                    return  # assigned again meanwhile
                self._state_changes.remove(tp)
                if local is not None:
                    self._elections.fence(local, request.value)
                    self._assigned.deleted(local)

    def hand_over(self) -> dict[TopicPartition, RecoveredLog]:
        """The last thing that this broker does, as effects of the event that it has just handled: it gives up
        every role, and answers who waits for one. Its logs, as they are. The session goes on: the broker's
        node tells the controller that this life was there."""
        for local in list(self._assigned.locals.values()):
            self._elections.fence(local, "a controller has taken over")
        self._fetchers.stop()
        self._settle()
        self._ctx.cancel_timers()
        return {replica.tp: replica.recovered() for replica in self._assigned if not replica.failed}

    # --- disk and the end ----------------------------------------------------------------------------------

    def _fail(self, replica: Replica) -> None:
        self._elections.fence(self._assigned.locals[replica.tp], "disk")
        replica.failed = True
        replica.touch()

    def _logs_closed(self) -> None:
        self._ctx.out += [CloseSession(), Exit(0, "clean shutdown")]

    def _stop(self) -> None:
        """There is no controlled shutdown: leaders go with the session, when all logs are on the disk."""
        for local in list(self._assigned.locals.values()):
            self._elections.fence(local, "stop")
        self._fetchers.stop()
        self._settle()
        self._state = State.CLOSED
        self._ctx.trace("stop", how="asked to")
        high_watermarks = {replica.tp: replica.high_watermark for replica in self._assigned}
        self._ctx.out.append(CloseLogs(max(self._ctx.broker_epoch, 0), high_watermarks))
