"""The promises of liveness after healing, in virtual time: those that the cluster's metadata show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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


def watch_healed(
    run: RecordedRun,
    nodes: Sequence[Node],
    state: Callable[[], ClusterState],
    subjects: Subjects,
    bounds: Mapping[str, float],
    interrupted: Callable[[], bool],
) -> None:
    """Looks at what should move now, until it does or has stood still for as long as it may."""

    def pause() -> None:
        run.go(lambda: False, run.world.now_ms + _PAUSE_MS)

    cluster, rows = _Cluster(run, nodes, state), _Rows(run)
    liveness = Liveness(cluster, rows, subjects, bounds, lambda: run.world.now_ms / 1000)
    liveness.watch(When.HEALED, give_up=lambda _: interrupted(), pause=pause)
