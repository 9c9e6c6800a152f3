"""The settings of any system in a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from wrackline.fleets.base import Fleet
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import SECONDS, Strict
from wrackline.systems.base import System


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a deployment: which host of a fleet carries what, by name, and what else it needs to
    know."""

    brokers: tuple[str, ...]
    controllers: tuple[str, ...]
    spares: tuple[str, ...]
    """Hosts whose broker is installed and not started."""
    cluster_id: str
    """22 characters, as Kafka's own are."""
    cache: Path
    """A folder for what may be kept between runs."""
    test_id: str = ""
    """Of the run; before there is one, its name."""
    zookeeper: tuple[str, ...] = ()
    """Hosts of ZooKeeper servers."""
    spare_controllers: tuple[str, ...] = ()
    """Hosts whose controller is installed and not started."""


@dataclass(frozen=True, slots=True)
class Configured:
    """The facts on a system's settings for the judge: which contract holds follows from them."""

    version: str = ""
    """Of the system, where it has one."""
    profile: str = ""
    """The set of rules that the system follows, for people."""
    defects: tuple[str, ...] = ()
    """Known defects, and a mutant, that it has been given on purpose."""
    flush_mode: str = "on-roll"
    """When records are synced; ``every-write``: before the high watermark passes them."""
    unclean_election: bool = False
    """Whether a replica that lacks records may be elected, where no topic says otherwise."""
    recovery_strategy: str = "balanced"
    """How a leader is elected when no clean replica is left; ``proactive`` permits loss."""
    deletion: Mapping[str, str] = field(default_factory=dict)
    """Settings of the brokers by which records are deleted (``log.retention.ms``), where no topic says
    otherwise; only those that somebody has set."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What nobody can look at in such a system, and why: ``replicas`` (their own files), ``logs`` of the
    hosts, ``processes``. The verdict says so, and rests on the rest."""


Seconds = Annotated[float, Field(gt=0), SECONDS]


def unknown_host(racks: Mapping[str, str], hosts: Sequence[str]) -> str | None:
    """Returns what is wrong with ``system.racks``, in one line; None: each of its hosts is there."""
    unknown = next((host for host in racks if hosts and host not in hosts), None)
    return unknown and f"system.racks: there is no host {unknown}; there are {', '.join(hosts)}"


class Waits(Strict):
    """The times that a run waits for the system. A system that needs longer than ours says so in its
    settings."""

    start_s: Seconds = 10.0
    """A node that is started listens after this time at most."""
    ready_s: Seconds = 60.0
    """The cluster is ready, and a new topic has all its replicas, after this time at most."""
    warm_s: Seconds = 20.0
    """Every kind of operation has succeeded once after this time at most, or the main phase is left out."""
    steady_s: Annotated[float, Field(ge=0), SECONDS] = 2.0
    """So long the workload runs undisturbed before the main phase, once every kind of operation succeeded;
    and so long again where it did not reach its rate, within ``warm_s``."""
    full_isr_s: Seconds = 60.0
    """After healing, every replica is in the ISR again after this time at most."""
    recovered_s: Annotated[float, Field(ge=0), SECONDS] = 3.0
    """So long the workload goes on after that."""
    undo_s: Seconds = 120.0
    """When the main phase is over, every fault is undone, and its nodes listen, after this time at most."""
    drain_s: Seconds = 60.0
    """All that the topic has is read back within this time at most."""

    def slower(self, factor: float) -> Self:
        """Returns these waits for hosts that are so many times as slow, where the user has said nothing
        else. How long a workload runs undisturbed, before and after the faults, is no deadline, and stays."""
        deadlines = ("start_s", "ready_s", "warm_s", "full_isr_s", "undo_s", "drain_s")
        changed = {
            name: getattr(self, name) * factor for name in deadlines if name not in self.model_fields_set
        }
        return self.model_copy(update=changed)


