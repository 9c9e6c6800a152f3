"""Steps that faults ask of the cluster itself, as an administrator would. They are values that
`wrackline.nemesis.faults.cluster.admin_executor` carries out; ``host`` says only beside which steps each
stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Entity(StrEnum):
    """The kind of entity whose settings are changed."""

    TOPIC = "topic"
    """The run's topic."""
    BROKERS = "brokers"
    """All brokers, while they run."""


@dataclass(frozen=True, slots=True)
class ElectPreferred:
    """The first replica of every partition of the run's topic shall lead."""

    host: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """The transfer of whatever the node leads of the run's topic to another member of the ISR."""

    host: str
    node_id: int
    fault_id: str


@dataclass(frozen=True, slots=True)
class DescribeCluster:
    """Output: what the cluster's metadata say of the run's topic and of the cluster, as JSON
    (`wrackline.nemesis.faults.cluster.cluster_state`)."""

    host: str


@dataclass(frozen=True, slots=True)
class RestoreLeadership:
    """The replicas of what a fault transferred stand in their old order again."""

    host: str
    fault_id: str


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Give settings to the topic or to all brokers. Output: what they were before any fault, as JSON."""

    host: str
    fault_id: str
    entity: Entity
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    """Take back what a fault changed: what was before it holds again, or what a later fault wants."""

    host: str
    fault_id: str
    entity: Entity


@dataclass(frozen=True, slots=True)
class DescribeSettings:
    """Output: the settings that have been given, as JSON."""

    host: str
    entity: Entity
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Recreate:
    """A topic beside the run's is made, deleted, and made again. Output: its two ids."""

    host: str
    fault_id: str


@dataclass(frozen=True, slots=True)
class DescribeTopic:
    """Output: the id of that topic; empty when there is none."""

    host: str
    fault_id: str


@dataclass(frozen=True, slots=True)
class RemoveTopic:
    """Delete that topic."""

    host: str
    fault_id: str


@dataclass(frozen=True, slots=True)
class FailOver:
    """The active controller is stopped (SIGSTOP) until another one is active, and woken up."""

    host: str
    node_id: int
    pid: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class Unregister:
    """The cluster forgets a broker that was stopped."""

    host: str
    node_id: int


@dataclass(frozen=True, slots=True)
class DescribeBroker:
    """Output: ``there`` or ``not there``, by the cluster's metadata."""

    host: str
    node_id: int


@dataclass(frozen=True, slots=True)
class ExpireBrokerSession:
    """ZooKeeper ends the session of a broker, and it is waited until the broker has another. Output: the
    `SessionEnd`, as JSON."""

    host: str
    node_id: int
    wait_s: float


@dataclass(frozen=True, slots=True)
class UpdateFeature:
    """Asks for another level of a feature, and again while it is refused and there is time. Output: the level
    before and after, and the last refusal, as JSON."""

    host: str
    feature: str
    level: int
    wait_s: float


AdminStep = (
    ElectPreferred
    | Transfer
    | DescribeCluster
    | RestoreLeadership
    | ChangeSettings
    | RestoreSettings
    | DescribeSettings
    | Recreate
    | DescribeTopic
    | RemoveTopic
    | FailOver
    | Unregister
    | DescribeBroker
    | ExpireBrokerSession
    | UpdateFeature
)
ADMIN_STEPS = AdminStep.__args__
