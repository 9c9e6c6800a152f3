"""A specification that does again what was done in another run: on other hosts, or on real ones what the
simulator found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from wrackline.fleets.simulated.spec import SimulatedSpec
from wrackline.harness.specification.spec import SpecError
from wrackline.harness.specification.virtual_time import cannot
from wrackline.history.faults import happened
from wrackline.history.model import RunInfo
from wrackline.history.store.files import read_info
from wrackline.history.store.folder import HistoryError
from wrackline.nemesis.replay import Stage, carried_over
from wrackline.nemesis.spec import FAULT

TAIL_S = 5.0
"""How long the main phase goes on after the last fault."""
SHORTEST_S = 10.0


@dataclass(frozen=True, slots=True)
class Replay:
    """``text``: the specification in YAML. ``left_out``: a line for each fault that could not be taken
    over."""

    text: str
    faults: int
    left_out: tuple[str, ...]


def replay_of(run_dir: Path, *, fleet: str | None = None, stretch: float = 1.0) -> Replay:
    """``fleet``: the kind of hosts; None: those of the run, or the usual ones. ``stretch``: times are
    multiplied by it. Raises SpecError for what is no run, or one without faults."""
    try:
        info, faults = read_info(run_dir), happened(run_dir)
    except HistoryError as error:
        raise SpecError(str(error)) from error
    if not faults:
        raise SpecError(f"{run_dir}: no fault was in force in this run, so there is nothing to do again")
    spec = _of_a_run(run_dir) or _of_a_simulation(run_dir, info)
    stage = _stage(spec.get("fleet", {}))
    schedule, left_out = carried_over(faults, stage, stretch)
    if fleet is not None:
        hosts = {key: value for key, value in spec.get("fleet", {}).items() if key in _HOSTS}
        spec["fleet"] = {"kind": fleet, **hosts}
    if spec.get("fleet", {}).get("kind") == SimulatedSpec.model_fields["kind"].default:
        schedule, more = _in_virtual_time(schedule, (*stage.brokers, *stage.controllers))
        left_out += more
    ends_s = max((one["at_s"] + one["duration_s"] for one in schedule), default=0.0)
    lasts_s = max(SHORTEST_S, round(ends_s + TAIL_S, 1))
    spec["workload"] = {**spec.get("workload", {}), "duration_s": lasts_s}
    spec["nemesis"] = {"schedule": schedule}
    head = f"# The faults of {info.name!r}, done again. A target is the host that it was there.\n"
    return Replay(head + yaml.safe_dump(spec, sort_keys=False), len(schedule), tuple(left_out))


def _in_virtual_time(
    schedule: list[dict[str, Any]], hosts: tuple[str, ...]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the faults that virtual time has, and a line for each of the others."""
    there, lacking = [], []
    for one in schedule:
        fault = {key: value for key, value in one.items() if key not in ("at_s", "duration_s")}
        why = cannot(FAULT.validate_python(fault), hosts)
        if why is None:
            there.append(one)
        else:
            lacking.append(f"{one['fault']} at {one['at_s']:g} s: {why}")
    return there, lacking


def _stage(fleet: Mapping[str, Any]) -> Stage:
    brokers, controllers = fleet.get("brokers", 3), fleet.get("controllers", 1)
    beside = "n" if fleet.get("combined") else "c"
    return Stage(
        tuple(f"n{number}" for number in range(1, brokers + 1)),
        tuple(f"{beside}{number}" for number in range(1, controllers + 1)),
    )


_HOSTS = ("brokers", "controllers", "combined", "spares", "spare_controllers")


def _of_a_run(run_dir: Path) -> dict[str, Any] | None:
    """The specification that a run of ours saved; None where there is none."""
    try:
        saved = yaml.safe_load((run_dir / "spec.yaml").read_text())
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError) as error:
        raise SpecError(f"{run_dir / 'spec.yaml'}: cannot be read: {error}") from error
    if not isinstance(saved, dict):
        raise SpecError(f"{run_dir / 'spec.yaml'}: it is no specification")
    return saved


def _of_a_simulation(run_dir: Path, info: RunInfo) -> dict[str, Any]:
    """The same cluster and the same promise as in virtual time, as far as real ones have such settings."""
    try:
        setup = orjson.loads((run_dir / "setup.json").read_bytes())
    except (OSError, orjson.JSONDecodeError):
        setup = {}
    topic = info.topics[0]
    name = f"replay-{info.test_id}".lower().replace("_", "-")[:40]
    config = dict((*setup.get("broker", ()), *setup.get("controller", ())))
    if info.unclean_election:
        config["unclean_leader_election"] = True
    return {
        "name": name,
        "seed": info.seed,
        "fleet": {
            "kind": "netns",
            "brokers": setup.get("brokers", len(info.nodes)),
            "controllers": setup.get("controllers", 1),
            "combined": setup.get("combined", False),
        },
        "system": {
            "kind": "wrackline",
            "profile": info.profile,
            "defects": list(info.defects),
            "config": config,
        },
        "topic": {
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
            "min_insync_replicas": topic.min_insync_replicas,
        },
        "workload": _workload(info, setup),
    }


def _workload(info: RunInfo, setup: Mapping[str, Any]) -> dict[str, Any]:
    acks: str | int = info.acks if info.acks == "all" else int(info.acks)
    producers, every_ms = setup.get("producers", 2), setup.get("produce_every_ms", 100.0)
    return {
        "acks": acks,
        "idempotence": info.idempotence,
        # As often as producers and consumers did something in virtual time.
        "rate": round(max(20.0, 2 * producers * 1000.0 / every_ms), 1),
    }
