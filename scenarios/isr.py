"""Scenes about the ISR: which replicas are in it, and which the leader believes to be in it."""

from __future__ import annotations

from wrackline.scenarios.language import (
    CONTROLLER,
    F1,
    F2,
    NOBODY,
    RESTORE,
    Expectation,
    Fault,
    Hold,
    Kept,
    L,
    Wait,
    alive,
    do,
    fenced,
    isr_is,
    led_by,
    scene,
    undo,
)

LATE_S = 4.0
"""So long something is waited for that must not come."""
HELD_PROPOSALS = Hold(Kept.PROPOSAL, of=L)
"""L's AlterPartition requests do not reach the controller."""

BEFORE_LESO = scene(
    "before-leso",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    Wait(1.5, "L and F1 have what clients send, which waits for F2"),
    do("g2", Fault.DEAF_TO_IT, F1, L, words="first follower and leader"),
    isr_is(L, F1),
    Wait(0.3, "clients are answered"),
    do("g3", Fault.KILL, L),
    led_by(F1),
    do("g4", Hold(Kept.FETCH_ANSWER, of=F2), F1),
    undo("g1"),
    isr_is(F1, F2, patience_s=LATE_S),
    do("g5", Fault.KILL, F1, words="leader"),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
    shows=(
        Expectation(
            "isr_no_leso",
            "B15",
            ("I02", "lost-write"),
            defects=("isr_no_leso", "isr_no_recency"),
            lag_ms=4_000,
            harmless=("isr_no_recency",),
        ),
    ),
)
"""B15 (``isr_no_leso``): a new leader's high watermark is behind what is committed, and a follower that
has reached it must not join the ISR.

1. F2 is cut off, and clients wait for it: L and F1 have what they sent. Then F1 goes deaf to L.
2. F2 leaves the ISR, so all of that is committed and acknowledged, and F1 does not learn it. L is killed.
3. F1 leads, alone in the ISR. F2 fetches from it, and the answers are held: F2 has reached F1's high
   watermark, and lacks what was acknowledged. With the defect it is in the ISR.
4. F1 is killed, and F2 leads.

Needs a replica.lag.time.max of some seconds, and clients that wait longer than that."""

BEHIND_IN_ISR = scene(
    "behind-in-isr",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(1.5, "L and F1 acknowledge without F2"),
    do("g2", Hold(Kept.FETCH_ANSWER, of=F2), L),
    undo("g1"),
    isr_is(L, F1, F2, patience_s=LATE_S),
    do("g3", Fault.KILL, L, F1),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
    shows=(
        Expectation(
            "isr_no_hw",
            "B16",
            ("I02", "lost-write"),
            defects=("isr_no_hw", "isr_no_recency"),
            harmless=("isr_no_recency",),
        ),
    ),
)
"""B16 (``isr_no_hw``): whoever lacks committed records stays out of the ISR.

F2 leaves the ISR, L and F1 go on. F2 may fetch again, and the answers are held: it asks from where it
stopped. With the defect that is enough to be in the ISR, where nobody asks whether it keeps up
(``isr_no_recency``, which is harmless here). L and F1 are killed, and F2 leads."""

JOINED_UNHEARD = scene(
    "joined-unheard",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(0.5, "clients go on with L and F1"),
    do("g2", Fault.DEAF_TO_IT, L, CONTROLLER),
    undo("g1"),
    isr_is(L, F1, F2),
    do("g3", Fault.CUT_FROM_BROKERS, F2),
    Wait(1.0, "L acknowledges with F1 alone"),
    do("g4", Fault.KILL, L, F1),
    led_by(F2),
    Wait(0.5, "clients find F2"),
    RESTORE,
    shows=(
        Expectation(
            "no_maximal_isr",
            "B17",
            ("I05", "I17", "I02", "lost-write"),
            defects=("no_maximal_isr", "hw_passes_joining"),
            lag_ms=1_500,
            session_ms=6_000,
            harmless=("hw_passes_joining",),
        ),
    ),
)
"""B17 (``no_maximal_isr``): a proposed member counts before the answer is back.

F2 is out of the ISR. The controller's words reach L no more, and F2 is let in again: L proposes it, the
controller agrees, but L does not learn it. F2 is cut off once more; with the defect L acknowledges with F1
alone. L and F1 are killed, F2 is elected from the ISR. Needs a session timeout of some seconds: the
controller's answers to L's heartbeats are lost as well."""

