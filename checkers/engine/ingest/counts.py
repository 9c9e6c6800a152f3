"""Counting operations (docs/anomalies.md section 6) in numpy: finely enough for all that is said of them, and
few rows.

Each part of a history that is read at once is counted (``Counts``); whoever sees all counts of a run sums
them up (``figures_of``), and gaps between acks are put together per partition (``longest_gaps``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wrackline.checkers.engine.candidates import SendOutcome
from wrackline.checkers.engine.context import Context, owner_of_run
from wrackline.checkers.engine.fact_codec import AS_A_WHOLE, Writer
from wrackline.checkers.engine.facts import Count, Gap, each_group, grouped
from wrackline.checkers.inputs.row_groups import FAIL, INFO, OK, Batch, Names, Operations
from wrackline.checkers.inputs.table import NONE, Bools, C, Ints, Table, concatenated, constant
from wrackline.history.model import ABORTED_ON_PURPOSE, CRASHED_ON_PURPOSE, POLLS, UNASKED

BUCKETS = 50.0
"""Latencies are counted in buckets of this many to a factor of e: quantiles are right to 1 %."""
_SHIFT = 512
"""Added to buckets, so that none is negative; 0 stands for no latency."""
ABORTED, CRASHED = 0, INFO + 1
"""The kinds of operations that failed, or whose end is unknown, as they were meant to: no operation has that
of an invocation."""
_COUNTED = {"ok": OK, "fail": FAIL, "info": INFO}
PERCENTS = (50, 95, 99)
"""Of the latencies of a whole period."""
ANY_FAULT, FIRST_ACK, LAST_ACK = -1, -2, -3
"""What a gap's ``fault`` may be besides a fault's number: a gap under any or none, and the edges of a part of
the history that was read at once."""


@dataclass(frozen=True, slots=True)
class Key(Table[C]):
    """The properties that are the same for operations that are counted together."""

    bucket: C
    """Of the latency; 0 where there is none."""
    spans: C
    """1: it was invoked in one segment of time and completed in another."""
    segment: C
    """Where it was invoked."""
    second: C
    """When it was done, or invoked where it was not."""
    kind: C
    """OK, FAIL or INFO; ABORTED or CRASHED."""
    asked: C
    """1: a client was asked to do it, apart from a transaction."""
    f: C

    def packed(self: Key[Ints]) -> Ints:
        """One number for each; what has no room is the largest that has."""
        key: Ints = np.zeros(len(self), dtype=np.int64)
        for column, bits in reversed(list(zip(self.columns(), _BITS.columns(), strict=True))):
            key = key << bits | np.minimum(column, (1 << bits) - 1)
        return key


_BITS = Key(bucket=12, spans=1, segment=14, second=24, kind=3, asked=1, f=8)


def _unpacked(key: Ints) -> Key[Ints]:
    result = []
    for bits in _BITS.columns():
        result.append(key & ((1 << bits) - 1))
        key = key >> bits
    return Key.of_columns(result)


class Counts:
    """Counts one part of a history that is read at once."""

    def __init__(self, run: int, context: Context) -> None:
        self.run, self.context = run, context
        self._counted: list[Count] = []
        self._errors: Counter[tuple[int, int]] = Counter()
        self._acked = 0
        self._read = 0
        self.transactional = 0
        """Events that belong to transactions."""
        self._written: Counter[tuple[int, int, bool]] = Counter()
        """(log, segment, acked) -> records whose outcome came then."""
        self._gaps = _Gaps(context.spans[run])

    def operations(self, batch: Batch, operations: Operations, names: Mapping[str, Names]) -> None:
        f = names["f"]
        polls = np.isin(operations.f, [f.number(name) for name in POLLS]) & (operations.kind == OK)
        self._read += int(batch.events.size[operations.event[polls]].sum())
        edges = self.context.edges[self.run]
        done = np.where(operations.complete_ns == NONE, operations.invoke_ns, operations.complete_ns)
        taken = np.where(operations.kind == OK, operations.complete_ns - operations.invoke_ns, 0)
        milliseconds = np.maximum(taken / 1e6, 1e-3)
        bucket = np.where(operations.kind == OK, np.rint(np.log(milliseconds) * BUCKETS) + _SHIFT, 0)
        segment = np.searchsorted(edges, operations.invoke_ns, "right")
        error = names["error"]
        aborted = (operations.kind == FAIL) & (operations.error == error.number(ABORTED_ON_PURPOSE))
        crashed = (operations.kind == INFO) & (operations.error == error.number(CRASHED_ON_PURPOSE))
        asked = ~np.isin(operations.f, [f.number(name) for name in UNASKED])
        asked &= (operations.f == f.number("send")) | (batch.events.txn[operations.event] == 0)
        asked &= (operations.f != f.number("send")) | ~np.isin(operations.base, sorted(self.context.outputs))
        key = Key(
            f=operations.f,
            asked=asked.astype(np.int64),
            kind=np.where(aborted, ABORTED, np.where(crashed, CRASHED, operations.kind)),
            second=done // 1_000_000_000,
            segment=segment,
            spans=(segment != np.searchsorted(edges, done, "right")).astype(np.int64),
            bucket=bucket.astype(np.int64),
        )
        self._counted.append(_summed(Count(key.packed(), constant(1, len(key)), taken)))
        if len(self._counted) > 16:
            self._counted = [_all(self._counted)]

    def sends(self, log: Ints, outcome: Ints, error: Ints, complete_ns: Ints, acked: Bools) -> None:
        self._acked += int((outcome == SendOutcome.ACKED).sum())
        bad = outcome != SendOutcome.ACKED
        if bad.any():
            pairs, counts = np.unique(np.stack([outcome[bad], error[bad]]), axis=1, return_counts=True)
            self._errors.update(dict(zip(map(tuple, pairs.T.tolist()), counts.tolist(), strict=True)))
        self._gaps.acks(log[acked], complete_ns[acked])
        done = (log != NONE) & (complete_ns != NONE)
        if done.any():
            segment = np.searchsorted(self.context.edges[self.run], complete_ns[done], "right")
            keys = np.stack([log[done], segment, acked[done].astype(np.int64)])
            places, counts = np.unique(keys, axis=1, return_counts=True)
            for key, count in zip(places.T.tolist(), counts.tolist(), strict=True):
                self._written[key[0], key[1], bool(key[2])] += count

    def leave(self, writer: Writer, names: Mapping[str, Names], quiet: bool) -> None:
        """The counts go to where those of the run are summed up, the gaps to their logs."""
        if quiet:
            return
        errors: Counter[str] = Counter()
        for (outcome, error), count in self._errors.items():
            errors[names["error"].names[error] if error != NONE else SendOutcome(outcome).word] += count
        figures: dict[str, Any] = {
            "run": self.run,
            "errors": errors,
            "acked": self._acked,
            "read": self._read,
        }
        figures["written"] = [[*key, count] for key, count in self._written.items()]
        figures["transactional"] = self.transactional
        owner = owner_of_run(self.run)
        writer.note(owner, 0, figures)
        if self._counted:
            writer.rows(owner, 0, _all(self._counted))
        self._gaps.leave(writer)


def _all(parts: Sequence[Count]) -> Count:
    return _summed(concatenated(Count, parts))


def _summed(rows: Count) -> Count:
    if not len(rows):
        return rows
    order = np.argsort(rows.key, kind="stable")
    key = rows.key[order]
    starts = np.append(0, np.flatnonzero(np.diff(key)) + 1)
    return Count(
        key=key[starts],
        n=np.add.reduceat(rows.n[order], starts),
        slowest=np.maximum.reduceat(rows.slowest[order], starts),
    )


@dataclass(frozen=True, slots=True)
class _Ack(Table[Ints]):
    log: Ints
    at: Ints
    """Its time (ns)."""


@dataclass(frozen=True, slots=True)
class _GapOfLog(Table[Ints]):
    log: Ints
    gap: Gap


class _Gaps:
    """The longest times without an ack, per log: of all, and that each fault touches."""

    def __init__(self, spans: Ints) -> None:
        self.spans = spans
        self._last = _Ack.unknown(0)
        self._gaps: list[_GapOfLog] = []

    def acks(self, log: Ints, at: Ints) -> None:
        if not len(log):
            return
        order = np.lexsort((at, log))
        both_log = np.concatenate([self._last.log, log[order]])
        both_at = np.concatenate([self._last.at, at[order]])
        order, starts, ends = grouped(both_log, both_at * 0)
        # Within a log the order is that of time, what came in earlier batches first.
        log, at = both_log[order], both_at[order]
        fresh = starts & (order >= len(self._last))
        self._put(log[fresh], FIRST_ACK, at[fresh], at[fresh])
        self._last = _Ack(log[ends], at[ends])
        later = np.flatnonzero(~starts)
        if len(later):
            self._longest(log[later], at[later - 1], at[later])

    def _longest(self, log: Ints, before: Ints, at: Ints) -> None:
        whole = [np.ones(len(log), dtype=bool)]
        touched = [(at > struck) & (before < until) for struck, until in self.spans.tolist()]
        for fault, some in zip((ANY_FAULT, *range(len(touched))), whole + touched, strict=True):
            some &= at > before
            if some.any():
                chosen = _maximal(log[some], before[some], at[some])
                self._put(chosen[0], fault, chosen[1], chosen[2])

    def _put(self, log: Ints, fault: int, before: Ints, at: Ints) -> None:
        self._gaps.append(_GapOfLog(log, Gap(constant(fault, len(log)), before, at)))

    def leave(self, writer: Writer) -> None:
        self._put(self._last.log, LAST_ACK, self._last.at, self._last.at)
        result = concatenated(_GapOfLog, self._gaps)
        writer.spread(result.log, AS_A_WHOLE, result.gap)


def _maximal(log: Ints, before: Ints, at: Ints) -> tuple[Ints, Ints, Ints]:
    """The longest gap of each log."""
    order = np.lexsort((before, at - before, log))
    log = log[order]
    ends = np.append(np.flatnonzero(np.diff(log)), len(log) - 1)
    chosen = order[ends]
    return log[ends], before[chosen], at[chosen]


def longest_gaps(log: int, gaps: Gap, context: Context) -> list[dict[str, Any]]:
    """Returns the longest gaps in the acks of one log, out of all its parts: [{log, fault (-1: any),
    last_ns, first_ns, gap_ns}]; an end that is no ack is None: the time in which clients were driven ends
    there."""
    run = log >> 32
    begin, end = context.bounds[run]
    edges = gaps.take((gaps.fault == FIRST_ACK) | (gaps.fault == LAST_ACK))
    inner = gaps.take(gaps.fault >= ANY_FAULT)
    times = np.concatenate([[begin, end], edges.at])
    is_ack = np.concatenate([[False, False], np.ones(len(edges), dtype=bool)])
    order = np.lexsort((is_ack, times))
    times, is_ack = times[order], is_ack[order]
    # Between the first and the last ack of one part of the history lie others: those gaps were measured
    # there.
    opened = np.concatenate([[False, False], edges.fault == FIRST_ACK])[order]
    closed = np.concatenate([[False, False], edges.fault == LAST_ACK])[order]
    inside = np.cumsum(opened.astype(np.int64)) - np.cumsum(closed.astype(np.int64))
    result: dict[int, tuple[int, int, int, int | None, int | None]] = {}

    def consider(fault: int, before: int, at: int, last: int | None, first: int | None) -> None:
        one = (at - before, before, at, last, first)
        if fault not in result or one[:2] > result[fault][:2]:
            result[fault] = one

    for n in range(1, len(times)):
        before, at = int(times[n - 1]), int(times[n])
        if at <= before or inside[n - 1] > 0:
            continue
        last, first = (before if is_ack[n - 1] else None), (at if is_ack[n] else None)
        if last is not None and first is not None:
            consider(ANY_FAULT, before, at, last, first)
        for fault, (struck, until) in enumerate(context.spans[run].tolist()):
            if at > struck and before < until:
                consider(fault, before, at, last, first)
    for fault, before, at in zip(inner.fault.tolist(), inner.before.tolist(), inner.at.tolist(), strict=True):
        consider(fault, before, at, before, at)
    return [
        {"log": log, "fault": fault, "gap_ns": gap, "last_ns": last, "first_ns": first}
        for fault, (gap, _, _, last, first) in result.items()
    ]


def figures_of(run: int, counts: Sequence[Count], context: Context) -> dict[str, Any]:
    """All counts of one run, summed up: seconds, segments, sends before, during and after faults."""
    rows = _all(counts)
    keys = _unpacked(rows.key)
    seconds = [
        {"t": second, "f": context.kinds[f], **figures}
        for f, second, figures in _grouped(rows, keys, keys.second, maximum=True)
    ]
    segments = [
        {"segment": segment, "f": context.kinds[f], **figures}
        for f, segment, figures in _grouped(rows, keys, keys.segment)
    ]
    return {
        "run": run,
        "seconds": seconds,
        "segments": segments,
        "latency": _periods(run, rows, keys, context),
    }


def _periods(run: int, rows: Count, keys: Key[Ints], context: Context) -> dict[str, Any]:
    """Latencies of sends: ``during`` is from the first fault's begin to the last one's end; ``healthy`` in
    the healthy segments of the main phase, from invocation to completion; ``faults`` under a fault, or into
    one."""
    if "send" not in context.kinds:
        return {}
    sent = (keys.f == context.kinds.index("send")) & (keys.kind == OK)
    first, last = context.trouble.get(run, (NONE, NONE))
    segment = keys.segment
    before = np.ones(len(rows), dtype=bool) if first == NONE else (segment <= first) & (keys.spans == 0)
    after = ~before & (segment > last)
    faulty = np.isin(segment, context.faulty[run])
    faulty |= (keys.spans == 1) & np.isin(segment + 1, context.faulty[run])
    healthy = np.isin(segment, context.healthy[run]) & (keys.spans == 0)
    result = {}
    for name, some in (
        ("before", before),
        ("after", after),
        ("during", ~before & ~after),
        ("healthy", healthy),
        ("faults", faulty),
    ):
        chosen = np.flatnonzero(sent & some)
        if len(chosen):
            result[name] = _quantiles(keys.bucket[chosen], rows.n[chosen], PERCENTS)
    return result


def _grouped(
    rows: Count, keys: Key[Ints], by: Ints, *, maximum: bool = False
) -> list[tuple[int, int, dict[str, Any]]]:
    """(f, ``by``, what is counted of them)."""
    result = []
    for some in each_group(keys.f, by):
        kinds, n = keys.kind[some], rows.n[some]
        figures: dict[str, Any] = {name: int(n[kinds == number].sum()) for name, number in _COUNTED.items()}
        figures["fail"] += int(n[kinds == ABORTED].sum())
        figures["info"] += int(n[kinds == CRASHED].sum())
        if maximum:
            figures |= _quantiles(keys.bucket[some], n)
            ok = kinds == OK
            figures["max_ms"] = round(float(rows.slowest[some][ok].max()) / 1e6, 3) if ok.any() else None
        else:
            asked = keys.asked[some] == 1
            figures["begun"] = int(n[asked].sum())
            figures["done"] = int(n[asked & np.isin(kinds, (OK, ABORTED, CRASHED))].sum())
        result.append((int(keys.f[some[0]]), int(by[some[0]]), figures))
    return result


def _quantiles(bucket: Ints, n: Ints, percents: Sequence[int] = (50, 99)) -> dict[str, float | None]:
    """Returns quantiles of latencies, in milliseconds; between two buckets in proportion."""
    some = bucket > 0
    if not some.any():
        return dict.fromkeys(f"p{percent}_ms" for percent in percents)
    order = np.argsort(bucket[some], kind="stable")
    latency = np.exp((bucket[some][order] - _SHIFT) / BUCKETS)
    upto = np.cumsum(n[some][order])

    def at(quantile: float) -> float:
        place = quantile * (int(upto[-1]) - 1)
        low, high = (
            latency[np.searchsorted(upto, spot, "right")] for spot in (int(place), int(np.ceil(place)))
        )
        return round(float(low + (high - low) * (place - int(place))), 3)

    return {f"p{percent}_ms": at(percent / 100) for percent in percents}
