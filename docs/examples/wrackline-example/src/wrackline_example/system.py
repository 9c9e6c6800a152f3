"""A system: the broker that comes with Wrackline, with small segments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wrackline.api import Configured, Fleet, Layout, System, SystemSpec, WracklineSpec


class SmallSegmentsSpec(SystemSpec):
    """What a specification says of it."""

    kind: Literal["small-segments"] = "small-segments"
    """The broker rolls its segments often."""
    segment_bytes: Annotated[int, Field(ge=1024)] = 65_536
    """A segment is rolled when it is this large."""

    def _inner(self) -> WracklineSpec:
        return WracklineSpec(config={"segment_bytes": self.segment_bytes})

    def build(self, fleet: Fleet, layout: Layout) -> System:
        return self._inner().build(fleet, layout)

    def configured(self) -> Configured:
        return self._inner().configured()
