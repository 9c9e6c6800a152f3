"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from wrackline.history.model import Event
from wrackline.simulator.faults.kinds import Fault
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.invariants.client_view import Violation
from wrackline.simulator.output.traces import Traces


@dataclass(slots=True)
class Result:
    """``violation`` is the first one; ``digest`` only where it was asked for."""

    setup: Setup
    violation: Violation | None = None
    violations: list[Violation] = field(default_factory=list)
    steps: int = 0
    simulated_s: float = 0.0
    acked: int = 0
    lossy: int = 0
    faults: list[tuple[float, Fault, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    timeline: str = ""
    digest: str = ""
    image: str = ""
    traces: Traces | None = None
    """What its nodes would have written, where it was asked for."""
