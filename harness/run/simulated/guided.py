"""A guided schedule of a specification in virtual time: its scene, played in the cluster of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from wrackline.history.model import CONTROL, Event, Type
from wrackline.nemesis.guided.scene import on_hosts
from wrackline.nemesis.guided.steps import Aim, GuidedError, Inject
from wrackline.nemesis.spec import GuidedSpec
from wrackline.scenarios import SCENES
from wrackline.scenarios.language import Do, Scene, Undo
from wrackline.simulator.guided.cluster import Cluster, Unmet
from wrackline.simulator.guided.scene import Player
from wrackline.simulator.run.recorded import RecordedRun

_LOOK_MS = 50.0
_HEALING_MS = 30_000.0
"""So long the faults that are left may take to end when the run, or the scene, is over."""


class Nemesis(Protocol):
    """Who knows the cluster, and writes down what is done to it."""

    def aim(self, topic: str, partition: int) -> Aim:
        """Returns the cluster as it is now."""

    def note_begin(self, step: Inject, nodes: Sequence[int]) -> None: ...

    def note_end(self, step: Inject) -> None: ...

    def note_miss(self, id_: str, fault: str, role: str, why: str) -> None: ...


class _RunOver(Unmet):
    """There is no time left, or the run is interrupted."""


class _OfRun(Cluster):
    """The cluster of a run: time passes as the run lets it, until the main phase is over."""

    def __init__(
        self,
        run: RecordedRun,
        topic: str,
        partitions: Sequence[int],
        nemesis: Nemesis,
        faults: Mapping[str, Inject],
        ends_ms: float,
    ) -> None:
        super().__init__(run.world, topic, partitions)
        self._run = run
        self._nemesis = nemesis
        self._faults = faults
        self.ends_ms = ends_ms

    def machine(self, node: int) -> tuple[int, ...]:
        return tuple(server.id for server in self._run.driver.machine(node))

    def run(self, ms: float) -> None:
        self._pass(lambda: False, self.world.now_ms + ms)

    def until(self, condition: Callable[[], bool], what: str, within_ms: float = 20_000) -> None:
        if not self._pass(condition, self.world.now_ms + within_ms):
            raise Unmet(f"waited {within_ms / 1000:g} s for: {what}")

    def must(
        self,
        condition: Callable[[], bool],
        what: str,
        within_ms: float = 10_000,
        oracle: str = "",  # noqa: ARG002
    ) -> bool:
        self.until(condition, what, within_ms)
        return True

    def _pass(self, condition: Callable[[], bool], until_ms: float) -> bool:
        """Tells whether the condition has come to hold. Raises _RunOver."""
        self._run.go(condition, min(until_ms, self.ends_ms))
        if condition():
            return True
        if self.world.now_ms < until_ms:
            raise _RunOver("the run ended before the schedule did: let it last longer")
        return False

    def begun(self, step: Do, nodes: Sequence[int]) -> None:
        self._nemesis.note_begin(self._faults[step.id], nodes)

    def ended(self, id_: str) -> None:
        self._nemesis.note_end(self._faults[id_])


def play(spec: GuidedSpec, run: RecordedRun, topic: str, nemesis: Nemesis, ends_ms: float) -> None:
    """Plays the schedule from its time on, until it is over. It takes as long as the cluster does, but not
    beyond ``ends_ms``."""
    run.go(lambda: False, min(run.world.now_ms + spec.at_s * 1000, run.ends_ms))
    try:
        _played(SCENES[spec.name], spec, run, topic, nemesis, ends_ms)
    except (GuidedError, Unmet) as lost:
        nemesis.note_miss("g0", spec.name, f"{spec.topic or '*'}-{spec.partition}", str(lost))


def _played(
    scene: Scene, spec: GuidedSpec, run: RecordedRun, topic: str, nemesis: Nemesis, ends_ms: float
) -> None:
    """Raises GuidedError, Unmet."""
    aim = _aimed(scene, spec, run, topic, nemesis)
    faults = {step.id: step for step in on_hosts(scene, aim) if isinstance(step, Inject)}
    names = {id_: step.fault.name for id_, step in faults.items()}
    extra = {"schedule": spec.name, "faults": names}
    run.history.record(run.world.now_ms, Event(CONTROL, Type.INFO, "planned", extra=extra))
    chosen = aim.healthy(replicas=scene.replicas)
    partitions = sorted(aim.like(chosen), key=lambda partition: partition != spec.partition)
    cluster = _OfRun(run, topic, partitions, nemesis, faults, ends_ms)
    player = Player(cluster, spec.deadline_s * 1000)
    try:
        for number, step in enumerate(scene.steps):
            try:
                player.step(step)
            except _RunOver:
                if any(isinstance(later, Undo) for later in scene.steps[number:]):
                    raise
                return
    finally:
        cluster.ends_ms = run.world.now_ms + _HEALING_MS
        for id_ in reversed(player.in_force):
            _end(player, id_)


def _aimed(scene: Scene, spec: GuidedSpec, run: RecordedRun, topic: str, nemesis: Nemesis) -> Aim:
    """Returns the cluster from which the schedule starts, as soon as it fits. Raises GuidedError when it
    does not in time."""
    until_ms = run.world.now_ms + spec.deadline_s * 1000
    while True:
        aim = nemesis.aim(topic, spec.partition)
        try:
            on_hosts(scene, aim)
        except GuidedError:  # not yet healthy, perhaps
            if run.world.now_ms >= min(until_ms, run.ends_ms):
                raise
            run.go(lambda: False, run.world.now_ms + _LOOK_MS)
        else:
            return aim


def _end(player: Player, id_: str) -> None:
    """Ends a fault that the schedule has left in force; what stays of it is healed at the end of the run."""
    with suppress(Unmet):
        player.end(id_)
