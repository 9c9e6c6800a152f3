"""A fault of single connections: those that clients have now go silent, new ones pass.

The fault holds back all requests, or some kinds only. With all of them the records of a transactional
producer are held back beside what it asks of its coordinator, which librdkafka does on another connection.

The kernel of the client's host keeps what was sent on such a connection, and goes on sending it again after
the client has given it up and closed it. So a request that was thought lost arrives when the fault ends,
behind requests that the client has sent since on another connection: reordering that TCP itself cannot show
on one connection, and that protocols with retries must stand (KAFKA-17754).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.partition_proof import CLIENTS
from wrackline.nemesis.faults.network.tcp_probe import probe_results
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, FaultContext, ProbeLog, Proof, Shell, Target, TcpProbe
from wrackline.plugins.fields import Lax

_BEHIND_TCP = "0>>22&0x3C@12>>26&0x3C@"
"""iptables u32: over the headers of IP and TCP, whatever options they have."""
NEW_CONNECTION_S = 1.0
"""How long a new connection may take: it must pass while the others are silent."""


@dataclass(frozen=True, slots=True)
class StallConnections:
    """A stall of the connections that clients have to the targets' brokers when the fault begins: what
    clients send on them is dropped. What brokers send to them arrives, and so does everything on connections
    that are made later.

    With ``requests`` a connection is silent from the first packet on that begins with one of these (the
    kernel sends it again and again, and keeps back what follows it), and untouched until then.

    Proved when packets of such a connection were dropped, the rules are the first that packets meet, and new
    connections were answered at the beginning and at the end.
    """

    name: ClassVar[str] = "stall-connections"
    holds_node: ClassVar[bool] = False

    requests: tuple[Api, ...] = ()
    """Empty: whatever is sent."""

    def commands(self, context: FaultContext) -> Commands:
        do: list[Step] = []
        undo: list[Step] = []
        probe: list[Step] = []
        for target in context.targets:
            do.append(Shell(target.host, _stall(context, target, self._matches())))
            undo.append(Shell(target.host, iptables.remove(context.fault_id)))
            probe.append(Shell(target.host, iptables.look(context.fault_id)))
            probe.append(TcpProbe(target.host, target.address, target.port, NEW_CONNECTION_S))
        return Commands(tuple(do), tuple(undo), tuple(probe))

    def _matches(self) -> tuple[str, ...]:
        """Returns the matches of iptables, one for each rule of a connection."""
        keys = [request.key for request in self.requests]
        return tuple(f"-m u32 --u32 {_BEHIND_TCP}4>>16={key} " for key in keys) or ("",)

    def prove(self, context: FaultContext, probe_log: ProbeLog) -> Proof:
        if errors := probe_log.errors():
            return Proof(False, "; ".join(errors))
        for when, probe in probe_log.ends:
            for probed in probe_results(probe, CLIENTS):
                if not probed.answered:
                    return Proof(False, f"a new connection {probed.way} was not answered {when}")
            for done in probe:
                if isinstance(done.step, Shell) and (
                    error := iptables.obstacle(done.output, context.fault_id)
                ):
                    return Proof(False, f"{done.step.host} {when}: {error}")
        looked = probe_log.final or probe_log.active
        listings = [done.output for done in looked if isinstance(done.step, Shell)]
        rules = [rule for listing in listings for rule in iptables.parse_counters(listing)]
        connections = {rule.comment for rule in rules}
        silent = {rule.comment for rule in rules if rule.packets}
        what = f"packets with {' or '.join(self.requests)}" if self.requests else "packets"
        if not silent:
            return Proof(
                False,
                f"none of the {what} on the {len(connections)} connections that clients had was dropped",
            )
        dropped = sum(rule.packets for rule in rules)
        return Proof(
            True,
            f"{dropped} {what} dropped on {len(silent)} of {len(connections)} connections that clients had; "
            "new connections were answered",
        )


def _stall(context: FaultContext, target: Target, matches: tuple[str, ...]) -> str:
    """Lists the clients' connections of this moment and drops what comes in on them: all of it, or what one
    of the ``matches`` of iptables picks. Fails without any connection.

    A JVM listens on a socket of IPv6, so ss shows its clients as ``[::ffff:198.18.0.1]:40000``.
    """
    name = iptables.chain(context.fault_id)
    ours = " ".join(f"-e '^{host.address}:'" for host in context.hosts)
    rules = "; ".join(
        f'print "-A {name} -s " $1 "/32 -p tcp --sport " $2 " --dport {target.port} {match}-m comment '
        f'--comment \\"" $1 ":" $2 ">{target.host}\\" -j DROP"'
        for match in matches
    )
    return (
        f"peers=$(ss -Htn state established 'sport = :{target.port}' | awk '{{print $4}}' | "
        f"sed 's/^\\[::ffff:\\([0-9.]*\\)\\]/\\1/' | grep -v {ours}); "
        f"[ -n \"$peers\" ] || {{ echo 'no client has a connection to port {target.port}' >&2; exit 1; }}; "
        f"{{ echo '*filter'; echo ':{name} - [0:0]'; "
        f"echo \"$peers\" | awk -F: '{{{rules}}}'; "
        f"echo '-I INPUT 1 -j {name}'; echo '-I OUTPUT 1 -j {name}'; echo COMMIT; }} | "
        'iptables-restore --noflush --wait 5 && echo "$peers"'
    )


class StallConnectionsSpec(FaultSpec):
    """Settings of the fault ``stall-connections``."""

    makes = StallConnections
    needs = (Ability.NETWORK,)

    fault: Literal["stall-connections"]
    """What clients send on the connections they have now is dropped; new connections pass."""
    requests: Annotated[tuple[Annotated[Api, Lax], ...], Lax] = ()
    """A connection goes silent with the first request of one of these kinds. Empty: at once, whatever is
    sent."""
