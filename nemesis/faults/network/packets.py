"""Faults of packets: those between hosts are held back, lost, damaged, repeated, overtaken, or come at a
limited rate. What Jepsen's packet nemesis does with netem."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults.network import iptables, shaping
from wrackline.nemesis.faults.network.iptables import LEAVING
from wrackline.nemesis.faults.network.partition_proof import CLIENTS, good, rebooted, still_silent, unseen
from wrackline.nemesis.faults.network.shaping import Counted, Leaving, Shaping, counted
from wrackline.nemesis.faults.network.tcp_probe import probe_results
from wrackline.nemesis.faults.outputs import commands_on
from wrackline.nemesis.faults.shapes import Direction, Flow, Link, Traffic, ports_of
from wrackline.nemesis.faults.spec import TrafficSpec
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
    TcpProbe,
    TcpProbeFrom,
    Way,
)
from wrackline.plugins.fields import Seconds

PROBE_TIMES = 5
"""So often each way is knocked at: the quickest counts, since much may delay a knock and nothing speeds it
it up."""
SEEN_FROM_S = 0.005
"""A delay that is shorter is not looked for in the time that knocks take: this machine's own are not far."""
ENOUGH = 5
"""So many packets must a share be of before none of them is a flaw."""


@dataclass(frozen=True, slots=True)
class Packets(Traffic):
    """A fault in the packets between the targets and other hosts, applied where they leave a host.

    Proved when all that was asked for was counted by netem, or by our program, and where there is a delay
    knocks by TCP took longer by it than they do after the undo. Damage must besides have been found by the
    receivers' kernels (TCP's InCsumErrors).
    """

    name: ClassVar[str] = "packets"
    holds_node: ClassVar[bool] = False

    shaping: Shaping

    def flows(self, context: FaultContext) -> list[Flow]:
        """Returns the flows between hosts of the system, also from target to target."""
        if self.at_clients:
            return self.with_clients(context)
        ways = dict.fromkeys(
            way
            for target in context.targets
            for other in context.hosts
            if other != target
            for way in self.ways(target, other)
        )
        return [one for way in ways if (one := self.flow(*way))]

    def leaving(self, context: FaultContext) -> list[Leaving]:
        """Returns by host the packets that it sends and the fault matches. Raises FaultError when
        nothing is."""
        flows = self.flows(context)
        to_clients = context.targets if Link.CLIENT_BROKER in self.links else ()
        result = []
        for host in dict.fromkeys((*(one.sender for one in flows), *to_clients)):
            inside = context.hosts if host in to_clients and host.is_broker else ()
            theirs = tuple(one for one in flows if one.sender == host)
            if theirs or inside:
                result.append(Leaving(host, theirs, inside))
        if not result:
            raise FaultError(f"packets: nothing of {', '.join(self.links) or 'the system'} is sent here")
        return result

    def commands(self, context: FaultContext) -> Commands:
        flows, leaving = self.flows(context), self.leaving(context)
        do = tuple(
            Shell(one.host.host, shaping.put_on(context.fault_id, one, self.shaping), timeout_s=30.0)
            for one in leaving
        )
        undo = tuple(Shell(one.host.host, shaping.take_off(context.fault_id, one.host)) for one in leaving)
        probe: list[Step] = []
        control: list[Step] = []
        ends = (end for one in flows for end in (one.sender, one.receiver))
        for host in dict.fromkeys((*(one.host for one in leaving), *ends)):
            tcp_probes = self._tcp_probes(host, flows)
            if any(one.host == host and one.inside for one in leaving):
                tcp_probes += self._from_us(host)
            probe += [*tcp_probes, Shell(host.host, shaping.look(context.fault_id, host))]
            control += tcp_probes
        control += [Shell(one.host.host, shaping.LIST_BANDS) for one in leaving]
        return Commands(do, undo, tuple(probe), tuple(control), lasting=do)

    def _wait_s(self) -> float:
        slow = 2 * (self.shaping.delay_s + self.shaping.jitter_s)
        return 0.5 + 1.5 * slow + (2.0 if self.shaping.rate_kbit else 0.0)

    def _tcp_probes(self, host: Target, flows: Sequence[Flow]) -> list[TcpProbeFrom | TcpProbe]:
        ways = dict.fromkeys(
            Way(f"{host.host}>{server.host}:{port}", server.address, port)
            for server, port in _asked_by(host, flows)
        )
        return [TcpProbeFrom(host.host, tuple(ways) * PROBE_TIMES, self._wait_s())] if ways else []

    def _from_us(self, host: Target) -> list[TcpProbeFrom | TcpProbe]:
        return [TcpProbe(host.host, host.address, host.port, self._wait_s())] * PROBE_TIMES

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        leaving = self.leaving(context)
        if flaw := unseen(probe_log) or self._not_there(context, leaving, probe_log):
            return Proof(False, flaw)
        result: dict[str, Counted] = {}
        for one in leaving:
            theirs = [
                done.output
                for done in commands_on(one.host, (*probe_log.active, *probe_log.final, *probe_log.undo))
            ]
            if (count := counted(theirs)) is not None:
                result[one.host.host] = count
        total = _Total(list(result.values()))
        slowed = self._slowed(context, probe_log, bool(total.count("delayed")))
        if flaw := self._uncounted(total) or slowed.flaw or self._undamaged(probe_log, total):
            return Proof(False, flaw)
        by = "netem" if all(one.by_netem for one in result.values()) else "our program"
        return Proof(True, "; ".join([f"{by} on {', '.join(result)}: {total.text}", *slowed.texts]))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        bands = [
            f"{done.step.host}: {said}" for done in good(probe_log.control) if (said := done.output.strip())
        ]
        return f"packets are still shaped on {', '.join(bands)}" if bands else still_silent(probe_log)

    def _not_there(
        self, context: FaultContext, leaving: Sequence[Leaving], probe_log: ProbeLog
    ) -> str | None:
        """A host without our rules, or our program, at the beginning or at the end. One that lost its power
        between the two may be looked at before it has them again."""
        back = rebooted(probe_log)
        for when, probe in probe_log.ends:
            for one in leaving:
                for done in commands_on(one.host, good(probe)):
                    if f"qdisc netem {shaping.NETEM}:" in done.output:
                        continue
                    if one.host.host in back and iptables.chain(context.fault_id) not in done.output:
                        continue
                    if "\n-- running" not in done.output:
                        return f"{one.host.host} {when}: its program has ended"
                    if error := iptables.obstacle(done.output, context.fault_id, LEAVING):
                        return f"{one.host.host} {when}: {error}"
        return None

    def _uncounted(self, total: _Total) -> str | None:
        if not total.seen:
            return "no packet came its way"
        expected = self.shaping
        shares = {"lost": expected.loss, "corrupted": expected.corrupt, "duplicated": expected.duplicate}
        shares["overtook"] = expected.reorder
        for what, share in shares.items():
            if share and (count := total.count(what)) is not None and not count:
                enough = "" if total.seen * share >= ENOUGH else ": they were too few"
                return f"none of {total.seen} packets {'was ' if what != 'overtook' else ''}{what}{enough}"
        if (expected.delay_s or expected.rate_kbit) and total.count("delayed") == 0:
            return f"none of {total.seen} packets was held back"
        return None

    def _undamaged(self, probe_log: ProbeLog, total: _Total) -> str | None:
        if not self.shaping.corrupt or not self.flows_go_to_hosts():
            return None
        result = _rise(probe_log, "InCsumErrors")
        if result:
            total.notes.append(f"the receivers' kernels found {result} wrong checksums of TCP")
            return None
        return "the receivers' kernels found no wrong checksum of TCP"

    def flows_go_to_hosts(self) -> bool:
        """Tells whether hosts receive the packets of the fault, and not clients alone."""
        return self.links != (Link.CLIENT_BROKER,)

    def _slowed(self, context: FaultContext, probe_log: ProbeLog, counted_delays: bool) -> _Slowed:
        """Returns how long probes took, beside what they take after the undo. Where another fault lets none
        through, what our program counted is proof enough."""
        least = self.shaping.delay_s - self.shaping.jitter_s
        during = _took((*probe_log.active, *probe_log.final), max if self.shaping.reorder else min)
        after = _took(probe_log.control, min)
        if not during:
            silent = "no knock was answered while it lasted"
            return _Slowed([silent], silent if self.shaping.delay_s and not counted_delays else None)
        slowest = max(during, key=lambda way: during[way])
        text = f"a knock {slowest} took {during[slowest] * 1000:.0f} ms"
        if not probe_log.control:
            return _Slowed([text])
        if slowest not in after:
            return _Slowed([f"{text}, and was not answered after the undo"])
        for way, turns in self._turns(context).items():
            short = way in during and way in after and during[way] - after[way] < turns * least / 2
            if short and least >= SEEN_FROM_S:
                return _Slowed(
                    [],
                    f"a knock {way} took {during[way] * 1000:.1f} ms, and {after[way] * 1000:.1f} ms after "
                    f"the undo: it was not held back by {turns * least * 1000:g} ms",
                )
        return _Slowed([f"{text}, and {after[slowest] * 1000:.1f} ms after the undo"])

    def _turns(self, context: FaultContext) -> dict[str, int]:
        """Returns by way of a probe how many of its first two packets are held back: the request, the
        answer."""
        flows = self.flows(context)
        ways = {one.way for one in flows}
        turns = {}
        for asker in {end: None for one in flows for end in (one.sender, one.receiver)}:
            for server, port in _asked_by(asker, flows):
                there, back = f"{asker.host}>{server.host}", f"{server.host}>{asker.host}"
                turns[f"{there}:{port}"] = (there in ways) + (back in ways)
        if Link.CLIENT_BROKER in self.links:
            turns |= {f"{CLIENTS}>{one.host}:{one.port}": 1 for one in context.targets}
        return turns