SHRINK_UNHEARD = scene(
    "shrink-unheard",
    do("g1", Fault.EACH_OTHER, L, CONTROLLER),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    Wait(3.0, "L gives F2 up, and the controller does not learn it"),
    do("g3", Fault.KILL, L, F1),
    led_by(F2),
    Wait(0.5, "clients find F2"),
    RESTORE,
    shows=(
        Expectation(
            "shrink_before_commit", "B18", ("I05", "I17", "I02", "lost-write"), lag_ms=1_200, session_ms=5_000
        ),
    ),
)
"""B18, B05 (``shrink_before_commit``): who is dropped from the ISR counts until the controller has agreed.

L is cut from the controller, then F2 from the brokers. L's proposal to drop F2 never arrives; with the
defect L acknowledges with F1 alone all the same. L and F1 are killed, F2, in the ISR as before, is
elected. Needs a session timeout some seconds longer than replica.lag.time.max."""

FORMER_LIFE = scene(
    "former-life",
    do("g1", Fault.KILL, F2),
    isr_is(L, F1),
    do("g2", HELD_PROPOSALS, CONTROLLER),
    undo("g1"),
    alive(F2),
    Wait(2.5, "F2 has caught up and is proposed"),
    do("g3", Fault.CUT_FROM_BROKERS, F2),
    do("g4", Fault.POWER_CUT, F2),
    fenced(F2),
    undo("g4"),
    alive(F2),
    undo("g2"),
    isr_is(L, F1, F2, patience_s=2.0),
    do("g5", Fault.KILL, L, F1),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
    shows=(Expectation("no_isr_broker_epoch", "B19", ("I02", "I08"), lag_ms=20_000),),
)
"""B19 (``no_isr_broker_epoch``): a proposal means one life of a broker.

F2 was killed, is back and has caught up; L's proposal to let it in is held. F2 loses its power, and is
back without what it had not synced, cut off from the others. Then the proposal arrives. With the defect F2
is in the ISR. L and F1 are killed, and F2 leads. Needs a replica.lag.time.max of many seconds, or L drops
F2 again."""

FENCED_MEMBER = scene(
    "fenced-member",
    do("g1", Fault.KILL, F2),
    isr_is(L, F1),
    do("g2", HELD_PROPOSALS, CONTROLLER),
    undo("g1"),
    alive(F2),
    Wait(2.5, "F2 has caught up and is proposed"),
    do("g3", Fault.KILL, F2),
    fenced(F2),
    undo("g2"),
    Wait(10.0, "L acknowledges, or waits for F2"),
    RESTORE,
    shows=(Expectation("allow_fenced_isr", "B20", ("I14",), lag_ms=12_000),),
)
"""B20 (``allow_fenced_isr``): a fenced broker does not get into the ISR.

F2 was killed, is back and has caught up; L's proposal to let it in is held until F2 is killed once more,
and fenced. With the defect F2 is in the ISR then, and L waits for it as long as replica.lag.time.max says,
which must be several times the session timeout. A right controller refuses the proposal."""

OUTDATED_PROPOSAL = scene(
    "outdated-proposal",
    do("g1", HELD_PROPOSALS, CONTROLLER),
    do("g2", Fault.EACH_OTHER, L, F1),
    Wait(3.5, "L gives F1 up, and the controller does not learn it"),
    do("g3", Fault.CUT_FROM_BROKERS, F2),
    do("g4", Fault.POWER_CUT, F2),
    isr_is(L, F1),
    undo("g4"),
    alive(F2),
    undo("g1"),
    isr_is(L, F2, patience_s=1.0),
    do("g5", Fault.KILL, L),
    led_by(F1, F2),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
    shows=(Expectation("no_partition_epoch", "B22", ("I02", "I08", "lost-write"), session_ms=2_500),),
)
"""B22 (``no_partition_epoch``): a proposal made for an older state of the partition is refused.

F1 is cut off from L, whose proposal of the ISR [L, F2] is held. F2 loses its power, leaves the ISR, and is
back without what it had not synced, cut off from the others. The ISR is [L, F1]; then the proposal
arrives. With the defect the ISR is [L, F2]. L is killed, and F2 leads."""

