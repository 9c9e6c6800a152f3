"""The steps of a run. Who makes a run orders the steps (wrackline.harness.run.runner; a test of pytest in
wrackline.harness.extend.scenario); whatever happens on the way, ``end`` tears the fleet down.

What breaks down on our side (hosts, SSH, deployment) is noted as a *trouble* and makes the verdict
``infrastructure``; the later steps are still tried, since what was recorded until then is worth judging.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import FleetError
from wrackline.fleets.canary import Canaries
from wrackline.harness.run.final_read.full_isr import wait_full_isr
from wrackline.harness.run.final_read.replicas import HeldLog, read_replicas
from wrackline.harness.run.final_read.second_readings import SecondReadings
from wrackline.harness.run.live.cluster_history import record_changes
from wrackline.harness.run.live.interrupt import Interrupts
from wrackline.harness.run.live.leaps import Leaps
from wrackline.harness.run.live.observer import Assignment, Observer
from wrackline.harness.run.live.outcome import Options, Outcome, what_is_left
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.run.live.setup import internal_topics, later_versions, plan_of, run_info, save_request
from wrackline.harness.run.live.unexpected_exits import LOOK_EVERY_S, Deaths, down
from wrackline.harness.run.live.warm import become_steady
from wrackline.harness.run.live.watch import Watch
from wrackline.harness.run.liveness.look import Subjects
from wrackline.harness.run.liveness.promises import When
from wrackline.harness.run.liveness.watch import Liveness
from wrackline.harness.run.runner_events import Account, left_out_lines
from wrackline.harness.specification.build import Parts, as_run, cluster_topic
from wrackline.harness.specification.check import ask_clients
from wrackline.harness.specification.spec import Spec
from wrackline.history import Recorder, RecordingFailed
from wrackline.history.store import packed
from wrackline.history.wording import partition_label
from wrackline.nemesis.follow.coverage import write_coverage
from wrackline.nemesis.heal import NemesisError
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import Plan
from wrackline.systems.base import (
    ClusterState,
    Coordinated,
    DeployError,
    Featured,
    Guarded,
    Internal,
    Tiered,
)
from wrackline.systems.common.on_hosts import on_each
from wrackline.systems.external.external_cluster import ExternalCluster
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.libraries import library_of
from wrackline.workloads.log import Workload, workload_for

log = logging.getLogger(__name__)

GUIDED_S = 90.0
"""How long a guided schedule may go on after the main phase's own time."""
STEP_S = 0.25
EPOCHS_S, EPOCH_S = 60.0, 0.02
"""How long it may take to use up the epochs of a transactional id: at least, and each."""
GROUPS_S = 20.0
"""How long a cluster that runs already may take to delete a group that has no members any more."""
TEAR_DOWN = "tear down"
MANUAL = "manual"
"""The recovery strategy under which nobody is elected from outside of ISR and ELR."""


