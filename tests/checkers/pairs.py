"""Cases in a line (checkers.proving.language): for every anomaly one that has it, and its nearest neighbour that has not."""

from __future__ import annotations

PAIRS: dict[str, tuple[str, str]] = {
    "lost-write": (
        "p: a@0 | p: b@1 | final a@0",
        "p: a@0 | p: b? | final a@0",
    ),
    "vanished-read": (
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0",
        "p: (a | q: (b | c: from 0 | c: got a@0 b@1 | final a@0 to 2 short",
    ),
    "lost-on-replica": (
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds",
        "p: a@0 | final a@0 | n1 holds a@0 | n2 holds out",
    ),
    "inconsistent-offset": (
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got b@0",
        "p: (a | q: (b | c: from 0 | c: got a@0 | d: from 0 | d: got a@0 b@1",
    ),
    "replica-divergence": (
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0",
        "p: (a | q: (b | n1 holds a@0 | n2 holds b@0 hw 0",
    ),
    "duplicate": (
        "p: a@0 | final a@0 a@1",
        "p: a@0 | q: b@1 | final a@0 b@1",
    ),
    "batch-order": (
        "p: a@1 b@0 | final b@0 a@1",
        "p: a@0 b@1 | final a@0 b@1",
    ),
    "aborted-read": (
        "p: a! | final a@0",
        "p: a? | final a@0",
    ),
    "phantom": (
        "p: a@0 | final a@0 z@1",
        "p: a@0 | q: (z | final a@0 z@1",
    ),
    "misrouted": (
        "p: (a | q: (b@1/? | final a@0 b@1",
        "p: (a | q: (b@1/? | final a@0 | final b@1/0",
    ),
    "corrupt": (
        "p: (a | c: from 0 | c: got #@0",
        "p: (a | c: from 0 | c: got a@0",
    ),
    "epoch-order": (
        "p: a@0 b@1 | final a@0^2 b@1^1",
        "p: a@0 b@1 | final a@0^1 b@1^2",
    ),
    "append-order": (
        "p: a@1 | q: b@0 | final b@0 a@1",
        "p: (a | q: b@0 | p: a@1) | final b@0 a@1",
    ),
    "session-order": (
        "p: a@1 | p: b@0 | final b@0 a@1",
        "p: b@0 | p: a@1 | final b@0 a@1",
    ),
    "poll-skip": (
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 c@2",
        "p: a@0 b@1 c@2 | k: from 0 | k: got a@0 | k: from 2 | k: got c@2",
    ),
    "poll-rewind": (
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: got b@1",
        "p: a@0 b@1 | c: from 0 | c: got a@0 b@1 | c: from 1 | c: got b@1",
    ),
    "stale-read": (
        "p: a@0 | p: b@1 | e: end 1 | final a@0 b@1",
        "p: a@0 | e: (end 0 | p: b@1 | e: end 1) | final a@0 b@1",
    ),
    "future-read": (
        "c: from 0 | c: got a@0 | p: a@0 | final a@0",
        "c: from 0 | p: (a | c: got a@0 | p: a@0) | final a@0",
    ),
    "watermark-regression": (
        "p: (a | q: (b | e: end 2 | e: end 1 | final a@0 b@1",
        "p: (a | q: (b | e: (end 0 | f: end 2 | e: end 1) | final a@0 b@1",
    ),
    "not-linearizable": (
        "p: a@0 | e: end 2",
        "p: a@0 | q: (b | e: end 2",
    ),
}
"""anomaly: (bad, good)."""
