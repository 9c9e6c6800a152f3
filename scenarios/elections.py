"""Scenes about who is elected: which replicas are eligible, and which of them leads (docs/protocol.md 1.2,
4.2)."""

from __future__ import annotations

from wrackline.scenarios.language import (
    CONTROLLER,
    F1,
    F2,
    FULL_ISR,
    NOBODY,
    RESTORE,
    ElectUncleanly,
    Expectation,
    Fault,
    Flush,
    KeepDisk,
    L,
    Step,
    Wait,
    alive,
    do,
    fenced,
    isr_is,
    leads_no_more,
    led_by,
    scene,
    undo,
)

UNCLEAN = {"unclean.leader.election.enable": "true"}

ELR_OUTSIDER = scene(
    "elr-outsider",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(1.5, "L and F1 acknowledge without F2"),
    do("g2", Fault.KILL, L, F1, words="ISR"),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
    shows=(
        Expectation("elr_not_cleared:large-isr", "B31", ("I14", "I02"), defects=("elr_not_cleared",)),
        Expectation(
            "unclean_election",
            "B09",
            ("lost-write",),
            exposing={"topic": UNCLEAN},
            text="B09. Both members of the ISR are killed; a broker that was out of it is elected.",
        ),
    ),
)
"""B30 and B31 (``elr_not_cleared``): who left an ISR that stayed large enough must not be elected.

F2 is cut off and leaves the ISR; L and F1 go on acknowledging. Both are killed. With the defect F2 is in
the ELR and leads, without what was acknowledged meanwhile. A right controller lets the partition wait for
L or F1."""


def candidate_with(
    disk: Fault, lacks: str = "the other disk does not have", *before: Step
) -> tuple[Step, ...]:
    """F1 is killed; F2 is cut off and loses its power, so that L is alone in the ISR and F2 in the ELR. F2
    comes back with that disk, which ``lacks`` tells of, and cannot fetch. L is killed."""
    return (
        *before,
        do("g1", Fault.KILL, F1),
        isr_is(L, F2),
        Wait(1.0, f"L and F2 acknowledge what {lacks}"),
        do("g2", Fault.CUT_FROM_BROKERS, F2),
        do("g3", disk, F2),
        isr_is(L),
        fenced(F2),
        undo("g3"),
        alive(F2),
        do("g4", Fault.KILL, L),
        led_by(F2, NOBODY),
        Wait(1.0, "clients find whoever leads"),
        RESTORE,
    )


UNCLEAN_CANDIDATE = scene(
    "unclean-candidate",
    *candidate_with(Fault.POWER_CUT, "F2 has not synced"),
    shows=(Expectation("ignore_unclean", "B28", ("I08", "I02", "lost-write")),),
)
"""B28 (``ignore_unclean``): a broker that lost its log in a power cut must not stay eligible.

With the defect F2, back with what its disk has kept, is elected."""

WIPED_DISK = scene(
    "wiped-disk",
    *candidate_with(Fault.POWER_CUT_WIPED),
    shows=(Expectation("wiped_disk", "B48", ("I08", "I02", "lost-write"), defects=("ignore_unclean",)),),
)
"""B48 (``ignore_unclean``): who comes back with an empty disk is not eligible.

As ``unclean-candidate``, but what F2 had synced is gone, too. With the defect F2 leads with an empty log."""

RESTORED_DISK = scene(
    "restored-disk",
    *candidate_with(
        Fault.POWER_CUT_STALE,
        "the other disk does not have",
        do("g0", Fault.RESTART, F2),
        KeepDisk(F2),
        undo("g0"),
        FULL_ISR,
    ),
    shows=(
        Expectation("restored_disk", "B48", ("I08", "I02", "lost-write"), defects=("clean_by_presence",)),
    ),
)
"""B48 (``clean_by_presence``): the disk of a clean shutdown that is long past proves nothing.

F2 is stopped cleanly, its disk is copied, and it comes back. Later, when F2 is in the ELR, the copy comes
back in its disk's place, with the clean-shutdown file of that time. With the defect F2 leads."""

