"""A run from Python, without a file: what `wrackline run` does with a specification that was made in code."""

from __future__ import annotations

from pathlib import Path

from wrackline.harness.run.judge import Judged, broken_down, judge
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run as make
from wrackline.harness.specification.check import ask_clients, ask_system
from wrackline.harness.specification.spec import Spec


def run(
    spec: Spec, results: Path = Path("results"), *, keep_fleet: bool = False, master: str = "local[*]"
) -> Judged:
    """Make a run and judge it, as `wrackline run` does with a file that says the same. Needs what the fleet
    needs (netns: root). The parts of ``spec`` may be of classes of your own that no entry point names: a
    fleet, a system, faults, and the settings of a workload.

    Returns the verdict (``word``, ``verdict``), the run's folder below ``results`` and its report. What
    breaks down once the run has begun is the verdict ``infrastructure``. Raises SpecError for settings that
    the system or librdkafka refuses, CannotRecord where ``results`` cannot be written, SparkUnavailable and
    AnalysisError where the run cannot be judged, and Interrupted."""
    ask_clients(spec, spec.name)
    ask_system(spec, spec.name)
    outcome = make(spec, Options(results, keep_fleet=keep_fleet))
    if not outcome.driven:
        return broken_down(outcome.run_dir, outcome.troubles)
    return judge([outcome.run_dir], master=master)[0]
