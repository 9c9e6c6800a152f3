"""Faults of a clock: it jumps, it jumps to and fro, it runs too fast or too slow.

A host with a kernel of its own has its clock set. Where hosts share a kernel the clock of a node is moved
that asks libfaketime for the time (`wrackline.systems.jvm.faketime`).
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import Remote
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.host_steps import OwnKernel, ReadClock
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    Shell,
    StepResult,
    Target,
)
from wrackline.plugins.fields import SECONDS
from wrackline.systems.jvm import faketime
from wrackline.systems.spec import SystemSpec

BOOT_ID = "/proc/sys/kernel/random/boot_id"
LATE_S = 0.3
"""A clock that is set is read so much later at most, besides the time that the question took."""
DRIFT_STEP_S = 0.1
DRIFT_SLACK = 0.3
"""A rate is measured as well as two readings are: it may be off by this part of it."""
Mode = Literal["jump", "strobe", "drift"]
_PROGRAM = Path(__file__).with_name("clock_program.py")


class Reading(NamedTuple):
    """The result of one question for the time, in seconds."""

    at_s: float
    """Our own clock, which no fault moves."""
    ahead_s: float
    """Of the host's clock before ours."""
    doubt_s: float
    """By so much it may be more or less."""


def own_kernel(remote: Remote) -> str:
    """The host's boot. Raises FaultError where it is this machine's, too."""
    host = remote.run(f"cat {BOOT_ID}").stdout.strip()
    if host == Path(BOOT_ID).read_text().strip():
        raise FaultError(f"{remote.host.name} shares this machine's kernel: its clock is everybody's")
    return host


