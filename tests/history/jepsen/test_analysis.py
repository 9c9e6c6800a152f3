"""What jepsen.tests.kafka calls an error is found in an imported history, and a correct one is clean."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.history.jepsen.words import Op, assign, imported, op, poll, send
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
CASES: dict[str, tuple[list[list[Op]], dict[str, int]]] = {
    "correct": (GOOD, {}),
    "G1a": ([send(0, 0, 1, None, "fail"), poll(1, {0: [[0, 1]]})], {"aborted-read": 1}),
    "lost-write": (
        [
            send(0, 0, 1, 0),
            send(0, 0, 2, 1),
            send(0, 0, 3, 3),
            poll(1, {0: [[3, 3]]}),
            poll(2, {0: [[0, 1]]}),
        ],
        {"lost-write": 1},
    ),
    "inconsistent-offsets": (
        [send(0, 0, 1, 0), send(0, 0, 2, None, "info"), poll(1, {0: [[0, 1]]}), poll(2, {0: [[0, 2]]})],
        {"inconsistent-offset": 1, "not-linearizable": 1},
    ),
    "poll-skip": (
        [
            assign(1, 0, begin=True),
            *(send(0, 0, v, v) for v in range(4)),
            poll(1, {0: [[0, 0]]}),
            poll(1, {0: [[3, 3]]}),
            poll(2, {0: [[0, 0], [1, 1], [2, 2], [3, 3]]}),
        ],
        {"poll-skip": 1},
    ),
    "poll-skip, but the consumer was assigned anew": (
        [
            assign(1, 0, begin=True),
            *(send(0, 0, v, v) for v in range(4)),
            poll(1, {0: [[0, 0]]}),
            assign(1, 1),
            assign(1, 0),
            poll(1, {0: [[3, 3]]}),
            poll(2, {0: [[0, 0], [1, 1], [2, 2], [3, 3]]}),
        ],
        {},
    ),
    "nonmonotonic-poll": (
        [
            assign(1, 0, begin=True),
            *(send(0, 0, v, v) for v in range(3)),
            poll(1, {0: [[0, 0], [1, 1], [2, 2]]}),
            poll(1, {0: [[1, 1]]}),
        ],
        {"poll-rewind": 1},
    ),
    "nonmonotonic-send": (
        [send(0, 0, 1, 1), send(0, 0, 2, 0), poll(1, {0: [[0, 2], [1, 1]]})],
        {"append-order": 1, "session-order": 1, "not-linearizable": 1},
    ),
    "duplicate": (
        [send(0, 0, 1, 0), poll(1, {0: [[0, 1], [1, 1]]})],
        {"duplicate": 1},
    ),
    "G1c": (
        [
            [
                op(0, "invoke", "txn", [["send", 0, 1], ["poll"]]),
                op(1, "invoke", "txn", [["send", 1, 1], ["poll"]]),
                op(0, "ok", "txn", [["send", 0, [0, 1]], ["poll", {"1": [[0, 1]]}]]),
                op(1, "ok", "txn", [["send", 1, [0, 1]], ["poll", {"0": [[0, 1]]}]]),
            ]
        ],
        {"read-cycle": 1},
    ),
}


Judged = Mapping[str, Mapping[Path, dict[str, Any]]]


def write_runs(folder: Path) -> list[Path]:
    """The cases, and histories that travel to Jepsen's words and back."""
    cases = [imported(folder / str(n), *ops) for n, (ops, _) in enumerate(CASES.values())]
    return cases + [run for pair in travelled(folder) for run in pair]


def test_what_jepsen_calls_an_error(judged_runs: Judged) -> None:
    verdicts = list(judged_runs.values())[: len(CASES)]
    found = {
        name: {
            said["anomaly"]: said["count"]
            for said in verdict["anomalies"]
            if said["count"] and said["anomaly"] != "unproven-write"
        }
        for name, verdict in zip(CASES, verdicts, strict=True)
    }
    assert found == {name: expected for name, (_, expected) in CASES.items()}


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
    verdicts = list(judged_runs.values())[len(CASES) :]
    before, after = verdicts[::2], verdicts[1::2]
    assert [_counts(verdict) for verdict in after] == [_counts(verdict) for verdict in before]
    assert len(before) == len(TRAVELS)
    assert all(_counts(verdict) for verdict in before)
    assert [len(verdict["faults"]) for verdict in after] == [len(verdict["faults"]) for verdict in before]
