"""Faults of single messages of Kafka: chosen requests, or answers, are held, dropped, repeated, or take their
connection with them. What the simulator does to messages, done to real brokers by a proxy on their host."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from wrackline.fleets.abilities import Ability
from wrackline.fleets.spec import FleetSpec
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.iptables import ARRIVING, FILTER, Rule
from wrackline.nemesis.faults.network.partition_proof import good, rebooted, still_silent, unseen
from wrackline.nemesis.faults.outputs import commands_on
from wrackline.nemesis.faults.shapes import is_controller, ports_of
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
    TcpProbe,
)
from wrackline.plugins.fields import Lax, Seconds
from wrackline.systems.spec import SystemSpec

NAME = "messages"
"""Of the program, and of its folder."""
OWN = "127.0.0.87"
"""The address from which the proxy connects to its node: by it its connections are told from others."""
EVERYBODY = "everybody"
PROBE_WAIT_S = 1.0
START_S = 45
"""An emulated host under load took 16 s until the proxy was ready; others take a fifth of a second."""
_PROGRAM = Path(__file__).with_name("message_program.py")
_HOST = re.compile(r"[a-z][a-z0-9-]*\d+")


class What(StrEnum):
    """The half of an exchange: request or response."""

    REQUEST = "request"
    ANSWER = "answer"


class Act(StrEnum):
    """The action on a message that matches."""

    HOLD = "hold"
    """It is kept back, and with it what comes behind it on its connection, until the fault ends or for a
    time."""
    DROP = "drop"
    """A request does not reach the node, an answer not its client; nor does any later answer on the
    connection, for they come in order."""
    REPEAT = "repeat"
    """A request arrives a second time, on another connection."""
    CLOSE = "close"
    """The connection ends in its place: before the node has the request, or the client the answer."""


class Kind(StrEnum):
    """The kind of the peer that asks."""

    BROKER = "broker"
    CONTROLLER = "controller"
    CLIENT = "client"
    """Everybody outside of the system."""


@dataclass(frozen=True, slots=True)
class Messages:
    """A proxy on each target's host gets all connections that the peers make to the node there. They lose
    those they have when the fault begins, and when it ends, and make new ones.

    Proved when the proxy ran and its rules were the first from beginning to end, so that no connection could
    go past it, and when it did what was asked for at least once.
    """

    name: ClassVar[str] = "messages"
    holds_node: ClassVar[bool] = False

    apis: tuple[Api, ...]
    what: What = What.REQUEST
    act: Act = Act.HOLD
    peers: tuple[str, ...] = ()
    """Kinds, or hosts by name; empty: everybody."""
    delay_s: float = 0.0
    """Held for so long, or repeated after so long; 0: held until the fault ends, repeated at once."""
    times: int = 0
    """So many messages at most on each target; 0: all."""
    share: float = 1.0

    def commands(self, context: FaultContext) -> Commands:
        do: list[Shell] = []
        undo: list[Step] = []
        probe: list[Step] = []
        control: list[Step] = []
        for target in context.targets:
            do.append(Shell(target.host, self._put_on(context, target), timeout_s=2 * START_S))
            undo.append(Shell(target.host, take_off(context.fault_id), timeout_s=START_S))
            probe.append(Shell(target.host, _look(context.fault_id)))
            control.append(TcpProbe(target.host, target.address, target.port, PROBE_WAIT_S))
        return Commands(tuple(do), tuple(undo), tuple(probe), tuple(control), lasting=tuple(do))

    def _sources(self, context: FaultContext, target: Target) -> list[str]:
        """Returns what iptables matches of those whose connections go to the proxy."""
        if not self.peers:
            return [""]
        sources = [f"-s {one.address}/32 " for one in context.hosts if self._asks(one)]
        if not sources and Kind.CLIENT not in self.peers:
            raise FaultError(f"messages: none of {', '.join(self.peers)} could ask {target.host}")
        return sources

    def _rules(self, context: FaultContext, target: Target) -> tuple[list[Rule], list[Rule]]:
        """Returns the rules for who is sent to the proxy, and for who is turned away that does not go there:
        connections from before.

        What a host sends to itself goes to the proxy too, and what the proxy sends does not."""
        to_proxy = [Rule(f"-s {OWN}/32", "the proxy", "RETURN")]
        guard = [Rule(f"-s {OWN}/32", "the proxy", "RETURN")]
        sources = self._sources(context, target)
        for port in ports_of(target):
            where = f"-d {target.address}/32 -p tcp --dport {port}"
            reset = "REJECT --reject-with tcp-reset"
            redirect = f"REDIRECT --to-ports {proxy_port(context.fault_id, port)}"
            to_proxy += [Rule(f"{one}{where}", f"{port}", redirect) for one in sources]
            guard += [Rule(f"{one}{where}", f"past {port}", reset) for one in sources]
        if Kind.CLIENT in self.peers:
            inside = [Rule(f"-s {one.address}/32", "inside", "RETURN") for one in context.hosts]
            where = f"-d {target.address}/32 -p tcp --dport {target.port}"
            redirect = f"REDIRECT --to-ports {proxy_port(context.fault_id, target.port)}"
            to_proxy += [*inside, Rule(where, f"{target.port}", redirect)]
            guard += [*inside, Rule(where, f"past {target.port}", "REJECT --reject-with tcp-reset")]
        return to_proxy, guard

    def _put_on(self, context: FaultContext, target: Target) -> str:
        to_proxy, guard = self._rules(context, target)
        settings = self._settings(context, target)
        run = f"exec {programs.python_command(target.python, _PROGRAM, settings)}"
        start = programs.start(context.fault_id, NAME, run, ready="^ready", wait_s=START_S)
        words = self._asking(context)
        mine = " ".join(f"-e {word}" for word in (EVERYBODY, *words))
        met = "true" if EVERYBODY in words else f'grep -qxF {mine} "$other/peers"'
        here = programs.folder(context.fault_id, NAME)
        others = f"ls -d {programs.FOLDER}/*/{NAME} 2>/dev/null | grep -v -e /{context.fault_id}/"
        return "\n".join(
            (
                f"for other in $({others}); do",
                f"  if {met}; then",
                '    echo "$other: another fault has messages of the same peers here" >&2',
                "    exit 1",
                "  fi",
                "done",
                f"mkdir -p {here} && printf '%s\\n' {' '.join(words)} >{here}/peers",
                f"{{ {start}; }} || exit 1",
                iptables.install(context.fault_id, to_proxy, ARRIVING),
                "[ $? -eq 0 ] || exit 1",
                iptables.install(context.fault_id, guard),
                "[ $? -eq 0 ] || exit 1",
                # Where the kernel cannot (INET_DIAG_DESTROY) the guard resets each with its next packet.
                f"ss -Ktn {self._connections(context, target)} >/dev/null 2>&1; true",
            )
        )

    def _asking(self, context: FaultContext) -> list[str]:
        """Returns whose messages the proxy has: addresses, and a word for clients, or for everybody."""
        if not self.peers:
            return [EVERYBODY]
        clients = [str(Kind.CLIENT)] if Kind.CLIENT in self.peers else []
        return [*clients, *(one.address for one in context.hosts if self._asks(one))]

    def _settings(self, context: FaultContext, target: Target) -> str:
        return json.dumps(
            {
                "address": target.address,
                "own": OWN,
                "ports": {str(port): proxy_port(context.fault_id, port) for port in ports_of(target)},
                "apis": {str(api.key): str(api) for api in self.apis},
                "what": str(self.what),
                "act": str(self.act),
                "delay_s": self.delay_s,
                "times": self.times,
                "share": self.share,
                "seed": f"{context.fault_id} {target.host}",
                "peers": {one.address: one.host for one in context.hosts},
            }
        )

    def _connections(self, context: FaultContext, target: Target) -> str:
        """A filter of ss: those that the peers have to the node, and not through the proxy."""
        ports = " or ".join(f"sport = :{port}" for port in ports_of(target))
        meant = [one.address for one in context.hosts if not self.peers or self._asks(one)]
        if self.peers and Kind.CLIENT not in self.peers:
            return f"'( {ports} ) and ( {' or '.join(f'dst {one}' for one in meant)} )'"
        spared = [OWN, *(one.address for one in context.hosts if one.address not in meant)]
        return f"'( {ports} ) and {' and '.join(f'not dst {one}' for one in spared)}'"

    def _asks(self, host: Target) -> bool:
        return host.host in self.peers or bool(_kinds(host) & set(self.peers))

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if flaw := unseen(probe_log) or self._gone(context, probe_log):
            return Proof(False, flaw)
        texts, did = [], 0
        for target in context.targets:
            counts = _counted(commands_on(target, (*probe_log.active, *probe_log.final, *probe_log.undo)))
            did += counts.get("did", 0)
            texts.append(f"{target.host}: {self._text(counts)}")
        return Proof(did > 0, "; ".join([*texts, *filter(None, [still_silent(probe_log)])]))

    def residue(self, context: FaultContext, probe_log: ProbeLog) -> str:  # noqa: ARG002
        return still_silent(probe_log)

    def _gone(self, context: FaultContext, probe_log: ProbeLog) -> str | None:
        """Returns which rule was missing at the beginning or at the end, or what went past the proxy. A host
        that lost its power between the two may be looked at before it has all again."""
        back = rebooted(probe_log)
        for when, probe in probe_log.ends:
            for target in context.targets:
                for done in commands_on(target, good(probe)):
                    if target.host in back and iptables.chain(context.fault_id) not in done.output:
                        continue
                    where = f"{target.host} {when}"
                    if "\n-- running" not in done.output:
                        return f"{where}: the proxy has ended"
                    arriving, _, guard = done.output.partition("-- guard")
                    for said, place in ((arriving, ARRIVING), (guard, FILTER)):
                        if error := iptables.obstacle(said, context.fault_id, place):
                            return f"{where}: {error}"
        return None

    def _text(self, counts: dict[str, Any]) -> str:
        names = " or ".join(self.apis)
        kind = f"{names} {self.what}s"
        passed, connections = counts.get("passed", 0), counts.get("connections", 0)
        through = f"{passed} other messages passed on {connections} connections"
        if not counts.get("did"):
            return f"none of the {kind} was {_DONE[self.act]}: {counts.get('such', 0)} came by; {through}"
        text = f"{counts['did']} of {counts['such']} {kind} {_DONE[self.act]}"
        if self.act is Act.HOLD:
            text += f" for up to {counts['longest_s']:.1f} s, {counts['delivered']} of them delivered then"
        if self.act is Act.REPEAT:
            text += f", {counts['delivered']} of them delivered"
        return f"{text} (first {counts['acts'][0]}); {through}"


_DONE = {
    Act.HOLD: "held",
    Act.DROP: "dropped",
    Act.REPEAT: "repeated",
    Act.CLOSE: "met by a closed connection",
}


def share_peers(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tells whether two faults of messages, by their ``peers``, could be of the same connections: a host has
    one of these at a time."""
    if not one or not other:
        return True
    clients = {str(Kind.CLIENT)}
    kinds = {str(Kind.BROKER), str(Kind.CONTROLLER)}
    ours, theirs = set(one) - clients, set(other) - clients
    if set(one) & set(other):
        return True
    return bool(ours and theirs and (ours | theirs) & kinds)


