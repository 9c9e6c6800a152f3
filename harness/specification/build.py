"""From a specification to what a run is made on: the fleet, the system, and the topic's settings."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.base import Fleet
from wrackline.fleets.netns.state import DEFAULT_STATE_ROOT
from wrackline.harness.specification.spec import Spec
from wrackline.systems.base import System
from wrackline.systems.spec import Layout


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made on. Nothing is started yet."""

    fleet: Fleet
    system: System
    keep: Callable[[], None]
    """Let the fleet outlive this process."""


def cache_dir() -> Path:
    """Where bundles of the broker are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "wrackline"


def state_root() -> Path:
    """Where the fleets of runs lie: where `wrackline fleet` looks for them."""
    return Path(os.environ.get("WRACKLINE_STATE_DIR") or DEFAULT_STATE_ROOT)


def build_parts(spec: Spec, test_id: str) -> Parts:
    """The fleet's name comes from the run's, so that runs side by side never share one."""
    digest = hashlib.blake2b(test_id.encode(), digest_size=16).digest()
    fleet = spec.fleet.build(f"run-{digest.hex()[:8]}", state_root())
    layout = Layout(
        brokers=spec.fleet.broker_hosts,
        controllers=spec.fleet.controller_hosts,
        spares=spec.fleet.spare_hosts,
        cluster_id=base64.urlsafe_b64encode(digest).decode().rstrip("="),
        cache=cache_dir(),
    )
    return Parts(fleet, spec.system.build(fleet, layout), fleet.detach)


def topic_configs(spec: Spec) -> dict[str, str]:
    """The topic's settings as the cluster takes them."""
    configs = {"min.insync.replicas": str(spec.topic.min_insync_replicas)}
    for name, value in spec.topic.configs.items():
        configs[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return configs
