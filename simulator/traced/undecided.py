"""Which invariants a trace of real brokers decides, and why not the others."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.simulator.invariants.zookeeper import BROKEN, NAMES

_QUORUM = "the traces have no lines for what each controller writes to its own metadata log, or is asked"
_FETCHERS = "the traces do not tell when a fetcher gives a partition up"
UNDECIDED: Mapping[str, str] = {
    "I06": "the traces have no lines for what a broker appends to its copy of the metadata log",
    "I15": "the traces have no lines for the epoch caches",
    "I16": _FETCHERS,
    **dict.fromkeys((f"Q{number:02}" for number in range(1, 12)), _QUORUM),
}
PARTLY: Mapping[str, str] = {
    "I11": "of registrations only: the traces do not tell which request a controller has answered",
    "I20": "not whether a broker that deletes a log has learnt of a set without itself",
}
"""What of them is not decided."""
UNDECIDED_ON_ZOOKEEPER: Mapping[str, str] = {
    "I16": _FETCHERS,
    **{name: f"not of this profile: {why}" for name, why in BROKEN.items() if name not in NAMES},
}
"""Which are not asked of profile zk08."""
