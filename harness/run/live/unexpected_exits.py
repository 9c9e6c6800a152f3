"""Unexpected exits: nodes and hosts are looked at while the run goes on, and one that is gone though no fault
has taken it is recorded like a fault of its own (``died``): its recovery is in the figures, and the run
cannot pass."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from wrackline.fleets.base import Fleet, FleetError
from wrackline.harness.run.liveness.promises import crash_of
from wrackline.history import Recorder, RecordingFailed
from wrackline.history.model import DIED, NEMESIS, Event, Type
from wrackline.nemesis.stage import Hold
from wrackline.systems.base import DeployError, Node, System
from wrackline.systems.external.external_cluster import ExternalCluster

LOOK_EVERY_S = 2.0
SILENT_LOOKS = 3
"""A host that has power and does not answer so often in a row is as good as gone."""
JOIN_S = 40.0
ROLE = "no fault had stopped it"


@dataclass(frozen=True, slots=True)
class _Death:
    id: str
    proof: str
    unsure: tuple[str, ...]


@dataclass(slots=True)
class _Seen:
    """The state in which a node was seen last."""

    taken: int
    pid: int | None
    death: _Death | None = None
    silent: int = 0
    """Looks in a row to which its host did not answer."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The result of one look at a node."""

    taken: int
    pid: int | None = None
    words: str = ""
    """The last of its log, where its process is gone."""
    lost_host: str = ""
    """Why its host is gone."""
    silence: str = ""
    """The error that came instead of an answer."""

    @property
    def answered(self) -> bool:
        return not (self.lost_host or self.silence)