@dataclass(slots=True)
class _Slowed:
    texts: list[str]
    flaw: str | None = None


@dataclass(slots=True)
class _Total:
    """The sum of all hosts' counts."""

    counts: Sequence[Counted]
    notes: list[str] = field(default_factory=list)

    @property
    def seen(self) -> int:
        return sum(one.seen for one in self.counts)

    def count(self, what: str) -> int | None:
        """Returns a count; None where one host does not report it."""
        if what == "lost":
            return sum(one.lost for one in self.counts)
        if any(one.by_netem for one in self.counts):
            return None
        return round(sum(one.more[what] for one in self.counts))

    @property
    def text(self) -> str:
        words = [f"{self.seen} packets"]
        if held := self.count("delayed"):
            mean_s = sum(one.more["delay_s"] for one in self.counts) / held
            words.append(f"{held} held back for {mean_s * 1000:.0f} ms on average")
        for what in ("lost", "corrupted", "duplicated", "overtook", "overflowed"):
            if count := self.count(what):
                words.append(f"{count} {_WORDS.get(what, what)}")
        return ", ".join([*words, *self.notes])


_WORDS = {"overtook": "overtook others", "overflowed": "dropped since too many waited"}


def _asked_by(host: Target, flows: Sequence[Flow]) -> list[tuple[Target, int]]:
    """Returns the hosts and ports that a host probes: those it asks, and those that answer it, among the
    flows."""
    asked: list[tuple[Target, int]] = []
    for one in flows:
        if one.sender == host:
            ports = ports_of(one.receiver) if one.asked is None else one.asked
            asked += [(one.receiver, port) for port in ports]
        elif one.receiver == host:
            ports = ports_of(one.sender) if one.asked is None else one.answered
            asked += [(one.sender, port) for port in ports]
    return list(dict.fromkeys(asked))


