"""The promises of liveness in virtual time: those that the cluster's metadata show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wrackline.harness.run.liveness.look import Subjects
from wrackline.harness.run.liveness.promises import When
from wrackline.harness.run.liveness.watch import Liveness
from wrackline.history.model import Event
from wrackline.simulator.run.recorded import RecordedRun
from wrackline.systems.base import ClusterState, Node

_PAUSE_MS = 500.0


class _Cluster:
    """What a look needs of a system. No broker is asked by itself."""

    name = "virtual time"

    def __init__(self, run: RecordedRun, nodes: Sequence[Node], state: Callable[[], ClusterState]) -> None:
        self._run, self.nodes, self._state = run, nodes, state

    def describe(self, *, timeout_s: float = 5.0) -> ClusterState:  # noqa: ARG002 - a look's question
        return self._state()

    def is_running(self, node: Node) -> bool:
        return self._run.world.server(node.node_id).up

    def start(self, node: Node) -> None:
        self._run.world.start(node.node_id)

    def last_words(self, node: Node) -> str:  # noqa: ARG002 - it writes no log
        return "it ended by itself"


class _Rows:
    def __init__(self, run: RecordedRun) -> None:
        self.listeners: list[Callable[[Event], None]] = []
        self._run = run

    def record(self, event: Event) -> None:
        self._run.history.record(self._run.world.now_ms, event)


class Watch:
    """Looks at the promises of one run: at those under faults from now on until it is healed."""

    def __init__(
        self,
        run: RecordedRun,
        nodes: Sequence[Node],
        state: Callable[[], ClusterState],
        subjects: Subjects,
        bounds: Mapping[str, float],
    ) -> None:
        self._run, self._rows, self._read, self._ended = run, _Rows(run), 0, False
        cluster = _Cluster(run, nodes, state)
        self._liveness = Liveness(cluster, self._rows, subjects, bounds, lambda: run.world.now_ms / 1000)
        if "fence_s" in bounds:
            run.world.at(run.world.now_ms, self._look)

    def _look(self) -> None:
        if not self._ended:
            events = self._run.history.events
            for event in events[self._read :]:
                for listener in self._rows.listeners:
                    listener(event)
            self._read = len(events)
            self._liveness.look_at_faults()
            self._run.world.at(self._run.world.now_ms + _PAUSE_MS, self._look)

    def healed(self, interrupted: Callable[[], bool]) -> None:
        """Looks at what should move now, until it does or has stood still for as long as it may."""
        self._ended = True
        pause = partial(self._run.go, lambda: False)
        self._liveness.watch(
            When.HEALED,
            give_up=lambda _: interrupted(),
            pause=lambda: pause(self._run.world.now_ms + _PAUSE_MS),
        )
