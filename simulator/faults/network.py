"""Faults of the network: cuts, messages that are kept back."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from wrackline.broker.model.types import NodeId
from wrackline.simulator.faults.driver import Begin, Begun, FaultDriver, host
from wrackline.simulator.faults.kinds import Fault, Kind
from wrackline.simulator.world.network import Hold, Matches, Message

Pairs = list[tuple[NodeId, NodeId]]


def _cuts(driver: FaultDriver, description: str, pairs: Pairs, *, one_way: bool = False) -> Begun:
    for a, b in pairs:
        driver.world.cut(a, b, one_way=one_way)

    def undo() -> None:
        for a, b in pairs:
            driver.world.mend(a, b, one_way=one_way)

    how = {"pairs": [[host(a), host(b)] for a, b in pairs], "one_way": one_way}
    return Begun(description, undo, tuple(dict.fromkeys(a for a, _ in pairs)), how=how)


def _isolate(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """Isolates a broker from every server; clients are reached still."""
    inside = [server.id for server in driver.machine(driver.target(fault, draw))]
    outside = [server.id for server in driver.world.servers() if server.id not in inside]
    return _cuts(driver, f"n{inside[0]}", [(a, b) for a in inside for b in outside])


def _cut(driver: FaultDriver, fault: Fault, draw: Random) -> Begun | None:
    """Cuts a broker from one other broker, or from all of them."""
    node = driver.target(fault, draw)
    others = list(fault.on[1:]) or [broker for broker in sorted(driver.world.brokers) if broker != node]
    if not others:
        return None
    chosen = others if fault.on or draw.random() < 0.4 else [draw.choice(others)]
    return _cuts(driver, " ".join(f"n{n}" for n in [node, *chosen]), [(node, other) for other in chosen])


def _cut_one_way(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver.target(fault, draw)
    if fault.on:
        return _cuts(driver, f"{fault.on[0]}->{fault.on[1]}", [(fault.on[0], fault.on[1])], one_way=True)
    other = draw.choice([server.id for server in driver.world.servers() if server.id != node])
    pair = (node, other) if draw.random() < 0.5 else (other, node)
    return _cuts(driver, f"{pair[0]}->{pair[1]}", [pair], one_way=True)


def _cut_controller(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    node = driver.target(fault, draw)
    return _cuts(driver, f"n{node}", [(node, controller) for controller in driver.world.controllers])


def _isolate_controller(driver: FaultDriver, _: Fault, draw: Random) -> Begun:
    """Isolates a controller from the other controllers, or from everybody."""
    node = _some_controller(driver, draw)
    others = [other for other in sorted(driver.world.controllers) if other != node]
    if not others or draw.random() < 0.5:
        others += sorted(driver.world.brokers)
    return _cuts(driver, f"c{node}", [(node, other) for other in others])


def _deafen_controller(driver: FaultDriver, _: Fault, draw: Random) -> Begun | None:
    """Drops what the other controllers send to a controller; what it sends arrives (KAFKA-15489)."""
    node = _some_controller(driver, draw)
    pairs = [(other, node) for other in sorted(driver.world.controllers) if other != node]
    return _cuts(driver, f"c{node} hears nobody", pairs, one_way=True) if pairs else None


def _some_controller(driver: FaultDriver, draw: Random) -> NodeId:
    active = driver.world.active_controller()
    return active.id if active is not None else draw.choice(sorted(driver.world.controllers))


# --- holding -----------------------------------------------------------------------------------------------


def _hold(driver: FaultDriver, matches: Matches, name: str, node: NodeId, *, sent: bool) -> Begun:
    """``sent``: messages of this name that the node sends, else those that it is sent."""
    label = f"{name} {'from' if sent else 'to'} n{node}"
    hold: Hold = driver.world.hold(matches, label)
    how = {"message": name, "sent": sent}
    return Begun(label, lambda: driver.world.release(hold), (node,), how=how)


def _hold_named(name: str, *, sent_by_target: bool) -> Begin:
    def begin(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
        node = driver.target(fault, draw)

        def matches(message: Message) -> bool:
            end = message.source if sent_by_target else message.destination
            return end == node and message.name == name

        return _hold(driver, matches, name, node, sent=sent_by_target)

    return begin


_MESSAGES = (
    "AlterPartition",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControlledShutdown",
    "Fetch",
    "FetchSnapshot",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "MetadataFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
)


def _hold_any(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """Keeps one kind of message back, or two of them; some are lost for good when they are let go."""
    servers = [server.id for server in driver.world.servers()]
    node = driver.target(fault, draw) if draw.random() < 0.7 else draw.choice(servers)
    names = {
        f"{name}{draw.choice(('Request', 'Response'))}" for name in draw.sample(_MESSAGES, draw.randint(1, 2))
    }
    sent, lost = draw.random() < 0.5, draw.random() < 0.3

    def matches(message: Message) -> bool:
        return (message.source if sent else message.destination) == node and message.name in names

    label = f"{' and '.join(sorted(names))} {'from' if sent else 'to'} n{node}"
    hold = driver.world.hold(matches, label, limit=draw.choice((None, 1, 3)))
    how = {"message": label, "sent": sent}
    return Begun(label, lambda: driver.world.release(hold, drop=lost), (node,), how=how)


def _lag(driver: FaultDriver, fault: Fault, draw: Random) -> Begun:
    """A follower's fetches do not arrive: the leader takes it out of the ISR, everything else works."""
    partition = driver.partition(fault)
    node = driver.target(fault, draw)
    followers = [] if partition is None else [n for n in partition.replicas if n != partition.leader]
    if followers and node not in followers:
        node = draw.choice(followers)

    def its_fetches(message: Message) -> bool:
        return message.source == node and message.name == "FetchRequest"

    return _hold(driver, its_fetches, "FetchRequest", node, sent=True)


NETWORK: Mapping[Kind, Begin] = {
    "isolate": _isolate,
    "cut": _cut,
    "cut-one-way": _cut_one_way,
    "cut-controller": _cut_controller,
    "lag": _lag,
    "hold-alter-request": _hold_named("AlterPartitionRequest", sent_by_target=True),
    "hold-alter-response": _hold_named("AlterPartitionResponse", sent_by_target=False),
    "hold-fetch-response": _hold_named("FetchResponse", sent_by_target=False),
    "hold-fetch-request": _hold_named("FetchRequest", sent_by_target=True),
    "hold-metadata": _hold_named("MetadataFetchResponse", sent_by_target=False),
    "hold-produce-response": _hold_named("ProduceResponse", sent_by_target=True),
    "hold-heartbeat": _hold_named("BrokerHeartbeatRequest", sent_by_target=True),
    "hold-any": _hold_any,
    "controller-isolate": _isolate_controller,
    "controller-deaf": _deafen_controller,
}
