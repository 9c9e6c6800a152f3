"""Parts tried out without a host: for the tests of those who write them."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer

from wrackline.checkers.analysis import analyze
from wrackline.checkers.cases.language import parse
from wrackline.history import Recorder, history_files
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.history.store.files import write_history
from wrackline.workloads.log import ClientsSpec, workload_for

TOPIC, PARTITIONS, BROKERS, STOP_S, STEP_S = "log", 4, 3, 30.0, 0.1


class RehearsalFailed(Exception):
    """A workload could not do what it says. One line: what did not come about."""


def rehearse(
    settings: ClientsSpec, *, operations: int = 40, deadline_s: float = 60.0
) -> list[dict[str, Any]]:
    """Drive a workload against librdkafka's own mock cluster, on loopback, until ``operations`` were done and
    one of every kind succeeded. Returns the history: a mapping for each event, with the keys ``f``, ``type``,
    ``process``, ``partition``, ``value`` and so on.

    Raises RehearsalFailed at the deadline, and when a thread of the workload breaks down or does not end."""
    with tempfile.TemporaryDirectory(prefix="wrackline-rehearsal-") as folder, _mock_cluster() as bootstrap:
        info = RunInfo(
            test_id="rehearsal",
            name="rehearsal",
            seed=1,
            started_at="",
            system="mock",
            workload=settings.name,
            acks=str(settings.acks),
            idempotence=settings.idempotence,
            topics=(TopicInfo(TOPIC, PARTITIONS, BROKERS, 2),),
        )
        with Recorder(Path(folder), info) as recorder:
            _drive(settings, bootstrap, recorder, operations, deadline_s)
        events: list[dict[str, Any]] = pq.read_table(history_files(Path(folder))[0]).to_pylist()
        return events


def _drive(
    settings: ClientsSpec, bootstrap: str, recorder: Recorder, operations: int, deadline_s: float
) -> None:
    workload = workload_for(settings)(
        settings,
        bootstrap=bootstrap,
        topics={TOPIC: PARTITIONS},
        seed=1,
        recorder=recorder,
        enter=contextlib.nullcontext,
    )
    workload.start()
    deadline = time.monotonic() + deadline_s
    try:
        while workload.counts().operations < operations or workload.missing_kinds():
            if workload.failure is not None:
                raise RehearsalFailed(f"{settings.name}: {workload.failure}")
            if time.monotonic() > deadline:
                missing = ", ".join(workload.missing_kinds()) or f"{operations} operations"
                raise RehearsalFailed(f"{settings.name}: no {missing} within {deadline_s:g} s")
            time.sleep(STEP_S)
    finally:
        stuck = workload.stop(timeout_s=STOP_S)
    if stuck or workload.failure is not None:
        raise RehearsalFailed(f"{settings.name}: {workload.failure or f'{stuck} did not end'}")


@contextlib.contextmanager
def _mock_cluster() -> Iterator[str]:
    """``host:port,...``; it lives as long as the client that made it."""
    quiet = logging.getLogger("wrackline.mock-cluster")
    quiet.setLevel(logging.CRITICAL)
    owner = Producer({"test.mock.num.brokers": BROKERS, "bootstrap.servers": "unused"}, logger=quiet)
    brokers = owner.list_topics(timeout=10).brokers.values()
    owner.list_topics(TOPIC, timeout=10)  # the topic is made when it is asked for
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


def anomalies_in(*histories: str, step_s: float = 0.001) -> list[dict[str, int]]:
    """Judge histories in the language of wrackline.checkers.cases.language, where ``p: (a`` is an
    invocation and ``p: a@0)`` its completion, in this process. ``step_s``: from one event to the
    next. Returns for each the anomalies found, with how many times. Raises ValueError for a history that
    cannot be read."""
    with tempfile.TemporaryDirectory(prefix="wrackline-rehearsal-") as folder:
        runs = [Path(folder) / f"case-{number}" for number in range(len(histories))]
        for run_dir, text in zip(runs, histories, strict=True):
            run_dir.mkdir()
            case = parse(text, run_dir.name)
            events = [replace(one, time_ns=round((one.index + 1) * step_s * 1e9)) for one in case.events]
            write_history(run_dir, case.info, events)
        return [
            {one["anomaly"]: one["count"] for one in verdict["anomalies"] if one["count"]}
            for verdict in analyze(runs, engine="local")
        ]
