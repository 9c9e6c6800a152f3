"""The controller: one thread of events, one log of metadata (docs/protocol.md 2.6-2.9, 2.12.8).

Every change is decided on a speculative image, appended to the metadata log as one batch and answered when
that batch is committed: nothing has an effect, and no reply leaves, before (K02). The committed image is what
readers and the trace see. Who leads the quorum and what is committed is told by quorum/voter.py: its leader
becomes the active controller once everything up to its own first record is applied, and drops what it had
only speculated when it has to resign. The others apply what is committed, so that they could be next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.core.controller.decisions.brokers import Brokers
from wrackline.broker.core.controller.decisions.configs import write_defaults
from wrackline.broker.core.controller.decisions.draft import Draft
from wrackline.broker.core.controller.decisions.features import ControllerLevels, write_first_level
from wrackline.broker.core.controller.decisions.table import decide, is_final
from wrackline.broker.core.controller.forced_elections import FORCED, ForcedElections
from wrackline.broker.core.controller.metrics import UncleanRecoveries
from wrackline.broker.core.controller.periodic import PERIODIC, Periodic
from wrackline.broker.core.controller.states import DEAF, ControllerState
from wrackline.broker.core.controller.trace import trace_committed
from wrackline.broker.core.controller.unclean_recovery import RECOVERY, Recoveries
from wrackline.broker.core.quorum.log import Entry
from wrackline.broker.core.quorum.voter import RAFT_TIMERS, Raft
from wrackline.broker.core.requests.describe import DescribeRequest, describe
from wrackline.broker.core.zookeeper_door import Migration
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.coordination import Coordinated, SessionChanged, WatchFired
from wrackline.broker.model.effects import CancelTimer, CloseLogs, Effect, Exit, Reply, SetTimer, Trace
from wrackline.broker.model.events import (
    Boot,
    DiskFailed,
    Event,
    Flushed,
    LogsClosed,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    SnapshotWritten,
    StopRequested,
    TimerFired,
)
from wrackline.broker.model.messages.admin import (
    DescribeQuorumRequest,
    ElectionType,
    ElectLeadersRequest,
)
from wrackline.broker.model.messages.controller import ControllerRegistrationRequest
from wrackline.broker.model.messages.metadata import DescribeClusterRequest
from wrackline.broker.model.messages.quorum import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from wrackline.broker.model.messages.requests import FetchRequest, Refused, Request, Response
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest
from wrackline.broker.model.metadata.image import ClusterImage, everything
from wrackline.broker.model.metadata.records import NoOpRecord
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import METADATA, NO_LEADER
from wrackline.broker.rules.profile import Rules

SESSIONS = "sessions"
LEAVING = "leaving"
_LEAVING_MS = 500
"""How long a leader that stops waits for the others to hear of it."""


class Controller:
    def __init__(self, config: ControllerConfig, rules: Rules, migration: Migration | None = None) -> None:
        """``migration``: the cluster may be ZooKeeper's still. None: there is no ZooKeeper."""
        self.config = config
        self.rules = rules
        self.raft = Raft(config, rules)
        self.log = self.raft.log
        self.speculative = ClusterImage()
        self.committed = ClusterImage()
        self._brokers = Brokers()
        self._counts = UncleanRecoveries()
        self._levels = ControllerLevels(config, rules.levels)
        self.recoveries = Recoveries(config, rules)
        self._forced = ForcedElections(config, self.recoveries, self._counts)
        self._periodic = Periodic(config)
        self._migration = migration
        self._incarnation = UUID(int=0)
        self._waiting: deque[tuple[int, int, Callable[[], Response]]] = deque()
        """(last offset that must be committed, request id, its answer)."""
        self._sessions_armed = False
        self._state = ControllerState.STARTING
        self._claimed: int | None = None
        """The epoch in which this is the active controller."""

    @property
    def is_active(self) -> bool:
        """Decides; another controller refuses what brokers ask with NOT_CONTROLLER."""
        return self._claimed is not None

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        if isinstance(event, Boot):
            return self._boot(event, now_ms)
        if self._state in DEAF:
            return []
        effects = self._event(event, now_ms)
        effects += self._settle(now_ms)
        if Exit in map(type, effects):
            self._state = ControllerState.STOPPED
        return effects

    def _event(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case DiskFailed():
                return self._stop(1, f"metadata log: {event.reason}")
            case LogsClosed():
                return self._stop(0, "controlled shutdown")
            case _ if self._state is ControllerState.STOPPING:
                return self._leaving(event, now_ms)
            case Flushed() if event.tp == METADATA:
                return self.raft.flushed(event.upto, now_ms)
            case SnapshotWritten():
                return self.raft.snapshot_written(event.id, now_ms)
            case StopRequested():
                self._state = ControllerState.STOPPING
                leave = self.raft.leave(now_ms)
                ending = (
                    self._close_logs() if self.raft.has_left else [SetTimer(LEAVING, now_ms + _LEAVING_MS)]
                )
                return [Trace("stop", {"why": "asked to"}), *leave, *ending]
            case RequestReceived():
                return self._request(event, now_ms)
            case RequestCancelled():
                return self.raft.cancelled(event.request_id, now_ms)
            case ResponseReceived():
                return self._response(event.correlation, event.response, now_ms)
            case SendFailed():
                return self._response(event.correlation, None, now_ms)
            case TimerFired():
                return self._timer(event.key, now_ms)
            case SessionChanged() | Coordinated() | WatchFired() if self._migration is not None:
                return self._migration.handle(event, now_ms) + self._take_over(self._migration, now_ms)
            case _:
                return []

    def _settle(self, now_ms: float) -> list[Effect]:
        """Acts on what the event has done to the quorum: records were committed, leadership was won or
        lost."""
        effects: list[Effect] = []
        if self._claimed is not None and not (self.raft.leads and self.raft.epoch == self._claimed):
            effects += self._resign(now_ms)
        if self.raft.loaded is not None:
            self.committed, self.raft.loaded = self.raft.loaded, None
            self.speculative = self.committed.copy()
        grown = bool(self.raft.committed)
        while self.raft.committed:
            entries, self.raft.committed = self.raft.committed, []
            effects += self._commit(entries)
            if why := self.rules.features.unknown_level(self.committed.level, self.rules.levels):
                return effects + self._stop(1, why)
            leadership = self.raft.leadership
            if self._claimed is not None:
                effects += self._reply_committed() + self._recover(now_ms)
                effects += self._forced.settle(self.committed, now_ms)
                if self._migration is not None and not self._migration.waits(self.committed):
                    effects += self._migration.end(now_ms)
            elif leadership is not None and self.log.high_watermark > leadership.epoch_start:
                effects += self._claim(now_ms)
        effects += self._levels.tell(self.raft.leader_id, self.raft.epoch, self._incarnation, now_ms)
        return effects + self.raft.make_snapshot(self.committed, now_ms) if grown else effects

    # --- life --------------------------------------------------------------------------------------------

    def _boot(self, boot: Boot, now_ms: float) -> list[Effect]:
        self._incarnation = boot.incarnation_id
        try:
            effects = self.raft.boot(boot, now_ms)
        except ValueError as error:
            mend = "empty this controller's own data directory only while a majority of the others is up"
            return self._stop(1, f"{error}; {mend}")
        self._state = ControllerState.RUNNING
        return effects + self._settle(now_ms)

    def _claim(self, now_ms: float) -> list[Effect]:
        """Begins to decide once everything up to the LeaderChangeRecord is applied (docs/protocol.md
        2.12.8)."""
        self._claimed = self.raft.epoch
        self.speculative = self.committed.copy()
        self._brokers = Brokers()
        self._levels.begin()
        effects = self._recover_anew()
        defaults = self._draft()
        write_first_level(defaults)
        write_defaults(defaults)
        effects += self._append(defaults, now_ms)
        self._brokers.start_sessions(self._draft(), now_ms, self.raft.leader_heard_ms)
        effects += self._arm_sessions(now_ms) + self._periodic.begin(now_ms)
        if self._migration is not None:
            effects += self._migration.begin(self.committed, now_ms)
        return effects + self._recover(now_ms)

    def _take_over(self, migration: Migration, now_ms: float) -> list[Effect]:
        """Takes over what ZooKeeper had, in one batch: all of it counts, or nothing."""
        records, migration.records = migration.records, []
        draft = self._draft()
        for record in records if migration.waits(draft.image) else ():
            draft.add(record)
        return self._append(draft, now_ms)

    def _resign(self, now_ms: float) -> list[Effect]:
        """Resigns without an answer to anybody: the next leader says whether what is not committed will
        be."""
        self._claimed = None
        self._sessions_armed = False
        self.speculative = self.committed.copy()
        gone = Refused(ErrorCode.not_controller, "this controller leads no longer")
        refusals: list[Effect] = [Reply(request_id, gone) for _, request_id, _ in self._waiting]
        self._waiting.clear()
        refusals += self._forced.refuse_all(gone)
        timers = [CancelTimer(SESSIONS), CancelTimer(RECOVERY), *self._periodic.end()]
        ended = [] if self._migration is None else self._migration.end(now_ms)
        return refusals + timers + ended

    def _leaving(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case RequestReceived():
                refused = Refused(ErrorCode.not_controller, "the controller is shutting down")
                return [Reply(event.request_id, refused)]
            case TimerFired() if event.key == LEAVING:
                return self._close_logs()
            case ResponseReceived() | SendFailed() if not self.raft.has_left:
                self.raft.answered(event.correlation, None, now_ms)
                return [CancelTimer(LEAVING), *self._close_logs()] if self.raft.has_left else []
            case _:
                return []

    def _close_logs(self) -> list[Effect]:
        return [CloseLogs(-1, {METADATA: self.log.high_watermark})]

    def _stop(self, code: int, reason: str) -> list[Effect]:
        self._state = ControllerState.STOPPED
        self._waiting.clear()
        return [Exit(code, reason)]

    # --- writing -----------------------------------------------------------------------------------------

    def _draft(self) -> Draft:
        image, end, levels = self.speculative, self.log.leo, self._levels.known
        return Draft(image, self.config, self.rules, self._incarnation, end, controllers=levels)

    def _append(self, draft: Draft, now_ms: float) -> list[Effect]:
        return self.raft.append(draft.records, now_ms) if draft.records else []

    def _answer(self, request_id: int, answer: Callable[[], Response]) -> list[Effect]:
        """When everything decided so far is committed: an answer must not rest on what may yet be lost."""
        last = self.log.leo - 1
        if last < self.log.high_watermark:
            return [Reply(request_id, answer())]
        self._waiting.append((last, request_id, answer))
        return []

    def _reply_committed(self) -> list[Effect]:
        effects: list[Effect] = []
        while self._waiting and self._waiting[0][0] < self.log.high_watermark:
            _, request_id, answer = self._waiting.popleft()
            effects.append(Reply(request_id, answer()))
        return effects

    def _commit(self, entries: list[Entry]) -> list[Effect]:
        level = self.committed.level
        delta = self.committed.apply_all(entries)
        if not self.raft.leads:
            return []
        if self.is_active:
            self._counts.count(entries, self.recoveries.decisions)
        lines = trace_committed(self.committed, entries, self.recoveries.decisions)
        if self.is_active and self.committed.level != level:
            late = Refused(ErrorCode.request_timed_out, "the metadata has another level: ask again")
            return lines + self._forced.refuse_all(late) + self._recover_anew()
        return lines + self.recoveries.look(self.committed, delta) if self.is_active else lines

    # --- unclean recovery --------------------------------------------------------------------------------

    def metrics(self) -> tuple[Metric, ...]:
        """Returns metrics of what is committed now."""
        waiting = self.recoveries.waiting(self.committed) if self.is_active else ()
        return self._counts.metrics(waiting, active=self.is_active)

    def _recover_anew(self) -> list[Effect]:
        """Begins recoveries anew, by the rules of the level that the metadata has."""
        self.recoveries = Recoveries(self.config, self.rules.at(self.committed.level))
        self._forced = ForcedElections(self.config, self.recoveries, self._counts)
        return self.recoveries.look(self.committed, everything(self.committed))

    def _recover(self, now_ms: float) -> list[Effect]:
        """Elect where every candidate's log is known, ask where one is not."""
        draft = self._draft()
        self.recoveries.decide(draft, now_ms)
        return self._append(draft, now_ms) + self.recoveries.ask(now_ms)

    def _response(self, correlation: int, response: Response | None, now_ms: float) -> list[Effect]:
        if self._levels.is_mine(correlation):
            self._levels.answered(response, now_ms)
            return []
        if self.raft.is_mine(correlation):
            return self.raft.answered(correlation, response, now_ms)
        if not self.is_active:
            return []
        lines = self.recoveries.answered(self.speculative, correlation, response, now_ms)
        return lines + self._recover(now_ms)

    # --- requests ----------------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now_ms: float) -> list[Effect]:
        request = event.request
        match request:
            case (
                FetchRequest()
                | VoteRequest()
                | BeginQuorumEpochRequest()
                | EndQuorumEpochRequest()
                | FetchSnapshotRequest()
            ):
                return self.raft.request(event.request_id, request, now_ms)
            case _ if not self.is_active:
                return self._refuse(event.request_id, request)
            case ControllerRegistrationRequest():
                return [Reply(event.request_id, self._levels.heard(request))]
            case DescribeQuorumRequest():
                return [Reply(event.request_id, self.raft.describe(now_ms))]
            case _ if isinstance(request, DescribeRequest):
                return self._answer(event.request_id, lambda: self._describe(request))
            case _ if self._migration is not None and self._migration.waits(self.committed):
                waits = Refused(ErrorCode.not_controller, "the cluster is ZooKeeper's still")
                return [Reply(event.request_id, waits)]
            case ElectLeadersRequest() if request.election != ElectionType.PREFERRED:
                draft = self._draft()
                known = self._forced.begin(draft, self.committed, event.request_id, request, now_ms)
                effects = self._append(draft, now_ms)
                if known is not None:
                    return effects + self._answer(event.request_id, lambda: known)
                return effects + self._recover(now_ms) + self._forced.settle(self.committed, now_ms)
            case _:
                draft = self._draft()
                response = decide(draft, self._brokers, request, now_ms)
                if not draft.records and not self.raft.is_quorum_of_one and is_final(response):
                    # Only who still leads may say so: a deposed controller does not know newer broker epochs.
                    draft.add(NoOpRecord())
                effects = self._append(draft, now_ms) + self._arm_sessions(now_ms)
                return effects + self._answer(event.request_id, lambda: response)

    def _describe(self, request: DescribeRequest) -> Response:
        return describe(self.committed, request, self.config.cluster_id, self.config.node_id)

    def _refuse(self, request_id: int, request: Request) -> list[Effect]:
        """The business of the active controller. Who that is, a standby tells who asks for the cluster."""
        leader = self.raft.leader_id
        if isinstance(request, DescribeClusterRequest) and leader not in (NO_LEADER, self.config.node_id):
            return [Reply(request_id, describe(self.committed, request, self.config.cluster_id, leader))]
        problem = f"node {leader} leads the quorum" if leader != NO_LEADER else "the quorum has no leader"
        return [Reply(request_id, Refused(ErrorCode.not_controller, problem))]

    # --- timers ------------------------------------------------------------------------------------------

    def _timer(self, key: str, now_ms: float) -> list[Effect]:
        if key.startswith(RAFT_TIMERS):
            return self.raft.timer(key, now_ms)
        if not self.is_active:
            return []
        if key == SESSIONS:
            self._sessions_armed = False
            draft = self._draft()
            self._brokers.expire(draft, now_ms)
            return self._append(draft, now_ms) + self._arm_sessions(now_ms)
        if key == RECOVERY:
            return self._recover(now_ms)
        if key == FORCED:
            return self._forced.settle(self.committed, now_ms)
        if key in PERIODIC:
            draft = self._draft()
            armed = self._periodic.fired(key, draft, now_ms)
            return self._append(draft, now_ms) + armed
        if self._migration is not None and self._migration.is_mine(key):
            return self._migration.timer(key, now_ms) + self._take_over(self._migration, now_ms)
        return []

    def _arm_sessions(self, now_ms: float) -> list[Effect]:
        """One timer, at or before the first expiry: contacts only move expiries back."""
        if self._sessions_armed:
            return []
        expiry_ms = self._brokers.next_expiry_ms(self._draft())
        if expiry_ms is None:
            return []
        self._sessions_armed = True
        return [SetTimer(SESSIONS, max(now_ms, expiry_ms))]
