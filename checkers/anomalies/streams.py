"""Applications that turn one topic into another (docs/anomalies.md section 5): the state of each output.

The application counts the records of each key, in the order of the input. The key of a record is the logical
process that sent it, so the count follows from the final read of the input alone: the n-th record
of its key has count n. A record that is processed twice, left out, or in another order shows in it, and so
does a state that was restored from too little or too much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import EventBatch
from wrackline.checkers.checks.explained_by import By, ExplainedBy
from wrackline.checkers.checks.finding import Finding
from wrackline.checkers.checks.registry import WalkAnomaly, found_by
from wrackline.checkers.checks.walks import Walk, Walked
from wrackline.checkers.verdict.anomaly import Family, Promise
from wrackline.history.model import OUTPUT, output_of, parts_of


@dataclass(frozen=True, slots=True)
class _Output:
    value: int
    offset: int
    state: int
    index: int
    """Of the event of the final read."""


@dataclass(frozen=True, slots=True)
class _Input:
    offset: int
    index: int
    rank: int
    """It is the n-th record of its key."""


def find(batches: Iterable[pa.RecordBatch], about: AboutRun) -> Walked:
    sources = {topic.name: topic.source for topic in about.info.topics if topic.source}
    drained: dict[int, list[_Output]] = defaultdict(list)
    for batch in batches if sources else ():
        _take(EventBatch(batch, about), drained)
    for log in about.of_number.values():
        source = about.logs.get((sources.get(log.topic, ""), log.partition))
        if source is not None and _is_evidence(source) and _is_evidence(log):
            yield from _state_findings(log, source, drained, about)


def _is_evidence(log: AboutLog) -> bool:
    return log.complete and log.start == 0 and log.unread_from is None


def _take(events: EventBatch, drained: dict[int, list[_Output]]) -> None:
    """Every record of the final read; without a state where it has none."""
    drains = np.flatnonzero(events.are("ok", "drain"))
    texts = dict(zip(drains.tolist(), events.texts("extra", drains), strict=True))
    states: dict[int, Sequence[int]] = {
        row: orjson.loads(text).get("states", ()) for row, text in texts.items() if text
    }
    places: dict[int, int] = defaultdict(int)
    for log, value, offset, row in zip(
        *(column.tolist() for column in events.records.columns()), strict=True
    ):
        if row in texts:
            counts, place = states.get(row, ()), places[row]
            places[row] += 1
            state = counts[place] if place < len(counts) else -1
            drained[log].append(_Output(value, offset, state, int(events.index[row])))


def _ranks(records: Sequence[_Output]) -> dict[int, _Input]:
    """Output value -> the input record that it is made of."""
    counts: dict[int, int] = defaultdict(int)
    result: dict[int, _Input] = {}
    for one in sorted(records, key=lambda each: each.offset):
        if one.value >= 0 and output_of(one.value) not in result:
            key = parts_of(one.value)[0]
            counts[key] += 1
            result[output_of(one.value)] = _Input(one.offset, one.index, counts[key])
    return result


def _state_findings(
    log: AboutLog, source: AboutLog, drained: dict[int, list[_Output]], about: AboutRun
) -> Iterator[Finding]:
    """Yields the first of those that are wrong by the same, for each key: what follows has it from there."""
    inputs, off_by = _ranks(drained[source.number]), defaultdict[int, int](int)
    last: dict[int, int] = {}
    for one in sorted(drained[log.number], key=lambda each: each.offset):
        made_of = inputs.get(one.value)
        if made_of is None or parts_of(one.value)[2] != OUTPUT:
            continue  # nobody's value, or a lost input: other anomalies
        key = parts_of(one.value)[0]
        earlier, last[key] = last.get(key, 0), made_of.rank
        backwards = made_of.rank < earlier
        before, off_by[key] = off_by[key], one.state - made_of.rank
        if off_by[key] == before and not backwards:
            continue
        order = f" and follows the output of record {earlier:,}" if backwards else ""
        yield Finding(
            anomaly="wrong-state",
            log=log,
            offset=one.offset,
            value=one.value,
            operations=[made_of.index, one.index],
            where="order" if backwards and off_by[key] == before else "state",
            sentence=(
                f"Value {about.value(one.value)} at offset {one.offset:,} of {log} came with count "
                f"{one.state:,}, but it is made of offset {made_of.offset:,} of {source}, which is record "
                f"{made_of.rank:,} of its key there{order}"
            ),
            since_ns=None,
        )


STREAMS = Walk(
    name="streams",
    needs=frozenset({"drain"}),
    reads=frozenset({"drain"}),
    find=find,
    when=lambda run: any(topic.source for topic in run.info.topics),
)

found_by(
    STREAMS,
    Family.GROUPS,
    {
        "wrong-state": WalkAnomaly(
            "the output of an application came with a state that does not follow from its input",
            Promise.CONSUMERS_GET_ALL,
            ExplainedBy(By.FACTS),
            rests_on_final_read=True,
        ),
    },
)
