"""The door of the workloads: an entry point names a `Workload`, and its settings are read from a specification."""

from __future__ import annotations

from typing import Any

from wrackline.plugins.doors import Door
from wrackline.plugins.registry import Group
from wrackline.workloads.log.spec import ClientsSpec
from wrackline.workloads.log.workload import Workload


def _settings_of(loaded: Any) -> Any:
    return loaded.settings if isinstance(loaded, type) and issubclass(loaded, Workload) else None


WORKLOAD = Door(Group.WORKLOADS, ClientsSpec, "name", default="log", model_of=_settings_of)
