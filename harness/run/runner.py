"""One run from plan to collected evidence. Whatever happens on the way, the fleet is torn down at the end.

What breaks down on our side (hosts, SSH, deployment) is noted as a *trouble* and makes the verdict
``infrastructure``; the later steps are still tried, since what was recorded until then is worth judging.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from harness.fleet.base import FleetError
from harness.fleet.canary import Canaries
from harness.history import Recorder, RecordingFailed
from harness.history.files import private_folder
from harness.history.model import CONTROL, Event, Type
from harness.run.interrupt import Interrupts
from harness.run.judge import note_troubles
from harness.run.observer import Observer, cluster_event
from harness.run.progress import Progress
from harness.run.replicas import read_replicas
from harness.run.setup import Parts, build_parts, new_test_id, run_info, topic_configs
from harness.run.watch import Watch
from harness.spec import Spec
from harness.systems.base import ClusterState, DeployError, TopicSpec
from nemesis.heal import NemesisError
from nemesis.runner import Nemesis
from nemesis.schedule import Plan, plan
from workloads.catalog import workload_for
from workloads.log import Workload

log = logging.getLogger(__name__)

READY_S = 60.0
WARM_S = 20.0
STEADY_S = 2.0
"""How long the workload runs undisturbed before the main phase, once every kind of operation succeeded."""
GUIDED_S = 90.0
"""How long a guided schedule may go on after the main phase's own time."""
FULL_ISR_S = 60.0
RECOVERED_S = 3.0
"""How long the workload goes on after every replica is back in the ISR."""
DRAIN_S = 60.0
STEP_S = 0.25
TEAR_DOWN = "tear down"


class Interrupted(Exception):
    """The user stopped the run before anything, or at once. The message says what is left."""


@dataclass(frozen=True, slots=True)
class Options:
    results: Path
    keep_fleet: bool = False
    progress: Progress = field(default_factory=Progress)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run that was made and not judged yet."""

    run_dir: Path
    troubles: tuple[str, ...]
    """What broke down on our side, most telling first."""
    driven: bool
    """Clients did something: there is a history to analyse."""
    kept_fleet: str | None = None
    interrupted: bool = False
    """The user asked for an early end: whoever has more runs to make should not begin them."""


def run(spec: Spec, options: Options) -> Outcome:
    """Make one run. Raises Interrupted, FleetError or DeployError for hosts that cannot be named, and OSError when
    its directory cannot be written; everything that goes wrong later is in the outcome."""
    test_id = new_test_id(spec.name)
    parts = build_parts(spec, test_id)
    run_dir = options.results / test_id
    private_folder(run_dir)
    with _logged_to(run_dir / "harness.log"), options.progress as progress:
        progress.say(f"run {test_id}  seed {spec.seed}")
        return _Run(spec, parts, test_id, run_dir, options, progress).execute()


@contextmanager
def _logged_to(path: Path) -> Iterator[None]:
    """What the harness logs meanwhile goes into the run's directory and not over the progress line."""
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        handler.close()


