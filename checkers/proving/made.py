"""A run of the model server, written as the recorder would have written it: one Arrow table in the history's
schema.

The clients' rows are in order of time; control rows (phases, assignment, metadata) and one fault per failover
lie among them; the final read and the replicas' own logs follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.proving import made_groups, made_transactions
from wrackline.checkers.proving.columns import TOPIC, Block, Ints, given, join, positions, records
from wrackline.checkers.proving.drawing import MARKER, PartitionLog
from wrackline.checkers.proving.knobs import Final, Knobs
from wrackline.checkers.proving.log_server import Outcome, serve
from wrackline.history.files import ROW_GROUP_ROWS, open_writer, put_info, write_history
from wrackline.history.model import (
    CONTROL,
    NEMESIS,
    REPLICA,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
)
from wrackline.history.schema import SCHEMA

HOSTS = {1: "n1", 2: "n2", 3: "n3"}
CHUNK = 2_000
"""Records of one row of the final read or of a replica's log."""
REFUSED_ERROR, LOST_ERROR = "MSG_SIZE_TOO_LARGE", "_TIMED_OUT"


@dataclass
class MadeTable:
    """A history that was made, not recorded."""

    info: RunInfo
    table: pa.Table
    """Rows of ``wrackline.history.schema``, in order of ``index``."""

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
    """Of the model log server."""

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
        topics=(TopicInfo(TOPIC, knobs.partitions, len(HOSTS), 2, contiguous=not knobs.transactional),),
        nodes={str(node): host for node, host in HOSTS.items()},
    )
    clients = join(list(_clients(outcome)), by_time=True)
    after = join([*_final(outcome, seed), *_replicas(outcome, seed)], by_time=False)
    table = numbered(pa.concat_tables([clients, after]), test_id)
    return Made(info, table.cast(SCHEMA), knobs)


def numbered(table: pa.Table, test_id: str, first: int = 0) -> pa.Table:
    """With the test's id, and the events numbered from ``first`` on."""
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
    yield from made_transactions.polls(outcome)
    for group in outcome.groups:
        yield from made_groups.members(outcome, group)
    yield from _control(outcome)


def _sends(outcome: Outcome) -> Iterator[Block]:
    of = outcome.sends
    if not len(of.invoke_op):
        return
    partition = of.partition_rec[of.first_op]
    bounds = np.append(of.first_op, len(of.value_rec))
    asked = np.full(len(of.value_rec), UNKNOWN, dtype=np.int64)
    yield Block(
        of.invoke_op,
        of.process_op,
        "invoke",
        "send",
        topic=TOPIC,
        partition=partition,
        records=records(of.partition_rec, asked, of.value_rec, bounds),
        extra=_in_transactions(of.txn_op),
    )
    whole = records(of.partition_rec, of.told_rec, of.value_rec, bounds)
    errors = {"ok": None, "fail": REFUSED_ERROR, "info": LOST_ERROR}
    for kind, mine in of.kinds().items():
        error, rows = errors[kind], np.flatnonzero(mine & of.recorded_op)
        if len(rows):
            yield Block(
                of.complete_op[rows],
                of.process_op[rows],
                kind,
                "send",
                topic=TOPIC,
                partition=partition[rows],
                records=whole.take(pa.array(rows)),
                error=error,
                extra=_in_transactions(of.txn_op[rows]),
            )


def _in_transactions(number: Ints) -> list[str | None] | None:
    """``extra`` of sends and polls."""
    if not (number >= 0).any():
        return None
    return [None if one < 0 else f'{{"txn":{one}}}' for one in number.tolist()]


def _ends(outcome: Outcome) -> Iterator[Block]:
    of = outcome.ends
    if not len(of.invoke_op):
        return
    yield Block(of.invoke_op, of.process_op, "invoke", "end", topic=TOPIC, partition=of.partition_op)
    good, bad = np.flatnonzero(~of.failed_op), np.flatnonzero(of.failed_op)
    yield Block(
        of.complete_op[good],
        of.process_op[good],
        "ok",
        "end",
        topic=TOPIC,
        partition=of.partition_op[good],
        high_watermark=of.told_op[good],
    )
    yield Block(
        of.complete_op[bad],
        of.process_op[bad],
        "fail",
        "end",
        topic=TOPIC,
        partition=of.partition_op[bad],
        error=LOST_ERROR,
    )


