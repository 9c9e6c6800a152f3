"""The base of all steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A value that says what is to be done on a host, or beside the other steps of that host."""

    host: str


@dataclass(frozen=True, slots=True)
class NodeStep(Step):
    """A step that is about one node."""

    node_id: int