class Deaths:
    """A thread that looks at every node. A node that a fault has is not looked at; one that a fault had is
    looked at afresh, since whoever ends a fault starts the node again."""

    def __init__(
        self,
        fleet: Fleet,
        system: System,
        recorder: Recorder,
        hold: Callable[[str], Hold],
        *,
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        """``hold``: of a host, by its name; asked before and after each look. ``every_s``: between two
        looks, which take much of a slow host's time."""
        self._every_s = every_s
        self._fleet = fleet
        self._system = system
        self._recorder = recorder
        self._hold = hold
        self._seen: dict[int, _Seen] = {}
        self._cut_off: Counter[str] = Counter()
        """Host -> how many faults it is under, where all that can be seen of it is whether it answers: also a
        fault that does not take the node may keep the answer from us."""
        self._standing = isinstance(system, ExternalCluster)
        self._unmended: set[str] = set()
        """Hosts whose last fault could not be undone as it should: that their node is down is its work."""
        self._count = 0
        self._looking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="deaths", daemon=True)
        recorder.listeners.append(self._on_event)

    def start(self) -> None:
        """The nodes are running now. Raises RecordingFailed."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """Idempotent; ``look`` can still be called."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)

    def close(self) -> None:
        """The last look; whoever is still dead is recorded as such. Raises RecordingFailed."""
        self.stop()
        self.look()
        with self._looking:
            for node in self._system.nodes:
                seen = self._seen.get(node.node_id)
                if seen is not None and seen.death is not None:
                    self._end(node, seen, "it was not seen to run again")

    def look(self) -> None:
        """Looks at every node, all at once. Raises RecordingFailed."""
        with self._looking, ThreadPoolExecutor(len(self._system.nodes), "deaths") as pool:
            for node, result in pool.map(self._found, self._system.nodes):
                self._take(node, result)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self.look()
            except RecordingFailed:
                return

    def _on_event(self, event: Event) -> None:
        if event.process == NEMESIS and event.f != DIED and event.extra is not None:
            targets: Collection[str] = event.extra.get("targets") or ()
            if event.extra.get("phase") == "ended" and event.extra.get("error"):
                self._unmended.update(targets)
            elif event.extra.get("phase") == "begin":
                self._unmended.difference_update(targets)
            if self._standing and event.extra.get("phase") in ("begin", "ended"):
                change = 1 if event.extra["phase"] == "begin" else -1
                self._cut_off.update(dict.fromkeys(targets, change))

    # --- one look -----------------------------------------------------------------------------------------

    def _found(self, node: Node) -> tuple[Node, _Look | None]:
        """The node and what was seen of it; None when a fault accounts for its state."""
        before = self._hold(node.host.name)
        if before.by is not None or self._cut_off[node.host.name]:
            return node, None
        result = self._ask(node, before.taken)
        undisturbed = self._hold(node.host.name) == before and not self._cut_off[node.host.name]
        return node, result if undisturbed else None

    def _ask(self, node: Node, taken: int) -> _Look:
        try:
            if not self._fleet.power.is_on(node.host):
                return _Look(taken, lost_host="its host has no power")
            pid = self._system.pid(node)
            words = "" if pid is not None else self._system.last_words(node)
        except (FleetError, DeployError) as error:
            return _Look(taken, silence=str(error))
        return _Look(taken, pid, words=words)

    def _take(self, node: Node, found: _Look | None) -> None:
        if found is None:
            return
        seen = self._seen.get(node.node_id)
        fresh = seen is None or seen.taken != found.taken
        if seen is None or (fresh and seen.death is None):
            seen = self._seen[node.node_id] = _Seen(found.taken, None)
        seen.taken = found.taken
        seen.silent = seen.silent + 1 if found.silence else 0
        if found.pid is not None:
            self._take_running(node, seen, found.pid)
        elif seen.death is None and (what := self._gone(node, seen, found)):
            self._begin(node, seen, what, host=not found.answered)

    def _take_running(self, node: Node, seen: _Seen, pid: int) -> None:
        if seen.death is None and seen.pid not in (None, pid):
            self._begin(node, seen, f"process {seen.pid} of node {node.node_id} was gone", host=False)
        if seen.death is not None:
            self._end(node, seen, f"runs again as {pid}")
        seen.pid = pid

    def _gone(self, node: Node, seen: _Seen, found: _Look) -> str:
        """Returns which process or host died, in words; empty while that is not known, and where it is no
        wonder."""
        if found.silence and seen.silent < SILENT_LOOKS:
            return ""
        if seen.pid is None and (node.spare or node.host.name in self._unmended):
            return ""  # it was never started, or a fault has left it so
        who = f"process {seen.pid} of node {node.node_id}" if seen.pid else f"node {node.node_id}"
        if found.answered:
            return f"{who} was gone; its last words: {found.words or 'none'}"
        return f"{who} is gone with {node.host.name}: {found.lost_host or found.silence}"

    # --- what is recorded ---------------------------------------------------------------------------------

    def _begin(self, node: Node, seen: _Seen, proof: str, *, host: bool) -> None:
        self._count += 1
        crash = "" if host or seen.pid is None else self._crash(node, seen.pid)
        proof = f"{proof} ({crash})" if crash else proof
        seen.death = _Death(f"d{self._count}", proof, (node.host.name,) if host else ())
        if crash:
            self._recorder.record(crash_of(f"node {node.node_id} on {node.host.name}", seen.death.id, proof))
        for phase in ("begin", "active"):
            self._record(node, seen.death, phase, proof)

    def _crash(self, node: Node, pid: int) -> str:
        try:
            return self._system.crash(node, pid)
        except (FleetError, DeployError):
            return ""

    def _end(self, node: Node, seen: _Seen, how: str) -> None:
        assert seen.death is not None
        self._record(node, seen.death, "ended", f"{seen.death.proof}; {how}")
        seen.death, seen.pid = None, None

    def _record(self, node: Node, death: _Death, phase: str, proof: str) -> None:
        extra: dict[str, Any] = {
            "id": death.id,
            "phase": phase,
            "targets": [node.host.name],
            "role": ROLE,
            "proved": True,
            "proof": proof,
            "lost": {},
            "lossy": [],
            "unsure": list(death.unsure),
        }
        self._recorder.record(Event(NEMESIS, Type.INFO, DIED, extra=extra))


def down(system: System) -> Iterator[str]:
    """A line for each node that does not run now, with its own reason: the rest of the run may look as it
    does for it. Raises DeployError."""
    for node in system.nodes:
        if not system.is_running(node):
            words = system.last_words(node)
            if words or not node.spare:  # a spare without a log was never started
                yield f"{node.host.name}: node {node.node_id} is down: {words}"
