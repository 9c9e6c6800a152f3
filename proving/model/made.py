"""A run of the model server, written as the recorder would have written it: one Arrow table in the history's
schema.

The clients' rows are in order of time; control rows (phases, assignment, metadata) and one fault per failover
lie among them; the final read and the replicas' own logs follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.history.model import (
    CONTROL,
    NEMESIS,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
)
from wrackline.history.store.files import ROW_GROUP_ROWS, open_writer, put_info, write_history
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.model import application, group_events, transaction_events
from wrackline.proving.model.columns import (
    LOST_ERROR,
    REFUSED_ERROR,
    TOPIC,
    Block,
    events,
    join,
    one_event,
    polls,
    positions,
    rebalanced,
    records,
)
from wrackline.proving.model.drawing import Bools, Ints
from wrackline.proving.model.final_reads import HOSTS, final_read, replicas
from wrackline.proving.model.knobs import Knobs
from wrackline.proving.model.log_server import Outcome, serve
from wrackline.proving.model.looks import looks


@dataclass
class MadeTable:
    """A history that was made, not recorded."""

    info: RunInfo
    table: pa.Table
    """Rows of ``wrackline.history.store.schema``, in order of ``index``."""

    def write(self, run_dir: Path) -> Path:
        """The history's file in a directory of its own, for ``wrackline.checkers.analysis``. Raises
        OSError."""
        return write_table(run_dir, self.info, self.table)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The same as objects: for histories one can read through."""
        return tuple(as_event(row) for row in self.table.to_pylist())


@dataclass
class Made(MadeTable):
    """A history made by the model log server."""

    knobs: Knobs = field(default_factory=Knobs)


def write_table(run_dir: Path, info: RunInfo, table: pa.Table) -> Path:
    """A history of rows in the harness' schema. Raises OSError."""
    run_dir.mkdir(parents=True, exist_ok=True)
    with open_writer(run_dir / "history.parquet") as writer:
        writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        put_info(writer, info)
    return run_dir


def write_events(run_dir: Path, info: RunInfo, events: list[Event]) -> Path:
    """A history of events, for ``wrackline.checkers.analysis``. Raises FileExistsError, OSError."""
    write_history(run_dir, info, events)
    return run_dir


def make(test_id: str, seed: int, knobs: Knobs | None = None) -> Made:
    """A correct history. The same seed and knobs give the same rows. Raises ValueError (see ``serve``)."""
    knobs = knobs or Knobs()
    outcome = serve(seed, knobs)
    info = RunInfo(
        test_id=test_id,
        name="made",
        seed=seed,
        started_at="2026-01-01T00:00:00Z",
        system="wrackline",
        workload="log",
        acks="all",
        idempotence=knobs.idempotence,
        topics=(
            TopicInfo(
                TOPIC,
                knobs.partitions,
                len(HOSTS),
                2,
                contiguous=not (knobs.transactional or knobs.keys),
                compacted=knobs.keys > 0,
            ),
            *application.output_topic(outcome),
        ),
        isolation="read_committed" if knobs.transactional else "",
        nodes={str(node): host for node, host in HOSTS.items()},
    )
    clients = join([*_clients(outcome), *looks(seed, knobs.looks, outcome.end_ns)], by_time=True)
    after = join(
        [*final_read(outcome, seed), *application.final_read(outcome), *replicas(outcome, seed)],
        by_time=False,
    )
    table = numbered(pa.concat_tables([clients, after]), test_id)
    return Made(info, table.cast(SCHEMA), knobs)


def numbered(table: pa.Table, test_id: str, first: int = 0) -> pa.Table:
    """Returns the table with the test's id, and with the events numbered from ``first`` on."""
    names = table.column_names
    constant = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.int32)), pa.array([test_id]))
    return table.set_column(names.index("test_id"), "test_id", constant.cast(pa.string())).set_column(
        names.index("index"), "index", pa.array(first + np.arange(len(table)), pa.int64())
    )