class SystemSpec(Strict):
    """The settings of a system. A subclass says its name (``kind: Literal["mine"] = "mine"``), which is also
    that of its entry point, has a field for each further setting, and builds the system."""

    usual_fleet: ClassVar[str] = "netns"
    """The kind of fleet that is meant where a specification says none."""

    kind: str
    """The system's name."""
    waits: Waits = Waits()
    """How long a run waits for the system."""

    @property
    def host_needs(self) -> HostNeeds:
        """Returns what hosts must have for the system."""
        return HostNeeds()

    @property
    def needs(self) -> tuple[str, ...]:
        """Returns what the system needs of this machine, by the names of `wrackline.needs`."""
        return ()

    @property
    def offers(self) -> frozenset[Capability]:
        """Returns the capabilities that only some workloads need."""
        return frozenset({Capability.IDEMPOTENCE})

    @property
    def has_controllers(self) -> bool:
        """Tells whether anybody else than the brokers themselves elects leaders."""
        return True

    @property
    def has_log_dirs(self) -> bool:
        """Tells whether a node keeps a log directory on each data disk of its host."""
        return False

    def refusal(self, fleet: FleetSpec) -> str | None:  # noqa: ARG002
        """Returns why the system cannot run on hosts of this fleet as these settings say, in one line;
        None when it can."""
        return None

    def warning(self) -> str | None:
        """Returns what may keep a run with these settings from being made, though nothing is wrong with
        them: key, what, what to do; None: nothing."""
        return None

    def prepare(self, say: Callable[[str], None]) -> None:
        """Bring to this machine what a deployment needs, before there is any host. ``say`` is given a line
        for whatever takes long. Raises DeployError."""

    def prepare_version(self, version: str, say: Callable[[str], None]) -> None:
        """Brings to this machine another version that nodes become while the cluster runs. Raises
        DeployError."""

    def reach(self) -> None:
        """Checks, before anything is begun, that a system that runs already can be reached. Raises
        DeployError."""

    def build(self, fleet: Fleet, layout: Layout) -> System:
        """The system on this fleet, not installed. Raises DeployError for hosts that the fleet lacks."""
        raise NotImplementedError

    def configured(self) -> Configured:
        """Returns the facts on these settings for the judge."""
        return Configured()

    def broker_names(self) -> tuple[str, ...] | None:
        """Returns the brokers' names of a system that runs already, and needs no fleet, where somebody has
        said them. None: it is deployed onto the hosts of a fleet."""
        return None

    def misfit(self, zookeeper: int) -> str | None:
        """Returns why the system cannot be deployed beside so many ZooKeeper servers; None when it can."""
        if not zookeeper:
            return None
        return f"fleet.zookeeper is {zookeeper}, and system.kind {self.kind} needs no ZooKeeper: leave it out"

    def cannot(self, fault: str) -> str | None:  # noqa: ARG002
        """Returns why a fault of this name cannot be done to the system; None when it can."""
        return None

    def cannot_become(self, version: str, fleet: FleetSpec) -> str | None:  # noqa: ARG002
        """Returns why the system's nodes, on such a fleet, cannot go to this version, a later or an earlier
        one, one by one; None when they can."""
        return f"{self.kind} has one version only"

    def became(self, version: str) -> SystemSpec:  # noqa: ARG002
        """Returns the system after a rolling upgrade or downgrade to this version: what can be done to it
        then."""
        return self

    def with_level(self, feature: str, level: int) -> SystemSpec:  # noqa: ARG002
        """Returns the system after a feature got this level: what can be done to it then."""
        return self

    def without_levels(self) -> str | None:
        """Returns why the cluster has no features whose level could be raised; None when it has some."""
        return f"the features of system {self.kind} have no levels"

    def without_voters(self) -> str | None:
        """Returns why no controller can join or leave the quorum while it runs; None when they can."""
        return f"the controllers of system {self.kind} are the same from beginning to end"

    def without_quotas(self) -> str | None:
        """Returns why clients cannot get quotas there; None when they can."""
        return f"system {self.kind} has no quotas of clients that a run may change"

    def without_certificates(self) -> str | None:
        """Returns why the nodes have no certificates that could be rotated; None when they have."""
        return f"the nodes of system {self.kind} have no certificates of ours"

    def without_passwords(self) -> str | None:
        """Returns why clients have no password that could be rotated; None when they have."""
        return f"the clients of system {self.kind} have no password of ours"

    def topic_of(self, test_id: str, topic: str) -> str:  # noqa: ARG002
        """Returns the name of a run's topic in the cluster."""
        return topic

    @property
    def secured(self) -> bool:
        """Tells whether brokers ask for TLS or SASL."""
        return False

    def client_settings(self) -> Mapping[str, str]:
        """Settings of librdkafka with which clients reach it; they may hold secrets. Raises DeployError when
        a secret is not there."""
        return {}


def is_true(value: object) -> bool:
    """Tells whether a setting is on, in a YAML file or in a properties file of Kafka's."""
    return value is True or str(value).lower() == "true"
