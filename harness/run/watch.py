"""The progress line of a run, and a line for every fault as it happens."""

from __future__ import annotations

import time

from wrackline.harness.run.progress import Progress
from wrackline.history import Recorder
from wrackline.history.model import NEMESIS, Event
from wrackline.workloads.log import Workload


class Watch:
    """Reads counters; changes nothing."""

    def __init__(self, recorder: Recorder, progress: Progress) -> None:
        self._recorder = recorder
        self._progress = progress
        self.phase = "setup"
        self.workload: Workload | None = None
        self._active: dict[str, str] = {}
        self._before = (time.monotonic(), 0)
        self._rate = 0.0
        recorder.listeners.append(self._on_event)

    def _on_event(self, event: Event) -> None:
        """Takes rare rows (faults, phases) from the recorder, in the thread that recorded them."""
        if event.process != NEMESIS or event.extra is None:
            return
        extra = event.extra
        fault, phase = str(extra.get("id")), extra.get("phase")
        aim = ",".join(extra.get("targets") or ()) or "-"
        what = f"{event.f} {aim}" + (f" ({extra['role']})" if extra.get("role") else "")
        if phase == "active":
            self._active[fault] = what
        elif phase in ("undo", "ended"):
            self._active.pop(fault, None)
        if phase in ("active", "ended"):
            proved = {True: " proved", False: " NOT PROVED"}.get(extra.get("proved"), "")  # type: ignore[arg-type]
            proof = f": {extra['proof']}" if extra.get("proof") else ""
            self._progress.say(f"{event.time_ns / 1e9:7.1f} s  {fault:<4} {what} {phase}{proved}{proof}")

    def show(self) -> None:
        if self.workload is None:
            self._progress.status(self.phase)
            return
        counts = self.workload.counts()
        now = time.monotonic()
        since, operations = self._before
        if now - since >= 1.0:
            self._rate = (counts.operations - operations) / (now - since)
            self._before = (now, counts.operations)
        faults = f"  faults: {'; '.join(self._active.values())}" if self._active else ""
        self._progress.status(
            f"{self._recorder.now_ns() / 1e9:5.0f} s  {self.phase:<5} {self._rate:6.0f} ops/s  "
            f"acked {counts.acked_records:,}  read {counts.read_records:,}  fail {counts.fail:,}  "
            f"info {counts.info:,}{faults}"
        )
