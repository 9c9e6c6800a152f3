"""Carries out what faults ask of the cluster as an administrator would
(`wrackline.nemesis.faults.admin_steps`). Safe to use from several threads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from wrackline.fleets.base import Fleet, Host
from wrackline.nemesis.faults.admin_steps import (
    AdminStep,
    AwaitReplicaMoves,
    ChangeSettings,
    DescribeBroker,
    DescribeCertificate,
    DescribeCluster,
    DescribeCredential,
    DescribeQuorum,
    DescribeReplicaDirs,
    DescribeSettings,
    DescribeTopic,
    ElectPreferred,
    Entity,
    ExpireBrokerSession,
    FailOver,
    JoinQuorum,
    LeaveQuorum,
    MeasureThrottle,
    MoveReplicas,
    Recreate,
    RemoveTopic,
    RenewDisk,
    RestoreCertificate,
    RestoreCredential,
    RestoreLeadership,
    RestoreSettings,
    ReturnReplicas,
    RotateCertificate,
    RotateCredential,
    Transfer,
    Unregister,
    UpdateFeature,
)
from wrackline.nemesis.faults.clients.executor import authenticate, certify, measure_throttle
from wrackline.nemesis.faults.cluster.cluster_state import say_cluster
from wrackline.nemesis.faults.cluster.log_dirs import LogDirExecutor
from wrackline.nemesis.faults.cluster.quorum_executor import QuorumExecutor
from wrackline.nemesis.faults.steps import FaultError
from wrackline.systems.base import (
    Admin,
    Administered,
    ClusterState,
    DeployError,
    Levelled,
    OnZooKeeper,
    PartitionState,
    Place,
    QuotaAdmin,
    System,
    TopicSpec,
)

ASK_S = 10.0
SEEN_S = 15.0
"""How long the cluster may take until its metadata shows what was asked for."""
POLL_S = 0.1


@dataclass
class _Layers:
    """One setting that faults have changed: what it was before all of them, and what each wants."""

    before: str | None
    wanted: dict[str, str] = field(default_factory=dict)
    """By fault, the latest last."""


class AdminExecutor:
    def __init__(self, fleet: Fleet, system: System, topics: Sequence[str]) -> None:
        self._fleet = fleet
        self._system = system
        self._topics = tuple(topics)
        self._quorum = QuorumExecutor(system)
        self._log_dirs = LogDirExecutor(system, topics)
        self._mutex = threading.Lock()
        self._layers: dict[tuple[Entity, str], _Layers] = {}
        self._transferred: dict[str, dict[Place, tuple[int, ...]]] = {}
        """By fault: the order in which the replicas of each partition stood before."""

    def carry_out(self, step: AdminStep, host: Host) -> str:
        """Carries out the step and returns its output. Raises FaultError or DeployError when it cannot be
        done."""
        match step:
            case ElectPreferred():
                return self._elect_preferred()
            case Transfer():
                return self._transfer(step)
            case DescribeCluster():
                return self._look_at_cluster()
            case RestoreLeadership(fault_id=fault_id):
                return self._give_back(fault_id)
            case ChangeSettings():
                return self._change(step)
            case RestoreSettings():
                return self._restore(step)
            case DescribeSettings(entity=entity, names=names):
                given = self._given(entity)
                return json.dumps({name: given.get(name) for name in names})
            case Recreate(fault_id=fault_id):
                return self._recreate(fault_id)
            case DescribeTopic(fault_id=fault_id):
                return self._admin.topic_id(self._beside(fault_id), timeout_s=ASK_S) or ""
            case RemoveTopic(fault_id=fault_id):
                self._admin.delete_topic(self._beside(fault_id), timeout_s=ASK_S)
                return ""
            case FailOver():
                return self._fail_over(step, host)
            case Unregister(node_id=node_id):
                self._admin.unregister(node_id, timeout_s=ASK_S)
                return ""
            case ExpireBrokerSession():
                return self._end_session(step)
            case UpdateFeature():
                return self._update_feature(step)
            case MeasureThrottle():
                return measure_throttle(self._system, step)
            case RotateCertificate() | RestoreCertificate() | DescribeCertificate():
                return certify(self._system, step)
            case RotateCredential() | RestoreCredential() | DescribeCredential():
                return authenticate(self._system, step)
            case DescribeQuorum() | JoinQuorum() | LeaveQuorum() | RenewDisk():
                return self._quorum.carry_out(step)
            case MoveReplicas() | DescribeReplicaDirs() | AwaitReplicaMoves() | ReturnReplicas():
                return self._log_dirs.carry_out(step)
            case DescribeBroker(node_id=node_id):
                return "there" if node_id in self._system.describe().brokers else "not there"
        raise AssertionError(f"{step}: nobody knows how to carry it out")

    @property
    def _admin(self) -> Admin:
        if not isinstance(self._system, Administered):
            raise FaultError(f"{self._system.name} has nobody who could be asked to administer it")
        return self._system.admin

    @property
    def _quotas(self) -> QuotaAdmin:
        admin = self._admin
        if not isinstance(admin, QuotaAdmin):
            raise FaultError(f"{self._system.name} has no quotas of clients")
        return admin

    # --- leaders ------------------------------------------------------------------------------------------

    def _look_at_cluster(self) -> str:
        """Asked again while nobody answers: an election may be under way."""
        deadline = time.monotonic() + SEEN_S
        while True:
            try:
                return say_cluster(self._system.describe(), self._topics)
            except DeployError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(POLL_S)

    def _ours(self, state: ClusterState) -> list[PartitionState]:
        return [one for one in state.partitions if one.topic in self._topics]

    def _elect_preferred(self) -> str:
        partitions = self._ours(self._system.describe())
        able = [one for one in partitions if one.replicas[0] in one.isr]
        others = [one for one in able if one.leader != one.replicas[0]]
        self._admin.elect_preferred([_place(one) for one in others], timeout_s=ASK_S)
        expected = {_place(one): one.replicas[0] for one in others}
        self._await_leaders(expected)
        return f"{len(others)} of {len(partitions)} partitions were to change their leader"

    def _transfer(self, step: Transfer) -> str:
        led = [one for one in self._ours(self._system.describe()) if one.leader == step.node_id]
        if not led:
            raise FaultError(f"node {step.node_id} leads no partition of {', '.join(self._topics)}")
        orders: dict[Place, tuple[int, ...]] = {}
        expected: dict[Place, int] = {}
        for one in led:
            heir = next((node for node in one.replicas if node in one.isr and node != step.node_id), None)
            if heir is not None:
                expected[_place(one)] = heir
                orders[_place(one)] = (heir, *(node for node in one.replicas if node != heir))
        if not expected:
            raise FaultError(f"nobody else is in the ISR of what node {step.node_id} leads")
        with self._mutex:
            self._transferred[step.fault_id] = {
                _place(one): one.replicas for one in led if _place(one) in expected
            }
        self._order(orders)
        self._admin.elect_preferred(list(expected), timeout_s=ASK_S)
        self._await_leaders(expected)
        return f"{len(expected)} partitions have another leader"

    def _give_back(self, fault_id: str) -> str:
        with self._mutex:
            before = self._transferred.pop(fault_id, {})
        if not before:
            return ""
        self._order(before)
        self._admin.elect_preferred(list(before), timeout_s=ASK_S)
        return f"{len(before)} partitions have their old order again"

    def _order(self, orders: Mapping[Place, tuple[int, ...]]) -> None:
        """The same replicas in another order: complete as soon as the controller has taken it."""
        self._system.reassign(dict(orders), timeout_s=ASK_S)

        def ordered(state: ClusterState) -> bool:
            result = (state.partition(*place) for place in orders)
            return all(one is not None and one.replicas == orders[_place(one)] for one in result)

        self._await("the replicas to stand in their new order", ordered)

    def _await_leaders(self, wanted: Mapping[Place, int]) -> None:
        def led(state: ClusterState) -> bool:
            result = (state.partition(*place) for place in wanted)
            return all(one is not None and one.leader == wanted[_place(one)] for one in result)

        self._await("the leaders to change", led)

    def _await(self, what: str, holds: Callable[[ClusterState], bool], wait_s: float = SEEN_S) -> None:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                if holds(self._system.describe()):
                    return
                last = "not yet"
            except DeployError as silent:
                last = str(silent)
            if time.monotonic() > deadline:
                raise DeployError(f"waited {wait_s:g} s for {what}; last seen: {last}")
            time.sleep(POLL_S)

    # --- settings -----------------------------------------------------------------------------------------

    def _given(self, entity: Entity) -> Mapping[str, str]:
        if entity is Entity.BROKERS:
            return self._admin.cluster_settings(timeout_s=ASK_S)
        if entity is Entity.CLIENTS:
            return self._quotas.quotas(timeout_s=ASK_S)
        return self._admin.topic_settings(self._topics[0], timeout_s=ASK_S)

    def _give(self, entity: Entity, values: Mapping[str, str | None]) -> None:
        if entity is Entity.BROKERS:
            self._admin.change_cluster(values, timeout_s=ASK_S)
        elif entity is Entity.CLIENTS:
            self._quotas.change_quotas(values, timeout_s=ASK_S)
        else:
            self._admin.change_topic(self._topics[0], values, timeout_s=ASK_S)

    def _change(self, step: ChangeSettings) -> str:
        given = self._given(step.entity)
        before: dict[str, str | None] = {}
        with self._mutex:
            for name, value in step.values:
                layers = self._layers.setdefault((step.entity, name), _Layers(given.get(name)))
                layers.wanted[step.fault_id] = value
                before[name] = layers.before
        self._give(step.entity, dict(step.values))
        return json.dumps(before)

    def _restore(self, step: RestoreSettings) -> str:
        values: dict[str, str | None] = {}
        with self._mutex:
            for (entity, name), layers in list(self._layers.items()):
                if entity is step.entity and step.fault_id in layers.wanted:
                    values[name] = [
                        layers.before,
                        *(want for fault, want in layers.wanted.items() if fault != step.fault_id),
                    ][-1]
        if values:
            self._give(step.entity, values)
        with self._mutex:  # only now: an undo that failed is tried again
            for name in values:
                layers = self._layers[step.entity, name]
                layers.wanted.pop(step.fault_id, None)
                if not layers.wanted:
                    del self._layers[step.entity, name]
        return json.dumps(values)

    # --- topics -------------------------------------------------------------------------------------------

    def _beside(self, fault_id: str) -> str:
        return f"{self._topics[0]}-beside-{fault_id}"

    def _recreate(self, fault_id: str) -> str:
        name = self._beside(fault_id)
        brokers = len(self._system.describe().brokers)
        topic = TopicSpec(name, partitions=4, replication_factor=min(3, brokers), configs={})
        self._admin.create_topic(topic, timeout_s=ASK_S)
        first = self._await_topic(name, there=True)
        self._admin.delete_topic(name, timeout_s=ASK_S)
        self._await_topic(name, there=False)
        self._admin.create_topic(topic, timeout_s=ASK_S)
        return f"{first} {self._await_topic(name, there=True)}"

    def _await_topic(self, name: str, *, there: bool) -> str | None:
        deadline = time.monotonic() + SEEN_S
        while True:
            result = self._admin.topic_id(name, timeout_s=ASK_S)
            if (result is not None) == there:
                return result
            if time.monotonic() > deadline:
                raise DeployError(f"waited {SEEN_S:g} s for topic {name} to {'appear' if there else 'go'}")
            time.sleep(POLL_S)

    # --- sessions -----------------------------------------------------------------------------------------

    def _end_session(self, step: ExpireBrokerSession) -> str:
        if not isinstance(self._system, OnZooKeeper):
            raise FaultError(f"{self._system.name} has no sessions with ZooKeeper")
        [node] = [one for one in self._system.nodes if one.node_id == step.node_id]
        return json.dumps(asdict(self._system.expire_session(node, timeout_s=step.wait_s)))

    # --- features -----------------------------------------------------------------------------------------

    def _update_feature(self, step: UpdateFeature) -> str:
        system = self._system
        if not isinstance(system, Levelled):
            raise FaultError(f"the features of {system.name} have no levels")
        before = system.levels(timeout_s=ASK_S).get(step.feature)
        deadline = time.monotonic() + step.wait_s
        while refusal := self._ask_for_level(system, step, deadline):
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL_S)
        after = self._read_level(system, step, 0.0 if refusal else SEEN_S)
        return json.dumps({"before": before, "after": after, "refusal": refusal})

    @staticmethod
    def _read_level(system: Levelled, step: UpdateFeature, wait_s: float) -> int | None:
        """Returns the level that a broker names, the requested one if it comes to know it in time: brokers
        follow the controller that has given it."""
        deadline = time.monotonic() + wait_s
        while True:
            level = system.levels(timeout_s=ASK_S).get(step.feature)
            if (level or 0) == step.level or time.monotonic() >= deadline:
                return level
            time.sleep(POLL_S)

    @staticmethod
    def _ask_for_level(system: Levelled, step: UpdateFeature, deadline: float) -> str:
        """Returns why the level is not given; nobody answers while controllers are restarted, which is no
        refusal. Raises DeployError where there is no time left to ask again."""
        try:
            return system.raise_level(step.feature, step.level, timeout_s=ASK_S, unsafe=step.unsafe)
        except DeployError as silent:
            if time.monotonic() >= deadline:
                raise
            return str(silent)

    # --- controllers --------------------------------------------------------------------------------------

    def _fail_over(self, step: FailOver, host: Host) -> str:
        before = self._system.describe().controller
        if before != step.node_id:
            raise FaultError(f"node {step.node_id} is not the active controller any more, node {before} is")
        remote = self._fleet.remote(host)
        remote.run(f"kill -STOP {step.pid}")
        try:
            self._await(
                "another controller to be active",
                lambda state: state.controller not in (-1, step.node_id),
                step.wait_s,
            )
        finally:
            remote.run(f"kill -CONT {step.pid} 2>/dev/null || true")
        return f"node {before} was stopped until another was active"


def _place(one: PartitionState) -> Place:
    return one.topic, one.partition
