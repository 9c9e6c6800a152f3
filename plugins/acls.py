"""Rights of a principal as a cluster's ACLs have them: operations on kinds of resources, by Kafka's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

PREFIX = "wrackline"
"""The names of a run's own resources in a cluster that others use too begin so."""


class Resource(StrEnum):
    """A kind of resource, as `kafka-acls.sh` names it."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


Acls = Mapping[Resource, tuple[str, ...]]
"""Operations that are needed on each kind."""
OPERATIONS = (
    "Create",
    "Delete",
    "Describe",
    "DescribeConfigs",
    "Alter",
    "AlterConfigs",
    "Read",
    "Write",
    "IdempotentWrite",
)
"""In the order in which they are listed."""


def merged(several: Iterable[Acls]) -> dict[Resource, tuple[str, ...]]:
    """Returns what all of these need together."""
    needed: dict[Resource, set[str]] = {}
    for acls in several:
        for resource, operations in acls.items():
            needed.setdefault(resource, set()).update(operations)
    return {
        resource: tuple(sorted(needed[resource], key=OPERATIONS.index))
        for resource in Resource
        if resource in needed
    }
