"""Every change of leader, ISR and ELR becomes part of the history, from what the system itself wrote down.

What is polled while the run goes on (``observer``) misses what came and went between two questions. These
rows miss nothing, or say what they may miss. They are recorded when the system's files have been collected,
and say when each change happened (``at_ns``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from wrackline.harness.run.clocks import Clocks, clocks_of
from wrackline.harness.specification.build import Parts
from wrackline.history import Recorder
from wrackline.history.model import (
    CHRONICLE,
    CONTROL,
    PARTITION,
    QUORUM_LOG,
    UNCLEAN_RECOVERY,
    Event,
    Type,
)
from wrackline.systems.base import Chronicled, DeployError, QuorumLogged
from wrackline.systems.metadata_changes import Change, Chronicle, UncleanRecovery


def record_changes(parts: Parts, recorder: Recorder, topics: Sequence[str], collected: Path) -> None:
    """Read the hosts' clocks, put them down beside the history, and record what the system wrote down of
    ``topics``; where it cannot be read, that. ``collected``: the system's files. Raises OSError or
    RecordingFailed."""
    system = parts.system
    clocks = clocks_of(parts.fleet, system, recorder)
    clocks.write(recorder.run_dir)
    if isinstance(system, QuorumLogged):
        for event in quorum_events(system, clocks):
            recorder.record(event)
    if not isinstance(system, Chronicled):
        return
    try:
        chronicles = {topic: system.chronicle(topic, collected) for topic in topics}
    except DeployError as error:  # of all or of none: what is polled stands in for all
        chronicles = dict.fromkeys(topics, Chronicle("", missing=(str(error),)))
    for topic, chronicle in chronicles.items():
        for event in events(chronicle, clocks, topic):
            recorder.record(event)


def events(found: Chronicle, clocks: Clocks, topic: str) -> list[Event]:
    """Rows in the order of what they tell, and one of how whole that is. A change never lies before one that
    was written down before it, whatever the clocks of their hosts say."""
    rows: list[tuple[int, Event]] = []
    latest_ns = 0
    for change in found.changes:
        latest_ns = max(latest_ns, clocks.of_run(change.at_ns, change.host))
        rows.append((latest_ns, _change(change, latest_ns)))
    for recovery in found.recoveries:
        at_ns = clocks.of_run(recovery.at_ns, recovery.host)
        rows.append((at_ns, _recovery(recovery, at_ns)))
    rows.sort(key=lambda row: row[0])
    whole = {"source": found.source, "changes": len(found.changes), "missing": list(found.missing)}
    return [*(event for _, event in rows), Event(CONTROL, Type.INFO, CHRONICLE, topic=topic, extra=whole)]


def quorum_events(system: QuorumLogged, clocks: Clocks) -> Iterator[Event]:
    """A row for each controller's copy of the quorum's history; one that says why where there is none."""
    try:
        logs = system.quorum_logs()
    except DeployError as error:
        yield Event(CONTROL, Type.INFO, QUORUM_LOG, extra={"problem": str(error)})
        return
    for log in logs:
        changes = [
            {
                "offset": one.offset,
                "epoch": one.epoch,
                "at_ns": clocks.of_run(one.at_ns, log.host),
                **({} if one.leader is None else {"leader": one.leader}),
                **({} if one.voters is None else {"voters": [list(voter) for voter in one.voters]}),
            }
            for one in log.changes
        ]
        extra = {**asdict(log), "epochs": [list(one) for one in log.epochs], "changes": changes}
        yield Event(CONTROL, Type.INFO, QUORUM_LOG, node=log.host, extra=extra)


def _change(one: Change, at_ns: int) -> Event:
    extra = {
        "at_ns": at_ns,
        "place": one.place,
        "leader": one.leader,
        "partition_epoch": one.partition_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "elr": list(one.elr),
        "last_known_elr": list(one.last_known_elr),
        "recovering": one.recovering,
    }
    return Event(
        CONTROL,
        Type.INFO,
        PARTITION,
        topic=one.topic,
        partition=one.partition,
        leader_epoch=one.leader_epoch,
        node=one.host,
        extra=extra,
    )


def _recovery(one: UncleanRecovery, at_ns: int) -> Event:
    extra = {
        "at_ns": at_ns,
        "winner": one.winner,
        "why": one.why,
        "strategy": one.strategy,
        **(one.details or {}),
    }
    return Event(
        CONTROL,
        Type.INFO,
        UNCLEAN_RECOVERY,
        topic=one.topic,
        partition=one.partition,
        node=one.host,
        extra=extra,
    )
