"""Faults of the remote tier of `system.tier`: it is slow, fails, loses or doubles what it has stored, or
shows new segments late. Brokers are healthy, and so is their network.

The tier's plug-in (`wrackline.systems.kafka.tier`) reads its orders from a file of the shared folder, one for
each fault and broker, and writes down what it did with each call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.outputs import last, outputs, throughout
from wrackline.nemesis.faults.spec import Role, UnprivilegedSpec
from wrackline.nemesis.faults.steps import Commands, FaultContext, FaultError, ProbeLog, Proof, Shell, Target
from wrackline.plugins.fields import SECONDS, Lax
from wrackline.systems.spec import SystemSpec

NOTHING = "no order"
Call = Literal["copy", "fetch", "delete"]


class Mode(StrEnum):
    """The way in which the tier fails."""

    SLOW = "slow"
    """Calls take longer."""
    FAILING = "failing"
    """Calls fail, and nothing is done."""
    LOST = "lost"
    """A segment is said to be stored, and is not."""
    DOUBLED = "doubled"
    """A segment is stored, and the call fails: it is stored again."""
    STALE = "stale"
    """A segment that was stored a moment ago is not found."""


OF_MODE: Mapping[Mode, tuple[Call, ...]] = {
    Mode.SLOW: ("copy", "fetch", "delete"),
    Mode.FAILING: ("copy", "fetch", "delete"),
    Mode.LOST: ("copy",),
    Mode.DOUBLED: ("copy",),
    Mode.STALE: ("fetch",),
}
"""The calls that can fail so."""


class TierCall(NamedTuple):
    """A call that the tier says it has disturbed."""

    call: str
    place: str
    """``log-0``"""
    first: int
    last: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TierFault:
    """The remote tier fails for the targets in one way.

    Proved when the order lay in the shared folder at the beginning and at the end, and the tier has written
    down one call at least that met it. What it has lost is damage of every broker: whoever leads reads it
    there.
    """

    name: ClassVar[str] = "tier"
    holds_node: ClassVar[bool] = False

    mode: Mode
    number: int
    """Milliseconds of a slow call, or of how long a segment is not seen; every so-manieth call that fails."""
    calls: tuple[Call, ...]

    def commands(self, context: FaultContext) -> Commands:
        order = f"{self.mode} {self.number} {','.join(self.calls)}"
        probe = tuple(self._look(context.fault_id, one) for one in context.targets)
        return Commands(
            do=tuple(_give(context.fault_id, one, order) for one in context.targets),
            undo=tuple(_take_back(context.fault_id, one) for one in context.targets),
            probe=probe,
            control=probe,
        )

    @staticmethod
    def _look(fault_id: str, target: Target) -> Shell:
        return Shell(target.host, f"cat {_order(fault_id, target)} 2>/dev/null || echo {NOTHING}")

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        disturbed: list[TierCall] = []
        for one in context.targets:
            answers = throughout(probe_log, one)
            if not all(text.startswith(f"{self.mode} ") for text in answers):
                return Proof(False, f"{one.host}: the tier's order was {', then '.join(answers)}")
            disturbed += [
                call for text in outputs(probe_log.undo, one) for call in _calls_in(text, self.mode)
            ]
        hosts = ", ".join(one.host for one in context.targets)
        if not (probe_log.final or probe_log.undo):
            return Proof(True, f"the tier is {self.mode} for {hosts}")
        counts = Counter(call.call for call in disturbed)
        calls = ", ".join(f"{count} {call}" for call, count in sorted(counts.items()))
        text = f"the tier was {self.mode} for {hosts}: by its journal {calls or 'no'} calls met it"
        damaged: dict[str, dict[str, int]] = {}
        if self.mode is Mode.LOST and disturbed:
            lost = {f"tier/{one.place}/{one.first:020}.log": one.size_bytes for one in disturbed}
            ranges = ", ".join(f"{one.place} {one.first:,} to {one.last:,}" for one in disturbed)
            text += f"; the tier, not Kafka, has lost {ranges}"
            damaged = {one.host: dict(lost) for one in context.hosts if one.is_broker}
        return Proof(bool(disturbed), text, damaged=damaged)

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:
        ordered = [one.host for one in context.targets if last(probe_log.control, one) != NOTHING]
        return f"the tier still has an order for {', '.join(ordered)}" if ordered else ""


def _folder(target: Target) -> str:
    if not target.shared:
        raise FaultError(f"tier: {target.host} has no folder that hosts share")
    return f"{target.shared}/tier"


def _order(fault_id: str, target: Target) -> str:
    return f"{_folder(target)}/control/{fault_id}-{target.node_id}"


def _give(fault_id: str, target: Target, order: str) -> Shell:
    """Notes how far the journal has come, and gives the order, at once and whole."""
    folder, file = _folder(target), _order(fault_id, target)
    return Shell(
        target.host,
        f"mkdir -p {folder}/control {folder}/journal && touch {folder}/journal/{target.node_id} && "
        f"wc -l <{folder}/journal/{target.node_id} >{file}.from && echo '{order}' >{file}.new && "
        f"mv {file}.new {file}",
    )


def _take_back(fault_id: str, target: Target) -> Shell:
    """Prints the journal's lines since then that name the fault."""
    file, journal = _order(fault_id, target), f"{_folder(target)}/journal/{target.node_id}"
    return Shell(
        target.host,
        f"rm -f {file}; if [ -e {file}.from ]; then "
        f"tail -n +$(($(cat {file}.from) + 1)) {journal} | grep ' {fault_id} ' | tail -n 5000; fi; "
        f"rm -f {file}.from",
    )


