"""The progress line of a run, and a line for every fault as it happens."""

from __future__ import annotations

import time

from wrackline.harness.run.live.progress import Progress
from wrackline.history import Recorder
from wrackline.history.model import CONTROL, DIED, NEMESIS, Event
from wrackline.nemesis.schedule import Plan
from wrackline.workloads.log import Workload
from wrackline.workloads.log.tally import Counts

MAIN = "main"
WORDS = {
    "setup": "setting up",
    "warm": "warming up",
    MAIN: "main phase",
    "heal": "healing, until all replicas have caught up",
    "drain": "reading back every partition and every replica",
    "collect": "fetching logs from the hosts",
}
"""What a phase is called for a reader."""


class Watch:
    """Reads counters; changes nothing."""

    def __init__(self, recorder: Recorder, progress: Progress, plan: Plan) -> None:
        self._recorder = recorder
        self._progress = progress
        self.phase = "setup"
        self.workload: Workload | None = None
        self._began = time.monotonic()
        self._duration_s = plan.duration_s
        self._planned = len(plan.faults)
        self._begun: set[str] = set()
        """Ids of the faults that have begun, however they were asked for."""
        self._active: dict[str, str] = {}
        self._before = (time.monotonic(), 0)
        self._rate = 0.0
        recorder.listeners.append(self._on_event)

    def begin(self, phase: str) -> None:
        self.phase, self._began = phase, time.monotonic()
        self.show()

    def _on_event(self, event: Event) -> None:
        """Takes rare rows (faults, phases) from the recorder, in the thread that recorded them."""
        if event.process == CONTROL and event.f == "planned" and event.extra is not None:
            self._planned += len(event.extra["faults"])  # those of a guided schedule
        if event.process != NEMESIS or event.extra is None:
            return
        extra = event.extra
        fault, phase = str(extra.get("id")), extra.get("phase")
        aim = ",".join(extra.get("targets") or ()) or "-"
        what = f"{event.f} {aim}" + (f" ({extra['role']})" if extra.get("role") else "")
        if event.f != DIED:
            self._begun.add(fault)
        if phase == "active":
            self._active[fault] = what
        elif phase in ("undo", "ended"):
            self._active.pop(fault, None)
        if phase in ("active", "ended"):
            proved = {True: " proved", False: " NOT PROVED"}.get(extra.get("proved"), "")  # type: ignore[arg-type]
            proof = f": {extra['proof']}" if extra.get("proof") else ""
            left = f"; NOT RESTORED: {extra.get('restoration')}" if extra.get("restored") is False else ""
            said = f"{fault:<4} {what} {phase}{proved}{proof}{left}"
            self._progress.say(f"{event.time_ns / 1e9:7.1f} s  {said}")

    def show(self) -> None:
        words = WORDS.get(self.phase, self.phase)
        if self.workload is None or self.phase in ("drain", "collect"):  # nothing is counted then
            self._progress.status(words, of=self.phase)
            return
        counts, now = self.workload.counts(), time.monotonic()
        since, operations = self._before
        if now - since >= 1.0:
            self._rate = (counts.operations - operations) / (now - since)
            self._before = (now, counts.operations)
        told = [self._time(now), *self._faults(), *_counted(counts, self._rate)]
        in_force = f"; in force: {', '.join(self._active.values())}" if self._active else ""
        self._progress.status(f"{words}: {', '.join(told)}{in_force}", of=self.phase)

    def _time(self, now: float) -> str:
        seconds = now - self._began
        if self.phase != MAIN:
            return f"{seconds:.0f} s"
        if seconds > self._duration_s:  # a guided schedule takes as long as the cluster does
            return f"{seconds:.0f} s, {self._duration_s:g} were planned"
        return f"{seconds:.0f} of {self._duration_s:g} s"

    def _faults(self) -> list[str]:
        if self.phase == "warm":
            return []
        by_hand = len([fault for fault in self._begun if fault.startswith("h")])
        planned = [f"{len(self._begun) - by_hand} of {self._planned} faults"] if self._planned else []
        return [*planned, *([f"{by_hand} begun by hand"] if by_hand else [])]


def _counted(counts: Counts, rate: float) -> list[str]:
    return [
        f"{counts.acked_records:,} acknowledged",
        f"{counts.read_records:,} read",
        f"{rate:,.0f} operations a second",
        f"{counts.fail:,} failed",
        f"{counts.info:,} of unknown outcome (info)",
    ]
