"""Faults of the network: packets between hosts, or between clients and a broker, are dropped."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import model_validator

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults import chains
from wrackline.nemesis.faults.chains import Rule
from wrackline.nemesis.faults.knocks import knock_results
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    Done,
    FaultError,
    Knock,
    KnockFrom,
    Proof,
    Scene,
    Shell,
    Step,
    Target,
    Trail,
    Way,
)
from wrackline.plugins.fields import Lax

CLIENTS = "clients"
CONTROL_WAIT_S = 0.5
_AFTER_KNOCK = "--- after knocking"


class Shape(StrEnum):
    """Which hosts a partition cuts off from which."""

    HALVES = "halves"
    """Two sides, each whole: the targets and the rest."""
    ISOLATE = "isolate"
    """The targets from the rest: what `halves` does, aimed by role."""
    CLIENTS = "clients"
    """Clients (everything outside of the system) from the targets; the brokers still see each other."""
    LINK = "link"
    """Exactly between two named hosts."""


class Direction(StrEnum):
    """Packets to the targets, packets from them, or both."""

    BOTH = "both"
    IN = "in"
    """Only what comes to the targets is dropped."""
    OUT = "out"
    """Only what the targets send is dropped."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Packets are dropped on both ends, so the cut holds when one end loses its rules in a power cut (until
    they are put there again at power-on).

    Proved when three things hold, at the beginning and at the end. Nobody answers who is knocked at by TCP,
    at every port that matters, along each way that is cut. Our rules are the first that packets meet on each
    host. On each way a packet was dropped: each knock sends one, so that the proof does not wait for hosts
    that have nothing to say to each other; the proof also counts what else was dropped.

    A knock needs both directions, so silence along ``n1>n2`` alone does not tell which of the two is cut.
    That each of them is, is shown by our rules being the first, and by the packets that they counted.
    """

    shape: Shape = Shape.ISOLATE
    controllers: bool = True
    """False: the targets go on talking to the controllers, and controllers among the targets to everybody."""
    direction: Direction = Direction.BOTH

    @property
    def name(self) -> str:
        return "partition"

    @property
    def holds_node(self) -> bool:
        return False

    def cuts(self, scene: Scene) -> list[tuple[Target, Target]]:
        """(sender, receiver) pairs between which packets are dropped. Raises FaultError when there is
        none."""
        ours, theirs = self._sides(scene)
        pairs: list[tuple[Target, Target]] = []
        for mine in ours:
            for other in theirs:
                if self.direction is not Direction.IN:
                    pairs.append((mine, other))
                if self.direction is not Direction.OUT:
                    pairs.append((other, mine))
        if not pairs:
            raise FaultError(f"partition {self.shape}: nobody is left on the other side")
        return pairs

    def _sides(self, scene: Scene) -> tuple[Sequence[Target], Sequence[Target]]:
        if self.shape is Shape.LINK:
            if len(scene.targets) != 2:
                raise FaultError(f"partition link: needs two hosts, not {len(scene.targets)}")
            return scene.targets[:1], scene.targets[1:]
        return scene.targets, [other for other in scene.others if self.controllers or other.is_broker]

    def commands(self, scene: Scene) -> Commands:
        if self.shape is Shape.CLIENTS:
            return self._cut_clients(scene)
        pairs = self.cuts(scene)
        do: list[Shell] = []
        undo: list[Shell] = []
        probe: list[Step] = []
        control: list[Step] = []
        spared = [] if self.controllers else _of_controllers(pairs)
        for host in _once(end for pair in pairs for end in pair):
            rules = list(spared)
            rules += [
                Rule(f"-s {sender.address}/32", f"{sender.host}>{receiver.host}")
                for sender, receiver in pairs
                if receiver == host
            ]
            rules += [
                Rule(f"-d {receiver.address}/32", f"{sender.host}>{receiver.host}")
                for sender, receiver in pairs
                if sender == host
            ]
            do.append(Shell(host.host, chains.install(scene.fault_id, rules)))
            undo.append(Shell(host.host, chains.remove(scene.fault_id)))
            knocks = self._knocks(host, [receiver for sender, receiver in pairs if sender == host])
            probe += [*_look(host, scene.fault_id, knocks)]
            control += [replace(knock, wait_s=CONTROL_WAIT_S) for knock in knocks]
        return Commands(tuple(do), tuple(undo), tuple(probe), tuple(control), lasting=tuple(do))

    def _knocks(self, host: Target, receivers: Sequence[Target]) -> list[KnockFrom]:
        ways = [
            Way(f"{host.host}>{receiver.host}:{port}", receiver.address, port)
            for receiver in receivers
            for port in (receiver.port, receiver.controller_port if self.controllers else None)
            if port is not None
        ]
        return [KnockFrom(host.host, tuple(ways))] if ways else []

    def _cut_clients(self, scene: Scene) -> Commands:
        do: list[Shell] = []
        undo: list[Shell] = []
        probe: list[Step] = []
        control: list[Step] = []
        for target in scene.targets:
            inside = [Rule("-i lo", "inside", "RETURN"), Rule("-o lo", "inside", "RETURN")]
            for host in scene.hosts:
                if host != target:
                    inside += [Rule(f"{side} {host.address}/32", "inside", "RETURN") for side in ("-s", "-d")]
            drops = []
            if self.direction is not Direction.OUT:
                drops.append(Rule(f"-d {target.address}/32 -p tcp --dport {target.port}", _to(target)))
            if self.direction is not Direction.IN:
                drops.append(Rule(f"-s {target.address}/32 -p tcp --sport {target.port}", _from(target)))
            do.append(Shell(target.host, chains.install(scene.fault_id, [*inside, *drops])))
            undo.append(Shell(target.host, chains.remove(scene.fault_id)))
            knock = Knock(target.host, target.address, target.port)
            probe += _look(target, scene.fault_id, [knock])
            control.append(replace(knock, wait_s=CONTROL_WAIT_S))
        return Commands(tuple(do), tuple(undo), tuple(probe), tuple(control), lasting=tuple(do))

    def prove(self, scene: Scene, trail: Trail) -> Proof:
        if flaw := _leak(trail) or _unseen(trail) or _bypass(scene.fault_id, trail):
            return Proof(False, flaw)
        # A host that lost its power, or its rules with it, is judged by the probe it answered.
        ours = chains.chain(scene.fault_id)
        answered = {done.step.host for done in _good(trail.final) if ours in done.output}
        late = [done for done in _good(trail.final) if done.step.host in answered]
        early = [done for done in _good(trail.active) if done.step.host not in answered]
        before, after = _dropped([*early, *late])
        wanted = self._directions(scene, {done.step.host for done in _good(trail.active)})
        unmatched = sorted(wanted - {cut for cut, packets in after.items() if packets})
        if unmatched or not wanted:
            missing = ", ".join(unmatched) or "any host"
            return Proof(False, f"no packet was dropped on the way {missing}")
        first = knock_results(trail.active, CLIENTS)
        traffic = sum(before.values()) - sum(knock.host in answered - _rebooted(trail) for knock in first)
        way = "way" if len(wanted) == 1 else "ways"
        busiest = ", ".join(f"{cut} {packets}" for cut, packets in before.most_common(6) if packets)
        if traffic > 0:
            dropped = f"{traffic} packets dropped, and a probe on each of {len(wanted)} {way} ({busiest})"
        else:
            dropped = f"probe packets were dropped on {len(wanted)} {way}; no other traffic met the cut"
        return Proof(True, f"{dropped}; {_silence(trail)}")

    def _directions(self, scene: Scene, probed: set[str]) -> set[str]:
        """The ways that a probe packet must have tried: those whose sender could be asked."""
        if self.shape is not Shape.CLIENTS:
            return {f"{one.host}>{other.host}" for one, other in self.cuts(scene) if one.host in probed}
        # A cut of the answers alone shows in the clients' own handshakes: the broker's SYN-ACK is dropped.
        return {
            _from(target) if self.direction is Direction.OUT else _to(target)
            for target in scene.targets
            if target.host in probed
        }


def _of_controllers(pairs: Sequence[tuple[Target, Target]]) -> list[Rule]:
    """Lets pass what goes to or comes from the controllers of combined nodes: they share their hosts with
    brokers."""
    ports = sorted({end.controller_port for pair in pairs for end in pair if end.controller_port is not None})
    return [
        Rule(f"-p tcp --{side} {port}", "controllers", "RETURN")
        for port in ports
        for side in ("dport", "sport")
    ]


def _to(target: Target) -> str:
    return f"{CLIENTS}>{target.host}"


def _from(target: Target) -> str:
    return f"{target.host}>{CLIENTS}"


def _good(probes: Sequence[Done]) -> list[Done]:
    """The listings that hosts gave. (A knock says nothing: what it did shows in the listing after it.)"""
    return [done for done in probes if isinstance(done.step, Shell) and not done.error and not done.skipped]


def _once(targets: Iterable[Target]) -> list[Target]:
    return list(dict.fromkeys(targets))


def _look(host: Target, fault_id: str, knocks: Sequence[Step]) -> list[Step]:
    """Counters, the knocks, the counters again: three steps, for nobody else's must wait while a knock
    does."""
    look = chains.look(fault_id)
    return [Shell(host.host, look), *knocks, Shell(host.host, f"echo '{_AFTER_KNOCK}'; {look}")]


def _leak(trail: Trail) -> str | None:
    answers = [
        f"{knock.way} answered {when} ({knock.answer})"
        for when, probe in (("at the beginning", trail.active), ("at the end", trail.final))
        for knock in knock_results(probe, CLIENTS)
        if knock.answered
    ]
    return f"the cut leaks: {', '.join(answers)}" if answers else None


def _unseen(trail: Trail) -> str | None:
    if trail.undo and not trail.final:
        return "nobody looked at its end"
    failed = [f"{done.step.host}: {done.error}" for done in trail.final if done.error and not done.skipped]
    return f"its end could not be looked at: {'; '.join(failed)}" if failed else None


def _bypass(fault_id: str, trail: Trail) -> str | None:
    """A rule that lets packets pass before they meet ours. A host that has just come back may have none of
    ours."""
    rebooted = _rebooted(trail)
    for when, probe in (("at the beginning", trail.active), ("at the end", trail.final)):
        for done in _good(probe):
            if done.step.host in rebooted and chains.chain(fault_id) not in done.output:
                continue
            if obstacle := chains.obstacle(done.output, fault_id):
                return f"{done.step.host} {when}: {obstacle}"
    return None


def _rebooted(trail: Trail) -> set[str]:
    """Hosts that had no power between the two probes."""
    boots = {done.step.host: chains.boot(done.output) for done in _good(trail.active)}
    return {
        done.step.host
        for done in _good(trail.final)
        if done.step.host in boots and chains.boot(done.output) != boots[done.step.host]
    }


def _silence(trail: Trail) -> str:
    """What the knocks showed: silence is the cut's where the same knock was answered without it."""
    knocked = {knock.way for knock in knock_results((*trail.active, *trail.final), CLIENTS)}
    silent = f"no TCP knock on {len(knocked)} {'port' if len(knocked) == 1 else 'ports'} was answered"
    if not trail.control:
        return silent
    answered = {knock.way for knock in knock_results(trail.control, CLIENTS) if knock.answered}
    if dumb := sorted(knocked - answered):
        ways = ", ".join(dumb)
        return f"{silent}, and none on {ways} after the undo either: there the packets alone are proof"
    return f"{silent}, each was after the undo"


