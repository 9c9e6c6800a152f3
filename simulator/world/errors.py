"""Errors of a world and of its disks."""

from __future__ import annotations

from wrackline.broker.model.types import TopicPartition


class SimulationError(AssertionError):
    """The core asked for what no disk or network can do, or the schedule for what makes no sense."""


class CodecError(SimulationError):
    """A message says something else when it is decoded than when it was sent, or cannot be sent."""


class DiskRefused(Exception):
    """A write failed: this effect is not carried out, nor those of its event that follow (as in the real
    shell)."""

    def __init__(self, tp: TopicPartition, reason: str) -> None:
        super().__init__(reason)
        self.tp = tp
        self.reason = reason
