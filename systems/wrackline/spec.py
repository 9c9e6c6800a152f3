"""What a specification may say of the system ``wrackline``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from wrackline.fleets.base import Fleet
from wrackline.plugins.fields import Lax, in_milliseconds
from wrackline.systems.base import System
from wrackline.systems.spec import Configured, Layout, SystemSpec, is_true
from wrackline.systems.wrackline.system import WracklineSystem


class WracklineSpec(SystemSpec):
    """Settings of the system ``wrackline``."""

    kind: Literal["wrackline"] = "wrackline"
    """What is deployed: the broker that comes with Wrackline."""
    profile: str = "kip966"
    """The broker's set of rules: kip966, kraft35 or kip101."""
    defects: Annotated[tuple[str, ...], Lax] = ()
    """Historic defects to start the broker with; `docs/defects.md` lists them."""
    config: Annotated[dict[str, str | int | float | bool], AfterValidator(in_milliseconds)] = Field(
        default_factory=dict
    )
    """Settings of brokers and controllers by their names in the broker's configuration file."""

    def build(self, fleet: Fleet, layout: Layout) -> System:
        return WracklineSystem(
            fleet,
            brokers=layout.brokers,
            controllers=layout.controllers,
            spares=layout.spares,
            cluster_id=layout.cluster_id,
            profile=self.profile,
            defects=self.defects,
            config=self.config,
            bundle_cache=layout.cache / "bundles",
            start_s=self.waits.start_s,
        )

    def configured(self) -> Configured:
        return Configured(
            profile=self.profile,
            defects=self.defects,
            flush_mode=str(self.config.get("flush_mode", "on-roll")),
            unclean_election=is_true(self.config.get("unclean_leader_election", False)),
            recovery_strategy=str(self.config.get("unclean_recovery_strategy", "balanced")),
        )