def read(remote: Remote, step: ReadClock) -> str:
    """A line for each reading. Raises FleetError, and FaultError for an answer that is no time."""
    lines = []
    for number in range(step.times):
        if number:
            time.sleep(step.every_s)
        asked_ns, asked_s = time.time_ns(), time.monotonic()
        said = remote.run(step.command).stdout.strip()
        took_s = time.monotonic() - asked_s
        if not said.isdigit():
            raise FaultError(f"{remote.host.name}: {step.command}: {said!r} is no time")
        ahead_s = int(said) / 1e9 - (asked_ns / 1e9 + took_s / 2)
        lines.append(f"{asked_s + took_s / 2:.6f} {ahead_s:.6f} {took_s / 2:.6f}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class MovedClock:
    """The clock of the host, or of the node alone, is moved; on undo it is set right.

    Proved by the clock, read beside ours: how far it is ahead at the beginning and at the end, beyond what it
    is afterwards.
    """

    holds_node: ClassVar[bool] = False

    mode: Mode
    of_node: bool
    offset_s: float
    """Of a drift: more with every second."""
    stays_s: float = 1.0

    @property
    def name(self) -> str:
        return f"clock-{self.mode}"

    def commands(self, context: FaultContext) -> Commands:
        started = tuple(self._start(context.fault_id, one) for one in context.targets)
        return Commands(
            do=tuple(
                step
                for one, start in zip(context.targets, started, strict=True)
                for step in (self._possible(one), start)
            ),
            undo=tuple(
                Shell(one.host, programs.end(context.fault_id, "clock") + self._noticed)
                for one in context.targets
            ),
            probe=tuple(self._look(one) for one in context.targets),
            control=tuple(ReadClock(one.host, self._now) for one in context.targets),
            lasting=started,
        )

    @property
    def _now(self) -> str:
        return faketime.NOW if self.of_node else "date +%s%N"

    @property
    def _noticed(self) -> str:
        """Waits until a node has looked at the file again."""
        return f"; sleep {faketime.NOTICED_S:g}" if self.of_node else ""

    def _possible(self, target: Target) -> Step:
        if not self.of_node:
            return OwnKernel(target.host)
        pid = target.running(self.name)
        asks = f"tr '\\0' '\\n' </proc/{pid}/environ | grep -qxF {faketime.VARIABLES.split()[0]}"
        loaded = f"grep -q libfaketime /proc/{pid}/maps"
        no = f"process {pid} does not ask libfaketime for the time (system.clock: faketime)"
        return Shell(target.host, f"{{ {asks} && {loaded}; }} || {{ echo {shlex.quote(no)} >&2; exit 1; }}")

    def _start(self, fault_id: str, target: Target) -> Shell:
        where = faketime.CLOCK_FILE if self.of_node else "kernel"
        stays_s = DRIFT_STEP_S if self.mode == "drift" else self.stays_s
        arguments = (where, self.mode, f"{self.offset_s:g}", f"{stays_s:g}")
        command = f"exec {programs.python_command(target.python, _PROGRAM, *arguments)}"
        return Shell(target.host, programs.start(fault_id, "clock", command, ready="^moved") + self._noticed)

    def _look(self, target: Target) -> ReadClock:
        if self.mode == "strobe":  # over two periods and a half
            return ReadClock(target.host, self._now, 10, self.stays_s / 2)
        return ReadClock(target.host, self._now)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        texts = []
        for one in context.targets:
            who = f"the clock of {'the node on ' if self.of_node else ''}{one.host}"
            after = _readings(probe_log.control, one)
            usual = after[-1] if after else Reading(0, 0, 0)
            if probe_log.undo and not _right(after):
                return Proof(False, f"{who} was not right again after the undo: {_ahead(after)}")
            probes = [
                _readings(probe_log.active, one),
                *([_readings(probe_log.final, one)] if probe_log.final else []),
            ]
            if not all(probes):
                return Proof(False, f"{who} was not read")
            flaw = self._flaw(probes, usual)
            what = " and ".join(_ahead(probe) for probe in probes)
            if flaw:
                return Proof(False, f"{who} was {what}: {flaw}")
            texts.append(f"{who} was {what}" + (f", and {_ahead(after)} after the undo" if after else ""))
        return Proof(True, "; ".join(texts))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        after = {one.host: _readings(probe_log.control, one) for one in context.targets}
        error = [f"{host}: the clock is {_ahead(said)}" for host, said in after.items() if not _right(said)]
        return "; ".join(error)

    def _flaw(self, probes: list[list[Reading]], usual: Reading) -> str:
        """Returns what speaks against the proof; empty when nothing does."""
        if self.mode == "drift":
            first, final = probes[0][-1], probes[-1][-1]
            elapsed_s = final.at_s - first.at_s
            if len(probes) < 2:
                return "how fast it runs shows at the end"
            gained_s, doubt_s = final.ahead_s - first.ahead_s, first.doubt_s + final.doubt_s
            if abs(gained_s) <= doubt_s:
                return f"it gained {gained_s:.3f} s, and its readings may be off by {doubt_s:.3f} s"
            rate = gained_s / elapsed_s if elapsed_s > 0 else 0.0
            off = abs(rate - self.offset_s) * elapsed_s
            allowed = DRIFT_SLACK * abs(self.offset_s) * elapsed_s + doubt_s
            return "" if off <= allowed else f"it gained {rate:.4f} s a second, not {self.offset_s:g}"
        for probe in probes:
            moved = [
                abs(one.ahead_s - usual.ahead_s - self.offset_s) <= LATE_S + one.doubt_s for one in probe
            ]
            right = [abs(one.ahead_s - usual.ahead_s) <= LATE_S + one.doubt_s for one in probe]
            if self.mode == "strobe" and not (any(moved) and any(right)):
                return f"it was not {self.offset_s:g} s ahead and right in turn"
            if self.mode == "jump" and not all(moved):
                return f"it should be {self.offset_s:g} s ahead throughout"
        return ""


def _right(after: Sequence[Reading]) -> bool:
    """Tells whether the clock is right again, as well as the last reading can show."""
    return bool(after) and abs(after[-1].ahead_s) <= max(LATE_S, after[-1].doubt_s) + LATE_S


def _readings(dones: Sequence[StepResult], target: Target) -> list[Reading]:
    return [
        Reading(*map(float, line.split()))
        for done in dones
        if isinstance(done.step, ReadClock) and done.step.host == target.host and not done.error
        for line in done.output.splitlines()
    ]


def _ahead(readings: list[Reading]) -> str:
    if not readings:
        return "not read"
    shown = " / ".join(f"{one.ahead_s:+.3f}" for one in readings)
    return f"{shown} s ahead (to within {max(one.doubt_s for one in readings):.3f} s)"


class ClockSpec(FaultSpec):
    """Settings that faults of clocks share."""

    needs = (Ability.ROOT,)

    clock: Literal["host", "node"] = "host"
    """Which clock: the host's own, which needs hosts with a kernel of their own; or that of the node alone,
    which needs the system apache-kafka with `clock: faketime`."""

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        own = getattr(system, "clock", "host") == "faketime"
        if self.clock == "node":
            needs = "the system apache-kafka with clock: faketime"
            return None if own else f"{self.fault} with clock: node needs {needs}, not {system.kind}"
        if why := fleet.lacks(Ability.KERNEL):
            hint = "with clock: node the clock of Apache Kafka's nodes can be moved (system.clock: faketime)"
            return f"{self.fault} needs {Ability.KERNEL}: {why}; {hint}"
        return None


Offset = Annotated[float, Field(ge=-31_536_000, le=31_536_000), SECONDS]


class ClockJumpSpec(ClockSpec):
    """Settings of the fault ``clock-jump``."""

    fault: Literal["clock-jump"]
    """The clock is ahead, or behind, for a while."""
    offset_s: Offset = 60.0
    """By how much it is ahead; below zero: behind."""

    def build(self) -> MovedClock:
        return MovedClock("jump", self.clock == "node", self.offset_s)


class ClockStrobeSpec(ClockSpec):
    """Settings of the fault ``clock-strobe``."""

    fault: Literal["clock-strobe"]
    """The clock jumps to and fro."""
    offset_s: Offset = 5.0
    """By how much it is ahead every other time; below zero: behind."""
    period_s: Annotated[float, Field(ge=0.2, le=60), SECONDS] = 0.5
    """How long it stays before it jumps back; with `clock: node` 2.4 at least."""

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "period_s": lambda one: max(one.period_s, 2 * faketime.NOTICED_S if one.clock == "node" else 0.0),
    }

    @model_validator(mode="after")
    def _noticed(self) -> Self:
        if self.clock == "node" and self.period_s < 2 * faketime.NOTICED_S:
            least_s = 2 * faketime.NOTICED_S
            raise ValueError(f"with clock: node period_s is {least_s:g} at least: a node looks once a second")
        return self

    def build(self) -> MovedClock:
        return MovedClock("strobe", self.clock == "node", self.offset_s, self.period_s)


class ClockDriftSpec(ClockSpec):
    """Settings of the fault ``clock-drift``."""

    fault: Literal["clock-drift"]
    """The clock runs too fast, or too slow, and is right again afterwards."""
    percent: Annotated[float, Field(ge=-90, le=1_000)] = 20.0
    """By how much it runs faster; below zero: slower."""

    def build(self) -> MovedClock:
        return MovedClock("drift", self.clock == "node", self.percent / 100)