def _dropped(probes: Sequence[Done]) -> tuple[Tally[str], Tally[str]]:
    """Packets dropped by direction (both ends added up): before and after the probe's own packets."""
    before: Tally[str] = Tally()
    after: Tally[str] = Tally()
    for done in probes:
        first, _, second = done.output.partition(_AFTER_KNOCK)
        for tally, listing in ((before, first), (after, second)):
            for rule in chains.parse_counters(listing):
                if rule.action == "DROP":
                    tally[rule.comment] += rule.packets
    return before, after


class PartitionSpec(FaultSpec):
    """Settings of the fault ``partition``."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.ROOT, Ability.NETWORK)

    fault: Literal["partition"]
    """Packets between hosts are dropped."""
    shape: Annotated[Shape, Lax] = Shape.ISOLATE
    """Which hosts are cut off from which."""
    controllers: bool = True
    """False: the targets go on talking to the controllers."""
    direction: Annotated[Direction, Lax] = Direction.BOTH
    """Which way packets are dropped, as the targets see it."""

    @model_validator(mode="before")
    @classmethod
    def _default_target(cls, given: Any) -> Any:
        """Halves means a random half unless a target is named."""
        if isinstance(given, dict) and given.get("shape") == Shape.HALVES and "target" not in given:
            return {**given, "target": "half"}
        return given

    @model_validator(mode="after")
    def _link_names_two(self) -> PartitionSpec:
        if self.shape is Shape.LINK and (
            self.target.count(",") != 1 or len(set(self.target.split(","))) != 2
        ):
            raise ValueError(f"shape link needs two hosts as target (n1,n2), not {self.target!r}")
        return self

    def build(self) -> Partition:
        return Partition(self.shape, self.controllers, self.direction)
