"""The requests of guided schedules to the cluster, as a person would make them."""

from __future__ import annotations

from wrackline.nemesis.guided.steps import ElectUncleanly, GuidedError
from wrackline.systems.base import Administered, DeployError, System

ASK_S = 10.0


def elect_uncleanly(system: System, step: ElectUncleanly) -> None:
    """Raises GuidedError when nobody could be asked, or the cluster refused."""
    if not isinstance(system, Administered):
        raise GuidedError(f"{system.name} has nobody who could be asked to administer it")
    try:
        places = [(step.topic, partition) for partition in step.partitions]
        system.admin.elect_uncleanly(places, timeout_s=ASK_S)
    except DeployError as refused:
        raise GuidedError(f"no unclean election of {step.topic}: {refused}") from refused
