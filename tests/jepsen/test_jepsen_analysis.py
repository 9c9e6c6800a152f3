"""What jepsen.tests.kafka calls an error is found in an imported history, and a correct one is clean."""

from __future__ import annotations

from pathlib import Path

import pytest
from jepsen_words import Op, assign, imported, op, poll, send

from checkers.analysis import analyze

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
        {"inconsistent-offset": 1, "not-linearizable": 1, "vanished-read": 1},
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


@pytest.mark.spark
def test_what_jepsen_calls_an_error(tmp_path: Path) -> None:
    runs = {name: imported(tmp_path / str(n), *ops) for n, (name, (ops, _)) in enumerate(CASES.items())}
    verdicts = analyze(list(runs.values()), master="local[2]")
    found = {
        name: {
            said["anomaly"]: said["count"]
            for said in verdict["anomalies"]
            if said["count"] and said["anomaly"] != "unproven-write"
        }
        for name, verdict in zip(runs, verdicts, strict=True)
    }
    assert found == {name: expected for name, (_, expected) in CASES.items()}
