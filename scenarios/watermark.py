"""Scenes about the high watermark: when it moves, and what a broker reports of it."""

from __future__ import annotations

from wrackline.scenarios.language import (
    CONTROLLER,
    F1,
    F2,
    RESTORE,
    Expectation,
    Fault,
    Hold,
    Kept,
    L,
    Wait,
    alive,
    do,
    isr_is,
    led_by,
    scene,
    undo,
)

BELOW_MIN_ISR = scene(
    "below-min-isr",
    do("g1", Fault.KILL, F1),
    isr_is(L, F2),
    Wait(0.5, "clients get over it"),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L),
    Wait(1.5, "consumers read what L shows"),
    do("g3", Fault.KILL, L),
    led_by(F2),
    Wait(0.5, "consumers find F2"),
    RESTORE,
    shows=(
        Expectation(
            "hw_no_minisr", "B12", ("I18", "I04", "I01"), lag_ms=1_500, setting={"weak_client": True}
        ),
    ),
)
"""B12 (``hw_no_minisr``): below MinISR nothing may become visible.

F1 is killed, then F2 cut off while it is in the ISR, so that records wait at L. When the ISR is down to L
the defect makes them visible: consumers are given records that F2, in the ELR, does not have. L is killed,
F2 leads."""

PROPOSED_MEMBER = scene(
    "proposed-member",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(0.5, "clients go on with L and F1"),
    do("g2", Fault.CUT_FROM_BROKERS, F1),
    isr_is(L),
    do("g3", Hold(Kept.PROPOSAL, of=L), CONTROLLER),
    undo("g1"),
    Wait(2.0, "F2 has fetched everything, and consumers read what L shows"),
    do("g4", Fault.KILL, L),
    led_by(F1),
    Wait(0.5, "consumers find F1"),
    RESTORE,
    shows=(Expectation("hw_gate_maximal", "B13", ("I18", "I04", "I01"), lag_ms=1_200, session_ms=3_000),),
)
"""B13 (``hw_gate_maximal``): a member that is only proposed does not make the ISR large enough.

F2 leaves the ISR, then F1 is cut off while it is in it, so that records wait at L; F1 is in the ELR then.
F2 may fetch again and L proposes it, and the proposal is held. With the defect L counts it at once and
shows the records to consumers. L is killed, F1 leads and does not have them."""

STALE_END = scene(
    "stale-end",
    do("g1", Fault.EACH_OTHER, F1, F2, words="followers"),
    do("g2", Fault.DEAF, F1, F2, words="followers"),
    Wait(0.3, "clients ask for the end that the last fetches have moved"),
    do("g3", Fault.KILL, L),
    led_by(F1),
    Wait(6.0, "clients ask F1 for the end"),
    RESTORE,
    shows=(Expectation("no_offset_not_available", "B14", ("end-offset",), lag_ms=20_000, session_ms=1_500),),
)
"""B14 (``no_offset_not_available``): a new leader does not yet know where the committed records end.

F1 and F2 do not reach each other, and then go deaf to L: with their last fetches records become committed,
and clients see the end move, and neither of them learns it. L is killed. F1 leads, and F2 does not fetch
from it, so with the defect clients are told an earlier end than before."""

UNKNOWN_FOLLOWER = scene(
    "unknown-follower",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    do("g2", Fault.KILL, L),
    led_by(F1),
    Wait(1.5, "clients write to F1"),
    do("g3", Fault.KILL, F1),
    led_by(F2),
    Wait(0.5, "clients find F2"),
    RESTORE,
    shows=(Expectation("hw_ignores_unknown", "4.5", ("I02", "I17", "lost-write"), lag_ms=20_000),),
)
"""``hw_ignores_unknown`` (docs/protocol.md 4.5): a new leader waits for members of the ISR it has not
heard of yet.

F2 is cut off and L killed before it drops F2. F1 leads, and F2 cannot fetch from it even once; with the
defect F1 acknowledges alone. F1 is killed, F2 is elected. Needs a replica.lag.time.max well beyond the
session timeout."""

SHRUNK_IN_SILENCE = scene(
    "shrunk-in-silence",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(9.0, "clients are answered, or wait for a fetch"),
    RESTORE,
    shows=(
        Expectation(
            "no_adv_on_isr",
            "B43",
            ("stall",),
            lag_ms=4_000,
            setting={"broker": {"replica_fetch_wait_max_ms": 15_000}},
        ),
    ),
)
"""B43 (``no_adv_on_isr``): what waited for F2 is committed when F2 is out of the ISR.

F2 is cut off, and all clients wait for it. When it has left the ISR, L and F1 have everything, and no
further fetch comes: with the defect nothing is acknowledged until one does. Needs few clients, and a
replica.fetch.wait.max of many seconds."""

FENCED_FOLLOWER = scene(
    "fenced-follower",
    do("g1", Fault.ISOLATED, F2),
    isr_is(L, F1),
    Wait(9.0, "L and F1 go on, or wait for F2"),
    RESTORE,
    shows=(Expectation("hw_waits_ineligible", "B43", ("stall",), lag_ms=15_000),),
)
"""B43 (``hw_waits_ineligible``): nobody waits for a replica that is fenced.

F2 is cut off from everybody, loses its session and leaves the ISR. It was caught up a moment ago: with the
defect L waits for it until replica.lag.time.max is over, which must be much longer than the session."""

SLOW_TO_JOIN = scene(
    "slow-to-join",
    do("g1", Fault.KILL, F2),
    isr_is(L, F1),
    # Many records of clients are written meanwhile, also while the other follower is late by chance.
    do("g2", Hold(Kept.FETCH_ANSWER, of=F2, delay_s=0.4), L),
    undo("g1"),
    alive(F2),
    isr_is(L, F1, F2),
    undo("g2"),
    shows=(Expectation("hw_passes_joining", "B60", ("liveness",), lag_ms=3_000, setting={"min_isr": 1}),),
)
"""B60 (``hw_passes_joining``): records are not committed past a follower that is about to join.

F2 was killed, and is back, and each answer to its fetches takes its time. With the defect the high
watermark is always further on than F2's log when F2 asks again, and F2 never joins while clients write."""

SCENES = (
    BELOW_MIN_ISR,
    PROPOSED_MEMBER,
    STALE_END,
    UNKNOWN_FOLLOWER,
    SHRUNK_IN_SILENCE,
    FENCED_FOLLOWER,
    SLOW_TO_JOIN,
)
