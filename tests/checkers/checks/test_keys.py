"""The highest offset of each key, found in columns, is the one that plain Python finds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest

from tests.checkers.histories import info
from wrackline.checkers.checks.about import AboutLog, AboutRun
from wrackline.checkers.checks.events import EventBatch
from wrackline.checkers.checks.keys import LastOfKeys
from wrackline.checkers.inputs.table import NONE
from wrackline.history.store.schema import SCHEMA

LOGS = [AboutLog(number=n, topic="log", partition=n, compacted=True) for n in (0, 1)]
ABOUT = AboutRun(0, info(), {(log.topic, log.partition): log for log in LOGS}, (), dict(enumerate(LOGS)))


def event(draw: random.Random, index: int) -> dict[str, Any]:
    f = draw.choice(["send", "poll", "drain", "replica"])
    kind = draw.choice(["invoke", "ok"]) if f == "send" else draw.choice(["ok", "ok", "fail"])
    records = [
        {"partition": draw.randrange(3), "offset": draw.randrange(-3, 20), "value": draw.randrange(-1, 12)}
        for _ in range(draw.randrange(4))
    ]
    key = draw.choice(["a", "b", "c", None]) if f == "send" else None
    extra = draw.choice([None, '{"hw": 9}', "{}"]) if f == "replica" else None
    row = dict.fromkeys(SCHEMA.names) | {"test_id": "t", "index": index, "time_ns": index, "process": 1}
    topic = draw.choice(["log", "log", "other"])
    return row | {"type": kind, "f": f, "topic": topic, "records": records, "key": key, "extra": extra}


def expected(rows: list[dict[str, Any]], log: int, value: int) -> int:
    keys: dict[int, str] = {}
    seen: list[tuple[int, int]] = []
    for row in rows:
        below = orjson.loads(row["extra"] or b"{}").get("hw", 1_000)
        for one in row["records"] if row["topic"] == "log" else ():
            if one["partition"] != log:
                continue
            if row["key"] is not None and row["type"] == "invoke":
                keys[one["value"]] = row["key"]
            elif row["type"] == "ok" and 0 <= one["offset"] < below and one["value"] >= 0:
                seen.append((one["value"], one["offset"]))
    mine = keys.get(value)
    return max((at for one, at in seen if mine is not None and keys.get(one) == mine), default=NONE)


@pytest.mark.parametrize("seed", range(40))
def test_the_last_of_each_key(seed: int) -> None:
    draw = random.Random(seed)
    rows = [event(draw, index) for index in range(draw.randrange(60))]
    found = LastOfKeys(ABOUT)
    for batch in pa.Table.from_pylist(rows, SCHEMA).to_batches(max_chunksize=7):
        found.take(EventBatch(batch, ABOUT))
    for log in (0, 1):
        values = np.arange(14)
        assert found.of_values(log, values).tolist() == [expected(rows, log, int(v)) for v in values]