def _kinds(host: Target) -> set[str]:
    kinds = {str(Kind.BROKER)} if host.is_broker else set()
    return kinds | ({str(Kind.CONTROLLER)} if is_controller(host) else set())


def proxy_port(fault_id: str, port: int) -> int:
    """Below the ports that kernels give to those who ask for any."""
    return 20000 + zlib.crc32(f"{fault_id} {port}".encode()) % 10000


def _look(fault_id: str) -> str:
    return (
        f"{iptables.look(fault_id, ARRIVING)}; echo '-- guard'; {iptables.look(fault_id)}; "
        f"echo; {programs.log(fault_id, NAME)}"
    )


def take_off(fault_id: str) -> str:
    """Idempotent. Prints what the program counted.

    New connections go to the node first; the proxy lets go what it holds; its rules are gone last, since with
    the last rule that rewrites addresses the kernel stops to rewrite those of connections that are there."""
    return (
        f"{iptables.bypass(fault_id, ARRIVING)}; {iptables.remove(fault_id)} || exit 1; "
        f"{programs.end(fault_id, NAME)}; {iptables.remove(fault_id, ARRIVING)}"
    )


def _counted(dones: Sequence[StepResult]) -> dict[str, Any]:
    """The last counts of the program that saw most; none when it said nothing."""
    lines = [
        json.loads(line.removeprefix("counts "))
        for done in dones
        for line in done.output.splitlines()
        if line.startswith("counts {")
    ]
    best: dict[str, Any] = {}
    for line in lines:
        if not best or (line["did"], line["passed"]) >= (best["did"], best["passed"]):
            best = line
    return best


