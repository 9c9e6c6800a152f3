"""States of a controller's process."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ControllerState(Enum):
    STARTING = "starting"
    """Has not been told yet what is on its disk."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Asked to stop: it leads no longer, and lets the others hear of it."""
    STOPPED = "stopped"
    """The process ends."""


DEAF: Final = (ControllerState.STARTING, ControllerState.STOPPED)
"""States in which events have no effect."""
