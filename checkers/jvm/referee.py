"""Knossos as referee: the witnesses of what is not linearizable (a partition's log, a register, a queue) are
put before it, a few operations each.

A witness that Knossos confirms needs no trust in our checks. One for which it finds an order is a mistake,
ours or its, and is said so loudly. Without a classpath (wrackline.checkers.jvm) nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.operations import NEVER, NOTHING, Columns, columns
from wrackline.checkers.exact.queue import Rule
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Calls, Model, calls_of
from wrackline.checkers.jvm.classpath import JvmUnavailable, available
from wrackline.checkers.jvm.witness_log import HOLE, KINDS, UNFILLED, Operation, Row, calls_of_log
from wrackline.history import history_files

LOG = "not-linearizable"
MODELS = {
    "register-not-linearizable": Model.REGISTER,
    "queue-not-linearizable": Model.FIFO_QUEUE,
    LOG: Model.SOME_OF_LOG,
}
MOST = 20
"""Witnesses of an anomaly that are put before it: they come one row per culprit (of a log, one per
partition)."""
DEADLINE_S = 20.0
_KINDS = sorted({*KINDS, "read", "dequeue"})
_COLUMNS = ["index", "process", "type", "f", "topic", "partition", "offset", "records", "high_watermark"]


@dataclass(frozen=True, slots=True)
class Refereed:
    anomaly: str
    topic: str
    partition: int
    value: int | None
    where: str
    answer: str
    """confirmed, refuted or undecided."""
    why: str = ""


def referee(
    run_dir: Path, findings: Path, *, progress: Callable[[str], None] = lambda _line: None
) -> list[Refereed]:
    """Returns Knossos's answers on a run's witnesses; empty where there are none or Knossos cannot be
    asked. Raises OSError."""
    expected = _witnesses(findings)
    if not expected or not available():
        return []
    progress(f"Knossos looks at {len(expected)} witnesses")
    said = []
    try:
        with Bridge(heap="512m", progress=progress) as bridge:
            for one, calls in zip(expected, histories(run_dir, expected), strict=True):
                said.append(_ask(bridge, one, calls))
    except JvmUnavailable as error:
        progress(f"Knossos cannot be asked: {error}")
    return said


def _witnesses(findings: Path) -> list[Row]:
    if not findings.is_file():
        return []
    result = pq.read_table(findings, filters=pc.field("anomaly").isin(list(MODELS)))
    some = [result.filter(pc.equal(result["anomaly"], name)).slice(0, MOST) for name in MODELS]
    return pa.concat_tables(some).to_pylist()  # type: ignore[no-any-return]


def histories(run_dir: Path, findings: Sequence[Row]) -> list[Calls]:
    """The operations that each finding names, as Knossos reads them. Raises OSError."""
    pieces = [_pieces(run_dir, one) if one["where"] == HOLE else ((), (False, False)) for one in findings]
    named = [sorted({*one["operations"], *more}) for one, (more, _) in zip(findings, pieces, strict=True)]
    rows = _events(run_dir, {index for indexes in named for index in indexes})
    return [
        _calls(one, [rows[at] for at in indexes if at in rows], edges)
        for one, indexes, (_, edges) in zip(findings, named, pieces, strict=True)
    ]


def _pieces(run_dir: Path, finding: Row) -> tuple[Sequence[int], tuple[bool, bool]]:
    """Returns the pieces of the final read of the finding's partition: the chunks that it names, those
    between, and one on either side (indexes of completions); and whether the first and the last of all are
    among them."""
    where = (pc.field("f") == "drain") & (pc.field("type") == "ok")
    where &= (pc.field("topic") == finding["topic"]) & (pc.field("partition") == finding["partition"])
    every = sorted(
        index
        for file in history_files(run_dir)
        for index in ds.dataset(str(file)).to_table(columns=["index"], filter=where)["index"].to_pylist()
    )
    named = [at for at, index in enumerate(every) if index in finding["operations"]]
    if not named:
        return (), (False, False)
    first, last = max(0, named[0] - 1), min(len(every), named[-1] + 2)
    return every[first:last], (first == 0, last == len(every))


def _events(run_dir: Path, indexes: set[int]) -> dict[int, Operation]:
    """Index of a witness's event -> its operation, without the completion where only the invocation is
    named."""
    result: dict[int, Operation] = {}
    for file in history_files(run_dir):
        dataset = ds.dataset(str(file))
        events = dataset.to_table(columns=["index", "process"], filter=_among(indexes))
        invoked = _invocations(dataset, events)
        expected = _among({*indexes, *invoked.values()})
        rows = {row["index"]: row for row in dataset.to_table(columns=_COLUMNS, filter=expected).to_pylist()}
        for index in indexes & rows.keys():
            if index in invoked:
                result[index] = (rows[invoked[index]], rows[index])
            elif rows[index]["type"] == "invoke" and rows[index]["f"] in _KINDS:
                result[index] = (rows[index], None)
    return result


def _among(indexes: set[int]) -> pc.Expression:
    """Returns a filter for these indexes, with the range they are in, by which whole row groups can be
    skipped."""
    index = pc.field("index")
    return index.isin(list(indexes)) & (index >= min(indexes, default=0)) & (index <= max(indexes, default=0))


def _invocations(dataset: ds.Dataset, events: pa.Table) -> dict[int, int]:
    """Index of a completion among the events -> index of its invocation: the last before it of its
    process."""
    processes = pc.field("process").isin(pc.unique(events["process"]).to_pylist())
    indexes = set(events["index"].to_pylist())
    begun: dict[int, int] = {}
    result: dict[int, int] = {}
    columns = ["index", "process", "type"]
    kinds = pc.field("f").isin(_KINDS) & (pc.field("index") <= max(indexes, default=0))
    for batch in dataset.scanner(columns=columns, filter=processes & kinds, use_threads=False).to_batches():
        for index, process, kind in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
            if kind == "invoke":
                begun[process] = index
            elif index in indexes and process in begun:
                result[index] = begun[process]
    return result


def _ask(bridge: Bridge, one: Row, calls: Calls) -> Refereed:
    if one["where"] == UNFILLED:
        # It counts all offsets and all sends of unknown outcome: no few operations show it.
        return Refereed(*_name(one), "undecided", "the whole history is counted, not a few operations")
    if not len(calls):
        return Refereed(*_name(one), "undecided", "no operation of it is in the history")
    result = bridge.linearizable(calls, deadline_s=DEADLINE_S)
    answer = {Answer.INVALID: "confirmed", Answer.VALID: "refuted"}.get(result.answer, "undecided")
    if result.answer is Answer.VALID and one["where"] == str(Rule.NOT_EMPTY):
        # Where many values together contradict an answer, the finding names the first of them.
        return Refereed(*_name(one), "undecided", "some of many values that contradict it together")
    return Refereed(*_name(one), answer, result.why)


def _calls(one: Row, cited: Sequence[Operation], edges: tuple[bool, bool]) -> Calls:
    if one["anomaly"] != LOG:
        return calls_of(_columns(cited), MODELS[one["anomaly"]])
    operations: dict[int, Operation] = {}
    for invocation, completion in cited:  # both events of an operation may be named
        if completion is not None or invocation["index"] not in operations:
            operations[invocation["index"]] = (invocation, completion)
    return calls_of_log(one, list(operations.values()), edges)


def _name(one: Row) -> tuple[str, str, int, int | None, str]:
    return one["anomaly"], one["topic"], one["partition"], one["value"], one["where"]


def _columns(operations: Sequence[Operation]) -> Columns:
    rows = []
    for invocation, completion in operations:
        puts = invocation["f"] == "send"
        records = (invocation if puts or completion is None else completion)["records"] or ()
        value = records[0]["value"] if records else NOTHING
        ret = completion["index"] if completion is not None and completion["type"] == "ok" else NEVER
        failed = completion is not None and completion["type"] == "fail"
        rows.append((puts, value, invocation["index"], ret, failed))
    return columns(rows)


def summary(said: Sequence[Refereed]) -> dict[str, Any]:
    """Returns the answers for verdict.json."""
    counts = {word: sum(one.answer == word for one in said) for word in ("confirmed", "refuted", "undecided")}
    return {"by": "Knossos", **counts, "findings": [asdict(one) for one in said]}


def lines(said: Sequence[Refereed]) -> list[str]:
    """Returns the answers as lines for people: which witnesses stand, and which do not."""
    if not said:
        return []
    counts = summary(said)
    why = "; ".join(dict.fromkeys(one.why for one in said if one.answer == "undecided"))
    undecided = f"{counts['undecided']} undecided" + (f": {why}" if why else "")
    result = [f"Knossos confirms {counts['confirmed']} of {len(said)} witnesses ({undecided})"]
    result += [
        f"Knossos finds an order for the witness of {one.anomaly} in {one.topic}-{one.partition} ({one.where}"
        f"{'' if one.value is None else f', value {one.value}'}): that finding is a mistake of the checker "
        "or of the referee"
        for one in said
        if one.answer == "refuted"
    ]
    return result
