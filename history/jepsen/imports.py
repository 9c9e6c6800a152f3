"""A history of Jepsen's Kafka or Redpanda queue test as a run directory of ours, so that the same checkers
judge it.

=====================  ======================================================================================
Jepsen                 here
=====================  ======================================================================================
key                    a partition of the one topic ``key``
value                  ``key << 32 | value`` (Jepsen's values are unique by key only); values that are no
                       integers below 2**32 are numbered in the order in which they first appear
process                its producer keeps the number; its consumer, a client of its own, is
                       ``process + CONSUMERS``
``:send``              ``send``; an offset of ``nil`` is an acknowledgement without offset. Offsets that a
                       ``:send`` of unknown outcome names hold where one of its values was polled
``:poll``              ``poll``. One that failed, or whose outcome is unknown, and gave records all the same,
                       is a ``poll`` that succeeded (``extra.aborted``), after which the consumer goes back
``:txn``, and each     a ``send`` and a ``poll`` (or one of them) with the same ``extra.txn``, both open for
operation of several   as long as the transaction was
sends or polls
``:assign``            ``assign``: where the consumer begins in each partition
                       (wrackline.history.jepsen.consumers)
``:subscribe``         ``subscribe``; ``:rebalance-log``: one ``rebalance`` row each, before the poll's
                       completion
``:crash``             ends the process; of a member of a group in an exported history of ours, a ``crash``
``:commit``,           of an exported history of ours: ``commit``, ``committed``
``:committed``
``:nemesis``           faults, never proved: Jepsen records what was asked for, not that it took effect
=====================  ======================================================================================

Jepsen has no final read apart from its polls, and judges loss among the offsets a consumer was given. So
the final read is what all polls together gave (wrackline.history.jepsen.observed), and nothing is known past
that: sends that were acknowledged there (Jepsen's *unseen*) are judged in all but loss, and a note and a
condition of the verdict say how many there are. Replicas' logs and end offsets are not in such a history.
"""

from __future__ import annotations

import contextlib
import datetime
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wrackline.history.jepsen.operations import TOPIC, Reader
from wrackline.history.jepsen.ops import Op, read_in_order
from wrackline.history.jepsen.text import TextError
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.history.store.files import write_history
from wrackline.values import spelt


class ImportFailed(TextError):
    """The history cannot be used. One line: where, what, how to mend it."""


@dataclass(frozen=True)
class Settings:
    """Facts that the history does not tell and a contract rests on."""

    name: str
    acks: str = "all"
    idempotence: bool = True
    replication_factor: int = 3
    min_insync_replicas: int = 2
    isolation: str = ""


def import_history(
    path: Path, results: Path, settings: Settings, progress: Callable[[int], None] = lambda _done: None
) -> Path:
    """The new run's directory. Raises ImportFailed, TextError, OSError."""
    reader = read_in_order(path, partial(_taken, path=path), progress)
    if not any(event.f in ("send", "poll") for event in reader.events):
        raise ImportFailed(
            f"{path}: no :send, :poll or :txn in it; only histories of Jepsen's Kafka and queue workloads "
            "can be judged here"
        )
    events = reader.finish()
    info = _info(path, settings, reader)
    run_dir = results / info.test_id
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, run_dir, ignore_errors=True)
        try:
            write_history(run_dir, info, events)
        except OSError as error:
            error.filename = error.filename or str(run_dir)
            raise
        undo.pop_all()
    return run_dir


def _taken(events: Iterator[Op], path: Path) -> Reader:
    reader = Reader()
    for one in events:
        try:
            reader.take(one)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ImportFailed(
                f"{path}, operation {one.at}: no operation of Jepsen's Kafka or queue workload "
                f"({error if isinstance(error, ValueError) else f'{type(error).__name__}: {error}'}): "
                f"{spelt(one.said):.100}"
            ) from error
    return reader


def _info(path: Path, settings: Settings, reader: Reader) -> RunInfo:
    now = datetime.datetime.now(datetime.UTC)
    return RunInfo(
        test_id=f"{now:%Y%m%dT%H%M%SZ}-{settings.name}-{secrets.token_hex(2)}",
        name=settings.name,
        seed=0,
        started_at=now.isoformat(timespec="seconds"),
        system="imported",
        workload="log",
        acks=settings.acks,
        idempotence=settings.idempotence,
        isolation=settings.isolation,
        topics=(
            TopicInfo(
                TOPIC,
                max(reader.keys.values(), default=-1) + 1,
                settings.replication_factor,
                settings.min_insync_replicas,
                contiguous=False,
                compacted=any(event.key is not None for event in reader.events),
            ),
        ),
        notes=(f"imported from {path.name}, a history of Jepsen", *reader.notes()),
    )
