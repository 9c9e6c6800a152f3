"""Faults that happened in one run, as a schedule for another: of the simulator's on real hosts, or of one
fleet's on another. What does not exist there is left out, and said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wrackline.history.faults import Happened
from wrackline.nemesis.faults.network.messages import share_peers
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.spec import FAULTS

UNDONE_S = 2.0
"""A fault of messages may take so long to end."""
SHORTEST_S = 0.2
"""A fault on real hosts lasts so long at least: it takes about as long to begin one."""

_SAME: Mapping[str, dict[str, Any]] = {
    "kill": {"fault": "kill"},
    "kill-midway": {"fault": "kill"},
    "controller-kill": {"fault": "kill"},
    "power": {"fault": "power-cut"},
    "power-midway": {"fault": "power-cut"},
    "controller-power": {"fault": "power-cut"},
    "clean": {"fault": "restart"},
    "pause": {"fault": "pause"},
    "controller-pause": {"fault": "pause"},
    "elect": {"fault": "elect-preferred"},
    "disk-full": {"fault": "disk-full"},
    "disk-error": {"fault": "disk-errors"},
    "wipe": {"fault": "power-cut", "disk": "wiped"},
    "restore": {"fault": "power-cut", "disk": "stale"},
}
"""The simulator's kinds of faults that are a fault here with the same targets."""


_MESSAGES: Mapping[str, tuple[str, str, bool]] = {
    "FetchRequest": ("Fetch", "request", False),
    "FetchResponse": ("Fetch", "answer", False),
    "MetadataFetchResponse": ("Fetch", "answer", True),
    "AlterPartitionRequest": ("AlterPartition", "request", True),
    "AlterPartitionResponse": ("AlterPartition", "answer", True),
    "BrokerHeartbeatRequest": ("BrokerHeartbeat", "request", True),
}
"""What the simulator held back: Kafka's name of the request, which half of it, and whether a controller is
asked. Who asked is the node that it was about."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The stage where the faults shall happen."""

    brokers: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    """Hosts by name."""


def carried_over(
    faults: Sequence[Happened], stage: Stage, stretch: float = 1.0
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of ``nemesis.schedule``, and a line for each fault that was left out. ``stretch``: times are
    multiplied by it, for hosts that are slower."""
    schedule: list[dict[str, Any]] = []
    left_out: list[str] = []
    models = FAULTS.models()
    for one in faults:
        made = [given for given in _here(one, stage, models) if given["fault"] in models]
        if not made:
            left_out.append(f"{one.id} {one.fault} at {one.at_s:g} s: there is no such fault on real hosts")
        for given in made:
            lasts_s = round(max(SHORTEST_S, one.duration_s * stretch), 3)
            timed = {"at_s": round(one.at_s * stretch, 3), "duration_s": lasts_s, **given}
            if given["fault"] == "messages" and any(_meet(timed, other) for other in schedule):
                left_out.append(
                    f"{one.id} {one.fault} at {one.at_s:g} s: a host has one fault of messages at a time "
                    "for each who asks"
                )
            else:
                schedule.append(timed)
    return schedule, left_out


def _meet(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tells whether two faults of messages are on one host at one time, or so close that the first is not
    over, and of the same peers."""
    if other["fault"] != "messages" or not set(one["target"].split(",")) & set(other["target"].split(",")):
        return False
    if not share_peers(one["peers"], other["peers"]):
        return False
    over_s: float = other["at_s"] + other["duration_s"] + UNDONE_S
    return bool(one["at_s"] < over_s)


def _here(one: Happened, stage: Stage, models: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the fault as it is done on real hosts: several faults, where one cut several pairs."""
    how = one.how
    clients = "clients of " if how.get("at_clients") else ""
    target = {"target": clients + ",".join(one.targets)} if one.targets else {}
    if "pairs" in how:
        for first, second in how["pairs"]:
            direction = {"direction": "out"} if how.get("one_way") else {}
            yield {"fault": "partition", "shape": "link", "target": f"{first},{second}", **direction}
    elif "message" in how:
        yield from _message(one, stage)
    elif "rate" in how and one.fault == "skew":
        yield {"fault": "clock-drift", "percent": round(100 * (how["rate"] - 1), 1), **target}
    elif "min_isr" in how:
        yield {"fault": "change-config", "configs": {"min.insync.replicas": how["min_isr"]}}
    elif "leader_was" in how:
        yield {"fault": "transfer-leadership", "target": how["leader_was"]}
    elif one.fault in _SAME:
        yield _SAME[one.fault] | (target if one.fault != "elect" else {})
    elif one.targets and (model := models.get(one.fault)) is not None and issubclass(model, FaultSpec):
        fields = model.model_fields.keys()
        settings = {key: value for key, value in how.items() if key in fields and value is not None}
        yield {"fault": one.fault, **target, **_written(one.fault, settings, how)}


def _written(fault: str, settings: Mapping[str, Any], how: Mapping[str, Any]) -> dict[str, Any]:
    """A fault's own fields as its specification writes them, where the two differ."""
    if fault == "change-config":
        return {"entity": how["entity"], "configs": dict(how["values"])}
    return {**how.get("shaping", {}), **settings}


def _message(one: Happened, stage: Stage) -> Iterator[dict[str, Any]]:
    """Requests or answers of one kind, kept back where the node is that is asked."""
    [about] = one.targets
    if one.how["message"] == "ProduceResponse":
        yield _held("Produce", "answer", [about], ["client"])
    elif (known := _MESSAGES.get(one.how["message"])) is not None:
        api, what, of_controller = known
        asked = [host for host in (stage.controllers if of_controller else stage.brokers) if host != about]
        if asked:
            yield _held(api, what, asked, [about])


def _held(api: str, what: str, asked: Sequence[str], peers: Sequence[str]) -> dict[str, Any]:
    return {
        "fault": "messages",
        "target": ",".join(asked),
        "apis": [api],
        "what": what,
        "do": "hold",
        "peers": list(peers),
    }
