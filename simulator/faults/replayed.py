"""Faults of a run on real hosts, in virtual time: the same kinds at the same times on the same nodes, as far
as the world has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wrackline.broker.model.types import NodeId
from wrackline.history.faults import Happened, happened
from wrackline.history.store.files import read_info
from wrackline.history.store.folder import HistoryError
from wrackline.simulator.faults.kinds import Fault, Kind
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.world.world import FIRST_CONTROLLER

_SAME: Mapping[str, Kind] = {
    "kill": "kill",
    "pause": "pause",
    "restart": "clean",
    "power-cut": "power",
    "disk-full": "disk-full",
    "disk-errors": "disk-error",
    "elect-preferred": "elect",
    "transfer-leadership": "move-leader",
    "reassign": "reassign",
}
_DISKS: Mapping[str, Kind] = {"wiped": "wipe", "stale": "restore"}
_MESSAGES: Mapping[tuple[str, str], Kind] = {
    ("Fetch", "request"): "hold-fetch-request",
    ("Fetch", "answer"): "hold-fetch-response",
    ("AlterPartition", "request"): "hold-alter-request",
    ("AlterPartition", "answer"): "hold-alter-response",
    ("BrokerHeartbeat", "request"): "hold-heartbeat",
}
_ALONE: Mapping[str, Kind] = {
    "power": "power",
    "controller-power": "power",
    "controller-kill": "kill",
    "controller-pause": "pause",
    "clean": "clean",
    "wipe": "wipe",
    "restore": "restore",
    "disk-error": "disk-error",
}
"""The simulator's own kinds that say all with their node."""
_HOST = re.compile(r"([nc])(\d+)")


def node_of(host: str) -> NodeId | None:
    """The node that a host of this name has; None for another name."""
    match = _HOST.fullmatch(host)
    if match is None:
        return None
    return NodeId(int(match[2]) if match[1] == "n" else FIRST_CONTROLLER + int(match[2]) - 1)


def as_recorded(setup: Setup, run_dir: Path) -> tuple[Setup, list[str]]:
    """The same with the faults of a recorded run and what was promised there, and a line for each fault that
    was left out. Raises HistoryError."""
    info, faults = read_info(run_dir), happened(run_dir)
    hosts = [node for name in info.nodes.values() if (node := node_of(name)) is not None]
    brokers = [node for node in hosts if node < FIRST_CONTROLLER]
    # Controllers beside brokers have no hosts of their own: then it is the caller who knows how many.
    controllers = len(hosts) - len(brokers) or setup.controllers
    if not brokers or not info.topics:
        raise HistoryError(f"{run_dir}: nobody knows its brokers and its topic, so it cannot be replayed")
    given, left_out = replayed(faults, len(brokers), controllers)
    topic = info.topics[0]
    ends_s = max((one.at_ms + one.for_ms for one in given), default=0.0) / 1000
    same = replace(
        setup,
        replay=str(run_dir),
        given=given,
        seconds=max(setup.seconds, round(ends_s + 2.0, 1)),
        brokers=len(brokers),
        controllers=controllers,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        min_isr=topic.min_insync_replicas,
        acks=-1 if info.acks == "all" else int(info.acks),
        idempotent=info.idempotence,
        profile=info.profile or setup.profile,
        defects=info.defects or setup.defects,
    )
    return same, left_out


def replayed(
    faults: Sequence[Happened], brokers: int, controllers: int
) -> tuple[tuple[Fault, ...], list[str]]:
    """The faults, and a line for each that was left out."""
    everybody = [NodeId(number) for number in range(1, brokers + 1)]
    everybody += [NodeId(FIRST_CONTROLLER + number) for number in range(controllers)]
    result: list[Fault] = []
    left_out: list[str] = []
    for one in faults:
        made = list(in_virtual_time(one, everybody))
        if not made:
            left_out.append(f"{one.id} {one.fault} at {one.at_s:g} s: there is no such fault in virtual time")
        for kind, on in made:
            result.append(
                Fault(len(result), kind, one.at_s * 1000, one.duration_s * 1000, "any", 0, len(result), on=on)
            )
    return tuple(result), left_out


def in_virtual_time(one: Happened, everybody: Sequence[NodeId]) -> Iterator[tuple[Kind, tuple[NodeId, ...]]]:
    """Yields (kind, the nodes it acts on) of the same fault in the world: several, where it has several
    targets, and none where the world has no such fault."""
    targets = [node for host in one.targets if (node := node_of(host)) in everybody]
    how: Mapping[str, Any] = one.how
    if "pairs" in how:  # it was in virtual time already
        for ends in how["pairs"]:
            pair = tuple(node for host in ends if (node := node_of(host)) is not None and node in everybody)
            if len(pair) == 2:
                yield "cut-one-way" if how.get("one_way") else "cut", pair
    elif one.fault == "partition":
        yield from _cuts(targets, how, everybody)
    elif one.fault == "power-cut" and how.get("disk") in _DISKS:
        yield from ((_DISKS[how["disk"]], (node,)) for node in targets if node is not None)
    elif one.fault == "messages":
        yield from _held(targets, how)
    elif one.fault in _ALONE and not how:
        yield from ((_ALONE[one.fault], (node,)) for node in targets if node is not None)
    elif one.fault in _SAME:
        yield from ((_SAME[one.fault], (node,)) for node in targets if node is not None)


def _held(
    targets: Sequence[NodeId | None], how: Mapping[str, Any]
) -> Iterator[tuple[Kind, tuple[NodeId, ...]]]:
    """Messages that are held until the fault ends, of one kind and of one who asks."""
    apis, peers = how.get("apis", ()), how.get("peers", ())
    if how.get("do") != "hold" or how.get("delay_s") or how.get("times") or len(apis) != 1 or len(peers) != 1:
        return
    if (apis[0], how.get("what"), peers[0]) == ("Produce", "answer", "client"):
        yield from (("hold-produce-response", (node,)) for node in targets if node is not None)
    kind, about = _MESSAGES.get((apis[0], how.get("what", ""))), node_of(peers[0])
    if kind is not None and about is not None:
        yield kind, (about,)


def _cuts(
    targets: Sequence[NodeId | None], how: Mapping[str, Any], everybody: Sequence[NodeId]
) -> Iterator[tuple[Kind, tuple[NodeId, ...]]]:
    inside = [node for node in targets if node is not None]
    outside = [node for node in everybody if node not in inside]
    match "clients" if how.get("at_clients") else how.get("shape"):  # the world's clients reach everybody
        case "link" if len(inside) == 2:
            inside, outside = inside[:1], inside[1:]
        case "isolate" | "halves":
            if how.get("controllers") is False:
                outside = [node for node in outside if node < FIRST_CONTROLLER]
        case _:
            return
    for node in inside:
        match how.get("direction"):
            case "in":
                yield from (("cut-one-way", (other, node)) for other in outside)
            case "out":
                yield from (("cut-one-way", (node, other)) for other in outside)
            case _ if outside:
                yield "cut", (node, *outside)