OVERTAKEN_ANSWER = scene(
    "overtaken-answer",
    do("g1", Hold(Kept.PROPOSAL_ANSWER, of=L), CONTROLLER),
    do("g2", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(0.3, "L learns of it from metadata"),
    undo("g1"),
    Wait(0.5, "the answer arrives"),
    undo("g2"),
    isr_is(L, F1, F2, patience_s=8.0),
    shows=(Expectation("inflight_leak", "B41", ("liveness",), lag_ms=1_500),),
)
"""B41 (``inflight_leak``): an answer that metadata has overtaken ends the proposal too.

F2 is cut off, and L proposes to drop it. The controller agrees, its answer is held, and L learns of the
smaller ISR from metadata. The answer arrives, F2 may fetch again, and must get back into the ISR. With the
defect L proposes nothing any more."""

LED_MEANWHILE = scene(
    "led-meanwhile",
    do("g1", Fault.EACH_OTHER, L, F1),
    Wait(0.7, "records wait on L and F2"),
    do("g2", Hold(Kept.FETCH_ANSWER, of=L), CONTROLLER),
    Wait(1.0, "a first answer to L is held, and what comes later arrives with one answer"),
    do("g3", Fault.TRANSFER_LEADERSHIP, L),
    Wait(1.0, "F2 follows F1 and cuts what F1 does not have"),
    do("g4", Hold(Kept.FETCH_REQUEST, of=F2), L),
    do("g5", Fault.KILL, F1),
    led_by(L),
    undo("g2"),
    Wait(3.0, "L learns that it leads, and consumers read what it shows"),
    do("g6", Fault.KILL, L),
    led_by(F2, NOBODY),
    Wait(1.0, "clients find whoever leads"),
    RESTORE,
)
"""B21 (``keep_stale_peers``): who leads again in a new epoch believes nothing that it knew of others.

F1 gets nothing from L, so records wait there, on L and F2. Metadata to L is held while F1 is made leader
and F2 cuts those records; F1 is killed, L is elected again and learns of all that at once. F2's fetches to
L are held. With the defect L takes F2 to have the records still, and shows them to consumers. L is killed,
and F2 leads."""

FAR_BEHIND = scene(
    "far-behind",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    isr_is(L, F1),
    Wait(0.5, "clients go on with L and F1"),
    do("g2", Fault.CUT_FROM_BROKERS, F1),
    isr_is(L),
    do("g3", Fault.SLOW_IN, F2),
    undo("g1"),
    Wait(12.0, "F2 fetches, and does not keep up"),
    RESTORE,
    shows=(
        Expectation(
            "isr_no_recency",
            "B45",
            ("flapping",),
            lag_ms=1_000,
            setting={"acks": 1, "losing": True, "broker": {"replica_fetch_max_bytes": 1}},
        ),
    ),
)
"""B45 (``isr_no_recency``): whoever cannot keep up stays out of the ISR, though it has all that is
committed.

F2 leaves the ISR, then F1: L is alone in it, nothing is committed any more, and clients with acks=1 go on.
F2 may fetch again, slower than L is written to. With the defect it joins, and empties the ELR; it lags, is
dropped, and joins again, as long as this lasts. Needs fetches of few bytes."""

SCENES = (
    BEFORE_LESO,
    BEHIND_IN_ISR,
    JOINED_UNHEARD,
    SHRINK_UNHEARD,
    FORMER_LIFE,
    FENCED_MEMBER,
    OUTDATED_PROPOSAL,
    OVERTAKEN_ANSWER,
    LED_MEANWHILE,
    FAR_BEHIND,
)
