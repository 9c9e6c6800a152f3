"""A broker on its way from ZooKeeper to a controller (KIP-866; docs/rolling-upgrades.md): one process, one
data directory, two cores one after the other.

As long as ZooKeeper is in charge this is a broker of profile zk08-kip101. When the cluster's level says that
a controller takes over, it gives up every role, and the core of the later profile begins on its logs as it
would after a restart. That one has a copy of the metadata log, which is how the next start knows.
"""

from __future__ import annotations

from dataclasses import replace

from kio.schema.errors import ErrorCode

from wrackline.broker.core.broker import Broker
from wrackline.broker.core.lifecycle import State
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.core.requests.describe import DescribeRequest, describe
from wrackline.broker.model.config import BrokerConfig
from wrackline.broker.model.coordination import CloseSession, Coordinated, SessionChanged, WatchFired
from wrackline.broker.model.effects import Effect, NoReply, Reply
from wrackline.broker.model.events import Boot, Event, RequestCancelled, RequestReceived
from wrackline.broker.model.messages.requests import Refused
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import METADATA, NodeId, TopicPartition
from wrackline.broker.rules.profile import Rules
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.rules import zk08_kip101

_OF_ZOOKEEPER = (SessionChanged, Coordinated, WatchFired)


class BridgingBroker:
    def __init__(self, config: BrokerConfig, rules: Rules) -> None:
        """``rules``: those under a controller."""
        self._config = config
        self._rules = rules
        self._boot: Boot | None = None
        self._unanswered: dict[int, None] = {}
        """Requests that the first of the cores has not answered, in order."""
        self._former_image: ClusterImage | None = None
        """What ZooKeeper said last, while the later core knows nothing yet. So long the session goes on."""
        self.now: Broker | ZookeeperBroker = ZookeeperBroker(config, zk08_kip101(), rules)

    @property
    def acting(self) -> Broker | ZookeeperBroker:
        return self.now

    # --- as of either core ---------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self.now.image

    @property
    def state(self) -> State:
        return self.now.state

    @property
    def broker_epoch(self) -> int:
        return self.now.broker_epoch

    def metrics(self) -> tuple[Metric, ...]:
        return self.now.metrics()

    def replica(self, tp: TopicPartition) -> Replica | None:
        return self.now.replica(tp)

    def fetching(self, tp: TopicPartition) -> tuple[NodeId, ...]:
        return self.now.fetching(tp)

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, event: Event, now_ms: float) -> list[Effect]:
        """Effects in the order in which they must be carried out."""
        former = self.now
        if isinstance(former, Broker):
            return self._later(former, event, now_ms)
        match event:
            case Boot():
                self._boot = event
                if METADATA in event.logs or event.snapshots:
                    self.now = Broker(self._config, self._rules)
                    return self.now.handle(event, now_ms)
            case RequestReceived():
                self._unanswered[event.request_id] = None
            case RequestCancelled():
                self._unanswered.pop(event.request_id, None)
        effects = former.handle(event, now_ms)
        if former.handed_over:
            self._succeed(former, effects, now_ms)
        for effect in effects:
            if isinstance(effect, Reply | NoReply):
                self._unanswered.pop(effect.request_id, None)
        return effects

    def _succeed(self, former: ZookeeperBroker, effects: list[Effect], now_ms: float) -> None:
        """The later core begins where the former one ends. ``effects``: the former one's, which grow."""
        boot = self._boot
        assert boot is not None, "an event came before Boot"
        logs = former.hand_over()
        answered = {effect.request_id for effect in effects if isinstance(effect, Reply | NoReply)}
        # What these have done is not known to anybody any more.
        lost = Refused(ErrorCode.request_timed_out, "a controller has taken over")
        effects += [Reply(one, lost) for one in self._unanswered if one not in answered]
        self._unanswered.clear()
        self._former_image = former.image
        self.now = later = Broker(self._config, self._rules)
        later.succeed(former)
        again = replace(boot, logs=logs, previous_broker_epoch=former.previous_epoch)
        effects += later.handle(again, now_ms)

    def _later(self, core: Broker, event: Event, now_ms: float) -> list[Effect]:
        if isinstance(event, _OF_ZOOKEEPER):
            return []  # the answer to a question of the former core
        if self._former_image is None:
            return core.handle(event, now_ms)
        if core.state is not State.STARTING:
            self._former_image = None
            return [CloseSession(), *core.handle(event, now_ms)]
        if not isinstance(event, RequestReceived):
            return core.handle(event, now_ms)
        # Nobody is told that there are no topics: clients would believe it.
        request, config = event.request, self._config
        if isinstance(request, DescribeRequest):
            known = describe(self._former_image, request, config.cluster_id, config.node_id)
            return [Reply(event.request_id, known)]
        wait = Refused(ErrorCode.not_leader_or_follower, "the controller has yet to say who leads")
        return [Reply(event.request_id, wait)]


def core_of(config: BrokerConfig, rules: Rules) -> ZookeeperBroker | BridgingBroker:
    """Makes a broker whose cluster is ZooKeeper's: for good, or until the controller of ``rules`` takes
    over."""
    kind = BridgingBroker if rules.switches.has_controller else ZookeeperBroker
    return kind(config, rules)