def _reads(outcome: Outcome) -> Iterator[Block]:
    of = outcome.reads
    if not len(of.invoke_op):
        return
    members = outcome.knobs.producers + round(outcome.knobs.subscribed * outcome.knobs.consumers)
    yield from _rebalances(outcome, np.flatnonzero(of.assigns_op & (of.process_op < members)))
    assigns = np.flatnonzero(of.assigns_op & (of.process_op >= members))
    polls = np.flatnonzero(~of.assigns_op)
    starts = positions(of.end_op[assigns], of.holds_op[assigns])
    for times, kind in ((of.invoke_op, "invoke"), (of.complete_op, "ok")):
        yield Block(times[assigns], of.process_op[assigns], kind, "assign", topic=TOPIC, extra=starts)
    yield Block(of.invoke_op[polls], of.process_op[polls], "invoke", "poll", topic=TOPIC)
    good, bad = polls[~of.failed_op[polls]], polls[of.failed_op[polls]]
    yield Block(of.complete_op[bad], of.process_op[bad], "fail", "poll", topic=TOPIC, error=LOST_ERROR)
    yield Block(
        of.complete_op[good],
        of.process_op[good],
        "ok",
        "poll",
        topic=TOPIC,
        records=given(outcome, of.begin_op[good], of.end_op[good], of.holds_op[good]),
        extra=positions(of.end_op[good], of.holds_op[good]),
    )


def _rebalances(outcome: Outcome, rows: Ints) -> Iterator[Block]:
    """A member joins, then it is told of its partitions again and again; sometimes also where it starts in
    them."""
    of = outcome.reads
    first = rows[np.diff(of.process_op[rows], prepend=-1) != 0]
    joins = [
        orjson.dumps({"group": f"g{p}", "partitions": list(range(outcome.knobs.partitions))}).decode()
        for p in of.process_op[first].tolist()
    ]
    for times, kind in ((of.invoke_op, "invoke"), (of.complete_op, "ok")):
        yield Block(times[first], of.process_op[first], kind, "subscribe", topic=TOPIC, extra=joins)
    told, before = [], (-1, list[int]())
    for generation, row in enumerate(rows.tolist()):
        process, mine = int(of.process_op[row]), np.flatnonzero(of.holds_op[row]).tolist()
        extra: dict[str, object] = {"group": f"g{process}", "generation": generation, "partitions": mine}
        if before[0] == process:
            extra["revoked"] = [p for p in before[1] if p not in mine]
        if generation % 3:
            extra["positions"] = {str(p): int(of.end_op[row, p]) for p in mine}
        told.append(orjson.dumps(extra).decode())
        before = (process, mine)
    yield Block(of.complete_op[rows], of.process_op[rows], "ok", "rebalance", topic=TOPIC, extra=told)


# --- runner and nemesis -------------------------------------------------------------------------------------


def _control(outcome: Outcome) -> Iterator[Block]:
    def row(at: int, process: int, f: str, extra: object, topic: str | None = None) -> Block:
        said = [orjson.dumps(extra).decode()]
        return Block(np.array([at]), np.array([process]), "info", f, topic=topic, extra=said)

    nodes, parts = {str(node): host for node, host in HOSTS.items()}, range(outcome.knobs.partitions)
    yield row(0, CONTROL, "phase", {"phase": "setup"})
    assignment = {str(p): list(HOSTS) for p in parts}
    yield row(1, CONTROL, "assignment", {"assignment": assignment, "nodes": nodes}, TOPIC)
    yield row(2, CONTROL, "cluster", {"partitions": [_told(p, 0, list(HOSTS)) for p in parts]})
    yield row(3, CONTROL, "phase", {"phase": "main"})
    for p, one in enumerate(outcome.failovers):
        for number in range(len(one.stall)):
            old, left = _leader(number), [node for node in HOSTS if node != _leader(number)]
            fault = {"id": f"f{p}.{number}", "targets": [HOSTS[old]], "role": f"leader({TOPIC}-{p})"}
            times = (one.stall[number], one.stall[number], one.reopen[number], one.reopen[number])
            for at, phase in zip(times, ("begin", "active", "undo", "ended"), strict=True):
                proved = True if phase == "ended" else None
                yield row(int(at), NEMESIS, "kill", {**fault, "phase": phase, "proved": proved})
            changed = {"partitions": [_told(p, number + 1, left)]}
            whole = {"partitions": [_told(p, number + 1, list(HOSTS))]}
            yield row(int(one.change[number]), CONTROL, "cluster", changed)
            yield row(int(one.reopen[number]), CONTROL, "cluster", whole)
    yield row(outcome.end_ns + 1, CONTROL, "phase", {"phase": "heal"})
    yield row(outcome.end_ns + 2, CONTROL, "phase", {"phase": "drain"})


