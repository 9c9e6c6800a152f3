"""Sequences of faults: what history's bugs had in common
(docs/protocol.md 4.1, 4.2), told in roles instead of nodes.

A sequence is drawn blindly, whatever defect is in the broker. Its steps wait for each other ("as soon as
*one* is out of the ISR"), not long, and then go on anyway; each lasts until something has come to pass and
for a random while longer. Who is *one* and who is *other* is chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from wrackline.simulator.faults.kinds import Fault, Kind, Role, Wait, Word


@dataclass(frozen=True, slots=True)
class Step:
    kind: Kind | tuple[Kind, ...]
    """Or one of these."""
    role: Role
    after: Wait | None = None
    until: Wait | None = None
    optional: float = 0.0
    """Chance of being left out."""


def _when(word: Word, role: Role) -> Wait:
    return Wait(word, role)


_ENDS: tuple[Kind, ...] = ("kill", "power", "power", "clean")
_AWAY: tuple[Kind, ...] = ("lag", "cut-controller", "isolate")
OUT_ONE, OUT_OTHER = _when("out", "one"), _when("out", "other")
IN_ONE, BACK_ONE = _when("in", "one"), _when("back", "one")
FENCED_ONE, FENCED_LEADER = _when("fenced", "one"), _when("fenced", "first-leader")
PROPOSED = _when("proposed", "first-leader")

SEQUENCES: tuple[tuple[Step, ...], ...] = (
    # A follower leaves the ISR; the proposal that takes it in again is kept back while it dies. It is let go
    # when it is fenced, or when its next life has begun and knows as little as it can.
    (
        Step(("lag", "isolate"), "one", until=OUT_ONE),
        Step("hold-alter-request", "first-leader", after=OUT_ONE, until=BACK_ONE),
        Step(("power", "power", "kill"), "one", after=PROPOSED, until=FENCED_ONE),
        Step("hold-fetch-response", "one", after=FENCED_ONE, until=IN_ONE, optional=0.2),
    ),
    (
        Step(("lag", "isolate"), "one", until=OUT_ONE),
        Step("hold-alter-request", "first-leader", after=OUT_ONE, until=FENCED_ONE),
        Step(("kill", "power", "cut-controller", "clean"), "one", after=PROPOSED, until=FENCED_ONE),
    ),
    # The leader asks to drop one; meanwhile the other dies.
    (
        Step("hold-alter-request", "first-leader", until=_when("back", "other")),
        Step("lag", "one", until=PROPOSED),
        Step(_ENDS, "other", after=PROPOSED, until=_when("fenced", "other")),
        Step("hold-fetch-response", "other", after=_when("fenced", "other"), until=_when("back", "other")),
    ),
    # The answer that one is in the ISR again does not reach the leader, which dies with the other.
    (
        Step(("lag", "isolate"), "one", until=OUT_ONE),
        Step("hold-alter-response", "first-leader", after=OUT_ONE, until=IN_ONE),
        Step("hold-metadata", "first-leader", after=OUT_ONE, until=IN_ONE),
        Step(("lag", "isolate"), "one", after=IN_ONE),
        Step("kill", "first-leader", after=IN_ONE),
        Step("kill", "other", after=IN_ONE, optional=0.3),
    ),
    # A follower with a short log comes back; its fetches arrive, but the responses are lost.
    (
        Step(("lag", "isolate"), "one", until=OUT_ONE),
        Step("hold-fetch-response", "one", after=OUT_ONE, until=IN_ONE),
        Step(("kill", "cut-controller"), "first-leader", after=OUT_ONE, optional=0.5),
    ),
    # Followers do not learn what is committed; the leader dies, and the next has a lower high watermark.
    (
        Step("isolate", "one", until=OUT_ONE, optional=0.3),
        Step("hold-fetch-response", "other", until=FENCED_LEADER),
        Step("hold-fetch-response", "one", until=FENCED_LEADER, optional=0.5),
        Step(("kill", "power", "clean", "move-leader"), "first-leader", until=FENCED_LEADER),
        Step("hold-fetch-request", "one", after=FENCED_LEADER, optional=0.5),
        Step("kill", "leader", after=_when("leads", "other"), optional=0.5),
    ),
    # ISR of one, ELR of the other: who comes back, with what, who is elected?
    (
        Step(_AWAY, "one", until=OUT_ONE),
        Step(("power", "kill", "isolate", "cut-controller"), "other", after=OUT_ONE, until=OUT_OTHER),
        Step("hold-alter-request", "first-leader", after=OUT_OTHER, optional=0.6),
        Step(("kill", "power", "clean", "cut-controller"), "first-leader", after=OUT_OTHER),
        Step("cut", "other", after=OUT_OTHER, optional=0.5),
    ),
    # Cleanly down and back, and then not cleanly.
    (
        Step("clean", "one", until=FENCED_ONE),
        Step("isolate", "other", after=BACK_ONE, until=OUT_OTHER),
        Step("power", "one", after=OUT_OTHER, until=OUT_ONE),
        Step(("kill", "clean"), "first-leader", after=OUT_ONE, optional=0.5),
    ),
    # Back before anyone has missed it, and unable to fetch.
    (
        Step(("power", "kill"), "one"),
        Step("cut", "one"),
        Step("kill", "first-leader", after=BACK_ONE),
        Step("kill", "other", after=BACK_ONE, optional=0.5),
    ),
    # Leadership moves to and fro faster than the leaders can learn of it or write anything.
    (
        Step(("hold-metadata", "cut", "hold-fetch-request"), "one"),
        Step(("hold-fetch-response", "hold-fetch-request", "cut"), "other", optional=0.3),
        Step("move-leader", "other"),
        Step(("move-leader", "kill"), "one", after=_when("leads", "other")),
        Step("move-leader", "first-leader", after=_when("leads", "one"), optional=0.4),
        Step("move-leader", "other", after=_when("leads", "first-leader"), optional=0.5),
    ),
    (
        Step("hold-fetch-request", "one"),
        Step("hold-fetch-request", "other"),
        Step("cut-controller", "first-leader", until=FENCED_LEADER),
        Step("cut-controller", "leader", after=FENCED_LEADER, until=_when("leads", "other")),
        Step("cut-controller", "leader", after=_when("leads", "other"), until=_when("leads", "one")),
        Step("cut-controller", "leader", after=_when("leads", "one"), optional=0.5),
    ),
    # A leader that is replaced and does not know, with writes that wait; it comes back as a follower.
    (
        Step("hold-metadata", "first-leader", until=FENCED_LEADER),
        Step(("cut", "isolate", "hold-fetch-request"), "one", optional=0.5),
        Step(("isolate", "cut-controller", "hold-heartbeat"), "first-leader", until=FENCED_LEADER),
        Step("cut", "first-leader", until=FENCED_LEADER),
    ),
    # Messages of a process that was killed arrive when its successor has long begun.
    (
        Step("hold-heartbeat", "one", until=BACK_ONE),
        Step(("power", "power", "kill"), "one", until=FENCED_ONE),
    ),
    (
        Step("hold-alter-request", "first-leader", until=_when("back", "first-leader")),
        Step("lag", "one", until=PROPOSED),
        Step(("power", "kill"), "first-leader", after=PROPOSED, until=FENCED_LEADER),
    ),
    # Late answers: to a fetch that was overtaken, or of a leader that leads no more.
    (
        Step("hold-fetch-response", "one", until=BACK_ONE),
        Step(("lag", "move-leader", "cut-controller"), "one", optional=0.3),
        Step("reassign", "one", optional=0.3),
        Step("move-leader", "other"),
        Step("move-leader", "first-leader", after=_when("leads", "other"), optional=0.5),
    ),
    # Two sessions end while nobody counts.
    (
        Step("controller-pause", "any", until=None),
        Step("kill", "one", until=FENCED_ONE),
        Step("kill", "first-leader", until=FENCED_LEADER),
    ),
    # A controlled shutdown that takes long: somebody else is slow.
    (
        Step(("pause", "hold-metadata"), "one"),
        Step("clean", "first-leader"),
    ),
    # MinISR is changed while the ISR is small.
    (
        Step(_AWAY, "one", until=OUT_ONE),
        Step(("isolate", "kill", "cut-controller"), "other", after=OUT_ONE, until=OUT_OTHER),
        Step("min-isr", "any", after=OUT_OTHER),
        Step("lag", "other", after=OUT_OTHER, optional=0.6),
        Step("kill", "first-leader", after=OUT_OTHER, optional=0.5),
    ),
    # Moved elsewhere while those that have everything are away.
    (
        Step(_AWAY, "one", until=OUT_ONE),
        Step(_AWAY, "other", after=OUT_ONE, until=OUT_OTHER),
        Step("reassign", "any", after=OUT_OTHER),
        Step("kill", "first-leader", after=OUT_OTHER, optional=0.7),
        Step("reassign-cancel", "any", after=OUT_OTHER, optional=0.7),
    ),
    # A replica is removed and added again before the leader has learned of either change.
    (
        Step("hold-metadata", "first-leader"),
        Step("reassign", "any"),
        Step("reassign-cancel", "any"),
        Step("move-leader", "one", optional=0.5),
    ),
    # The disk refuses at a bad moment.
    (
        Step(("lag", "isolate"), "one", until=OUT_ONE, optional=0.5),
        Step(("disk-error", "disk-full"), "first-leader"),
        Step(("disk-error", "disk-full"), "leader", after=FENCED_LEADER, optional=0.6),
    ),
    # A controller dies at work.
    (
        Step(("controller-kill", "controller-power", "controller-deaf", "controller-isolate"), "any"),
        Step(("kill", "clean", "power", "lag"), "one"),
        Step(("controller-kill", "controller-power"), "any", optional=0.5),
    ),
)


def drawn(draw: Random, kinds: set[Kind], at_ms: float, partition: int, sequence: int) -> list[Fault]:
    """The faults of one sequence out of those that can be made of ``kinds``; none when there is no such
    sequence.

    They are not numbered yet. What can happen at once does, in the order of the sequence, a little apart.
    """
    possible = [steps for steps in SEQUENCES if all(_possible(step, kinds) for step in steps)]
    return list(_faults(draw, draw.choice(possible), kinds, at_ms, partition, sequence)) if possible else []


def _possible(step: Step, kinds: set[Kind]) -> bool:
    return bool(step.optional) or any(kind in kinds for kind in _kinds(step))


def _kinds(step: Step) -> tuple[Kind, ...]:
    return step.kind if isinstance(step.kind, tuple) else (step.kind,)


def _faults(
    draw: Random, steps: tuple[Step, ...], kinds: set[Kind], at_ms: float, partition: int, sequence: int
) -> Iterator[Fault]:
    for step in steps:
        chosen = [kind for kind in _kinds(step) if kind in kinds]
        if draw.random() < step.optional or not chosen:
            continue
        at_ms += draw.choice((0.0, draw.uniform(0, 20), draw.uniform(0, 300)))
        longer: tuple[float, ...] = (draw.uniform(0, 60), draw.uniform(50, 600), draw.uniform(300, 3_000))
        if step.until is None:
            longer = (*longer[1:], draw.uniform(1_000, 5_000))
        for_ms = draw.choice(longer)
        yield Fault(
            -1, draw.choice(chosen), at_ms, for_ms, step.role, partition, sequence, step.after, step.until
        )
