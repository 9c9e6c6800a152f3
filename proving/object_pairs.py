"""Cases in a line (see ``language``) of registers and queues: for every rule one that breaks it, and its
nearest neighbour that does not."""

from __future__ import annotations

OBJECT_PAIRS: dict[str, tuple[str, str, str]] = {
    "register garbage": (
        "garbage",
        "p: a@0 | r: read z@1",
        "p: a@0 | q: (z | r: read z@1",
    ),
    "register aborted": (
        "aborted",
        "p: a! | r: read a@0",
        "p: a? | r: read a@0",
    ),
    "register future": (
        "future",
        "r: read a@0 | p: a@0",
        "r: (read | p: a@0 | r: read a@0)",
    ),
    "register inside": (
        "inside",
        "p: a@0 | p: b@1 | r: read a@0",
        "p: a@0 | p: (b | r: read a@0 | p: b@1)",
    ),
    "register inside, of nothing": (
        "inside",
        "p: a@0 | q: b@1/0 | r: read 1/ nothing",
        "p: a@0 | r: read 1/ nothing",
    ),
    "register two at once": (
        "two at once",
        "p: a@0 | p: b@1 | r: read b@1 | s: read a@0",
        "p: a@0 | s: (read | p: b@1 | r: read b@1 | s: read a@0)",
    ),
    "queue garbage": (
        "garbage",
        "p: a@0 | c: dequeue z@1",
        "q: (z | c: dequeue z@0",
    ),
    "queue aborted": (
        "aborted",
        "p: a! | c: dequeue a@0",
        "p: a? | c: dequeue a@0",
    ),
    "queue future": (
        "future",
        "c: dequeue a@0 | p: a@0",
        "c: (dequeue | p: a@0 | c: dequeue a@0)",
    ),
    "queue twice": (
        "twice",
        "p: a@0 | c: dequeue a@0 | d: dequeue a@0",
        "p: a@0 | p: b@1 | c: dequeue a@0 | d: dequeue b@1",
    ),
    "queue overtaken": (
        "overtaken",
        "p: a@0 | p: b@1 | c: dequeue b@1 | c: dequeue a@0",
        "p: a@0 | p: b@1 | c: (dequeue | d: dequeue b@1 | c: dequeue a@0)",
    ),
    "queue lost": (
        "lost",
        "p: a@0 | p: b@1 | c: dequeue b@1",
        "p: a@0 | p: b@1 | d: (dequeue | c: dequeue b@1",
    ),
    "queue not empty": (
        "not empty",
        "p: a@0 | c: dequeue nothing",
        "p: a@0 | c: (dequeue | d: dequeue a@0 | c: dequeue nothing)",
    ),
    "queue not empty, of two values in turn": (
        "not empty",
        "p: a@0 | c: (dequeue | p: b@1 | d: dequeue a@0 | c: dequeue nothing) | d: dequeue b@1",
        "p: a@0 | c: (dequeue | p: (b | d: dequeue a@0 | c: dequeue nothing) | p: b@1) | d: dequeue b@1",
    ),
}
"""What it is about: (rule, bad, good)."""
