"""Scenes in which an administrator changes the configuration or the replicas while a fault is in force
(docs/protocol.md 4.2)."""

from __future__ import annotations

from wrackline.scenarios.language import (
    F1,
    F2,
    FOURTH,
    FULL_ISR,
    NOBODY,
    Expectation,
    Fault,
    L,
    Wait,
    do,
    in_isr,
    isr_is,
    leads_no_more,
    led_by,
    scene,
    undo,
)

SMALLER_MIN_ISR = scene(
    "smaller-min-isr",
    do("g1", Fault.CUT_FROM_BROKERS, F1),
    isr_is(L, F2),
    Wait(0.5, "clients go on with L and F2"),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L),
    do("g3", Fault.MIN_ISR_1, L, words="topic"),
    Wait(2.0, "L acknowledges alone"),
    do("g4", Fault.KILL, L),
    led_by(F1, F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    undo("g1", "g2", "g4"),
    FULL_ISR,
    undo("g3"),
    shows=(Expectation("elr_kept_on_config", "B32", ("I14", "I02", "I01", "lost-write"), lag_ms=1_500),),
)
"""B32 (``elr_kept_on_config``): with a smaller MinISR nobody stays eligible who is out of the ISR.

F1 leaves the ISR, then F2, which is in the ELR. An administrator makes MinISR 1, and L acknowledges alone.
L is killed. With the defect F2 is elected; a right controller lets the partition wait for L."""

MOVED_ALONE = scene(
    "moved-alone",
    do("g1", Fault.CUT_FROM_BROKERS, F1, F2, words="followers"),
    isr_is(L),
    do("g2", Fault.REASSIGN, L),
    in_isr(FOURTH),
    Wait(1.5, "L gives its replica up, if it does"),
    do("g3", Fault.POWER_CUT, FOURTH),
    leads_no_more(FOURTH),
    undo("g3"),
    led_by(L, FOURTH),
    Wait(1.0, "F1 and F2 may follow"),
    undo("g1"),
    FULL_ISR,
    undo("g2"),
    brokers=4,
    shows=(
        Expectation(
            "reassign_no_minisr",
            "B36",
            ("I20", "lost-write"),
            lag_ms=1_500,
            setting={"profile": "kraft35", "brokers": 4},
        ),
    ),
)
"""B36 (``reassign_no_minisr``): a reassignment does not end with fewer than MinISR replicas in the ISR.

F1 and F2 are cut off from L and leave the ISR. L's replica moves to a fourth broker, which catches up and
joins. With the defect the move is complete: the fourth is alone in the ISR and L deletes its log. The
fourth loses its power. Needs a profile without ELR."""

TOUCHED = scene(
    "touched",
    do("g1", Fault.CUT_FROM_BROKERS, F1, FOURTH, words="first follower, fourth broker"),
    isr_is(L, F2),
    Wait(0.5, "clients go on with L and F2"),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L),
    do("g3", Fault.REASSIGN, F1),
    Wait(0.5, "the move has begun"),
    do("g4", Fault.POWER_CUT, L),
    led_by(F2),
    Wait(1.0, "F2 leads"),
    undo("g1", "g2", "g4"),
    in_isr(L, F2),
    undo("g3"),
    brokers=4,
    shows=(
        Expectation(
            "touch_wipes_elr",
            "B58",
            ("liveness", "I01", "I07", "lost-write"),
            lag_ms=1_500,
            setting={"brokers": 4},
        ),
    ),
)
"""B58 (``touch_wipes_elr``): a change that does not concern the ISR leaves the ELR as it is.

F1 leaves the ISR, then F2, which is in the ELR: it has all that is committed. A move of F1's replica to a
fourth broker begins; the fourth is cut off, so that nothing else changes. L loses its power. F2 is elected
at once; with the defect nobody is."""

MOVED = scene(
    "moved",
    do("g1", Fault.REASSIGN_QUICKLY, F2),
    Wait(1.0, "the added replica catches up"),
    undo("g1"),
    brokers=4,
    shows=(Expectation("added_needs_epoch", "B44", ("liveness",), lag_ms=1_500, setting={"brokers": 4}),),
)
"""B44 (``added_needs_epoch``): F2's replica moves to a fourth broker while nothing is wrong.

With the defect the fourth begins to follow only with a new leader epoch, which no move brings: the move is
not complete in time."""

SCENES = (SMALLER_MIN_ISR, MOVED_ALONE, TOUCHED, MOVED)