def as_event(row: Mapping[str, Any]) -> Event:
    columns = {name: value for name, value in row.items() if name != "test_id"}
    columns["records"] = tuple(Record(**one) for one in row["records"] or ())
    columns["extra"] = orjson.loads(row["extra"]) if row["extra"] else None
    return Event(**{**columns, "type": Type(row["type"])})


# --- clients ------------------------------------------------------------------------------------------------


def _clients(outcome: Outcome) -> Iterator[Block]:
    yield from _sends(outcome)
    yield from _ends(outcome)
    yield from _reads(outcome)
    yield from transaction_events.polls(outcome)
    for group in outcome.groups:
        yield from group_events.members(outcome, group)
    yield from _share_group(outcome)
    yield from application.sends(outcome)
    yield from _control(outcome)


def _sends(outcome: Outcome) -> Iterator[Block]:
    of = outcome.sends
    if not len(of.invoke_op):
        return
    bounds = np.append(of.first_op, len(of.value_rec))
    offsets = np.full(len(of.value_rec), UNKNOWN, dtype=np.int64)
    errors = {"invoke": None, "ok": None, "fail": REFUSED_ERROR, "info": LOST_ERROR}

    def block(rows: Ints, kind: str, of_all: pa.Array, extra: list[str | None] | None) -> Block:
        first = of.first_op[rows]
        return events(
            of,
            rows,
            kind,
            "send",
            partition=of.partition_rec[first],
            key=_keys(of.key_rec[first]),
            records=of_all.take(pa.array(rows)),
            error=errors[kind],
            extra=extra,
        )

    sent = records(of.partition_rec, offsets, of.value_rec, bounds)
    yield block(np.arange(len(of.invoke_op)), "invoke", sent, _in_transactions(of.txn_op))
    whole = records(of.partition_rec, of.told_rec, of.value_rec, bounds)
    for kind, mine in of.kinds().items():
        rows = np.flatnonzero(mine & of.recorded_op)
        if len(rows):
            extra = _in_transactions(of.txn_op[rows], of.end_op[rows], of.commits_op[rows])
            yield block(rows, kind, whole, extra)


def _keys(number: Ints) -> list[str | None] | None:
    return [None if one < 0 else f"k{one}" for one in number.tolist()] if (number >= 0).any() else None


def _in_transactions(
    number: Ints, end: Ints | None = None, commits: Bools | None = None
) -> list[str | None] | None:
    """``extra`` of sends; ``end``: of their completions."""
    if not (number >= 0).any():
        return None
    if end is None or commits is None:
        return [None if one < 0 else f'{{"txn":{one}}}' for one in number.tolist()]
    return [
        None if one < 0 else f'{{"txn":{one},"asked":"{"commit" if commit else "abort"}","end_ns":{at}}}'
        for one, at, commit in zip(number.tolist(), end.tolist(), commits.tolist(), strict=True)
    ]


def _ends(outcome: Outcome) -> Iterator[Block]:
    of = outcome.ends
    if not len(of.invoke_op):
        return
    good, bad = np.flatnonzero(~of.failed_op), np.flatnonzero(of.failed_op)
    yield events(of, np.arange(len(of.invoke_op)), "invoke", "end", partition=of.partition_op)
    yield events(of, good, "ok", "end", partition=of.partition_op[good], high_watermark=of.told_op[good])
    yield events(of, bad, "fail", "end", partition=of.partition_op[bad], error=LOST_ERROR)


def _reads(outcome: Outcome) -> Iterator[Block]:
    of = outcome.reads
    if not len(of.invoke_op):
        return
    members = outcome.knobs.producers + round(outcome.knobs.subscribed * outcome.knobs.consumers)
    yield from _rebalances(outcome, np.flatnonzero(of.assigns_op & (of.process_op < members)))
    assigns = np.flatnonzero(of.assigns_op & (of.process_op >= members))
    starts = positions(of.end_op[assigns], of.holds_op[assigns])
    yield from (events(of, assigns, kind, "assign", extra=starts) for kind in ("invoke", "ok"))
    rows = np.flatnonzero(~of.assigns_op)
    yield from polls(outcome, of, rows, of.failed_op[rows])