class MessagesSpec(FaultSpec):
    """Settings of the fault ``messages``."""

    needs = (Ability.ROOT, Ability.NETWORK)
    example: ClassVar[Mapping[str, Any]] = {"apis": ["Fetch"], "what": "answer", "peers": ["broker"]}

    fault: Literal["messages"]
    """Chosen requests or answers of Kafka's are held, dropped or repeated, or close their connection."""
    apis: Annotated[tuple[Annotated[Api, Lax], ...], Field(min_length=1, strict=False)]
    """Kafka's names of the requests that are meant, or whose answers are."""
    what: Annotated[What, Lax] = What.REQUEST
    """Requests, or the answers to them."""
    do: Annotated[Act, Lax] = Act.HOLD
    """What is done to them."""
    peers: Annotated[tuple[str, ...], Lax] = ()
    """Only of these who ask: broker, controller, client, or hosts by name. Empty: of everybody."""
    delay_s: Seconds = 0.0
    """Held for so long, or repeated after so long. 0: held until the fault ends, or repeated at once."""
    times: Annotated[int, Field(ge=0)] = 0
    """So many messages at most, on each target. 0: all."""
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Of these messages, the share that is meant, by chance."""

    @field_validator("peers")
    @classmethod
    def _known_peers(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for one in given:
            if one not in list(Kind) and not _HOST.fullmatch(one):
                raise ValueError(f"{one!r} is nobody who asks: use {', '.join(Kind)}, or hosts by name (n1)")
        return given

    @model_validator(mode="after")
    def _fits_together(self) -> MessagesSpec:
        if self.do is Act.REPEAT and self.what is What.ANSWER:
            raise ValueError("an answer is not repeated: clients take one for each request")
        if self.delay_s and self.do not in (Act.HOLD, Act.REPEAT):
            raise ValueError(f"delay_s goes with hold and repeat, not with {self.do}")
        return self

    def refusal(self, fleet: FleetSpec, system: SystemSpec) -> str | None:
        named = [one for one in self.peers if one not in list(Kind)]
        if strangers := [one for one in named if fleet.hosts and one not in fleet.hosts]:
            return f"messages: there is no host {strangers[0]}; there are {', '.join(fleet.hosts)}"
        return super().refusal(fleet, system)

    def build(self) -> Messages:
        return Messages(self.apis, self.what, self.do, self.peers, self.delay_s, self.times, self.share)
