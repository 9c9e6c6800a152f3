"""Former leaders of partitions, recorded while the run goes on: no cluster can be asked for them."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.systems.base import ClusterState, Place


class Leaders:
    """The leader of each partition and the one before it. A partition without a leader keeps its last."""

    def __init__(self) -> None:
        self._present: dict[Place, int] = {}
        self._former: dict[Place, int] = {}

    def see(self, state: ClusterState) -> None:
        for one in state.partitions:
            place = one.topic, one.partition
            present = self._present.get(place)
            if one.leader < 0 or one.leader == present:
                continue
            if present is not None:
                self._former[place] = present
            self._present[place] = one.leader

    @property
    def former(self) -> Mapping[Place, int]:
        return dict(self._former)
