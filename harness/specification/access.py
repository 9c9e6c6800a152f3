"""The resources of a run in a cluster that runs already, and the rights that it needs on them.

What a workload uses its settings say (`wrackline.workloads.log.spec.ClientsSpec.acls`), and what a fault
needs beside that (`wrackline.nemesis.faults.spec.FaultSpec.acls`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wrackline.harness.specification.spec import Spec
from wrackline.plugins.acls import PREFIX, Resource, merged
from wrackline.systems.external.spec import ExternalSpec

_AFTERWARDS = {
    Resource.TOPIC: "removed when the run ends",
    Resource.GROUP: "removed when the run ends",
    Resource.TRANSACTIONAL_ID: "they expire by themselves (transactional.id.expiration.ms)",
    Resource.CLUSTER: "",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The resources of one kind."""

    resource: Resource
    names: tuple[str, ...]
    """TESTID stands for the run's id; ``*`` at the end for any end: a prefixed ACL."""
    operations: tuple[str, ...]
    afterwards: str
    """What becomes of them; empty where nothing is made."""

    def __str__(self) -> str:
        text = f"{self.resource} {', '.join(self.names)}: {', '.join(self.operations)}"
        return f"{text}; {self.afterwards}" if self.afterwards else text


def access_of(spec: Spec) -> tuple[Access, ...]:
    """Returns what a run of this specification uses in a cluster that runs already; nothing of a cluster that
    is deployed for it."""
    if spec.system.broker_names() is None:
        return ()
    return tuple(_access(spec))


def _access(spec: Spec) -> Iterator[Access]:
    needed = merged((spec.workload.acls, *(fault.acls for fault in spec.every_fault)))
    # Without a group that commits nothing is made.
    makes_groups = "Read" in needed.get(Resource.GROUP, ())
    for resource, operations in needed.items():
        match resource:
            case Resource.TOPIC:
                names: tuple[str, ...] = tuple(
                    spec.system.topic_of("TESTID", one.name) for one in spec.every_topic
                )
            case Resource.CLUSTER:
                names = ("kafka-cluster",)
            case _:
                names = (f"{PREFIX}*",)
        afterwards = _AFTERWARDS[resource]
        if resource is Resource.GROUP and not makes_groups:
            afterwards = "none is made"
        elif resource is Resource.TOPIC and isinstance(spec.system, ExternalSpec) and spec.system.keep_topics:
            afterwards = "kept when the run ends"
        yield Access(resource, names, operations, afterwards)
