"""Versions of kafka-clients that can be used."""

from __future__ import annotations

import re

NEWEST = "4.4.0"
OLDEST = (3, 7)
"""Older ones do not know all the settings that clients are given."""
WITH_CLOSE_OPTIONS = (4, 1)
"""From here on a member can be closed without leaving its group (KIP-1092)."""


def checked(version: str) -> str:
    """The version itself. Raises ValueError, in one line, for one that there is not or that is too old."""
    if line_of(version) < OLDEST:
        raise ValueError(
            f"kafka-clients {version} is too old: {OLDEST[0]}.{OLDEST[1]}.0 is the oldest that can be used"
        )
    return version


def line_of(version: str) -> tuple[int, int]:
    """4.1.2 is of (4, 1). Raises ValueError, in one line, for what is no version."""
    match = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
    if match is None:
        raise ValueError(f"{version!r} is no version of kafka-clients: give it in full, {NEWEST} for example")
    return int(match[1]), int(match[2])
