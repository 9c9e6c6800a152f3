"""Knossos as referee: the witnesses of register and queue findings are put before it, a few operations each.

A witness that Knossos confirms needs no trust in our checks. One for which it finds an order is a mistake, ours or its,
and is said so loudly. Without a classpath (checkers.jvm) nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from checkers.columns import NEVER, NOTHING, Columns, columns
from checkers.exact_queue import Rule
from checkers.jvm.bridge import Answer, Bridge
from checkers.jvm.calls import Model, calls_of
from checkers.jvm.classpath import JvmUnavailable, available
from harness.history import history_files

MODELS = {"register-not-linearizable": Model.REGISTER, "queue-not-linearizable": Model.FIFO_QUEUE}
MOST = 20
"""Witnesses of a run that are put before it: they come one row per culprit."""
DEADLINE_S = 20.0
_COLUMNS = ["index", "process", "type", "f", "records"]


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
    """What Knossos says of a run's witnesses; empty where there are none or nobody to ask. Raises OSError."""
    wanted = _witnesses(findings)
    if not wanted or not available():
        return []
    progress(f"Knossos looks at {len(wanted)} witnesses")
    rows = _events(run_dir, {index for one in wanted for index in one["operations"]})
    said = []
    try:
        with Bridge(heap="512m") as bridge:
            for one in wanted:
                said.append(_ask(bridge, one, rows))
    except JvmUnavailable as wrong:
        progress(f"Knossos cannot be asked: {wrong}")
    return said


def _witnesses(findings: Path) -> list[Mapping[str, Any]]:
    if not findings.is_file():
        return []
    found = pq.read_table(findings, filters=pc.field("anomaly").isin(list(MODELS))).slice(0, MOST)
    return found.to_pylist()  # type: ignore[no-any-return]


def _events(
    run_dir: Path, indexes: set[int]
) -> dict[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Index of a witness's event -> (invocation, completion) of its operation."""
    found: dict[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]] = {}
    for file in history_files(run_dir):
        dataset = ds.dataset(str(file))
        events = dataset.to_table(columns=["index", "process"], filter=pc.field("index").isin(list(indexes)))
        processes = pc.field("process").isin(pc.unique(events["process"]).to_pylist())
        kinds = pc.field("f").isin(["send", "read", "dequeue"])
        begun: dict[int, Mapping[str, Any]] = {}
        for batch in dataset.scanner(
            columns=_COLUMNS, filter=processes & kinds, use_threads=False
        ).to_batches():
            for row in batch.to_pylist():
                if row["type"] == "invoke":
                    begun[row["process"]] = row
                    if row["index"] in indexes:
                        found[row["index"]] = (row, None)
                elif row["index"] in indexes:
                    found[row["index"]] = (begun[row["process"]], row)
    return found


def _ask(
    bridge: Bridge,
    one: Mapping[str, Any],
    rows: Mapping[int, tuple[Mapping[str, Any], Mapping[str, Any] | None]],
) -> Refereed:
    model = MODELS[one["anomaly"]]
    table = _columns([rows[index] for index in one["operations"] if index in rows])
    found = bridge.linearizable(calls_of(table, model), deadline_s=DEADLINE_S)
    answer = {Answer.INVALID: "confirmed", Answer.VALID: "refuted"}.get(found.answer, "undecided")
    if found.answer is Answer.VALID and one["where"] == str(Rule.NOT_EMPTY):
        # Where several values together contradict an answer, the finding names one of them.
        return Refereed(*_name(one), "undecided", "one of several values that contradict it together")
    return Refereed(*_name(one), answer, found.why)


def _name(one: Mapping[str, Any]) -> tuple[str, str, int, int | None, str]:
    return one["anomaly"], one["topic"], one["partition"], one["value"], one["where"]


def _columns(operations: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> Columns:
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
    """For verdict.json."""
    counts = {word: sum(one.answer == word for one in said) for word in ("confirmed", "refuted", "undecided")}
    return {"by": "Knossos", **counts, "findings": [asdict(one) for one in said]}


def lines(said: Sequence[Refereed]) -> list[str]:
    """For people: what stands, and what does not."""
    if not said:
        return []
    told = summary(said)
    found = [f"Knossos confirms {told['confirmed']} of {len(said)} witnesses ({told['undecided']} undecided)"]
    found += [
        f"Knossos finds an order for the witness of {one.anomaly} in {one.topic}-{one.partition} (value {one.value}): "
        "that finding is a mistake of the checker or of the referee"
        for one in said
        if one.answer == "refuted"
    ]
    return found
