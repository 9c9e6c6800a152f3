"""The settings of the system ``apache-kafka`` in a specification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Fleet
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.capabilities import EVERYTHING, Capability
from wrackline.plugins.fields import SECONDS, Lax, in_milliseconds
from wrackline.systems.base import System
from wrackline.systems.jvm.nodes import JRE
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.install import install
from wrackline.systems.kafka.properties import AUTO_JOIN
from wrackline.systems.kafka.releases import NEWEST, on_zookeeper, parsed
from wrackline.systems.kafka.security.settings import CLIENTS
from wrackline.systems.kafka.security.spec import KafkaSecuritySpec
from wrackline.systems.kafka.server import Kind, formatted
from wrackline.systems.kafka.system import JVM_OPTIONS, START_S, KafkaSystem
from wrackline.systems.kafka.tier import SINCE, Tier
from wrackline.systems.kafka.tier import prepare as prepare_tier
from wrackline.systems.spec import Configured, Layout, Seconds, SystemSpec, Waits, is_true, unknown_host
from wrackline.systems.zookeeper_door import MakeSystem, kafka_on_zookeeper

NO_RECOVERY = "none"
UNCLEAN_OFF_SINCE = (0, 11)
"""Before this version unclean election is on where nobody says otherwise (KIP-106)."""


QUORUM_CHANGES_SINCE = (3, 9, 0)
"""The first version whose controllers can join and leave the quorum (KIP-853)."""
JOINS_SINCE = (4, 2, 0)
"""The first one whose controllers can do it by themselves (KIP-1186)."""


def _known(version: str) -> str:
    parsed(version)
    return version


METADATA = "metadata.version"
SHARE_VERSION = "share.version"
"""The feature without which a cluster has no share groups."""
_SINCE = {
    Capability.STREAMS: (2, 5),
    Capability.FOLLOWER_FETCHING: (3, 7),
    Capability.CONSUMER_PROTOCOL: (4, 0),
    Capability.STREAMS_PROTOCOL: (4, 2),
    Capability.SHARE_GROUPS: (4, 2),
    Capability.DELIVERY_LIMITS: (4, 3),
}
"""What later versions have that earlier ones lack."""


class KafkaWaits(Waits):
    """Waits for a program that a JVM has to become warm with."""

    start_s: Seconds = START_S
    """A node that is started listens after this time at most."""
    ready_s: Seconds = 90.0
    """The cluster is ready, and a new topic has all its replicas, after this time at most."""
    warm_s: Seconds = 60.0
    """Every kind of operation has succeeded once after this time at most, or the main phase is left out."""
    steady_s: Annotated[float, Field(ge=0), SECONDS] = 8.0
    """So long the workload runs undisturbed before the main phase, once every kind of operation succeeded;
    and so long again where it did not reach its rate, within ``warm_s``."""


class KafkaSpec(SystemSpec):
    """Settings of the system ``apache-kafka``."""

    kind: Literal["apache-kafka"] = "apache-kafka"
    """What is deployed: Apache Kafka, with ZooKeeper up to 2.8 and in KRaft mode from 3.7 on."""
    version: Annotated[str, AfterValidator(_known)] = NEWEST
    """Which version; a run that needs it installs it (`wrackline get kafka`)."""
    versions: dict[str, Annotated[str, AfterValidator(_known)]] = Field(default_factory=dict)
    """Other versions of single hosts, by name: of a cluster whose upgrade stays half done."""
    features: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """Levels of features that the new cluster is given, by name; the version's own where nothing is said."""
    quorum: Literal["static", "dynamic"] = "static"
    """Whether the voters stand in every node's configuration, or controllers join and leave the quorum while
    it runs (KIP-853, since 3.9)."""
    config: Annotated[dict[str, str | int | float | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Settings of every node by Kafka's own names."""
    racks: dict[str, str] = Field(default_factory=dict)
    """Host to rack. With ``replica.selector.class`` in ``config`` clients of a rack
    (``workload.client.rack``) read from the replica in it (KIP-392)."""
    security: KafkaSecuritySpec = KafkaSecuritySpec()
    """How clients and brokers let each other in."""
    jvm_options: Annotated[tuple[str, ...], Lax] = JVM_OPTIONS
    """Options of the JVM that runs a node."""
    clock: Literal["host", "faketime"] = "host"
    """Where a node has the time from: from its host, or through libfaketime, which must be installed there.
    Then faults can move the clock of a node whose host has no clock of its own."""
    tier: Tier | None = None
    """A remote tier of ours (KIP-405), in a folder that hosts share or in a bucket of S3: for topics with
    ``remote.storage.enable``."""
    waits: KafkaWaits = KafkaWaits()
    """How long a run waits for the system."""

    @property
    def host_needs(self) -> HostNeeds:
        return HostNeeds(packages=(JRE,), memory_mb=768)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("java",)

    @property
    def offers(self) -> frozenset[Capability]:
        """Groups by KIP-848 are ready for use since 4.0, those by KIP-1071 and share groups since 4.2. Kafka
        Streams with exactly-once asks for groups that fence (2.5, KIP-447). Before 0.11 there are neither
        transactions nor idempotence, and nobody can be asked who coordinates a group."""
        line = parsed(self.version)
        if line < (0, 11):
            return frozenset({Capability.COMPACTION})
        lacking = {capability for capability, since in _SINCE.items() if line < since}
        if self.features.get(SHARE_VERSION) == 0:
            lacking |= {Capability.SHARE_GROUPS, Capability.DELIVERY_LIMITS}
        return EVERYTHING - lacking

    @property
    def secured(self) -> bool:
        return self.security.protocol != "PLAINTEXT"

    @property
    def has_log_dirs(self) -> bool:
        return not on_zookeeper(self.version)

    def misfit(self, zookeeper: int) -> str | None:
        if on_zookeeper(self.version) and not zookeeper:
            return (
                f"Kafka {self.version} keeps its metadata in ZooKeeper: say how many servers of it there "
                "are, fleet.zookeeper: 1 or 3"
            )
        if zookeeper and not on_zookeeper(self.version):
            return (
                f"fleet.zookeeper is {zookeeper}, and Kafka {self.version} has controllers of its own "
                "(KRaft): leave it out, or take a version up to 2.8"
            )
        if on_zookeeper(self.version) and self.security != KafkaSecuritySpec():
            return (
                f"system.security: Kafka {self.version} keeps its users in ZooKeeper: take a version from "
                "3.7 on, or leave it out"
            )
        if on_zookeeper(self.version) and self.features:
            return f"system.features: Kafka {self.version} has none, leave them out"
        if on_zookeeper(self.version) and self.racks:
            return f"system.racks: versions on ZooKeeper, such as {self.version}, are given none; take 3.7.0"
        return self._mixed_misfit() or self._quorum_misfit()

    def _mixed_misfit(self) -> str | None:
        """Returns why these versions cannot be in one cluster; None when they can."""
        for host, version in self.versions.items():
            if on_zookeeper(version) != on_zookeeper(self.version):
                return f"system.versions.{host}: {version} and {self.version} keep their metadata elsewhere"
            older = parsed(version) < parsed(self.version)
            if older and not on_zookeeper(version) and METADATA not in self.features:
                return f"system.versions.{host}: {self._unknown_level(version)}"
        return None

    def _unknown_level(self, version: str) -> str:
        return (
            f"a new cluster of Kafka {self.version} has a metadata version that {version} may not know: "
            f"give it one that both know, system.features: {{{METADATA}: LEVEL}}, or lower it by "
            "update-feature"
        )

    def _quorum_misfit(self) -> str | None:
        """Returns why the version has no quorum as these settings say; None when it has."""
        joins = is_true(self.config.get(AUTO_JOIN, False))
        if self.quorum == "static":
            return f"system.config.{AUTO_JOIN} needs system.quorum: dynamic" if joins else None
        if parsed(self.version) < QUORUM_CHANGES_SINCE:
            return f"system.quorum: dynamic needs Kafka 3.9.0 or newer, system.version is {self.version}"
        if joins and parsed(self.version) < JOINS_SINCE:
            return f"system.config.{AUTO_JOIN} needs Kafka 4.2.0 or newer, system.version is {self.version}"
        return None

    def without_voters(self) -> str | None:
        if on_zookeeper(self.version):
            return f"Kafka {self.version} keeps its metadata in ZooKeeper, and has no quorum of its own"
        if self.quorum == "static":
            return "its quorum is static; say system.quorum: dynamic"
        return None

    def refusal(self, fleet: FleetSpec) -> str | None:
        """The file of a node's clock is in a folder that belongs to root, and is one for all where hosts are
        folders."""
        for host in self.versions:
            if host not in fleet.hosts:
                return f"system.versions.{host}: there is no such host; there are {', '.join(fleet.hosts)}"
        if self.tier is not None and (why := self._without_tier(fleet)):
            return why
        if (unknown := unknown_host(self.racks, fleet.hosts)) is not None:
            return unknown
        if self.clock == "host" or (why := fleet.lacks(Ability.ROOT)) is None:
            return None
        return f"system.clock: faketime needs {Ability.ROOT}: {why}"

    def _without_tier(self, fleet: FleetSpec) -> str | None:
        """Returns why these nodes cannot have a remote tier."""
        if parsed(self.version) < SINCE:
            since = ".".join(map(str, SINCE))
            return f"system.tier: Kafka has tiered storage that is ready for use since {since}"
        if not fleet.shares_folder:
            return f"system.tier: hosts of the fleet {fleet.kind} share no folder; those of netns do"
        if self.tier is not None and self.tier.kind == "s3" and fleet.needs_root:
            # They have a network of their own, that nobody else is in.
            return (
                f"system.tier.kind: s3: hosts of the fleet {fleet.kind} reach no server outside of it; "
                "those of process do"
            )
        if self.security != KafkaSecuritySpec():
            return "system.tier: clients of its metadata speak plain text: leave system.security out"
        if fleet.disks > 1:
            return "system.tier: Kafka has one log directory with a remote tier: leave fleet.disks out"
        return None

    def warning(self) -> str | None:
        if parsed(self.version) <= parsed(NEWEST) or Store().find(self.version) is not None:
            return None
        return (
            f"system.version: Kafka {self.version} is not on this machine, and newer than {NEWEST}, the "
            f"newest that is known here; `wrackline get kafka {self.version}` says whether there is one"
        )

    def cannot(self, fault: str) -> str | None:
        if fault == "messages" and self.secured:
            return "messages reads what nodes say to each other: system.security.protocol must be PLAINTEXT"
        return super().cannot(fault)

    def cannot_become(self, version: str, fleet: FleetSpec) -> str | None:  # noqa: ARG002
        try:
            expected = parsed(version)
        except ValueError as error:
            return str(error)
        if expected == parsed(self.version) and not self.versions:
            return f"the nodes are of version {version} already"
        if on_zookeeper(self.version) and not on_zookeeper(version):
            return f"it has no ZooKeeper, {self.version} has; go up to 2.8"
        if on_zookeeper(version) and not on_zookeeper(self.version):
            return f"it needs ZooKeeper, {self.version} has none; go down to 3.7.0"
        if expected < parsed(self.version) and not on_zookeeper(version) and METADATA not in self.features:
            return self._unknown_level(version)
        if self.quorum == "dynamic" and expected < QUORUM_CHANGES_SINCE:
            return "its quorum is dynamic, which 3.9.0 was the first to know"
        return None

    def became(self, version: str) -> KafkaSpec:
        """The cluster keeps the metadata version of its first version until ``update-feature`` raises it."""
        features = {METADATA: 0, **self.features}
        return self.model_copy(update={"version": version, "versions": {}, "features": features})

    def with_level(self, feature: str, level: int) -> KafkaSpec:
        return self.model_copy(update={"features": {**self.features, feature: level}})

    def without_levels(self) -> str | None:
        if on_zookeeper(self.version):
            return f"Kafka {self.version} on ZooKeeper has no features with levels"
        return None

    def without_quotas(self) -> str | None:
        if on_zookeeper(self.version):
            return f"Kafka {self.version} keeps quotas in ZooKeeper: take a version from 3.7 on"
        return None

    def without_certificates(self) -> str | None:
        if self.security.build().tls:
            return None
        return "nodes have certificates where system.security.protocol is SSL or SASL_SSL"

    def without_passwords(self) -> str | None:
        if self.security.build().scram is not None:
            return None
        return "clients have a password that changes where system.security.mechanism is one of SCRAM"

    def prepare(self, say: Callable[[str], None]) -> None:
        for version in dict.fromkeys(self.versions.values()):
            self.prepare_version(version, say)
        release = install(Store(), self.version, say=say)
        release.verify()
        if self.tier is not None:
            prepare_tier(self.tier, Store(), say)
        kind = Kind.OBSERVER if self.quorum == "dynamic" else Kind.STATIC
        # What the server says of its features, it says before there is any host.
        formatted(release, self.features, kind)

    def prepare_version(self, version: str, say: Callable[[str], None]) -> None:
        install(Store(), version, say=say).verify()

    def build(self, fleet: Fleet, layout: Layout) -> System:
        if on_zookeeper(self.version):
            make: MakeSystem = partial(kafka_on_zookeeper(), fleet, zookeepers=layout.zookeeper)
        else:
            make = partial(
                KafkaSystem,
                fleet,
                cluster_id=layout.cluster_id,
                features=self.features,
                dynamic=self.quorum == "dynamic",
                spare_controllers=layout.spare_controllers,
                tier=self.tier,
                racks=self.racks,
                security=self.security.build(),
            )
        return make(
            version=self.version,
            versions=self.versions,
            brokers=layout.brokers,
            controllers=layout.controllers,
            spares=layout.spares,
            config=self.config,
            jvm_options=self.jvm_options,
            start_s=self.waits.start_s,
            faketime=self.clock == "faketime",
        )

    def configured(self) -> Configured:
        """Returns the facts on the settings for the judge. The cluster's features say how a leader is found
        when no clean one is left: a version with eligible leader replicas (KIP-966) then takes the last known
        leader, one without takes nobody."""
        every_write = str(self.config.get("log.flush.interval.messages", "")) == "1"
        others = ", ".join(f"{host} {version}" for host, version in self.versions.items())
        return Configured(
            version=f"{self.version} ({others})" if others else self.version,
            flush_mode="every-write" if every_write else "never",
            unclean_election=is_true(
                self.config.get("unclean.leader.election.enable", parsed(self.version) < UNCLEAN_OFF_SINCE)
            ),
            recovery_strategy=NO_RECOVERY,
            deletion={
                name: str(value)
                for name, value in self.config.items()
                if name.startswith("log.retention.") and not name.endswith("interval.ms")
            },
        )

    def client_settings(self) -> Mapping[str, str]:
        """Returns the settings of clients: what they are let in by. Before 0.10 brokers cannot be asked which
        versions of the protocol they speak, so clients are given the version."""
        if parsed(self.version) >= (0, 10):
            return self.security.build().of(CLIENTS).librdkafka()
        return {"api.version.request": "false", "broker.version.fallback": self.version}