def _leader(epoch: int) -> int:
    return list(HOSTS)[epoch % len(HOSTS)]


def _told(partition: int, epoch: int, isr: list[int]) -> dict[str, object]:
    return {
        "topic": TOPIC,
        "partition": partition,
        "leader": _leader(epoch),
        "leader_epoch": epoch,
        "isr": isr,
        "elr": [],
        "replicas": list(HOSTS),
    }


# --- final read and replicas --------------------------------------------------------------------------------


def _chunks(
    log: PartitionLog, partition: int, upto: int, *, told: bool = True, raw: bool = False
) -> Iterator[tuple[pa.Array, bool]]:
    """Rows of records, and is it the last. ``raw``: also those of transactions that aborted, as a replica
    holds them."""
    for start in range(0, max(upto, 1), CHUNK):
        stop = min(start + CHUNK, upto)
        offsets = np.arange(start, max(start, stop))
        offsets = offsets[(log.value[offsets] != MARKER) & (log.shown[offsets] | raw)]
        size = len(offsets)
        epoch = log.epoch[offsets] if told else np.full(size, -1)
        bounds = np.array([0, size])
        yield records(np.full(size, partition), offsets, log.value[offsets], bounds, epoch), stop >= upto


def _final(outcome: Outcome, seed: int) -> Iterator[Block]:
    if outcome.knobs.final is Final.NONE:
        return
    random, at = np.random.default_rng([seed, 0xF1A]), outcome.end_ns + 10
    first = int(max(outcome.sends.process_op.max(initial=0) + 1, 900_000))
    for p, log in enumerate(outcome.logs):
        end, whole = len(log.value), outcome.knobs.final is Final.COMPLETE or random.random() < 0.4
        if not whole and random.random() < 0.3:
            continue
        upto = end if whole else int(random.integers(0, end + 1))
        for chunk, last in _chunks(log, p, upto, told=outcome.knobs.epochs_told):
            now, process, partition = np.array([at]), np.array([first + p]), np.array([p])
            yield Block(now, process, "invoke", "drain", topic=TOPIC, partition=partition)
            yield Block(
                now + 1,
                process,
                "ok",
                "drain",
                topic=TOPIC,
                partition=partition,
                offset=np.array([0]),
                high_watermark=np.array([end]),
                records=chunk,
                extra=['{"complete":true}' if last and whole else "{}"],
            )
            at += 2


def _replicas(outcome: Outcome, seed: int) -> Iterator[Block]:
    if not outcome.knobs.replicas:
        return
    random, at = np.random.default_rng([seed, 0x8E9]), outcome.end_ns + 1_000_000
    nowhere = _nowhere(outcome)
    for p, log in enumerate(outcome.logs):
        unseen = nowhere[p]
        for host in HOSTS.values():
            behind = host != HOSTS[1] and random.random() < outcome.knobs.straggler
            hw = int(random.integers(0, len(log.value) + 1)) if behind else len(log.value)
            held = log
            if behind and unseen is not None:
                # What it had taken from a deposed leader, in place of what came after: above its high
                # watermark.
                epoch = log.epoch[hw - 1] if hw else 0
                held = PartitionLog(
                    np.append(log.value[:hw], unseen),
                    np.append(log.epoch[:hw], epoch),
                    log.visible[:0],
                    np.append(log.shown[:hw], True),
                )
            leo = hw + 1 if held is not log else hw
            for chunk, last in _chunks(held, p, leo, raw=True):
                extra = {"in_isr": not behind, "complete": last, "hw": hw}
                yield Block(
                    np.array([at]),
                    np.array([REPLICA]),
                    "ok",
                    "replica",
                    topic=TOPIC,
                    partition=np.array([p]),
                    node=host,
                    offset=np.array([0]),
                    high_watermark=np.array([leo]),
                    records=chunk,
                    extra=[orjson.dumps(extra).decode()],
                )
                at += 1


def _nowhere(outcome: Outcome) -> list[int | None]:
    """For each partition a value sent to it, in doubt, that is in no log."""
    sends = outcome.sends
    doubtful = np.flatnonzero(sends.told_rec == UNKNOWN)
    landed = np.concatenate([log.value for log in outcome.logs])
    lost = doubtful[~np.isin(sends.value_rec[doubtful], landed)]
    found: list[int | None] = [None] * outcome.knobs.partitions
    for row in lost[::-1].tolist():
        found[int(sends.partition_rec[row])] = int(sends.value_rec[row])
    return found
