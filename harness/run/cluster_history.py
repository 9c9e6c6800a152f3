"""Every change of leader, ISR and ELR becomes part of the history, from what the system itself wrote down.

What is polled while the run goes on (``observer``) misses what came and went between two questions. These
rows miss nothing, or say what they may miss. They are recorded when the system's files have been collected,
and say when each change happened (``at_ns``).
"""

from __future__ import annotations

from pathlib import Path

from wrackline.harness.run.clocks import Clocks, clocks_of
from wrackline.harness.specification.build import Parts
from wrackline.history import Recorder
from wrackline.history.model import CHRONICLE, CONTROL, PARTITION, UNCLEAN_RECOVERY, Event, Type
from wrackline.systems.base import Chronicled, DeployError
from wrackline.systems.chronicle import Change, Chronicle, UncleanRecovery


def record_changes(parts: Parts, recorder: Recorder, topic: str, collected: Path) -> None:
    """Read the hosts' clocks, put them down beside the history, and record what the system wrote down of
    ``topic``; where it cannot be read, that. ``collected``: the system's files. Raises OSError or
    RecordingFailed."""
    system = parts.system
    clocks = clocks_of(parts.fleet, system, recorder)
    clocks.write(recorder.run_dir)
    if not isinstance(system, Chronicled):
        return
    try:
        found = system.chronicle(topic, collected)
    except DeployError as wrong:
        found = Chronicle("", missing=(str(wrong),))
    for event in events(found, clocks, topic):
        recorder.record(event)


def events(found: Chronicle, clocks: Clocks, topic: str) -> list[Event]:
    """Rows in the order of what they tell, and one of how whole that is."""
    rows = [(one.at_ns, _change(one, clocks)) for one in found.changes]
    rows += [(one.at_ns, _recovery(one, clocks)) for one in found.recoveries]
    rows.sort(key=lambda row: row[0])
    whole = {"source": found.source, "changes": len(found.changes), "missing": list(found.missing)}
    return [*(event for _, event in rows), Event(CONTROL, Type.INFO, CHRONICLE, topic=topic, extra=whole)]


def _change(one: Change, clocks: Clocks) -> Event:
    extra = {
        "at_ns": clocks.of_run(one.at_ns, one.host),
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


def _recovery(one: UncleanRecovery, clocks: Clocks) -> Event:
    extra = {
        "at_ns": clocks.of_run(one.at_ns, one.host),
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