REGISTERED_AT_ONCE = scene(
    "registered-at-once",
    do("g1", Fault.CUT_FROM_BROKERS, F1),
    do("g2", Fault.POWER_CUT, F1),
    undo("g2"),
    do("g3", Fault.KILL, L),
    led_by(F1, F2),
    Wait(1.0, "clients find the new leader"),
    RESTORE,
    shows=(
        Expectation(
            "register_no_isr_change",
            "B34",
            ("I02", "I08", "I01", "lost-write"),
            lag_ms=30_000,
            session_ms=7_000,
        ),
    ),
)
"""B34, KAFKA-18106 (``register_no_isr_change``): a broker that restarts faster than its session ends
leaves the ISR.

F1 is cut off, loses its power and comes back at once, without what it had not synced. L is killed. With
the defect F1's new life is taken for the old one, it is still in the ISR, and elected; a right controller
elects F2. Needs a session timeout longer than a restart takes, and a longer replica.lag.time.max, or L
drops F1 itself."""

LAST_STANDING = scene(
    "last-standing",
    do("g1", Fault.CUT_FROM_BROKERS, L),
    isr_is(L),
    do("g2", Fault.POWER_CUT, L),
    leads_no_more(L),
    Wait(0.5, "clients find whoever leads"),
    RESTORE,
    shows=(
        Expectation(
            "last_replica_standing",
            "B10",
            ("I01", "I07", "lost-write"),
            exposing={"profile": "kraft35"},
            text="B10. The only member of the ISR loses power, with what it had not synced, and comes back.",
        ),
        Expectation(
            "min_isr=1",
            "B08",
            ("lost-write",),
            exposing={"min_isr": 1},
            text="B08. The leader is alone in the ISR; it acknowledges if MinISR is 1, and loses its power.",
        ),
    ),
)
"""B10 (Kafka without an ELR: 3.x, and 4.0 as it is formatted by default): who is alone in the ISR need not
have kept what was acknowledged.

L is cut off from the other brokers until it is alone in the ISR, and loses its power with what it had not
synced, which F1 and F2 still hold. Without an ELR the partition waits for L, which leads again with the
log that its disk has kept; F1 and F2 cut theirs. With an ELR one of them is in it and leads."""

LAST_LEADER = scene(
    "last-leader",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(1.0, "L and F1 acknowledge without F2"),
    do("g2", Fault.KILL, F1),
    isr_is(L),
    do("g3", Fault.POWER_CUT, L),
    led_by(NOBODY),
    undo("g2", "g3"),
    led_by(L, F1),
    Wait(0.5, "the other one follows"),
    RESTORE,
    shows=(Expectation("last_known_leader", "B59", ("I01", "I02", "I08", "lost-write")),),
)
"""B59 (``last_known_leader``; Kafka 4.0 as shipped): who led last need not have the best log.

F2 is cut off and leaves the ISR; F1 is killed, then L's power is cut. Both come back unclean, L without
what it had not synced, F1 with everything. With the defect L leads because it led last; balanced recovery
compares."""

DEAD_LEADER = scene(
    "dead-leader",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(1.0, "L and F1 acknowledge without F2"),
    do("g2", Fault.KILL, F1),
    isr_is(L),
    do("g3", Fault.POWER_CUT, L),
    led_by(NOBODY),
    undo("g2"),
    alive(F1),
    Wait(2.0, "F1 is there, and L is not"),
    undo("g3"),
    led_by(L, F1),
    Wait(0.5, "the other one follows"),
    RESTORE,
    shows=(Expectation("lke_no_liveness", "B33", ("I09", "I01", "I02", "lost-write")),),
)
"""B33 (``lke_no_liveness``): who led last is not elected while it is down.

As ``last-leader``, but F1 is back while L has no power yet. With the defect the controller elects L all
the same, and L, when it is back without what it had not synced, stays the leader. Balanced recovery waits
for both and compares."""

FENCED_TOGETHER = scene(
    "fenced-together",
    do("g1", Fault.KILL, L, F1),
    Wait(1.6, "the session of F2 goes on"),
    do("g2", Fault.PAUSE, CONTROLLER),
    Wait(2.6, "the sessions of L and F1 end"),
    undo("g2"),
    Wait(8.0, "F2 leads, if it is elected"),
    RESTORE,
    shows=(
        Expectation("batch_fence", "B24", ("I14",), lag_ms=20_000, session_ms=4_000, setting={"min_isr": 1}),
    ),
)
"""B24 (``batch_fence``): sessions that end together are fenced one after the other.

L and F1 are killed, and the only controller is paused while both sessions end, and F2's does not. With the
defect the second fencing undoes the first, and L leads on paper; a right controller elects F2, which goes
on alone. Needs MinISR 1 and a session timeout of 4 s."""

