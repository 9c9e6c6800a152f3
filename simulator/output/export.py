"""A simulated run as a run directory, so that ``wrackline analyze`` judges it like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from wrackline.broker.model.types import FlushMode, RecoveryStrategy
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, Event, RunInfo, TopicInfo, Type
from wrackline.history.store.files import write_history
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.output.timeline import node_name
from wrackline.simulator.output.traces import Traces
from wrackline.simulator.world.nodes import ZOOKEEPER

SETUP = "setup.json"
"""Beside the history: all that the run depended on."""
NODES = "nodes"
TRACE, TRANSACTIONS, CLOCKS = "trace.jsonl", "transactions.jsonl", "clocks.json"
"""What the harness calls the folder of the nodes' files, and what lies in it and beside it."""
SOURCE = "what the controllers, or ZooKeeper, had committed after each step of the simulation"
_ZOOKEEPER = "z1"
_STARTED_AT = "1970-01-01T00:00:00Z"
"""Virtual time begins here in every run: the same run is the same bytes."""


def info_of(setup: Setup) -> RunInfo:
    settings = dict(setup.controller)
    return RunInfo(
        test_id=f"simulated-{setup.seed}",
        name=setup.command(),
        seed=setup.seed,
        started_at=_STARTED_AT,
        system="wrackline",
        workload="log",
        acks="all" if setup.acks == -1 else str(setup.acks),
        # Without TCP's help a plain producer's request may come twice, and the contract is one for all.
        idempotence=setup.idempotent and (setup.tcp or not setup.weak),
        topics=(TopicInfo(setup.topic, setup.partitions, setup.replication_factor, setup.min_isr),),
        profile=setup.profile,
        defects=setup.defects,
        flush_mode=_value(dict(setup.broker).get("flush_mode", FlushMode.ON_ROLL)),
        unclean_election=setup.unclean,
        recovery_strategy=_value(settings.get("unclean_recovery_strategy", RecoveryStrategy.BALANCED)),
        nodes={str(node): f"n{node}" for node in range(1, setup.brokers + 1)},
        notes=("simulated in virtual time",),
    )


def _value(setting: Any) -> str:
    return str(setting.value)


def write_run(
    setup: Setup,
    events: Sequence[Event],
    run_dir: Path,
    traces: Traces | None = None,
    info: RunInfo | None = None,
) -> None:
    """The run's information and its history; with ``traces`` also the files that its nodes would have left.
    ``info``: of a run that has a specification. Raises OSError, FileExistsError where there is a run
    already."""
    rows = list(events)
    if traces is not None:
        _write_nodes(traces, run_dir)
        rows.append(_whole(events, setup.topic))
    write_history(run_dir, info or info_of(setup), rows)
    (run_dir / SETUP).write_bytes(orjson.dumps(asdict(setup), option=orjson.OPT_INDENT_2, default=str))


def _write_nodes(traces: Traces, run_dir: Path) -> None:
    """A trace for each node, and one of ZooKeeper's transactions; every clock shows the run's time."""
    (run_dir / NODES).mkdir(parents=True)
    for node, lines in traces.lines.items():
        folder = run_dir / NODES / (_ZOOKEEPER if node == ZOOKEEPER else node_name(node))
        folder.mkdir()
        (folder / (TRANSACTIONS if node == ZOOKEEPER else TRACE)).write_bytes(b"".join(lines))
    (run_dir / CLOCKS).write_bytes(orjson.dumps({"start_ns": 0, "ahead_ns": {}}) + b"\n")


def _whole(events: Sequence[Event], topic: str) -> Event:
    """Returns the row which says that all rows of changes are there."""
    changes = sum(event.process == CONTROL and event.f == PARTITION for event in events)
    extra = {"source": SOURCE, "changes": changes, "missing": []}
    at_ns = max((event.time_ns for event in events), default=0)
    return Event(CONTROL, Type.INFO, CHRONICLE, topic, extra=extra, time_ns=at_ns)
