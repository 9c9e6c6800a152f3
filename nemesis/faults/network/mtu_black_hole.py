"""A path-MTU black hole: large packets vanish on their way, and small ones pass. Connections are made,
requests and short answers arrive; an answer with much in it never does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.network import iptables, ping_program
from wrackline.nemesis.faults.network.iptables import Rule
from wrackline.nemesis.faults.network.partition_proof import bypass, dropped, look, unseen
from wrackline.nemesis.faults.shapes import Direction, Flow, Shape, Traffic, cut_flows
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
from wrackline.plugins.fields import Lax

LARGEST = 65535
"""What iptables takes for the longest packet."""
SMALL, LARGE = 64, 1400
"""Bytes of the packets that the probe sends, IP header included."""
WAIT_S = 0.4
_PROGRAM = Path(ping_program.__file__)
_SHAPES = (Shape.ISOLATE, Shape.HALVES, Shape.LINK)


@dataclass(frozen=True, slots=True)
class BlackHole:
    """Packets of ``from_bytes`` and more are dropped, on both ends.

    Proved when hosts ask each other for an echo, at the beginning and at the end: a small packet is answered
    and a large one is not; and the large one is, too, after the undo. Our rules must be the first that
    packets meet, and must have counted some."""

    shape: Shape = Shape.ISOLATE
    direction: Direction = Direction.BOTH
    from_bytes: int = 600

    name: ClassVar[str] = "mtu-black-hole"
    holds_node: ClassVar[bool] = False

    def flows(self, context: FaultContext) -> list[Flow]:
        """Raises FaultError when there is nobody on the other side."""
        flows = cut_flows(context, self.shape, Traffic(direction=self.direction))
        if not flows:
            raise FaultError(f"{self.name} {self.shape}: nobody is left on the other side")
        return flows

    def commands(self, context: FaultContext) -> Commands:
        flows = self.flows(context)
        hosts = list(dict.fromkeys(end for flow in flows for end in (flow.sender, flow.receiver)))
        probe: list[Step] = []
        control: list[Step] = []
        for host in hosts:
            asked = self._asked_by(host, flows)
            pings = [_ping(host, asked)] if asked else []
            probe += look(host, context.fault_id, pings)
            control += pings
        do = tuple(
            Shell(host.host, iptables.install(context.fault_id, self._rules(host, flows))) for host in hosts
        )
        undo = tuple(Shell(host.host, iptables.remove(context.fault_id)) for host in hosts)
        return Commands(do, undo, tuple(probe), tuple(control), watch=tuple(control), lasting=do)

    def _rules(self, host: Target, flows: Sequence[Flow]) -> list[Rule]:
        long = f"-m length --length {self.from_bytes}:{LARGEST}"
        return [
            Rule(f"-{side} {other.address}/32 {long}", flow.way)
            for flow in flows
            for side, other, mine in (("s", flow.sender, flow.receiver), ("d", flow.receiver, flow.sender))
            if mine == host
        ]

    @staticmethod
    def _asked_by(host: Target, flows: Sequence[Flow]) -> list[Target]:
        """Returns the hosts that a host asks for an echo: each pair once, and by who sends what is
        dropped."""
        seen: set[frozenset[str]] = set()
        asked = []
        for flow in flows:
            pair = frozenset((flow.sender.host, flow.receiver.host))
            if pair not in seen and flow.sender == host:
                asked.append(flow.receiver)
            seen.add(pair)
        return asked

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        listings = replace(probe_log, active=_listings(probe_log.active), final=_listings(probe_log.final))
        if flaw := unseen(probe_log) or bypass(context.fault_id, listings):
            return Proof(False, flaw)
        for seen in probe_log.looks:
            for way, (small, large) in _echoes(seen.done).items():
                if large == "echo":
                    return Proof(False, f"{seen.when} a packet of {LARGE} bytes was answered on {way}")
                if small != "echo" and seen.done in (probe_log.active, probe_log.final):
                    why = f"a packet of {SMALL} bytes was not answered on {way}, either"
                    return Proof(False, f"{seen.when} {why}")
        ways = sorted({*_echoes(probe_log.active), *_echoes(probe_log.final)})
        if not ways:
            return Proof(False, "no host could be asked for an echo")
        _, counted = dropped([*listings.active, *listings.final])
        if not sum(counted.values()):
            return Proof(False, "no packet was dropped")
        text = (
            f"on {', '.join(ways)} packets of {SMALL} bytes were answered, and none of {LARGE}; "
            f"{sum(counted.values())} packets of {self.from_bytes} bytes or more were dropped"
        )
        if not probe_log.control:
            return Proof(True, text)
        flaw = self.residue(context, probe_log)
        return Proof(not flaw, f"{text}; {flaw or 'after the undo all were'}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        deaf = [way for way, (_, large) in _echoes(probe_log.control).items() if large != "echo"]
        return f"after the undo none on {', '.join(deaf)} either" if deaf else ""


def _ping(host: Target, asked: Sequence[Target]) -> Shell:
    names = [word for one in asked for word in (f"{host.host}>{one.host}", one.address)]
    arguments = (f"{WAIT_S:g}", SMALL, LARGE, *names)
    return Shell(host.host, programs.python_command(host.python, _PROGRAM, *arguments))


def _is_ping(done: StepResult) -> bool:
    return isinstance(done.step, Shell) and _PROGRAM.read_text().splitlines()[0] in done.step.command


def _listings(dones: Sequence[StepResult]) -> list[StepResult]:
    return [done for done in dones if not _is_ping(done)]


def _echoes(dones: Sequence[StepResult]) -> dict[str, tuple[str, str]]:
    """Way -> what came of the small packet, and of the large one."""
    result: dict[str, tuple[str, str]] = {}
    for done in dones:
        if _is_ping(done) and not done.error and not done.skipped:
            for line in done.output.splitlines():
                way, small, large = line.split()
                result[way] = small, large
    return result


class BlackHoleSpec(FaultSpec):
    """Settings of the fault ``mtu-black-hole``."""

    makes = BlackHole
    needs = (Ability.ROOT, Ability.NETWORK)

    fault: Literal["mtu-black-hole"]
    """Large packets between hosts are dropped, small ones pass."""
    shape: Annotated[Shape, Lax] = Shape.ISOLATE
    """Between which hosts: isolate, halves or link."""
    direction: Annotated[Direction, Lax] = Direction.BOTH
    """Which way packets are dropped, as the targets see it."""
    from_bytes: Annotated[int, Field(ge=100, le=1400)] = 600
    """Packets of so many bytes and more are dropped, IP header included."""

    @model_validator(mode="after")
    def _fits_together(self) -> BlackHoleSpec:
        if self.shape not in _SHAPES:
            raise ValueError(f"mtu-black-hole has the shapes {', '.join(_SHAPES)}, not {self.shape}")
        if self.shape is Shape.LINK and (
            self.target.count(",") != 1 or len(set(self.target.split(","))) != 2
        ):
            raise ValueError(f"shape link needs two hosts as target (n1,n2), not {self.target!r}")
        return self
