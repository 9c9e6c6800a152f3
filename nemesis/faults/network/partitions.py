"""Faults of the network: packets between hosts, or between clients and a broker, are dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.iptables import Rule
from wrackline.nemesis.faults.network.partition_proof import (
    CLIENTS,
    bypass,
    dropped,
    good,
    leak,
    look,
    rebooted,
    silence,
    still_silent,
    unseen,
)
from wrackline.nemesis.faults.network.tcp_probe import probe_results
from wrackline.nemesis.faults.shapes import (
    SMALLEST_RING,
    Direction,
    Flow,
    Link,
    Shape,
    Traffic,
    cut_flows,
    ports_of,
)
from wrackline.nemesis.faults.spec import TrafficSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    Commands,
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    Shell,
    Target,
    TcpProbe,
    TcpProbeFrom,
    Way,
)
from wrackline.plugins.fields import Lax
from wrackline.systems.spec import SystemSpec

CONTROL_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Partition(Traffic):
    """Packets are dropped on both ends, so the cut holds when one end loses its rules in a power cut (until
    they are put there again at power-on).

    Proved when three things hold. Nobody answers who is knocked at by TCP, every second, at every port that
    matters, along each way that is cut. At the beginning and at the end our rules are the first that packets
    meet on each host. On each way a packet was dropped: each knock sends one, so that the proof does not wait
    for hosts that have nothing to say to each other; the proof also counts what else was dropped.

    A knock needs both directions, so silence along ``n1>n2`` alone does not tell which of the two is cut.
    That each of them is, is shown by our rules being the first, and by the packets that they counted.

    With ``at_clients`` the rules are on the clients' machine alone, and brokers know nothing of the cut.
    """

    name: ClassVar[str] = "partition"
    holds_node: ClassVar[bool] = False

    shape: Shape = Shape.ISOLATE
    controllers: bool = True
    """False: the targets go on talking to the controllers, and controllers among the targets to everybody."""

    def flows(self, context: FaultContext) -> list[Flow]:
        """Returns the flows that are dropped between hosts of the system. Raises FaultError when nothing at
        all is to be."""
        if self.at_clients:
            return self.with_clients(context)
        flows: list[Flow] = []
        if self.shape is not Shape.CLIENTS:
            flows = cut_flows(context, self.shape, self, controllers=self.controllers)
        if not flows and not self._off_clients(context):
            why = f"nothing of {', '.join(self.links)} is between the sides" if self.links else ""
            raise FaultError(f"partition {self.shape}: {why or 'nobody is left on the other side'}")
        return flows

    def _off_clients(self, context: FaultContext) -> Sequence[Target]:
        """Brokers that clients are cut off from."""
        if self.shape is Shape.CLIENTS:
            return context.targets
        return [one for one in context.targets if one.is_broker] if Link.CLIENT_BROKER in self.links else []

    def commands(self, context: FaultContext) -> Commands:
        flows = self.flows(context)
        rules: dict[Target, list[Rule]] = {}
        tcp_probes: dict[Target, list[TcpProbeFrom | TcpProbe]] = {}
        spared = [] if self.controllers else _of_controllers(flows)
        for host in self._ends(context, flows):
            rules[host] = [*spared, *_drops(host, flows)]
            tcp_probes[host] = [*self._tcp_probes(host, flows)]
        for target in self._off_clients(context):
            rules.setdefault(target, []).extend(self._client_rules(context, target))
            tcp_probes.setdefault(target, []).append(TcpProbe(target.host, target.address, target.port))
        return _carried_out(context.fault_id, rules, tcp_probes)

    def _ends(self, context: FaultContext, flows: Sequence[Flow]) -> list[Target]:
        """Returns the hosts where packets are dropped."""
        ends = _once(end for flow in flows for end in (flow.sender, flow.receiver))
        return [end for end in ends if end == context.clients] if self.at_clients else ends

    def _tcp_probes(self, host: Target, flows: Sequence[Flow]) -> list[TcpProbeFrom]:
        """Returns the TCP probes of a host: at what it may not ask; and, where only the answers are dropped,
        at whom it may."""
        ways = {(flow.sender, flow.receiver) for flow in flows}
        expected: list[tuple[Target, int]] = []
        for flow in flows:
            if flow.sender == host:
                every = ports_of(flow.receiver, controller=self.controllers)
                expected += [(flow.receiver, port) for port in (every if flow.asked is None else flow.asked)]
            elif flow.receiver == host and (host, flow.sender) not in ways:
                expected += [(flow.sender, port) for port in flow.answered]
        named = [Way(f"{host.host}>{other.host}:{port}", other.address, port) for other, port in expected]
        return [TcpProbeFrom(host.host, tuple(named))] if named else []

    def _client_rules(self, context: FaultContext, target: Target) -> list[Rule]:
        rules = [Rule("-i lo", "inside", "RETURN"), Rule("-o lo", "inside", "RETURN")]
        for host in context.hosts:
            if host != target:
                rules += [Rule(f"{side} {host.address}/32", "inside", "RETURN") for side in ("-s", "-d")]
        if self.direction is not Direction.OUT:
            rules.append(Rule(f"-d {target.address}/32 -p tcp --dport {target.port}", _to(target)))
        if self.direction is not Direction.IN:
            rules.append(Rule(f"-s {target.address}/32 -p tcp --sport {target.port}", _from(target)))
        return rules

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if flaw := leak(probe_log) or unseen(probe_log) or bypass(context.fault_id, probe_log):
            return Proof(False, flaw)
        # A host that lost its power, or its rules with it, is judged by the probe it answered.
        chain = iptables.chain(context.fault_id)
        answered = {done.step.host for done in good(probe_log.final) if chain in done.output}
        late = [done for done in good(probe_log.final) if done.step.host in answered]
        early = [done for done in good(probe_log.active) if done.step.host not in answered]
        before, after = dropped([*early, *late])
        expected = self._directions(context, {done.step.host for done in good(probe_log.active)})
        unmatched = sorted(expected - {cut for cut, packets in after.items() if packets})
        if unmatched or not expected:
            missing = ", ".join(unmatched) or "any host"
            return Proof(False, f"no packet was dropped on the way {missing}")
        ours = probe_results([done for look in probe_log.looks[:-1] for done in look.done], CLIENTS)
        traffic = sum(before.values()) - sum(one.host in answered - rebooted(probe_log) for one in ours)
        way = "way" if len(expected) == 1 else "ways"
        busiest = ", ".join(f"{cut} {packets}" for cut, packets in before.most_common(6) if packets)
        if traffic > 0:
            lost = f"{traffic} packets dropped, and a probe on each of {len(expected)} {way} ({busiest})"
        else:
            lost = f"probe packets were dropped on {len(expected)} {way}; no other traffic met the cut"
        return Proof(True, f"{lost}; {silence(probe_log)}")

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        return still_silent(probe_log)

    def _directions(self, context: FaultContext, probed: set[str]) -> set[str]:
        """The ways that a probe packet must have tried: those whose sender could be asked."""
        flows = self.flows(context)
        ways = {flow.way for flow in flows}
        expected = set()
        for flow in flows:
            tried = flow.asked is None or bool(flow.asked)
            # Of answers alone a packet shows only when the question gets through.
            tried |= f"{flow.receiver.host}>{flow.sender.host}" not in ways and flow.receiver.host in probed
            if tried and (flow.sender.host in probed or self.at_clients):
                expected.add(flow.way)
        # A cut of the answers alone shows in the clients' own handshakes: the broker's SYN-ACK is dropped.
        expected |= {
            _from(target) if self.direction is Direction.OUT else _to(target)
            for target in self._off_clients(context)
            if target.host in probed
        }
        return expected


def _drops(host: Target, flows: Sequence[Flow]) -> list[Rule]:
    """Returns the rules of a host: what it receives, then what it sends."""
    return [
        Rule(f"-s {flow.sender.address}/32{match}", flow.way)
        for flow in flows
        if flow.receiver == host
        for match in flow.matches()
    ] + [
        Rule(f"-d {flow.receiver.address}/32{match}", flow.way)
        for flow in flows
        if flow.sender == host
        for match in flow.matches()
    ]


def _carried_out(
    fault_id: str,
    rules: Mapping[Target, Sequence[Rule]],
    tcp_probes: Mapping[Target, Sequence[TcpProbeFrom | TcpProbe]],
) -> Commands:
    probe: list[Step] = []
    control: list[Step] = []
    for host in rules:
        probe += look(host, fault_id, tcp_probes[host])
        control += [replace(one, wait_s=CONTROL_WAIT_S) for one in tcp_probes[host]]
    do = tuple(Shell(host.host, iptables.install(fault_id, ours)) for host, ours in rules.items())
    undo = tuple(Shell(host.host, iptables.remove(fault_id)) for host in rules)
    watch = tuple(one for host in rules for one in tcp_probes[host])
    return Commands(do, undo, tuple(probe), tuple(control), watch, lasting=do)


def _of_controllers(flows: Sequence[Flow]) -> list[Rule]:
    """Lets pass what goes to or comes from the controllers of combined nodes: they share their hosts with
    brokers."""
    ends = (end for flow in flows for end in (flow.sender, flow.receiver))
    ports = sorted({end.controller_port for end in ends if end.controller_port is not None})
    return [
        Rule(f"-p tcp --{side} {port}", "controllers", "RETURN")
        for port in ports
        for side in ("dport", "sport")
    ]


def _to(target: Target) -> str:
    return f"{CLIENTS}>{target.host}"


def _from(target: Target) -> str:
    return f"{target.host}>{CLIENTS}"


def _once(targets: Iterable[Target]) -> list[Target]:
    return list(dict.fromkeys(targets))


_ONE_SIDED = (Shape.MAJORITIES_RING, Shape.BRIDGE)
"""Shapes in which the targets are no side of their own."""


class PartitionSpec(TrafficSpec):
    """Settings of the fault ``partition``."""

    makes = Partition
    needs = (Ability.NETWORK,)
    of_hosts_alone = ("shape", "controllers", "links", "ports")

    fault: Literal["partition"]
    """Packets between hosts are dropped."""
    shape: Annotated[Shape, Lax] = Shape.ISOLATE
    """Which hosts are cut off from which."""
    controllers: bool = True
    """False: the targets go on talking to the controllers."""

    @model_validator(mode="before")
    @classmethod
    def _default_target(cls, given: Any) -> Any:
        """Halves means a random half unless a target is named; so does a ring, in which they take turns with
        the rest."""
        shapes = (Shape.HALVES, Shape.MAJORITIES_RING)
        if isinstance(given, dict) and given.get("shape") in shapes and "target" not in given:
            return {**given, "target": "half"}
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> PartitionSpec:
        if self.shape is Shape.LINK and (
            self.target.count(",") != 1 or len(set(self.target.split(","))) != 2
        ):
            raise ValueError(f"shape link needs two hosts as target (n1,n2), not {self.target!r}")
        if self.shape in _ONE_SIDED and self.direction is not Direction.BOTH:
            raise ValueError(f"shape {self.shape} has no direction {self.direction}: leave `direction` out")
        narrowed = [key for key in ("links", "ports") if getattr(self, key)]
        if narrowed and self.shape is Shape.CLIENTS:
            raise ValueError(f"shape clients cuts the brokers' port for clients: leave `{narrowed[0]}` out")
        if narrowed and not self.controllers:
            raise ValueError(f"`{narrowed[0]}` says what is cut: leave `controllers: false` out")
        if Link.CLIENT_BROKER in self.links and self.shape in (*_ONE_SIDED, Shape.LINK):
            raise ValueError(
                f"shape {self.shape} has no side for clients: link client-broker goes with isolate or halves"
            )
        return self

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        hosts = fleet.hosts if self.controllers else (*fleet.broker_hosts, *fleet.spare_hosts)
        if self.shape is Shape.MAJORITIES_RING and hosts and len(hosts) < SMALLEST_RING:
            return f"partition majorities-ring needs {SMALLEST_RING} hosts or more, there are {len(hosts)}"
        if (
            hosts
            and self.shape is Shape.HALVES
            and self.target == "all"
            and set(hosts) == {*fleet.broker_hosts}
        ):
            return "partition halves of all: nobody is left on the other side; leave target out, or say half"
        return super().refusal(fleet, system)
