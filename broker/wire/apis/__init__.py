"""The APIs that are spoken, in which versions, and how each is translated (docs/protocol.md 5.1, 5.3,
5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from wrackline.broker.wire.api import CLIENT, Api, Listener, Range
from wrackline.broker.wire.apis import (
    brokers,
    configs,
    describe_quorum,
    features,
    fetch,
    metadata,
    offsets,
    quorum,
    reassignments,
    records,
    topics,
)
from wrackline.broker.wire.proof import PROOF
from wrackline.broker.wire.unserved import UNSERVED

API_VERSIONS = 18
API_VERSIONS_RANGE: Range = (0, 4)

_FAMILIES = (
    records,
    fetch,
    offsets,
    metadata,
    topics,
    configs,
    reassignments,
    brokers,
    quorum,
    describe_quorum,
    features,
)
BY_KEY: Mapping[int, Api] = {api.key: api for family in _FAMILIES for api in family.APIS}
BY_REQUEST: Mapping[type, Api] = {api.request.model: api for api in BY_KEY.values()}

for _api in BY_KEY.values():
    _api.check()


def served(listener: Listener) -> list[Api]:
    """The APIs that are known on this listener."""
    return [api for api in BY_KEY.values() if api.served_on(listener)]


@cache
def advertised(listener: Listener) -> tuple[tuple[int, int, int], ...]:
    """(key, lowest, highest version) as ApiVersions tells them."""
    nodes = listener is not CLIENT
    ranges = [
        (api.key, *span)
        for api in served(listener)
        if (span := api.clients or (api.peers if nodes else None)) is not None
    ]
    others = PROOF if nodes else {key: api.versions for key, api in UNSERVED.items()}
    ranges += [(key, *span) for key, span in others.items()]
    return tuple(sorted([*ranges, (API_VERSIONS, *API_VERSIONS_RANGE)]))