def _calls_in(text: str, mode: Mode) -> list[TierCall]:
    """Reads lines of the journal: milliseconds, fault, what was done, call, segment, offsets, bytes."""
    words = (line.split() for line in text.splitlines())
    return [
        TierCall(each[3], each[4], int(each[5]), int(each[6]), int(each[7]))
        for each in words
        if len(each) == 8 and each[2] == mode
    ]


class TierSpec(UnprivilegedSpec):
    """Settings of the fault ``tier``."""

    fault: Literal["tier"]
    """The remote tier of `system.tier` fails for the target, in the way that `mode` says."""
    target: Role = "all"
    """The brokers whose calls meet it."""
    mode: Annotated[Mode, Lax] = Mode.FAILING
    """`slow`; `failing`; `lost`: said to be stored, and not; `doubled`: stored, and the call fails; `stale`:
    not found for a while after it was stored."""
    calls: Annotated[tuple[Call, ...], Lax] | None = None
    """Which calls: `copy`, `fetch` (segments and indexes), `delete`. By default all that can fail so."""
    delay_s: Annotated[float, Field(ge=0.001, le=60), SECONDS] = 2.0
    """Of `slow`: so much longer each call takes."""
    every: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Of `failing`: of the calls at each broker the first fails, and then every so-manieth."""
    age_s: Annotated[float, Field(ge=0.1, le=600), SECONDS] = 10.0
    """Of `stale`: so long a segment is not found."""

    @model_validator(mode="after")
    def _calls_fit(self) -> Self:
        for call in self.calls or ():
            if call not in OF_MODE[self.mode]:
                known = ", ".join(OF_MODE[self.mode])
                raise ValueError(f"calls: {call} cannot be {self.mode}; what can: {known}")
        return self

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        if (why := super().refusal(fleet, system)) is not None:
            return why
        if getattr(system, "tier", None) is None:
            return "tier needs a remote tier of ours: say system.tier, of Apache Kafka from 3.9 on"
        return None

    def build(self) -> TierFault:
        number = {
            Mode.SLOW: round(self.delay_s * 1000),
            Mode.FAILING: self.every,
            Mode.STALE: round(self.age_s * 1000),
        }
        return TierFault(self.mode, number.get(self.mode, 1), self.calls or OF_MODE[self.mode])
