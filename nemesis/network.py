"""Faults of the network: packets between hosts, or between clients and a broker, are dropped."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nemesis import chains
from nemesis.chains import Rule
from nemesis.steps import Commands, Done, FaultError, Knock, Proof, Scene, Shell, Step, Target, Trail

CLIENTS = "clients"
_AFTER_KNOCK = "--- after knocking"


class Shape(StrEnum):
    HALVES = "halves"
    """Two sides, each whole: the targets and the rest."""
    ISOLATE = "isolate"
    """The targets from the rest: what `halves` does, aimed by role."""
    CLIENTS = "clients"
    """Clients (everything outside of the system) from the targets; the brokers still see each other."""
    LINK = "link"
    """Exactly between two named hosts."""


class Direction(StrEnum):
    BOTH = "both"
    IN = "in"
    """Only what comes to the targets is dropped."""
    OUT = "out"
    """Only what the targets send is dropped."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Packets are dropped on both ends, so the cut holds when one end loses its rules in a power cut.

    Proved when on each way that is cut a packet was dropped. The probe sends one, so that the proof does not
    wait for hosts that have nothing to say to each other; how much else was dropped is told beside it.
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
        """(sender, receiver) pairs between which packets are dropped. Raises FaultError when there is none."""
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
        do: list[Step] = []
        undo: list[Step] = []
        probe: list[Step] = []
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
            knocked = [receiver.address for sender, receiver in pairs if sender == host]
            probe.append(Shell(host.host, _count_and_knock(scene.fault_id, knocked)))
        return Commands(tuple(do), tuple(undo), tuple(probe))

    def _cut_clients(self, scene: Scene) -> Commands:
        do: list[Step] = []
        undo: list[Step] = []
        probe: list[Step] = []
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
            listing = chains.list_counters(scene.fault_id)
            probe.append(Shell(target.host, listing))
            probe.append(Knock(target.host, target.address, target.port))
            probe.append(Shell(target.host, f"echo '{_AFTER_KNOCK}'; {listing}"))
        return Commands(tuple(do), tuple(undo), tuple(probe))

    def prove(self, scene: Scene, trail: Trail) -> Proof:
        # A host that lost its power meanwhile is judged by the probe it answered.
        answered = {done.step.host for done in _good(trail.final)}
        early = [done for done in _good(trail.active) if done.step.host not in answered]
        before, after = _dropped([*early, *_good(trail.final)])
        probed = {done.step.host for done in _good(trail.active)}
        wanted = self._directions(scene, probed)
        unmatched = sorted(wanted - {cut for cut, packets in after.items() if packets})
        traffic = sum(before.values()) - _knocks(trail)
        if unmatched or not wanted:
            missing = ", ".join(unmatched) or "any host"
            return Proof(False, f"no packet was dropped on the way {missing}")
        way = "way" if len(wanted) == 1 else "ways"
        if traffic <= 0:
            return Proof(
                True, f"probe packets were dropped on {len(wanted)} {way}; no other traffic met the cut"
            )
        busiest = ", ".join(f"{cut} {packets}" for cut, packets in before.most_common(6) if packets)
        return Proof(
            True, f"{traffic} packets dropped, and a probe on each of {len(wanted)} {way} ({busiest})"
        )

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
    """Lets pass what goes to or comes from the controllers of combined nodes: they share their hosts with brokers."""
    ports = sorted({end.controller_port for pair in pairs for end in pair if end.controller_port is not None})
    return [
        Rule(f"-p tcp --{side} {port}", "controllers", "RETURN")
        for port in ports
        for side in ("dport", "sport")
    ]


def _knocks(trail: Trail) -> int:
    """How many of the packets counted before the last probe were our own: those of the probe before."""
    again = {done.step.host for done in _good(trail.final)}
    before, after = _dropped([done for done in _good(trail.active) if done.step.host in again])
    return sum(after.values()) - sum(before.values())


def _to(target: Target) -> str:
    return f"{CLIENTS}>{target.host}"


def _from(target: Target) -> str:
    return f"{target.host}>{CLIENTS}"


def _good(probes: Sequence[Done]) -> list[Done]:
    """The listings that hosts gave. (A knock says nothing: what it did shows in the listing after it.)"""
    return [done for done in probes if isinstance(done.step, Shell) and not done.error and not done.skipped]


def _once(targets: Iterable[Target]) -> list[Target]:
    return list(dict.fromkeys(targets))


def _count_and_knock(fault_id: str, addresses: Sequence[str]) -> str:
    """Counters, then one UDP packet to the discard port of each address, then the counters again."""
    listing = chains.list_counters(fault_id)
    knocks = "".join(f"(echo wrack >/dev/udp/{address}/9) 2>/dev/null; " for address in addresses)
    return f"bash -c \"{listing}; {knocks}echo '{_AFTER_KNOCK}'; {listing}\""


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
