"""One run of a specification in virtual time, from plan to collected evidence."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from wrackline.harness.run.live.interrupt import Interrupts
from wrackline.harness.run.live.live import MANUAL
from wrackline.harness.run.live.outcome import Options, Outcome, cannot_record
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.run.live.setup import new_test_id, run_info, save_request
from wrackline.harness.run.liveness.look import Subjects
from wrackline.harness.run.liveness.promises import crash_of
from wrackline.harness.run.logfile import logged_to
from wrackline.harness.run.runner_events import write_troubles
from wrackline.harness.run.simulated.clients import clients_of
from wrackline.harness.run.simulated.faults import PlannedFaults
from wrackline.harness.run.simulated.liveness import Watch
from wrackline.harness.run.simulated.setup import configs, setup_of
from wrackline.harness.specification.build import build_parts
from wrackline.harness.specification.spec import Spec
from wrackline.history.store.folder import private_folder
from wrackline.nemesis.follow.coverage import write_coverage
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run.recorded import RecordedRun
from wrackline.simulator.world.errors import SimulationError

_SAY_EVERY_MS = 1_000.0
UNREAD = {
    "logs": "simulated nodes write none",
    "processes": "a simulated node ends by a fault alone, or the run breaks down",
}
"""What a run in virtual time has not, and why."""


def run_simulated(spec: Spec, options: Options) -> Outcome:
    """Makes one run. Raises CannotRecord when its directory cannot be written."""
    test_id = new_test_id(spec.name)
    run_dir = options.results / test_id
    try:
        private_folder(run_dir)
        with logged_to(run_dir / "harness.log"), options.progress as progress:
            progress.say("\n".join((f"run {test_id}  seed {spec.seed}  virtual time", *spec.left_out)))
            return _made(spec, options, test_id, run_dir, progress)
    except OSError as error:
        shutil.rmtree(run_dir, ignore_errors=True)
        raise cannot_record(run_dir, error) from error


def _made(spec: Spec, options: Options, test_id: str, run_dir: Path, progress: Progress) -> Outcome:
    plan = save_request(spec, run_dir)
    system = build_parts(spec, test_id).system
    interrupts = Interrupts(progress.say)
    clients = clients_of(spec)
    faults = PlannedFaults(plan, tuple(system.nodes), (spec.topic.name,))
    session = RecordedRun(
        setup_of(spec, clients),
        faults,
        clients=[make for some in clients.values() for make in some],
        topic_configs=configs(spec),
        interrupted=interrupts.asked.is_set,
    )
    info = run_info(spec, test_id, system, plan)

    places = [(spec.topic.name, number) for number in range(spec.topic.partitions)]
    manual = info.recovery_strategy == MANUAL
    subjects = Subjects(places, unclean=info.unclean_election, by_hand=manual)
    bounds = spec.contract.liveness.bounds(spec.system.waits.full_isr_s)
    watch = Watch(session, system.nodes, faults.state, subjects, bounds)
    began = time.monotonic()
    with interrupts.watching(), interrupts.gently():
        trouble = _driven(session, lambda: watch.healed(interrupts.asked.is_set), progress)
    world = session.world
    progress.say(f"{world.now_ms / 1000:.0f} s of virtual time in {time.monotonic() - began:.1f} s")
    write_run(
        session.setup,
        session.history.events,
        run_dir,
        session.traces,
        replace(info, unread={**info.unread, **UNREAD}),
    )
    for event in session.history.events:
        write_coverage(event, run_dir)
    if trouble:
        write_troubles(run_dir, [{"step": "simulate", "error": trouble}])
    options.recovered()
    return Outcome(run_dir, (trouble,) if trouble else (), driven=True, interrupted=interrupts.asked.is_set())


def _driven(session: RecordedRun, watch: Callable[[], None], progress: Progress) -> str:
    """Does the run's parts. ``watch``: whether it moves once it is healed. Returns what broke on our side;
    empty: nothing."""

    def say() -> None:
        done_s = world.now_ms / 1000
        progress.status(f"virtual time: {done_s:.0f} s, {len(session.history.events):,} rows", of="virtual")
        world.at(world.now_ms + _SAY_EVERY_MS, say)

    world = session.world
    world.at(world.now_ms, say)
    try:
        session.boot()
        session.main()
        session.end_faults()
        session.say("repaired", {"repairs": []})
        watch()
        session.settle()
        session.say("stopped", {"stuck": [f"p{each.number}" for each in session.clients if each.writing]})
        session.drain()
        session.say("over", {})
    except SimulationError as error:
        return str(error)
    except Exception as bug:  # noqa: BLE001 - a core that raises is as a node that ends: the run is judged so far
        words = f"{type(bug).__name__}: {bug}"
        session.history.record(world.now_ms, crash_of("a simulated node", "d1", words))
        return f"a simulated node broke: {words}"
    return "" if session.is_read_back else "the final read did not end: the cluster was not whole again"
