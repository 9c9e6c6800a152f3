"""Versions of the client libraries that can be used."""

from __future__ import annotations

import re
from dataclasses import dataclass

NEWEST = "4.4.0"
WITH_DURATION = (4, 0)
"""From here on ``auto.offset.reset`` may be ``by_duration`` (KIP-1106)."""
WITH_CLOSE_OPTIONS = (4, 1)
"""From here on a member can be closed without leaving its group (KIP-1092)."""

WITH_SHARE_GROUPS = (4, 2)
"""From here on share groups are ready for use (KIP-932)."""


@dataclass(frozen=True, slots=True)
class Package:
    """A client library as its registry has it."""

    name: str
    newest: str
    """For an example."""
    oldest: tuple[int, int]
    """Older ones do not know all the settings that clients are given."""
    option: str
    """Of ``wrackline get kafka``, by which a version is installed."""
    prefix: str = ""
    """Of the names of its folders."""

    def check(self, version: str) -> None:
        """Raises ValueError, in one line, for a version that there is not or that is too old."""
        if self.line_of(version) < self.oldest:
            first, second = self.oldest
            raise ValueError(
                f"{self.name} {version} is too old: {first}.{second}.0 is the oldest that can be used"
            )

    def line_of(self, version: str) -> tuple[int, int]:
        """4.1.2 is of (4, 1). Raises ValueError, in one line, for what is no version."""
        match = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
        if match is None:
            raise ValueError(
                f"{version!r} is no version of {self.name}: give it in full, {self.newest} for example"
            )
        return int(match[1]), int(match[2])


KAFKA_CLIENTS = Package("kafka-clients", NEWEST, (3, 7), "--client")
LIBRDKAFKA = Package("confluent-kafka", "2.8.0", (2, 5), "--librdkafka", "librdkafka-")
KAFKA_STREAMS = Package("kafka-streams", NEWEST, (3, 7), "--streams", "kafka-streams-")
