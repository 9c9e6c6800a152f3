"""The folder of what the command can make again: bundles, classes, resolved jars."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """``wrackline`` in the user's cache (XDG Base Directory Specification). It need not exist."""
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "wrackline"
