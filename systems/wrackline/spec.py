"""The settings of the system ``wrackline`` in a specification."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from wrackline.fleets.base import Fleet
from wrackline.fleets.spec import FleetSpec, HostNeeds
from wrackline.plugins.capabilities import Capability
from wrackline.plugins.fields import Lax, in_milliseconds
from wrackline.systems.base import System
from wrackline.systems.jvm.nodes import JRE
from wrackline.systems.jvm.store import Store
from wrackline.systems.spec import Configured, Layout, SystemSpec, is_true, unknown_host
from wrackline.systems.wrackline.mutant import check_mutant
from wrackline.systems.wrackline.settings import (
    FROM_ZOOKEEPER,
    GRANTED_MS,
    LEVEL_ON_ZOOKEEPER,
    NOT_ON_ZOOKEEPER,
    SESSION_MS,
    UPGRADES,
)
from wrackline.systems.wrackline.system import WracklineSystem
from wrackline.systems.zookeeper_door import MakeSystem, install_zookeeper, wrackline_on_zookeeper


class WracklineSpec(SystemSpec):
    """Settings of the system ``wrackline``."""

    kind: Literal["wrackline"] = "wrackline"
    """What is deployed: the broker that comes with Wrackline."""
    profile: str = "kip966"
    """The broker's set of rules: kip966, kraft35, kip101, or zk08 and zk08-kip101, which need
    fleet.zookeeper."""
    defects: Annotated[tuple[str, ...], Lax] = ()
    """Historic defects to start the broker with; `docs/known-bugs.md` lists them."""
    mutant: Annotated[str, AfterValidator(check_mutant)] = ""
    """One place of the broker that deviates, by its name in `wrackline simulate mutants`:
    `broker/rules/replication/isr.py:14`."""
    racks: dict[str, str] = Field(default_factory=dict)
    """Host to rack; `placement: striped` spreads replicas over racks. A host without one stands in none."""
    config: Annotated[dict[str, str | int | float | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Settings of brokers and controllers by their names in the broker's configuration file."""
    trace: bool = True
    """Every node writes down what it does: the run's history has every change of leader and ISR then, and the
    simulator's invariants are asked of the run (`docs/invariants.md`)."""

    @property
    def offers(self) -> frozenset[Capability]:
        """The first design knows no producer by an id."""
        return frozenset() if self.on_zookeeper else super().offers | {Capability.DELETE_RECORDS}

    @property
    def host_needs(self) -> HostNeeds:
        """Java on every host: which of them are ZooKeeper's, an image does not know."""
        return HostNeeds(packages=(JRE,)) if self.on_zookeeper else HostNeeds()

    @property
    def on_zookeeper(self) -> bool:
        return self.profile in LEVEL_ON_ZOOKEEPER

    @property
    def has_controllers(self) -> bool:
        return not self.on_zookeeper

    def misfit(self, zookeeper: int) -> str | None:
        if self.on_zookeeper and not zookeeper:
            return (
                f"profile {self.profile} keeps its metadata in ZooKeeper: say how many servers of it there "
                "are, fleet.zookeeper: 1 or 3"
            )
        if zookeeper and not self.on_zookeeper:
            return (
                f"fleet.zookeeper is {zookeeper}, and profile {self.profile} has controllers: leave it out, "
                "or take profile zk08"
            )
        return None

    def refusal(self, fleet: FleetSpec) -> str | None:
        if (unknown := unknown_host(self.racks, fleet.hosts)) is not None:
            return unknown
        if not self.on_zookeeper or not fleet.zookeeper:
            return None
        asked, (least, most) = self.config.get(SESSION_MS), GRANTED_MS
        if isinstance(asked, int) and not least <= asked <= most:
            # Granted less than it asks for, a broker would lead on when its session has ended.
            return f"system.config.{SESSION_MS}: {asked}; the servers grant {least} to {most}"
        return None

    def cannot(self, fault: str) -> str | None:
        if self.on_zookeeper and fault in NOT_ON_ZOOKEEPER:
            return f"{fault} cannot be done to profile {self.profile}: {NOT_ON_ZOOKEEPER[fault]}"
        return None

    def cannot_become(self, version: str, fleet: FleetSpec) -> str | None:
        if (self.profile, version) in UPGRADES:
            if self.on_zookeeper and version == FROM_ZOOKEEPER and not fleet.controllers:
                return "there is no controller that could take over from ZooKeeper: say fleet.controllers: 1"
            return None
        known = ", ".join(f"{former} to {later}" for former, later in UPGRADES)
        return f"nodes of profile {self.profile} cannot; there is: {known}"

    def became(self, version: str) -> WracklineSpec:
        return self.model_copy(update={"profile": version})

    def without_levels(self) -> str | None:
        return None

    def prepare(self, say: Callable[[str], None]) -> None:
        if self.on_zookeeper:
            install_zookeeper(Store(), repositories=(), say=say).verify()

    def build(self, fleet: Fleet, layout: Layout) -> System:
        if self.on_zookeeper:
            on_zookeeper = wrackline_on_zookeeper(bridges=bool(layout.controllers))
            make: MakeSystem = partial(on_zookeeper, fleet, zookeepers=layout.zookeeper)
        else:
            make = partial(WracklineSystem, fleet, racks=self.racks)
        return make(
            brokers=layout.brokers,
            controllers=layout.controllers,
            spares=layout.spares,
            cluster_id=layout.cluster_id,
            profile=self.profile,
            defects=self.defects,
            mutant=self.mutant,
            config=self.config,
            trace=self.trace,
            bundle_cache=layout.cache / "bundles",
            start_s=self.waits.start_s,
        )

    def configured(self) -> Configured:
        return Configured(
            profile=self.profile,
            defects=(*self.defects, *filter(None, (self.mutant,))),
            flush_mode=str(self.config.get("flush_mode", "on-roll")),
            unclean_election=is_true(self.config.get("unclean_leader_election", False)),
            recovery_strategy=str(self.config.get("unclean_recovery_strategy", "balanced")),
        )