class LiveRun:
    """One run that has a folder. ``interrupts.watching`` is entered around all steps, and ``end`` is the
    last of them whatever became of the others."""

    def __init__(
        self,
        spec: Spec,
        parts: Parts,
        test_id: str,
        run_dir: Path,
        options: Options,
        progress: Progress,
    ) -> None:
        self.run_dir = run_dir
        self.options = options
        self.progress = progress
        self.interrupts = Interrupts(progress.say)
        save_request(spec, run_dir)
        self.spec = spec = as_run(spec, test_id)
        self.plan: Plan = plan_of(spec)
        self.parts = parts
        self.recorder = Recorder(run_dir, run_info(spec, test_id, self.parts.system, self.plan))
        self.account = Account(run_dir, self.recorder)
        self.leaps = Leaps(self.recorder)
        self.watch = Watch(self.recorder, progress, self.plan)
        self.recorder.listeners.append(partial(write_coverage, run_dir=run_dir))
        names = [topic.name for topic in spec.every_topic]
        self.described = [*names, *internal_topics(spec)]
        self.observer = Observer(self.parts.system, self.recorder, self.described)
        self.assignment = Assignment(self.parts.system, self.recorder, names)
        with_power = () if spec.fleet.lacks(Ability.POWER) else parts.fleet.hosts
        self.canaries = Canaries(parts.fleet, with_power)
        self.deaths: Deaths | None = None
        self.liveness: Liveness | None = None
        self.workload: Workload | None = None
        self.notes: list[str] = []
        self.step = "set-up"

    def end(self) -> str | None:
        """Close the history and remove the hosts. Returns the fleet's name if it was kept."""
        with self.interrupts.shielded():
            self.observer.stop()
            self.leaps.stop()
            for watcher in (self.deaths, self.liveness):
                if watcher is not None:
                    watcher.stop()
            with ThreadPoolExecutor(1, "files") as pool:  # what the hosts know nothing of
                closing = pool.submit(self._close_files)
                kept = self._tear_down()
            closing.result()
            return kept

    def outcome(self, kept: str | None = None) -> Outcome:
        interrupted = self.interrupts.asked.is_set()
        return Outcome(
            self.run_dir, tuple(self.account.troubles), self.workload is not None, kept, interrupted
        )

    def left(self, kept: str | None) -> str:
        """One line of a run that was stopped at once and has ended."""
        removed = not any(trouble.startswith(TEAR_DOWN) for trouble in self.account.troubles)
        return what_is_left(self.run_dir, self.workload is not None, kept, removed)

    def attempt(self, what: str, step: Callable[[], None]) -> bool:
        """True when the step went through. Failures of hosts and disks are noted, not raised."""
        self.step = what
        try:
            step()
        except (FleetError, DeployError, NemesisError, Unavailable, RecordingFailed, OSError) as error:
            log.warning("%s: %s", what, error, exc_info=True)
            self.trouble(what, str(error))
            return False
        return True

    def trouble(self, what: str, error: str) -> None:
        self.account.trouble(what, error)
        self.progress.say(f"{what}: {error}")

    # --- the steps ----------------------------------------------------------------------------------------

    def set_up(self) -> None:
        self.prepare()
        began = time.monotonic()
        self.bring_up()
        self.deploy()
        started = sum(not node.spare for node in self.parts.system.nodes)
        self.progress.say(f"{started} nodes ready after {time.monotonic() - began:.1f} s")

    def prepare(self) -> None:
        """Fetch to this machine what hosts, system and clients are made of."""
        spec = self.spec
        self._phase("setup")
        spec.fleet.prepare(self.progress.say)
        spec.system.prepare(self.progress.say)
        for version in later_versions(spec):
            spec.system.prepare_version(version, self.progress.say)
        library_of(spec.workload).prepare(self.progress.say)
        workload_for(spec.workload).prepare(spec.workload, self.progress.say)
        ask_clients(spec, spec.name)  # a library that has been fetched only now

    def bring_up(self) -> None:
        """The hosts, with nothing on them."""
        fleet = self.parts.fleet
        if fleet.hosts:
            self.progress.status(f"bringing up {len(fleet.hosts)} hosts", of="hosts")
        fleet.up()
        self.canaries.start_all()

    def deploy(self) -> None:
        """The cluster, and its topics with every replica in the ISR."""
        spec, system = self.spec, self.parts.system
        has_hosts = bool(self.parts.fleet.hosts)
        self.progress.status(
            "installing and starting the nodes" if has_hosts else "finding the cluster", of="install"
        )
        system.install()
        # At once: a voter that is alone has no quorum to join.
        on_each([node for node in system.nodes if not node.spare], system.start)
        self.progress.status("waiting until the cluster is ready", of="ready")
        # It ends inside: clients shall not wait for it, and of two threads that import the same one may meet
        # half of it.
        with ThreadPoolExecutor(1, "prepare-judge") as pool:
            pool.submit(self.options.prepare_judge)
            system.wait_ready(timeout_s=spec.system.waits.ready_s)
        if isinstance(system, Featured):
            self.recorder.learn(features=system.features())
        for topic in spec.every_topic:
            system.create_topic(cluster_topic(spec, topic), timeout_s=spec.system.waits.ready_s)
        if isinstance(system, Guarded):
            system.admit(spec.workload.acls, [topic.name for topic in spec.every_topic])
        state = self._wait_full_isr(spec.system.waits.ready_s, "after the topic was created")
        self.assignment.record(state)
        # Each is reported again, and counted, by a power cut that is not proved for it.
        for problem in self.canaries.wait():
            log.warning("%s", problem)

    def drive(self) -> None:
        """The whole main phase as the specification has it."""
        with self.driving() as nemesis:
            if nemesis is None:
                return
            self.wait(self.spec.workload.duration_s)
            if self.plan.guided is not None:  # it takes as long as the cluster does
                self.wait(GUIDED_S, until=lambda: nemesis.wait(0))

    @contextmanager
    def driving(self, kind: type[Nemesis] | None = None) -> Iterator[Nemesis | None]:
        """Clients are at work, and inside it is the main phase: None where they did not get so far.
        Afterwards faults are healed, replicas catch up and the clients stop. ``kind``: of the nemesis."""
        spec = self.spec
        workload = workload_for(spec.workload)(
            spec.workload,
            bootstrap=self.parts.system.bootstrap(),
            topics={topic.name: topic.partitions for topic in spec.every_topic},
            seed=spec.seed,
            recorder=self.recorder,
            enter=self.parts.fleet.entered,
        )
        self.workload = self.watch.workload = workload
        self._use_epochs(workload.transactional_ids)
        if isinstance(self.parts.system, Internal):
            self.parts.system.describe_internal(internal_topics(spec))
        self.observer.start()
        nemesis = (kind or Nemesis)(
            self.plan,
            self.parts.fleet,
            self.parts.system,
            self.recorder,
            topics=[topic.name for topic in spec.every_topic],
            canaries=self.canaries,
            coordinated=workload.coordinated,
            groups=workload.named_groups,
        )
        every_s = LOOK_EVERY_S * spec.fleet.slowness
        fleet, system = self.parts.fleet, self.parts.system
        self.deaths = Deaths(fleet, system, self.recorder, nemesis.hold_of, every_s=every_s)
        self.liveness = Liveness(
            system,
            self.recorder,
            Subjects(
                workload.places,
                workload.groups,
                workload.transactional_ids,
                self.recorder.info.unclean_election,
                self.recorder.info.recovery_strategy == MANUAL,
                workload.tries,
            ),
            spec.contract.liveness.bounds(spec.system.waits.full_isr_s),
        )
        patience_s = spec.workload.patience_s
        try:
            with self._disturbed(workload, nemesis, self.deaths) as warm:
                yield nemesis if warm else None
            self._recover()
        except KeyboardInterrupt:
            patience_s = 0.0
            raise
        finally:
            # Whatever happened: what is read back must not be read while clients still write.
            self._stop_workload(workload, patience_s)
        if workload.failure is not None:
            raise RecordingFailed(workload.failure)

    def _use_epochs(self, transactional_ids: Sequence[str]) -> None:
        """Lets transactions begin near the end of their producers' epochs, where the specification says
        so."""
        if epochs := self.spec.workload.epochs_before:
            assert isinstance(self.parts.system, Coordinated)
            self.progress.status(f"using up {epochs:,} epochs of each transactional id", of="epochs")
            began, timeout_s = time.monotonic(), EPOCHS_S + epochs * EPOCH_S
            self.parts.system.use_epochs(transactional_ids, epochs - 1, timeout_s=timeout_s)
            self.progress.say(
                f"{epochs:,} epochs of {len(transactional_ids)} transactional ids used up in "
                f"{time.monotonic() - began:.1f} s"
            )

    @contextmanager
    def _disturbed(self, workload: Workload, nemesis: Nemesis, deaths: Deaths) -> Iterator[bool]:
        """Warm up (False inside: that failed), let faults happen, heal."""
        try:
            self._phase("warm")
            deaths.start()
            workload.start()
            if self.liveness is not None:
                self.liveness.start()
            warm = self._warm(workload)
            if warm:
                self._phase("main")
                nemesis.start()
            yield warm
        finally:
            with suppress(RecordingFailed):  # faults are undone, recorded or not
                self._phase("heal")
                deaths.look()  # before healing starts whoever is down
            repairs = nemesis.stop_and_heal(timeout_s=self.spec.system.waits.undo_s)
            if self.liveness is not None:
                self.liveness.stop()
            with suppress(RecordingFailed):
                self.account.repaired(repairs)
            for repair in repairs:
                self._note(f"healing beyond the faults' own undo: {repair}")

    def _warm(self, workload: Workload) -> bool:
        waits, deadline = self.spec.system.waits, time.monotonic() + self.spec.system.waits.warm_s
        if not self.wait(waits.warm_s, until=lambda: not workload.missing_kinds()):
            missing = ", ".join(workload.missing_kinds())
            self._note(f"no {missing} succeeded within {waits.warm_s:g} s: the main phase was left out")
            return False
        become_steady(
            self.spec.workload.rate,
            waits.steady_s,
            deadline,
            done=lambda: workload.counts().done,
            wait=self.wait,
            give_up=lambda: self._gives_up() or self.interrupts.asked.is_set(),
        )
        return True

    def _recover(self) -> None:
        if not self._is_lively(When.HEALED, When.DRIVEN):
            return
        self.options.recovered()
        self.wait(self.spec.system.waits.recovered_s, patient=False)

    def _is_lively(self, *when: When) -> bool:
        """Waits until all that is promised for these times holds; False: not in time, which the judge will
        see. Raises RecordingFailed."""
        if self.liveness is None:
            return False
        lines = self.liveness.watch(*when, give_up=self._is_late, pause=self._pause)
        for line in lines:
            self._note(line)
        return not lines

    def _is_late(self, elapsed_s: float) -> bool:
        """A user who asks for an early end does not wait for what may never come."""
        interrupted = self.interrupts.asked.is_set()
        return self._gives_up() or (interrupted and elapsed_s > self.spec.system.waits.full_isr_s)

    def _stop_workload(self, workload: Workload, patience_s: float) -> None:
        stuck = workload.stop(timeout_s=patience_s)
        if stuck:
            self._note(f"operations of {', '.join(stuck)} never completed")
        for line in left_out_lines(workload.left_out, workload.places):
            self._note(line)
        with suppress(RecordingFailed):
            self.account.stopped(stuck, workload.by_followers())

    def read_back(self) -> None:
        if self.workload is None or self.deaths is None:
            return
        self._phase("drain")
        self.observer.stop()
        self.deaths.look()
        for line in down(self.parts.system):
            self._note(line)
        self._is_lively(When.HEALED, When.STOPPED)
        drain_s = self.spec.system.waits.drain_s
        final = self.workload.drain(deadline_s=drain_s / 3 if self.interrupts.asked.is_set() else drain_s)
        for drained in final:
            if not drained.complete:
                self._note(
                    f"final read of {partition_label(drained.topic, drained.partition)} is not complete: "
                    f"{drained.problem}"
                )
        state = self.parts.system.describe(timeout_s=10.0)
        self.assignment.record(state)
        held: list[HeldLog] = []
        if "replicas" not in self.recorder.info.unread:
            held, problems = read_replicas(self.parts.system, self.recorder, state, self.spec)
            for problem in problems:
                self._note(problem)
        again = SecondReadings(self.parts.system, self.recorder, self.spec)
        for line in again.ask(final, held, self.workload.told):
            self._note(line)
        self.deaths.close()

    def collect(self) -> None:
        with suppress(RecordingFailed):
            self._phase("collect")
        nodes = self.run_dir / "nodes"
        self.parts.system.collect(nodes)
        self.account.collected(self.parts.system.nodes, nodes)
        if (
            isinstance(self.parts.system, Tiered)
            and (traffic := self.parts.system.tier_traffic()) is not None
        ):
            self.account.tier(traffic)
        record_changes(self.parts, self.recorder, self.described, nodes)

    def over(self) -> None:
        """Checks that nothing was left out, unless the user asked for it."""
        if self.interrupts.asked.is_set():
            self._interrupted()
        self.leaps.stop()
        self.account.over()

    def _remove_topics(self) -> None:
        assert isinstance(self.parts.system, ExternalCluster)
        if done := self.parts.system.remove_topics():
            self.progress.say(done)

    def _remove_groups(self) -> None:
        """A member that crashed, or that keeps its place, leaves its group when its session ends."""
        assert isinstance(self.parts.system, ExternalCluster)
        if self.workload is not None:
            longest_s = GROUPS_S + self.spec.workload.longest_session_s
            if done := self.parts.system.remove_groups(self.workload.groups_made, timeout_s=longest_s):
                self.progress.say(done)

    # --- helpers ------------------------------------------------------------------------------------------

    def _wait_full_isr(self, timeout_s: float, when: str) -> ClusterState:
        """Raises DeployError at the deadline, and when there is nothing left to wait for."""
        return wait_full_isr(
            self.parts.system,
            self.spec.every_topic,
            timeout_s,
            when,
            give_up=self._gives_up,
            pause=self._pause,
        )

    def _pause(self) -> None:
        self.watch.show()
        time.sleep(STEP_S)

    def _gives_up(self) -> bool:
        return self.workload is not None and (
            self.recorder.failure is not None or self.workload.failure is not None
        )

    def wait(self, seconds: float, *, until: Callable[[], bool] | None = None, patient: bool = True) -> bool:
        """Lets the run go on for ``seconds``, or ``until`` something holds (False: it never did). Ends early
        when the user asks for it (``patient`` = False: not even then) or nothing can be recorded any more."""
        deadline = time.monotonic() + seconds
        while (remaining_s := deadline - time.monotonic()) > 0:
            if until is not None and until():
                return True
            self.watch.show()
            if self._gives_up():
                break
            if not patient:
                time.sleep(min(remaining_s, STEP_S))
            elif self.interrupts.asked.wait(min(remaining_s, STEP_S)):
                self._interrupted()
                break
        return until is None or until()

    def _interrupted(self) -> None:
        why = f"interrupted by the user {self.recorder.now_ns() / 1e9:,.1f} s into the run"
        if not any(note.startswith("interrupted by the user") for note in self.notes):
            self._note(why)
        self.account.interrupted(why)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
            self.progress.say(note)
            log.warning("%s", note)

    def _phase(self, phase: str) -> None:
        self.watch.begin(phase)
        if phase == "setup":
            self.leaps.start()
        self.account.phase(phase)

    def _close_files(self) -> None:
        self._close_history()
        packed.pack((self.run_dir / "nodes").glob("*/*"))

    def _close_history(self) -> None:
        try:
            self.recorder.close(*self.notes)
        except RecordingFailed as error:
            if not any(str(error) in trouble for trouble in self.account.troubles):
                self.trouble("record", str(error))

    def _tear_down(self) -> str | None:
        """Returns the fleet's name if it was kept."""
        fleet = self.parts.fleet
        for problem in self.canaries.stop():
            log.warning("%s", problem)
        if isinstance(self.parts.system, ExternalCluster):
            self.attempt(TEAR_DOWN, self._remove_groups)
            self.attempt(TEAR_DOWN, self._remove_topics)
        self.parts.close()
        if self.options.keep_fleet and fleet.hosts:
            self.parts.keep()
            self.progress.say(
                f"fleet {fleet.name} is kept: `wrackline fleet ssh n1 --fleet {fleet.name}` to look, "
                f"`wrackline fleet down {fleet.name}` to end it"
            )
            return fleet.name
        self.progress.status("removing the hosts", of="tear down")
        self.attempt(TEAR_DOWN, fleet.down)
        return None