def _rebalances(outcome: Outcome, rows: Ints) -> Iterator[Block]:
    """A member joins, then it is told of its partitions again and again; sometimes also where it starts in
    them."""
    of = outcome.reads
    first = rows[np.diff(of.process_op[rows], prepend=-1) != 0]
    joins = [
        orjson.dumps({"group": f"g{p}", "partitions": list(range(outcome.knobs.partitions))}).decode()
        for p in of.process_op[first].tolist()
    ]
    yield from (events(of, first, kind, "subscribe", extra=joins) for kind in ("invoke", "ok"))
    members = enumerate(of.process_op[rows].tolist())
    who = ({"group": f"g{process}", "generation": generation} for generation, process in members)
    yield events(of, rows, "ok", "rebalance", extra=rebalanced(of, rows, of.end_op, who))


def _share_group(outcome: Outcome) -> Iterator[Block]:
    for event in outcome.share.events:
        acquired = None
        if event.f == "acquire" and event.kind == "ok":
            partition, offset = np.array(event.places, dtype=np.int64).reshape(-1, 2).T
            value, epoch = (
                np.array([getattr(outcome.logs[p], name)[o] for p, o in event.places], dtype=np.int64)
                for name in ("value", "epoch")
            )
            acquired = records(partition, offset, value, np.array([0, len(value)]), epoch)
        yield one_event(
            event.ns, event.process, event.kind, event.f, event.extra, records=acquired, error=event.error
        )


# --- runner and nemesis -------------------------------------------------------------------------------------


def _control(outcome: Outcome) -> Iterator[Block]:
    parts = range(outcome.knobs.partitions)
    yield from setup([_reported(p, 0, list(HOSTS)) for p in parts])
    for p, one in enumerate(outcome.failovers):
        for number in range(len(one.stall)):
            old, others = _leader(number), [node for node in HOSTS if node != _leader(number)]
            fault = {"id": f"f{p}.{number}", "targets": [HOSTS[old]], "role": f"leader({TOPIC}-{p})"}
            times = (one.stall[number], one.stall[number], one.reopen[number], one.reopen[number])
            for at, phase in zip(times, ("begin", "active", "undo", "ended"), strict=True):
                proved = True if phase == "ended" else None
                extra = {**fault, "phase": phase, "proved": proved, "restored": proved}
                yield one_event(int(at), NEMESIS, "info", "kill", extra, None)
            for at, isr in ((one.change[number], others), (one.reopen[number], list(HOSTS))):
                changed = {"partitions": [_reported(p, number + 1, isr)]}
                yield one_event(int(at), CONTROL, "info", "cluster", changed, None)
    yield from teardown(outcome.end_ns)


def setup(cluster: Sequence[Mapping[str, object]]) -> Iterator[Block]:
    """The runner's rows before clients begin. ``cluster``: the metadata of each partition, in order."""
    nodes = {str(node): host for node, host in HOSTS.items()}
    assignment = {str(p): list(HOSTS) for p in range(len(cluster))}
    yield one_event(0, CONTROL, "info", "phase", {"phase": "setup"}, None)
    yield one_event(1, CONTROL, "info", "assignment", {"assignment": assignment, "nodes": nodes})
    yield one_event(2, CONTROL, "info", "cluster", {"partitions": cluster}, None)
    yield one_event(3, CONTROL, "info", "phase", {"phase": "main"}, None)


def teardown(end_ns: int) -> Iterator[Block]:
    """The runner's rows after clients are done."""
    for after, phase in enumerate(("heal", "drain"), 1):
        yield one_event(end_ns + after, CONTROL, "info", "phase", {"phase": phase}, None)


def _leader(epoch: int) -> int:
    return list(HOSTS)[epoch % len(HOSTS)]


def _reported(partition: int, epoch: int, isr: list[int]) -> dict[str, object]:
    return {
        "topic": TOPIC,
        "partition": partition,
        "leader": _leader(epoch),
        "leader_epoch": epoch,
        "isr": isr,
        "elr": [],
        "replicas": list(HOSTS),
    }