class _Run:
    def __init__(
        self,
        spec: Spec,
        parts: Parts,
        test_id: str,
        run_dir: Path,
        options: Options,
        progress: Progress,
    ) -> None:
        self.spec = spec
        self.run_dir = run_dir
        self.options = options
        self.progress = progress
        self.interrupts = Interrupts(progress.say)
        self.plan: Plan = plan(spec.nemesis, spec.seed, spec.workload.duration_s)
        (run_dir / "spec.yaml").write_text(spec.to_yaml())
        saved = {"seed": spec.seed, "plan": self.plan.to_dict()}
        (run_dir / "plan.json").write_bytes(orjson.dumps(saved, option=orjson.OPT_INDENT_2) + b"\n")
        self.parts = parts
        self.recorder = Recorder(run_dir, run_info(spec, test_id, self.parts.system))
        self.watch = Watch(self.recorder, progress)
        self.observer = Observer(self.parts.system, self.recorder, spec.topic.name)
        self.canaries = Canaries(parts.fleet, parts.fleet.hosts)
        self.workload: Workload | None = None
        self.troubles: list[str] = []
        self.notes: list[str] = []
        self._assigned: dict[str, list[int]] = {}
        """Replicas by partition, as recorded last."""

    def execute(self) -> Outcome:
        kept, stopped = None, False
        with self.interrupts.watching():
            try:
                self._live()
            except KeyboardInterrupt:
                stopped = True
                self.notes.append("stopped by the user before the final read")
            finally:
                with self.interrupts.shielded():
                    self.observer.stop()
                    self._close_history()
                    kept = self._tear_down()
                    note_troubles(self.run_dir, self.troubles)
        if stopped:
            raise Interrupted(self._what_is_left(kept))
        asked = self.interrupts.asked.is_set()
        return Outcome(self.run_dir, tuple(self.troubles), self.workload is not None, kept, asked)

    def _what_is_left(self, kept: str | None) -> str:
        """Of the run and of its hosts, once they were torn down as far as it went."""
        if kept:
            hosts = f"the hosts are kept as fleet {kept}"
        elif any(trouble.startswith(TEAR_DOWN) for trouble in self.troubles):
            hosts = "not all of the hosts could be removed, `wrackline fleet clean` does it"
        else:
            hosts = "its hosts were removed"
        if self.workload is None:
            return f"interrupted during set-up: no operation was made, {hosts}; plan and log are in {self.run_dir}"
        return (
            f"stopped at once: {hosts}; what was recorded is in {self.run_dir}: `wrackline analyze` judges it"
        )

    def _live(self) -> None:
        """Set up, drive, heal, read, collect."""
        if not self._attempt("set-up", self._set_up):
            self._attempt("collect", self._collect)
            return
        with self.interrupts.gently():
            self._attempt("drive", self._drive)
            self._attempt("read back", self._read_back)
            self._attempt("collect", self._collect)

    def _attempt(self, what: str, step: Callable[[], None]) -> bool:
        """True when the step went through. Failures of hosts and disks are noted, not raised."""
        try:
            step()
        except (FleetError, DeployError, NemesisError, RecordingFailed, OSError) as wrong:
            trouble = f"{what}: {wrong}"
            log.warning("%s", trouble, exc_info=True)
            self.troubles.append(trouble)
            self.progress.say(trouble)
            return False
        return True

    # --- the steps ----------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        spec, fleet, system = self.spec, self.parts.fleet, self.parts.system
        self._phase("setup")
        began = time.monotonic()
        self.progress.status(f"bringing up {len(fleet.hosts)} hosts")
        fleet.up()
        self.canaries.start_all()
        self.progress.status("installing the broker")
        system.install()
        for node in sorted(system.nodes, key=lambda node: node.is_broker):
            if not node.spare:
                system.start(node)
        self.progress.status("waiting until the cluster is ready")
        system.wait_ready(timeout_s=READY_S)
        topic = spec.topic
        system.create_topic(
            TopicSpec(topic.name, topic.partitions, topic.replication_factor, topic_configs(spec))
        )
        state = self._wait_full_isr(READY_S, "after the topic was created")
        self._record_assignment(state)
        for (
            problem
        ) in self.canaries.wait():  # said again, and counted, by each power cut that is not proved for it
            log.warning("%s", problem)
        started = sum(not node.spare for node in system.nodes)
        self.progress.say(f"{started} nodes ready after {time.monotonic() - began:.1f} s")

    def _record_assignment(self, state: ClusterState) -> None:
        nodes = {str(node.node_id): node.host.name for node in self.parts.system.nodes}
        assignment = {
            str(partition.partition): list(partition.replicas)
            for partition in state.partitions
            if partition.topic == self.spec.topic.name
        }
        if assignment == self._assigned:
            return  # no partition has moved
        self._assigned = assignment
        extra = {"assignment": assignment, "nodes": nodes}
        self.recorder.record(Event(CONTROL, Type.INFO, "assignment", topic=self.spec.topic.name, extra=extra))
        self.recorder.record(cluster_event(state, self.spec.topic.name))

    def _drive(self) -> None:
        spec = self.spec
        workload = workload_for(spec.workload)(
            spec.workload,
            bootstrap=self.parts.system.bootstrap(),
            topic=spec.topic.name,
            partitions=spec.topic.partitions,
            seed=spec.seed,
            recorder=self.recorder,
            enter=self.parts.fleet.entered,
        )
        self.workload = self.watch.workload = workload
        self.observer.start()
        nemesis = Nemesis(
            self.plan,
            self.parts.fleet,
            self.parts.system,
            self.recorder,
            topics=(spec.topic.name,),
            canaries=self.canaries,
        )
        try:
            self._phase("warm")
            workload.start()
            if self._warm(workload):
                self._phase("main")
                nemesis.start()
                self._wait(spec.workload.duration_s)
                if self.plan.guided is not None:  # it takes as long as the cluster does
                    self._wait(GUIDED_S, until=lambda: nemesis.wait(0))
        finally:
            self._phase("heal")
            for repair in nemesis.stop_and_heal():
                self._note(f"healing beyond the faults' own undo: {repair}")
        self._recover()
        self._stop_workload(workload)

    def _warm(self, workload: Workload) -> bool:
        if not self._wait(WARM_S, until=lambda: not workload.missing_kinds()):
            missing = ", ".join(workload.missing_kinds())
            self._note(f"no {missing} succeeded within {WARM_S:g} s: the main phase was left out")
            return False
        self._wait(STEADY_S)
        return True

    def _recover(self) -> None:
        try:
            self._wait_full_isr(FULL_ISR_S, "after healing")
        except DeployError as wrong:
            self._note(str(wrong))
            return
        self._wait(RECOVERED_S, patient=False)

    def _stop_workload(self, workload: Workload) -> None:
        client = self.spec.workload.client
        longest_s = (client.message_timeout_ms + 2 * client.end_timeout_ms) / 1e3 + 5  # send, wait, read
        if stuck := workload.stop(timeout_s=longest_s):
            self._note(f"operations of {', '.join(stuck)} never came back")
        for f, counts in workload.left_out.items():
            if sum(counts):
                where = ", ".join(f"{count} of partition {p}" for p, count in enumerate(counts) if count)
                of = f" ({where})" if len(counts) > 1 else ""
                self._note(
                    f"{sum(counts)} {f} operations fell due while the clients were busy, and were left out{of}"
                )
        if workload.failure is not None:
            raise RecordingFailed(workload.failure)

    def _read_back(self) -> None:
        if self.workload is None:
            return
        self._phase("drain")
        self.observer.stop()
        self._note_dead_nodes()
        for drained in self.workload.drain(
            deadline_s=DRAIN_S / 3 if self.interrupts.asked.is_set() else DRAIN_S
        ):
            if not drained.complete:
                self._note(
                    f"final read of {self.spec.topic.name}-{drained.partition} is not complete: {drained.problem}"
                )
        topic = self.spec.topic
        state = self.parts.system.describe(timeout_s=10.0)
        self._record_assignment(state)
        for problem in read_replicas(self.parts.system, self.recorder, state, topic.name, topic.partitions):
            self._note(problem)

    def _note_dead_nodes(self) -> None:
        """A node that nobody stopped is why the rest of the run looks as it does: say so, with its own reason."""
        system = self.parts.system
        for node in system.nodes:
            if not system.is_running(node):
                words = system.last_words(node)
                if words or not node.spare:  # a spare without a log was never started
                    self._note(f"{node.host.name}: node {node.node_id} is down: {words}")

    def _collect(self) -> None:
        with suppress(RecordingFailed):
            self._phase("collect")
        self.parts.system.collect(self.run_dir / "nodes")

    # --- helpers ------------------------------------------------------------------------------------------

    def _wait_full_isr(self, timeout_s: float, when: str) -> ClusterState:
        """Until every partition of the topic has all its replicas in the ISR. Raises DeployError at the deadline."""
        deadline = time.monotonic() + timeout_s
        last = "no answer"
        while True:
            try:
                state = self.parts.system.describe(timeout_s=2.0)
                short = [
                    f"{each.topic}-{each.partition} leader {each.leader} isr {list(each.isr)}"
                    for each in state.partitions
                    if each.topic == self.spec.topic.name and (not each.full_isr or each.leader < 0)
                ]
                there = sum(each.topic == self.spec.topic.name for each in state.partitions)
                if not short and there == self.spec.topic.partitions:
                    return state
                last = "; ".join(short) or f"{there} of {self.spec.topic.partitions} partitions"
            except DeployError as wrong:
                last = str(wrong)
            if time.monotonic() >= deadline or self._gives_up():
                raise DeployError(
                    f"not every replica was in the ISR {timeout_s:g} s {when}; last seen: {last}"
                )
            self.watch.show()
            time.sleep(STEP_S)

    def _gives_up(self) -> bool:
        return self.workload is not None and (
            self.recorder.failure is not None or self.workload.failure is not None
        )

    def _wait(self, seconds: float, *, until: Callable[[], bool] | None = None, patient: bool = True) -> bool:
        """Let the run go on for ``seconds``, or ``until`` something holds (False: it never did). Ends early when
        the user asks for it (``patient`` = False: not even then) or nothing can be recorded any more."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if until is not None and until():
                return True
            self.watch.show()
            if self._gives_up():
                break
            if not patient:
                time.sleep(min(left, STEP_S))
            elif self.interrupts.asked.wait(min(left, STEP_S)):
                self._note(f"interrupted by the user {self.recorder.now_ns() / 1e9:.1f} s into the run")
                break
        return until is None or until()

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
            self.progress.say(note)
            log.warning("%s", note)

    def _phase(self, phase: str) -> None:
        self.watch.phase = phase
        self.recorder.record(Event(CONTROL, Type.INFO, "phase", extra={"phase": phase}))

    def _close_history(self) -> None:
        try:
            self.recorder.close(*self.notes)
        except RecordingFailed as wrong:
            if not any(str(wrong) in trouble for trouble in self.troubles):
                self.troubles.append(str(wrong))

    def _tear_down(self) -> str | None:
        """Returns the fleet's name if it was kept."""
        fleet = self.parts.fleet
        for problem in self.canaries.stop():
            log.warning("%s", problem)
        if self.options.keep_fleet:
            self.parts.keep()
            self.progress.say(
                f"fleet {fleet.name} is kept: `wrackline fleet ssh n1 --fleet {fleet.name}` to look, "
                f"`wrackline fleet down {fleet.name}` to end it"
            )
            return fleet.name
        self.progress.status("tearing down")
        self._attempt(TEAR_DOWN, fleet.down)
        return None
