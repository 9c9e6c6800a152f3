"""The witness of a log's finding as operations for Knossos: what its few operations say about the partition.

Of an operation on many records only those count that the finding is about (its value, its offset) and the one
with the largest offset, which shows how long the log was. To leave something out can only allow more orders:
what is impossible then was impossible before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wrackline.checkers.exact.operations import NEVER
from wrackline.checkers.jvm.calls import Calls, Model
from wrackline.checkers.jvm.log_calls import LogCalls
from wrackline.history.model import ACKED_WITHOUT_OFFSET, FAILED

KINDS = ("send", "poll", "drain", "end")
HOLE = "hole"
UNFILLED = "unfilled"
"""What a finding's ``where`` says (wrackline.checkers.anomalies.visibility)."""
Row = Mapping[str, Any]
Operation = tuple[Row, Row | None]
"""(invocation, completion)."""


def calls_of_log(
    finding: Row, operations: Sequence[Operation], edges: tuple[bool, bool] = (False, False)
) -> Calls:
    """``finding``: a row of findings.parquet; its offset and value say what it is about. ``edges``: whether
    pieces of the final read among the operations are its first and its last."""
    result = LogCalls()
    operations = [one for one in operations if _of_this_log(one[0], finding)]
    reads = [one for one in operations if one[0]["f"] in ("poll", "drain")]
    shown = {(r["offset"], r["value"]) for _, read in reads for r in _records(read, finding)}
    for invocation, completion in operations:
        if invocation["f"] == "send":
            _sent(result, finding, invocation, completion, shown)
        elif completion is None or completion["type"] != "ok":
            continue
        elif invocation["f"] == "end" and completion["high_watermark"] is not None:
            result.end(completion["high_watermark"], invocation["index"], completion["index"])
        elif invocation["f"] in ("poll", "drain"):
            read = _telling(_records(completion, finding), finding)
            result.read(read, invocation["index"], completion["index"])
    if finding["where"] == HOLE:
        pieces = [read for invoked, read in reads if invoked["f"] == "drain" and read is not None]
        _final(result, finding, pieces, edges)
    return result.build(Model.SOME_OF_LOG)


def _of_this_log(invocation: Row, finding: Row) -> bool:
    """Sends and polls may be of several partitions: their records say which."""
    several = invocation["f"] in ("send", "poll")
    return invocation["topic"] in (None, finding["topic"]) and (
        several or invocation["partition"] == finding["partition"]
    )


def _records(event: Row | None, finding: Row) -> list[Row]:
    records = [] if event is None else event["records"] or []
    return [one for one in records if one["partition"] == finding["partition"]]


def _telling(records: Iterable[Row], finding: Row) -> list[tuple[int, int]]:
    """(offset, value) of the records that matter. A payload that is no value of ours says nothing about
    values."""
    placed = [(one["offset"], one["value"]) for one in records if one["offset"] >= 0 and one["value"] >= 0]
    return [one for one in placed if one[0] == finding["offset"] or one == max(placed)]


def _sent(
    found: LogCalls, finding: Row, invocation: Row, completion: Row | None, shown: set[tuple[int, int]]
) -> None:
    """Each record of a send is an append with an outcome of its own."""
    placed = {one["value"]: one["offset"] for one in _records(completion, finding)}
    telling = {value for _, value in _telling(_records(completion, finding), finding)}
    for record in _records(invocation, finding):
        value = record["value"]
        if value != finding["value"] and value not in telling:
            continue
        offset = placed.get(value, -1)
        refused = completion is not None and completion["type"] == "fail" and offset < 0
        if offset == FAILED or refused:
            found.failed(value)
            continue
        acked = completion is not None and (offset >= 0 or offset == ACKED_WITHOUT_OFFSET)
        place = finding["offset"] if (finding["offset"], value) in shown else None
        ret = completion["index"] if acked and completion is not None else NEVER
        found.append(value, invocation["index"], ret, offset if offset >= 0 else place)


def _final(found: LogCalls, finding: Row, pieces: Sequence[Row], edges: tuple[bool, bool]) -> None:
    """Pieces of the final read, one after another: together they covered the finding's offset if they show
    records below it (or begin the read) and above it (or end the read, and the log goes on)."""
    offset = finding["offset"]
    there = [one["offset"] for read in pieces for one in _records(read, finding)]
    ends = [read["high_watermark"] or 0 for read in pieces]
    starts = [read["offset"] or 0 for read in pieces]
    below = min(there, default=offset) < offset or (edges[0] and max(starts, default=offset + 1) <= offset)
    above = max(there, default=offset) > offset or (edges[1] and max(ends, default=0) > offset)
    if below and above and offset not in there:
        first, last = (pick(read["index"] for read in pieces) for pick in (min, max))
        found.read([], first, last, (offset, offset + 1))
