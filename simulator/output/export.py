"""A simulated run as a run directory, so that ``wrackline analyze`` judges it like any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from wrackline.broker.model.types import FlushMode, RecoveryStrategy
from wrackline.history.files import write_history
from wrackline.history.model import Event, RunInfo, TopicInfo
from wrackline.simulator.faults.setup import TOPIC, Setup

SETUP = "setup.json"
"""Beside the history: all that the run depended on."""
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
        topics=(TopicInfo(TOPIC, setup.partitions, setup.replication_factor, setup.min_isr),),
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


def write_run(setup: Setup, events: Sequence[Event], run_dir: Path) -> None:
    """The run's information and its history. Raises OSError, FileExistsError where there is a history
    already."""
    write_history(run_dir, info_of(setup), events)
    (run_dir / SETUP).write_bytes(orjson.dumps(asdict(setup), option=orjson.OPT_INDENT_2, default=str))
