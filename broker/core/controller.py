"""The controller: one thread of events, one log of metadata (protocol.md 2.6-2.9, 2.12.8).

Every change is decided on a speculative image, appended to the metadata log as one batch and answered when
that batch is committed: nothing has an effect, and no reply leaves, before (K02). The committed image is what
readers and the trace see. What the quorum looks like is the log's business (controller_log.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.core.config import ControllerConfig
from broker.core.controller_brokers import Brokers, allocate_producer_ids
from broker.core.controller_draft import Draft
from broker.core.controller_fetch import Observers
from broker.core.controller_log import Entry, MetadataLog
from broker.core.controller_partitions import alter_partition, reconsider
from broker.core.controller_recovery import RECOVERY, Recoveries
from broker.core.controller_topics import create_topics, delete_topics
from broker.core.controller_trace import trace_committed
from broker.core.describe import describe
from broker.core.effects import CloseLogs, Effect, Exit, Reply, SetTimer, Trace
from broker.core.events import (
    Boot,
    DiskFailed,
    Event,
    Flushed,
    LogsClosed,
    RequestCancelled,
    RequestReceived,
    ResponseReceived,
    SendFailed,
    StopRequested,
    TimerFired,
)
from broker.core.image import CLUSTER_DEFAULTS, ClusterImage
from broker.core.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    MetadataRequest,
    Refused,
    Request,
    Response,
)
from broker.core.records import ConfigRecord, LeaderChangeRecord, NoOpRecord
from broker.core.types import METADATA
from broker.rules.profile import Rules

SESSIONS = "sessions"
NOOP = "noop"


class Controller:
    """Single controller; the active one by definition."""

    def __init__(self, config: ControllerConfig, rules: Rules) -> None:
        self.config = config
        self.rules = rules
        self.log = MetadataLog(config.node_id)
        self.speculative = ClusterImage()
        self.committed = ClusterImage()
        self._brokers = Brokers()
        self._observers = Observers()
        self._recoveries = Recoveries(config, rules)
        self._incarnation = UUID(int=0)
        self._waiting: deque[tuple[int, int, Callable[[], Response]]] = deque()
        """(last offset that must be committed, request id, its answer)."""
        self._sessions_armed = False
        self._leo_at_noop = -1
        self._state = "starting"
        """starting, active, stopping or stopped."""

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        match event:
            case Boot():
                return self._boot(event, now_ms)
            case DiskFailed():
                return self._stop(1, f"metadata log: {event.reason}")
            case LogsClosed():
                return self._stop(0, "controlled shutdown")
            case _ if self._state in ("starting", "stopped"):
                return []
            case Flushed() if event.tp == METADATA:
                return self._flushed(event.upto, now_ms)
            case RequestReceived() if self._state == "stopping":
                refused = Refused(ErrorCode.not_controller, "the controller is shutting down")
                return [Reply(event.request_id, refused)]
            case _ if self._state == "stopping":
                return []
            case StopRequested():
                self._state = "stopping"
                return [
                    Trace("stop", {"why": "asked to"}),
                    CloseLogs(-1, {METADATA: self.log.high_watermark}),
                ]
            case RequestReceived():
                return self._request(event, now_ms)
            case RequestCancelled():
                return self._observers.forget(event.request_id)
            case ResponseReceived():
                return self._heard(event.correlation, event.response, now_ms)
            case SendFailed():
                return self._heard(event.correlation, None, now_ms)
            case TimerFired():
                return self._timer(event.key, now_ms)
            case _:
                return []

    # --- life --------------------------------------------------------------------------------------------

    def _boot(self, boot: Boot, now_ms: float) -> list[Effect]:
        self._incarnation = boot.incarnation_id
        recovered = boot.logs.get(METADATA)
        try:
            self.speculative.apply_all(self.log.restore(recovered, boot.metadata))
        except ValueError as wrong:
            return self._stop(1, f"the metadata log cannot be read after offset {self.log.leo}: {wrong}")
        self._state = "active"
        effects = self.log.lead(exists=recovered is not None)
        effects.append(Trace("raft_role", {"role": "leader", "epoch": self.log.epoch, "leo": self.log.leo}))
        leads = self._draft()
        leads.add(LeaderChangeRecord(self.config.node_id, (self.config.node_id,)))
        effects += self._append(leads, now_ms)
        defaults = self._draft()
        self._write_defaults(defaults)
        effects += self._append(defaults, now_ms)
        self._brokers.start_sessions(self._draft(), now_ms)
        return effects + self._arm_sessions(now_ms) + self._arm_noop(now_ms)

    def _write_defaults(self, draft: Draft) -> None:
        """Cluster-wide topic defaults live in the log, so that brokers and controller agree on them."""
        wanted = {
            **self.config.topic_defaults,
            "min.insync.replicas": str(self.config.min_insync_replicas),
            "unclean.leader.election.enable": "true" if self.config.unclean_leader_election else "false",
        }
        known = dict(draft.image.configs.get(CLUSTER_DEFAULTS, {}))
        for key in sorted(known.keys() | wanted.keys()):
            if known.get(key) != wanted.get(key):
                draft.add(ConfigRecord(*CLUSTER_DEFAULTS, key, wanted.get(key)))
        if draft.records:
            reconsider(draft)

    def _stop(self, code: int, reason: str) -> list[Effect]:
        self._state = "stopped"
        self._waiting.clear()
        return [Exit(code, reason)]

    # --- writing -----------------------------------------------------------------------------------------

    def _draft(self) -> Draft:
        return Draft(self.speculative, self.config, self.rules, self._incarnation, self.log.leo)

    def _append(self, draft: Draft, now_ms: float) -> list[Effect]:
        return self.log.append(draft.records, now_ms) if draft.records else []

    def _answer(self, request_id: int, answer: Callable[[], Response]) -> list[Effect]:
        """When everything decided so far is committed: an answer must not rest on what may yet be lost."""
        last = self.log.leo - 1
        if last < self.log.high_watermark:
            return [Reply(request_id, answer())]
        self._waiting.append((last, request_id, answer))
        return []

    def _flushed(self, upto: int, now_ms: float) -> list[Effect]:
        entries, effects = self.log.flushed(upto)
        if not entries:
            return effects
        effects = [*effects, *self._commit(entries)]
        while self._waiting and self._waiting[0][0] < self.log.high_watermark:
            _, request_id, answer = self._waiting.popleft()
            effects.append(Reply(request_id, answer()))
        return effects + self._observers.wake(self.log) + self._recover(now_ms)

    def _commit(self, entries: list[Entry]) -> list[Effect]:
        delta = self.committed.apply_all(entries)
        lines = trace_committed(self.committed, entries, self._recoveries.logs_of)
        return lines + self._recoveries.look(self.committed, delta)

    # --- unclean recovery --------------------------------------------------------------------------------

    def _recover(self, now_ms: float) -> list[Effect]:
        """Elect where every candidate's log is known, ask where one is not."""
        draft = self._draft()
        self._recoveries.decide(draft)
        return self._append(draft, now_ms) + self._recoveries.ask(now_ms)

    def _heard(self, correlation: int, response: Response | None, now_ms: float) -> list[Effect]:
        lines = self._recoveries.heard(self.speculative, correlation, response, now_ms)
        return lines + self._recover(now_ms)

    # --- requests ----------------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now_ms: float) -> list[Effect]:
        request = event.request
        match request:
            case FetchRequest():
                return self._observers.fetch(self.log, event.request_id, request, now_ms)
            case MetadataRequest() | DescribeClusterRequest() | DescribeTopicPartitionsRequest():
                asked = request
                return self._answer(event.request_id, lambda: self._describe(asked))
            case _:
                draft = self._draft()
                response = self._decide(draft, request, now_ms)
                effects = self._append(draft, now_ms) + self._arm_sessions(now_ms)
                return effects + self._answer(event.request_id, lambda: response)

    def _decide(self, draft: Draft, request: Request, now_ms: float) -> Response:
        match request:
            case BrokerHeartbeatRequest():
                return self._brokers.heartbeat(draft, request, now_ms)
            case AlterPartitionRequest():
                return alter_partition(draft, request)
            case BrokerRegistrationRequest():
                return self._brokers.register(draft, request, now_ms)
            case CreateTopicsRequest():
                return create_topics(draft, request)
            case DeleteTopicsRequest():
                return delete_topics(draft, request)
            case AllocateProducerIdsRequest():
                return allocate_producer_ids(draft, request)
            case _:
                return Refused(
                    ErrorCode.unsupported_version, f"a controller does not serve {type(request).__name__}"
                )

    def _describe(
        self, request: MetadataRequest | DescribeClusterRequest | DescribeTopicPartitionsRequest
    ) -> Response:
        return describe(self.committed, request, self.config.cluster_id, self.config.node_id)

    # --- timers ------------------------------------------------------------------------------------------

    def _timer(self, key: str, now_ms: float) -> list[Effect]:
        if key == SESSIONS:
            self._sessions_armed = False
            draft = self._draft()
            self._brokers.expire(draft, now_ms)
            return self._append(draft, now_ms) + self._arm_sessions(now_ms)
        if key == RECOVERY:
            return self._recover(now_ms)
        if key == NOOP:
            return self._noop(now_ms) + self._arm_noop(now_ms)
        return self._observers.timer(self.log, key)

    def _arm_sessions(self, now_ms: float) -> list[Effect]:
        """One timer, at or before the first expiry: contacts only move expiries back."""
        if self._sessions_armed:
            return []
        expiry_ms = self._brokers.next_expiry_ms(self._draft())
        if expiry_ms is None:
            return []
        self._sessions_armed = True
        return [SetTimer(SESSIONS, max(now_ms, expiry_ms))]

    def _noop(self, now_ms: float) -> list[Effect]:
        """An idle log gets a record now and then, so that its high watermark is seen to move (2.12.8)."""
        effects: list[Effect] = []
        if self.log.leo == self._leo_at_noop:
            draft = self._draft()
            draft.add(NoOpRecord())
            effects = self._append(draft, now_ms)
        self._leo_at_noop = self.log.leo
        return effects

    def _arm_noop(self, now_ms: float) -> list[Effect]:
        interval_ms = self.config.noop_interval_ms
        return [SetTimer(NOOP, now_ms + interval_ms)] if interval_ms > 0 else []
