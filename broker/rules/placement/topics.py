"""Names and settings that a topic may have (Kafka's names and limits)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping

from wrackline.broker.model.types import METADATA, RecoveryStrategy
from wrackline.broker.model.values import dataclass

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


@dataclass(frozen=True)
class Legal:
    """The test of a setting's value, and what it asks for in words."""

    words: str
    fits: Callable[[str], bool]


def _whole(low: int, high: int = 2**63 - 1) -> Legal:
    def fits(value: str) -> bool:
        return re.fullmatch(r"-?\d{1,19}", value, re.ASCII) is not None and low <= int(value) <= high

    return Legal(f"a whole number from {low} to {high}", fits)


def _one_of(*words: str) -> Legal:
    return Legal(" or ".join(words), lambda value: value in words)


def _is_strategy(value: str) -> bool:
    try:
        RecoveryStrategy(value)
    except ValueError:
        return False
    return True


_BOOL = _one_of("true", "false")
RECOVERY_STRATEGY = "unclean.recovery.strategy"
_STRATEGY = Legal("balanced, proactive (also aggressive) or manual (also none)", _is_strategy)
_INT = 2**31 - 1
SETTINGS: Mapping[str, Legal] = {
    "cleanup.policy": _one_of("delete"),
    "compression.type": _one_of("producer"),
    "flush.messages": _whole(1),
    "flush.ms": _whole(0),
    "index.interval.bytes": _whole(0, _INT),
    "max.message.bytes": _whole(0, _INT),
    "message.timestamp.type": _one_of("CreateTime"),
    "min.insync.replicas": _whole(1, _INT),
    "retention.bytes": _whole(-1),
    "retention.ms": _whole(-1),
    "segment.bytes": _whole(1024, _INT),
    "segment.ms": _whole(1),
    "unclean.leader.election.enable": _BOOL,
    RECOVERY_STRATEGY: _STRATEGY,
}
"""Every topic setting we know, with the test of its value. Compaction, broker-side recompression and
LogAppendTime are refused rather than accepted and ignored."""
REPLICATION_RATE = "follower.replication.throttled.rate"
CLUSTER_SETTINGS: Mapping[str, Legal] = {
    "min.insync.replicas": SETTINGS["min.insync.replicas"],
    "unclean.leader.election.enable": _BOOL,
    RECOVERY_STRATEGY: _STRATEGY,
    REPLICATION_RATE: _whole(1),
}
"""What can be set for the whole cluster while it runs. The rate, in bytes per second and broker, is for
replicas that a reassignment adds; those that are in a set already are never held back."""


class TopicRules:
    def name_error(self, name: str, existing: Collection[str]) -> str | None:
        """Returns why the name cannot be used, None when it can. An existing topic of the very same name is
        no error here."""
        if not _LEGAL.match(name) or name in (".", ".."):
            return f"topic name {name!r}: 1 to 249 characters of a-z, A-Z, 0-9, '.', '_' and '-'"
        if name == METADATA.topic:
            return f"topic name {name!r} is the cluster's own"
        twin = name.replace(".", "_")
        for other in existing:
            if other != name and other.replace(".", "_") == twin:
                return f"topic name {name!r} collides with {other!r} ('.' and '_' are the same in metrics)"
        return None

    def config_error(self, configs: Mapping[str, str | None]) -> str | None:
        return _settings_error(configs, SETTINGS, "topic")

    def cluster_config_error(self, configs: Mapping[str, str | None]) -> str | None:
        return _settings_error(configs, CLUSTER_SETTINGS, "cluster")


def _settings_error(configs: Mapping[str, str | None], known: Mapping[str, Legal], kind: str) -> str | None:
    for key, value in configs.items():
        legal = known.get(key)
        if legal is None:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(sorted(known))}"
            return f"unknown {kind} setting {key!r}{hint}"
        if value is None or not legal.fits(value):
            return f"bad value {value!r} for {kind} setting {key!r}: it must be {legal.words}"
    return None
