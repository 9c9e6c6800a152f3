"""The end of a made history: the final read, and every replica's own log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from wrackline.history.model import REPLICA, UNKNOWN
from wrackline.proving.model.columns import Block, one_event, records
from wrackline.proving.model.drawing import MARKER, Bools, PartitionLog
from wrackline.proving.model.knobs import Final
from wrackline.proving.model.log_server import Outcome

HOSTS = {1: "n1", 2: "n2", 3: "n3"}
CHUNK = 2_000
"""Records of one row of the final read or of a replica's log."""


def _compacted(log: PartitionLog, share: float, random: np.random.Generator) -> Bools:
    """Tells which records are still there after compaction."""
    there: Bools = ~log.superseded() | (random.random(len(log.key)) >= share)
    return there


def _pieces(
    log: PartitionLog,
    partition: int,
    upto: int,
    there: Bools,
    *,
    with_epochs: bool = True,
    raw: bool = False,
) -> Iterator[tuple[pa.Array, bool]]:
    """Rows of records, and is it the last. ``raw``: also those of transactions that aborted, as a replica
    holds them."""
    for start in range(0, max(upto, 1), CHUNK):
        stop = min(start + CHUNK, upto)
        offsets = np.arange(start, max(start, stop))
        offsets = offsets[(log.value[offsets] != MARKER) & (log.shown[offsets] | raw) & there[offsets]]
        size = len(offsets)
        epoch = log.epoch[offsets] if with_epochs else np.full(size, -1)
        bounds = np.array([0, size])
        yield records(np.full(size, partition), offsets, log.value[offsets], bounds, epoch), stop >= upto


def final_read(outcome: Outcome, seed: int) -> Iterator[Block]:
    if outcome.knobs.final is Final.NONE:
        return
    random, at = np.random.default_rng([seed, 0xF1A]), outcome.end_ns + 10
    first = int(max(outcome.sends.process_op.max(initial=0) + 1, 900_000))
    for p, log in enumerate(outcome.logs):
        end, whole = len(log.value), outcome.knobs.final is Final.COMPLETE or random.random() < 0.4
        if not whole and random.random() < 0.3:
            continue
        upto = end if whole else int(random.integers(0, end + 1))
        there = _compacted(log, outcome.knobs.compacted, np.random.default_rng([seed, 0xC03, p]))
        for piece, last in _pieces(log, p, upto, there, with_epochs=outcome.knobs.epochs_reported):
            yield one_event(at, first + p, "invoke", "drain", None, partition=p)
            extra = {"complete": True} if last and whole else {}
            bounds: dict[str, Any] = {"partition": p, "offset": 0, "high_watermark": end}
            yield one_event(at + 1, first + p, "ok", "drain", extra, **bounds, records=piece)
            at += 2


def replicas(outcome: Outcome, seed: int) -> Iterator[Block]:
    if not outcome.knobs.replicas:
        return
    random, at = np.random.default_rng([seed, 0x8E9]), outcome.end_ns + 1_000_000
    nowhere = _nowhere(outcome)
    for p, log in enumerate(outcome.logs):
        unseen = nowhere[p]
        for number, host in enumerate(HOSTS.values()):
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
                    np.append(log.key[:hw], -1),
                )
            thinner = np.random.default_rng([seed, 0xC04, p, number])
            there = _compacted(held, 0.0 if behind else outcome.knobs.compacted, thinner)
            leo = hw + 1 if held is not log else hw
            for piece, last in _pieces(held, p, leo, there, raw=True):
                extra = {"in_isr": not behind, "complete": last, "hw": hw}
                bounds: dict[str, Any] = {"partition": p, "offset": 0, "high_watermark": leo}
                yield one_event(at, REPLICA, "ok", "replica", extra, **bounds, node=host, records=piece)
                at += 1


def _nowhere(outcome: Outcome) -> list[int | None]:
    """Returns for each partition a value sent to it, in doubt, that is in no log; None where there is
    none."""
    sends = outcome.sends
    doubtful = np.flatnonzero(sends.told_rec == UNKNOWN)
    landed = np.concatenate([log.value for log in outcome.logs])
    lost = doubtful[~np.isin(sends.value_rec[doubtful], landed)]
    result: list[int | None] = [None] * outcome.knobs.partitions
    for row in lost[::-1].tolist():
        result[int(sends.partition_rec[row])] = int(sends.value_rec[row])
    return result
