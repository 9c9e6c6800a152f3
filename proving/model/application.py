"""The model's application: it turns each record of a log into one of another topic, with a count per key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, TopicInfo, output_of, parts_of
from wrackline.proving.model.columns import TOPIC, Block, one_event, records
from wrackline.proving.model.log_server import Outcome

OUTPUT_TOPIC = f"{TOPIC}-out"
_PROCESS, _READER = 700_000, 750_000
"""What it sends, and what reads its output after healing, is a process for each partition from here on."""


def output_topic(outcome: Outcome) -> tuple[TopicInfo, ...]:
    knobs = outcome.knobs
    return (TopicInfo(OUTPUT_TOPIC, knobs.partitions, 3, 2, source=TOPIC),) if knobs.application else ()


def sends(outcome: Outcome) -> Iterator[Block]:
    """One after another in the order of the log, each when its input can be read."""
    for p, values in enumerate(_inputs(outcome)):
        now = 0
        for offset, value in values:
            now = max(now, int(outcome.logs[p].visible[offset])) + 1
            for kind, offset_or_code in (("invoke", UNKNOWN), ("ok", ACKED_WITHOUT_OFFSET)):
                output = _records(p, [offset_or_code], [output_of(value)])
                yield one_event(
                    now, _PROCESS + p, kind, "send", None, OUTPUT_TOPIC, partition=p, records=output
                )
                now += 1


def final_read(outcome: Outcome) -> Iterator[Block]:
    at = outcome.end_ns + 500_000
    for p, inputs in enumerate(_inputs(outcome)):
        values, counts = [output_of(value) for _, value in inputs], Counter[int]()
        states = []
        for value in values:
            counts[parts_of(value)[0]] += 1
            states.append(counts[parts_of(value)[0]])
        yield one_event(at, _READER + p, "invoke", "drain", None, OUTPUT_TOPIC, partition=p)
        yield one_event(
            at + 1,
            _READER + p,
            "ok",
            "drain",
            {"complete": True, "states": states},
            OUTPUT_TOPIC,
            partition=p,
            offset=0,
            high_watermark=len(values),
            records=_records(p, list(range(len(values))), values),
        )
        at += 2


def _inputs(outcome: Outcome) -> Iterator[list[tuple[int, int]]]:
    """(offset, value) of the records that readers are given, for each partition."""
    for log in outcome.logs if outcome.knobs.application else ():
        yield [(int(offset), int(log.value[offset])) for offset in np.flatnonzero(log.shown)]


def _records(partition: int, offsets: list[int], values: list[int]) -> object:
    size = len(values)
    return records(
        np.full(size, partition),
        np.array(offsets, dtype=np.int64),
        np.array(values, dtype=np.int64),
        np.array([0, size]),
    )
