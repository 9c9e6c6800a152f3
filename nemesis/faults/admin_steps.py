"""Steps that faults ask of the cluster itself, as an administrator would. They are values that
`wrackline.nemesis.faults.cluster.admin_executor` carries out; ``host`` says only beside which steps each
stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wrackline.nemesis.faults.step import NodeStep, Step


class Entity(StrEnum):
    """The kind of entity whose settings are changed."""

    TOPIC = "topic"
    """The run's topic."""
    BROKERS = "brokers"
    """All brokers, while they run."""
    CLIENTS = "clients"
    """Quotas of all clients that have none of their own."""


class AdminStep(Step):
    """A step that `wrackline.nemesis.faults.cluster.admin_executor` carries out."""


class OfNode(AdminStep, NodeStep):
    """A step that is about one node of the cluster."""


@dataclass(frozen=True, slots=True)
class OfFault(AdminStep):
    """A step that the executor remembers, or finds again, by the fault's id."""

    fault_id: str


class ElectPreferred(AdminStep):
    """The first replica of every partition of the run's topic shall lead."""


@dataclass(frozen=True, slots=True)
class Transfer(OfNode):
    """The transfer of whatever the node leads of the run's topic to another member of the ISR."""

    fault_id: str


class DescribeCluster(AdminStep):
    """Output: what the cluster's metadata say of the run's topic and of the cluster, as JSON
    (`wrackline.nemesis.faults.cluster.cluster_state`)."""


class RestoreLeadership(OfFault):
    """The replicas of what a fault transferred stand in their old order again."""


@dataclass(frozen=True, slots=True)
class ChangeSettings(OfFault):
    """Give settings to the topic or to all brokers. Output: what they were before any fault, as JSON."""

    entity: Entity
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RestoreSettings(OfFault):
    """Take back what a fault changed: what was before it holds again, or what a later fault wants."""

    entity: Entity


@dataclass(frozen=True, slots=True)
class DescribeSettings(AdminStep):
    """Output: the settings that have been given, as JSON."""

    entity: Entity
    names: tuple[str, ...]


class Recreate(OfFault):
    """A topic beside the run's is made, deleted, and made again. Output: its two ids."""


class DescribeTopic(OfFault):
    """Output: the id of that topic; empty when there is none."""


class RemoveTopic(OfFault):
    """Delete that topic."""


@dataclass(frozen=True, slots=True)
class FailOver(OfNode):
    """The active controller is stopped (SIGSTOP) until another one is active, and woken up."""

    pid: int
    wait_s: float


class Unregister(OfNode):
    """The cluster forgets a broker that was stopped."""


class DescribeBroker(OfNode):
    """Output: ``there`` or ``not there``, by the cluster's metadata."""


@dataclass(frozen=True, slots=True)
class MoveReplicas(OfNode):
    """A broker's replicas of the run's topics begin to move to its next log directory. Output: partition ->
    the directory before and after, as JSON."""

    fault_id: str


class DescribeReplicaDirs(OfNode):
    """Output: partition of the run's topics -> the broker's log directories that have it, as JSON."""


@dataclass(frozen=True, slots=True)
class AwaitReplicaMoves(OfNode):
    """Wait until what a fault moved is in its new log directory, and nowhere else. Output: as of
    `DescribeReplicaDirs`."""

    fault_id: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class ReturnReplicas(OfNode):
    """What a fault moved moves back to its former log directory. Output: as of `DescribeReplicaDirs`."""

    fault_id: str
    wait_s: float


@dataclass(frozen=True, slots=True)
class ExpireBrokerSession(OfNode):
    """ZooKeeper ends the session of a broker, and it is waited until the broker has another. Output: the
    `SessionEnd`, as JSON."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class UpdateFeature(AdminStep):
    """Asks for another level of a feature, and again while it is refused and there is time. Output: the level
    before and after, and the last refusal, as JSON."""

    feature: str
    level: int
    wait_s: float
    unsafe: bool = False


class DescribeQuorum(AdminStep):
    """Output: the controller quorum as its leader reports it, as JSON
    (`wrackline.nemesis.faults.cluster.quorum_state`)."""


@dataclass(frozen=True, slots=True)
class JoinQuorum(OfNode):
    """A controller that runs becomes a voter, by the directory on its disk. Output: the quorum before and
    then, as JSON."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class LeaveQuorum(OfNode):
    """A controller is a voter no more. Output: the quorum before and then, as JSON."""

    wait_s: float


class RenewDisk(OfNode):
    """The data folder of a controller that is down is emptied and formatted anew, under another id. Output:
    the voter that it would be."""


@dataclass(frozen=True, slots=True)
class MeasureThrottle(OfNode):
    """Requests of our own to a broker that count for these quotas. Output: how long it throttles them in
    milliseconds, by quota, as JSON."""

    quotas: tuple[str, ...]


class RotateCertificate(OfNode):
    """The node's listener gets a new certificate, of another authority. Output: the serial numbers that it
    served before and serves now, as JSON."""


class RestoreCertificate(OfNode):
    """The node's listener gets its first certificate again."""


class DescribeCertificate(OfNode):
    """Output: the serial number of the certificate that the node's listener serves to a new client."""


class RotateCredential(AdminStep):
    """The clients' user gets another password than clients use."""


class RestoreCredential(AdminStep):
    """The clients' user gets the password that clients use."""


class DescribeCredential(OfNode):
    """Output: by which of both passwords the node lets a new client in (`wrackline.systems.base.LetIn`)."""