def _took(dones: Sequence[StepResult], of_all: Callable[[list[float]], float]) -> dict[str, float]:
    """Returns how long answered probes took, by way."""
    took: dict[str, list[float]] = {}
    for probed in probe_results(dones, CLIENTS):
        if probed.answered and probed.took_s is not None:
            took.setdefault(probed.way, []).append(probed.took_s)
    return {way: of_all(each) for way, each in took.items()}


def _rise(probe_log: ProbeLog, name: str) -> int:
    """Returns by how much a counter of TCP has risen on the hosts that were looked at twice."""
    first = {done.step.host: shaping.tcp_counter(done.output, name) for done in good(probe_log.active)}
    rise = 0
    for done in good(probe_log.final):
        last, before = shaping.tcp_counter(done.output, name), first.get(done.step.host)
        if last is not None and before is not None:
            rise += max(0, last - before)
    return rise


Share = Annotated[float, Field(ge=0, le=1)]


class PacketsSpec(TrafficSpec):
    """Settings of the fault ``packets``."""

    makes = Packets
    needs = (Ability.ROOT, Ability.NETWORK)
    of_hosts_alone = ("links", "ports")
    example: ClassVar[Mapping[str, Any]] = {"delay_s": 0.05, "loss": 0.02}

    fault: Literal["packets"]
    """Packets between hosts are held back, lost, damaged, repeated, overtaken, or limited in rate."""
    delay_s: Annotated[Seconds, Field(le=60)] = 0.0
    """Each packet is held back for so long."""
    jitter_s: Seconds = 0.0
    """The delay is so much longer or shorter, by chance."""
    loss: Share = 0.0
    """Share of the packets that are lost."""
    duplicate: Share = 0.0
    """Share of the packets that arrive twice."""
    corrupt: Share = 0.0
    """Share of the packets in which a bit is another."""
    reorder: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Share of the packets that are not held back, and so overtake others."""
    rate_kbit: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    """So many kilobits leave a host in a second; 0: whatever comes."""

    @model_validator(mode="after")
    def _fits_together(self) -> PacketsSpec:
        asked = ("delay_s", "loss", "duplicate", "corrupt", "reorder", "rate_kbit")
        if not any(getattr(self, key) for key in asked):
            raise ValueError(f"packets does nothing yet: set one of {', '.join(asked)}")
        if self.jitter_s > self.delay_s:
            raise ValueError(f"jitter_s {self.jitter_s:g} is more than delay_s {self.delay_s:g}")
        if self.reorder and not self.delay_s:
            raise ValueError("reorder: packets overtake those that are held back; set delay_s too")
        if Link.CLIENT_BROKER in self.links and self.direction is Direction.IN:
            raise ValueError("what clients send is not shaped, only what they get: direction out or both")
        return self

    @property
    def shaping(self) -> Shaping:
        """Returns what is done to the packets."""
        return Shaping(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Shaping)})
