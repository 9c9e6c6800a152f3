"""The plan of a run, from its seed: single faults, pairs and sequences (``sequences``) with pauses between.

Nothing here knows which defect is in the broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from wrackline.simulator.faults.kinds import KINDS, ROLES, Fault, FaultOptions, Kind
from wrackline.simulator.faults.sequences import drawn

_PAIRS: tuple[tuple[Kind, ...], ...] = (
    ("hold-alter-request", "kill"),
    ("hold-alter-request", "clean"),
    ("hold-alter-response", "kill"),
    ("hold-alter-response", "cut"),
    ("hold-metadata", "kill"),
    ("hold-metadata", "clean"),
    ("hold-metadata", "power"),
    ("hold-metadata", "cut-controller"),
    ("hold-metadata", "move-leader"),
    ("hold-fetch-response", "kill"),
    ("hold-fetch-response", "move-leader"),
    ("hold-fetch-response", "clean", "clean"),
    ("hold-fetch-request", "kill"),
    ("hold-heartbeat", "power"),
    ("kill", "kill"),
    ("power", "kill"),
    ("pause", "clean"),
    ("lag", "kill"),
    ("lag", "power"),
    ("cut-controller", "kill"),
    ("cut-controller", "cut"),
    ("isolate", "kill", "kill"),
    ("lag", "hold-alter-request", "kill"),
    ("lag", "hold-metadata", "kill"),
    ("hold-alter-request", "kill", "hold-metadata", "kill"),
    ("pause", "kill"),
    ("disk-error", "kill"),
    ("min-isr", "isolate", "kill"),
    ("reassign", "kill"),
    ("reassign", "hold-metadata", "clean"),
    ("reassign", "hold-alter-request", "power"),
    ("reassign", "reassign-cancel"),
    ("controller-isolate", "kill"),
    ("controller-isolate", "hold-alter-request", "clean"),
    ("controller-pause", "kill", "kill"),
)


def plan(seed: int | str, until_ms: float, partitions: int, options: FaultOptions) -> list[Fault]:
    """Faults from 0 to ``until_ms``, in order of time."""
    draw = Random(f"{seed}/faults")
    faults: list[Fault] = []
    at_ms = draw.expovariate(1 / options.every_ms)
    sequence = 0
    while options.kinds and at_ms < until_ms:
        partition = draw.randrange(partitions)
        sequence += 1
        for begun in _some(draw, options, at_ms, partition, sequence):
            faults.append(replace(begun, id=len(faults)))
        at_ms += draw.expovariate(1 / options.every_ms)
    return sorted(faults, key=lambda fault: (fault.at_ms, fault.id))


def _some(
    draw: Random, options: FaultOptions, at_ms: float, partition: int, sequence: int
) -> Iterator[Fault]:
    """One plan: a single fault, a pair or a sequence."""
    kinds = set(options.kinds)
    what = draw.random()
    if what < options.sequences:
        steps = drawn(draw, kinds, at_ms, partition, sequence)
        if steps:
            yield from steps
            return
    pairs = [pair for pair in _PAIRS if kinds.issuperset(pair)]
    if pairs and what < options.sequences + options.pairs:
        chosen: tuple[Kind, ...] = draw.choice(pairs)
    else:
        chosen = (draw.choice([kind for kind in KINDS if kind in kinds]),)
    begin_ms = at_ms
    for kind in chosen:
        for_ms = draw.choice((draw.uniform(50, 500), draw.uniform(300, 3_000), draw.uniform(2_000, 8_000)))
        yield Fault(-1, kind, begin_ms, for_ms, draw.choice(ROLES), partition, sequence)
        begin_ms += draw.choice((0.0, draw.uniform(1, 60), draw.uniform(50, 1_500)))
