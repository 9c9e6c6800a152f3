"""What a specification may ask of virtual time (fleet ``simulated``), and why not the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.scenarios import SCENES

if TYPE_CHECKING:
    from wrackline.harness.specification.sections import Sections
    from wrackline.history.faults import Happened

SYSTEM = "wrackline"
_ALL = frozenset(
    {
        "name",
        "duration_s",
        "rate",
        "acks",
        "idempotence",
        "mix.send",
        "senders",
        "record_bytes",
        "client.message_timeout_ms",
        "client.request_timeout_ms",
    }
)
WORKLOADS: Mapping[str, frozenset[str]] = {
    "log": _ALL | {"mix.poll", "mix.end", "pollers", "enders", "records_per_op"},
    "register": _ALL | {"mix.read", "readers", "read_by", "client.end_timeout_ms", "client.poll_ms"},
    "queue": _ALL | {"mix.dequeue", "dequeuers", "client.end_timeout_ms", "client.poll_ms"},
}
"""Workload -> the keys that mean something in virtual time."""
FAULTS = (
    "kill, pause, restart, power-cut, disk-full, disk-errors, elect-preferred, transfer-leadership, "
    "reassign, partition, and messages"
)


def refusals(spec: Sections) -> Iterator[str]:
    """Yields what virtual time has not: the key, why, what would do. Faults are refused by `cannot`."""
    if not spec.fleet.virtual:
        return
    if spec.system.kind != SYSTEM:
        yield (
            f"system.kind {spec.system.kind}: only the broker that comes with Wrackline has a core that runs "
            "in virtual time; take fleet.kind netns for others"
        )
        return
    guided = spec.nemesis.guided
    if guided is not None and guided.name not in SCENES:
        yield (
            f"nemesis.guided {guided.name}: this schedule is for hosts alone; take one that is a scene "
            "(docs/nemesis.md), or another fleet"
        )
    if spec.nemesis.follow is not None and guided is not None:
        yield "nemesis.follow: virtual time does not follow the state beside nemesis.guided: leave one out"
    if spec.topics:
        yield "topics: virtual time has one topic: give it as topic"
    keys = WORKLOADS.get(spec.workload.name)
    if keys is None:
        yield f"workload.name {spec.workload.name}: virtual time has {', '.join(WORKLOADS)}"
        return
    for key in sorted(_changed_keys(spec.workload) - keys):
        yield f"workload.{key}: virtual time has no such setting: leave it out"
    if racks := getattr(spec.system, "racks", None):
        yield f"system.racks: virtual time has no racks: leave out {', '.join(racks)}"
    if mutant := getattr(spec.system, "mutant", ""):
        yield f"system.mutant {mutant}: virtual time has `wrackline simulate mutants --mutant`; leave it out"
    for key in sorted(getattr(spec.system, "config", {})):
        if why := _refused_setting(key):
            yield f"system.config.{key}: {why}"


def cannot(fault: FaultSpec, hosts: tuple[str, ...]) -> str | None:
    """Returns why there is no such fault in virtual time; None when there is. ``hosts``: of the fleet."""
    from wrackline.simulator.faults.replayed import in_virtual_time, node_of

    everybody = [node for host in hosts if (node := node_of(host)) is not None]
    if list(in_virtual_time(as_happened(fault, hosts[:2]), everybody)):
        return None
    return (
        f"{fault.fault}: virtual time has no such fault as it is set here; there are {FAULTS} that are held"
    )


def as_happened(fault: FaultSpec, targets: tuple[str, ...]) -> Happened:
    """The fault, aimed at these hosts, as a record of it would say it."""
    from wrackline.history.faults import Happened  # imports Arrow

    how = {key: value for key, value in fault.model_dump(mode="json").items() if key not in _NOT_HOW}
    return Happened("f0", fault.fault, targets, 0.0, 0.0, how)


_NOT_HOW = ("fault", "target")


def _changed_keys(model: BaseModel) -> set[str]:
    """Returns the keys whose values are not those by default, as paths."""
    result: set[str] = set()
    for name, field in type(model).model_fields.items():
        value, usual = getattr(model, name), field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            result |= {f"{name}.{inner}" for inner in _changed_keys(value)}
        elif value != usual:
            result.add(name)
    return result


def check_campaign(swarm: str, corpus: str, defects: Sequence[str]) -> None:
    """Refuses a campaign that could not be made. Raises SpecError."""
    from wrackline.harness.specification.spec import SpecError
    from wrackline.simulator.campaigns.campaign import Plan
    from wrackline.simulator.campaigns.ledger import Ledger
    from wrackline.simulator.cli import parse_setup
    from wrackline.simulator.search.corpus import CorpusError

    try:
        Plan(swarm, 0.0, corpus, defects=tuple(defects)).setup(parse_setup, 0)
        Ledger(Path(corpus), parse_setup).check()
    except (CorpusError, ValueError) as error:
        raise SpecError(f"simulate: {error}") from error


def _refused_setting(key: str) -> str | None:
    from wrackline.simulator.world.nodes import knows_setting

    return None if knows_setting(key) else "virtual time has no such setting: leave it out"