SESSION_S = 3.5
"""Longer than the session of a broker in the suites that use it, which is 2 s."""

_ALL_POWERED_OFF: tuple[Step, ...] = (
    do("g1", Fault.POWER_CUT, L),
    isr_is(F1, F2),
    Wait(1.0, "clients find F1"),
    do("g2", Fault.POWER_CUT, F1),
    isr_is(F2),
    Flush(F2),
    Wait(1.5, "what proves a power cut is written, too, and nothing is acknowledged"),
    do("g3", Fault.POWER_CUT, F2),
    Wait(SESSION_S, "the last session ends"),
)
"""The example R35, 5.3.3 of the description: L, F1 and F2 lose their power one after another, each when
the one before was fenced, so that LastKnownELR is [F1, F2].

F2, alone in the ISR, acknowledges nothing. All that was acknowledged before reaches its disk, and no
other."""

OUTAGE = scene(
    "outage",
    *_ALL_POWERED_OFF,
    undo("g2"),
    alive(F1),
    Wait(4.0, "F1 leads, if anybody may elect it"),
    RESTORE,
    shows=(
        Expectation(
            "whole_isr_loses_power",
            "B11",
            ("lost-write",),
            exposing={"topic": UNCLEAN},
            text="B11. All brokers lose power. One that lost records is back before the one that did not.",
        ),
        Expectation(
            "proactive_recovery",
            "B35",
            ("lost-write",),
            exposing={"topic": {"unclean.recovery.strategy": "proactive"}},
            text="B35. All brokers lose power. One that lost records is back first; no one is awaited.",
        ),
    ),
)
"""R35, B11, B35: every replica loses its power, and the one that comes back first has lost its records.

Balanced recovery waits for F2, whose log is the best. Proactive recovery, and unclean election, take F1."""

OUTAGE_MANUAL = scene(
    "outage-manual",
    *_ALL_POWERED_OFF,
    undo("g1", "g2", "g3"),
    alive(L),
    alive(F1),
    alive(F2),
    Wait(4.0, "nobody is elected"),
    led_by(NOBODY),
    ElectUncleanly(),
    led_by(L, F1, F2),
    FULL_ISR,
    shows=(
        Expectation(
            "manual_recovery",
            "R29",
            ("liveness",),
            setting={"topic": {"unclean.recovery.strategy": "manual"}},
            exposing={"topic": UNCLEAN},
            text="R29. All brokers lose power, and one leads before a person says so.",
        ),
    ),
)
"""R29: the same, and under strategy manual nobody leads, though all are back, until a person says so."""

CLEAN_EXAMPLE = scene(
    "clean-example",
    do("g1", Fault.CUT_FROM_BROKERS, F1),
    isr_is(L, F2),
    Wait(1.0, "L and F2 acknowledge without F1"),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L),
    do("g3", Fault.POWER_CUT, L),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    undo("g2", "g3"),
    isr_is(L, F2),
    Wait(1.0, "clients go on with L and F2"),
    RESTORE,
    shows=(
        Expectation(
            "clean_example",
            "R24",
            ("lost-write",),
            exposing={"profile": "kraft35"},
            text="R24, example 5.2.2. The leader, alone in the ISR, loses power; a follower is in the ELR.",
        ),
    ),
)
"""R24, 5.2.2 of the description: the ISR goes from [L, F1, F2] to [L, F2] and to [L], with F2 in the ELR.
L loses its power, and what it had not synced.

With an ELR F2 leads, and L joins it when it is back. Without one the partition waits for L, and F2 cuts
its log. F1 is away all the time."""

SCENES = (
    ELR_OUTSIDER,
    UNCLEAN_CANDIDATE,
    WIPED_DISK,
    RESTORED_DISK,
    REGISTERED_AT_ONCE,
    LAST_STANDING,
    LAST_LEADER,
    DEAD_LEADER,
    FENCED_TOGETHER,
    OUTAGE,
    OUTAGE_MANUAL,
    CLEAN_EXAMPLE,
)
