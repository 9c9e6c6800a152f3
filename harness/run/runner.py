"""One run from plan to collected evidence. Whatever happens on the way, the fleet is torn down at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from wrackline.harness.run.live.live import LiveRun
from wrackline.harness.run.live.outcome import Interrupted, Options, Outcome, cannot_record
from wrackline.harness.run.live.setup import new_test_id
from wrackline.harness.run.logfile import logged_to
from wrackline.harness.specification.build import build_parts
from wrackline.harness.specification.spec import Spec
from wrackline.history import RecordingFailed
from wrackline.history.store.folder import private_folder


def run(spec: Spec, options: Options) -> Outcome:
    """Make one run. Raises Interrupted, FleetError or DeployError for hosts that cannot be named, and
    CannotRecord when its directory cannot be written; everything that goes wrong later is in the outcome."""
    if spec.fleet.virtual:
        # The simulator takes half a second to import, which only such a run should wait for.
        from wrackline.harness.run.simulated.run import run_simulated

        return run_simulated(spec, options)
    with opened(spec, options) as live:
        return _execute(live)


@contextmanager
def opened(spec: Spec, options: Options) -> Iterator[LiveRun]:
    """A run that has a folder, and nothing else yet; inside, what is logged goes there. Raises as ``run``."""
    test_id = new_test_id(spec.name)
    parts = build_parts(spec, test_id)
    run_dir = options.results / test_id
    with ExitStack() as stack:
        try:
            private_folder(run_dir)
            stack.enter_context(logged_to(run_dir / "harness.log"))
            progress = stack.enter_context(options.progress)
            progress.say("\n".join((f"run {test_id}  seed {spec.seed}", *spec.left_out)))
            live = LiveRun(spec, parts, test_id, run_dir, options, progress)
        except (OSError, RecordingFailed) as error:
            shutil.rmtree(run_dir, ignore_errors=True)
            raise cannot_record(run_dir, error) from error
        yield live


def _execute(live: LiveRun) -> Outcome:
    kept, stopped = None, False
    with live.interrupts.watching():
        try:
            _all_steps(live)
        except KeyboardInterrupt:
            stopped = True
            live.notes.append("stopped by the user before the final read")
        except Exception as crash:
            live.trouble(live.step, f"the harness broke: {type(crash).__name__}: {crash}")
            raise
        finally:
            kept = live.end()
    if stopped:
        raise Interrupted(live.left(kept))
    return live.outcome(kept)


def _all_steps(live: LiveRun) -> None:
    """Set up, drive, heal, read, collect."""
    if not live.attempt("set-up", live.set_up):
        live.attempt("collect", live.collect)
        return
    with live.interrupts.gently():
        live.attempt("drive", live.drive)
        finish(live)


def finish(live: LiveRun) -> None:
    """Finishes the run after the clients have stopped."""
    live.attempt("read back", live.read_back)
    live.attempt("collect", live.collect)
    live.attempt("collect", live.over)
