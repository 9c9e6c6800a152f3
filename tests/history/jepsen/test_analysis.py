"""A correct history of Jepsen's is clean, and what is exported and imported again is judged alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.history.jepsen.words import assign, imported, poll, send
from wrackline.history.jepsen.exports import Keys, kafka, rows
from wrackline.history.jepsen.imports import Settings, import_history
from wrackline.history.jepsen.text import write
from wrackline.proving.model.knobs import Final, Knobs
from wrackline.proving.model.made import make, write_events
from wrackline.proving.mutations.catalogue import mutate, mutations

pytestmark = pytest.mark.timeout(1_800)

GOOD = [
    assign(1, 0, 1),
    send(0, 0, 1, 0),
    send(0, 1, 1, 0),
    send(0, 0, 2, 2),  # offset 1 is a transaction's marker
    poll(1, {0: [[0, 1], [2, 2]], 1: [[0, 1]]}),
    send(3, 0, 9, None, "info"),
    assign(1, 0),
    send(0, 0, 3, 4),
    poll(1, {0: [[4, 3]]}),
    assign(5, 0, 1, begin=True),
    poll(5, {0: [[0, 1], [2, 2], [4, 3]], 1: [[0, 1]]}),
    send(0, 1, 7, 5),  # never read: Jepsen's unseen
]
"""What Jepsen calls wrong is found in its own histories (test_kafka_histories.py)."""


Judged = Mapping[str, Mapping[Path, dict[str, Any]]]


def write_runs(folder: Path) -> list[Path]:
    """A correct history, and histories that travel to Jepsen's words and back."""
    return [imported(folder / "correct", *GOOD), *(run for pair in travelled(folder) for run in pair)]


def test_a_correct_history_is_clean(judged_runs: Judged) -> None:
    verdict = next(iter(judged_runs.values()))
    assert not [
        said for said in verdict["anomalies"] if said["count"] and said["anomaly"] != "unproven-write"
    ]


TRAVELS = (
    "overwrite-acked", "append-again", "refuse-what-is-there", "append-unsent", "spoil-a-payload",
    "swap-with-a-later-send", "swap-within-a-send", "leave-out-of-a-poll", "give-again", "go-back",
    "read-before-it-is-sent",
)  # fmt: skip
"""Mutations whose anomaly a history in Jepsen's words can show."""
STAYS = frozenset({"unproven-write", "not-linearizable"})
"""The first is counted only; the second rests on end offsets and on logs without holes."""


def _counts(verdict: dict[str, Any]) -> dict[str, int]:
    return {
        said["anomaly"]: said["count"]
        for said in verdict["anomalies"]
        if said["count"] and said["anomaly"] not in STAYS
    }


def travelled(folder: Path) -> list[tuple[Path, Path]]:
    """(first, exported and imported) of a history for each mutation in ``TRAVELS``."""
    runs = []
    for one in mutations():
        if one.name not in TRAVELS:
            continue
        knobs = dataclasses.replace(Knobs(), final=Final.COMPLETE, straggler=0.0, operations=200)
        for seed in range(1, 40):
            made = make(f"first-{one.name}", seed, knobs)
            events = mutate(one, made)
            if events is not None:
                break
        assert events is not None, one.name
        first = folder / one.name
        write_events(first, made.info, events)
        text = folder / f"{one.name}.edn"
        write(kafka(rows(first), Keys()), text, "edn")
        runs.append((first, import_history(text, folder / "again", Settings(one.name))))
    return runs


def test_what_is_exported_and_imported_is_judged_alike(judged_runs: Judged) -> None:
    """Groups, seeks, faults and final reads included: no finding is lost on the way and none comes up."""
    verdicts = list(judged_runs.values())[1:]
    before, after = verdicts[::2], verdicts[1::2]
    assert [_counts(verdict) for verdict in after] == [_counts(verdict) for verdict in before]
    assert len(before) == len(TRAVELS)
    assert all(_counts(verdict) for verdict in before)
    assert [len(verdict["faults"]) for verdict in after] == [len(verdict["faults"]) for verdict in before]
