"""A case written by hand inside a correct history of any size: its events lie among the others, in their own
order, on a topic and with processes and groups of their own. So each pair of cases is a mutation too."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from wrackline.checkers.cases.language import TOPIC as OF_A_CASE
from wrackline.checkers.cases.language import Case
from wrackline.history.model import Event, Record, RunInfo
from wrackline.proving.model.made import Made

TOPIC = "case"
PROCESSES = 3_000_000
"""Of the case, its processes and the senders in its values are numbered from here on."""
TRANSACTIONS = 1_000_000
"""So are its transactions."""


def spliced(case: Case, made: Made, seed: int) -> tuple[RunInfo, list[Event]]:
    """Splices a case into a history: what is found in the case must be found in this history, and nothing
    else."""
    first = next(at for at, event in enumerate(made.events) if event.process >= 0)
    chance = random.Random(seed)
    places = sorted(chance.randint(first, len(made.events)) for _ in case.events)
    every = sorted(
        [(at, 1, event) for at, event in enumerate(made.events)]
        + [(place, 0, event) for place, event in zip(places, case.events, strict=True)],
        key=lambda one: one[:2],
    )
    now, times, events = 0, dict[int, int](), list[Event]()
    for index, (_, of_made, event) in enumerate(every):
        now = max(now + 1, event.time_ns if of_made else 0)
        if not of_made:
            times[event.time_ns] = now
        events.append(replace(event if of_made else _moved(event), index=index, time_ns=now))
    own = (
        replace(topic, name=_called(topic.name), source=_called(topic.source) if topic.source else "")
        for topic in case.info.topics
    )
    topics = (*made.info.topics, *own)
    isolation = case.info.isolation or made.info.isolation
    info = replace(made.info, topics=topics, isolation=isolation, reset=case.info.reset or made.info.reset)
    return info, [_timed(event, times) for event in events]


def _called(topic: str | None) -> str:
    """The case's topic is called after it, and others after both."""
    return TOPIC if topic in (None, OF_A_CASE) else f"{TOPIC}-{topic}"


def _moved(event: Event) -> Event:
    """The event on a topic of cases, by a process of cases."""
    extra = dict(event.extra or {})
    if "group" in extra:
        extra["group"] = f"{TOPIC}-{extra['group']}"
    if "txn" in extra:
        extra["txn"] = int(str(extra["txn"])) + TRANSACTIONS
    return replace(
        event,
        topic=_called(event.topic),
        process=event.process + PROCESSES if event.process >= 0 else event.process,
        records=tuple(_sent_by_a_case(record) for record in event.records),
        extra=extra or event.extra,
    )


def _sent_by_a_case(record: Record) -> Record:
    """Values are unique in a run. A code instead of a value stays."""
    return record._replace(value=record.value + (PROCESSES << 32)) if record.value >= 0 else record


def _timed(event: Event, times: Mapping[int, int]) -> Event:
    """When the end of a transaction was asked for is the time of another event of the case."""
    if event.topic != TOPIC or "end_ns" not in (event.extra or {}):
        return event
    assert event.extra is not None
    return replace(event, extra={**event.extra, "end_ns": times[event.extra["end_ns"]]})
