"""Scenes about logs: where a follower cuts its own, which epochs it keeps, and for which record a client
is answered (docs/protocol.md 2.11, section 4)."""

from __future__ import annotations

from wrackline.scenarios.language import (
    F1,
    F2,
    RESTORE,
    Expectation,
    Fault,
    L,
    State,
    Until,
    Wait,
    WhereController,
    do,
    in_isr,
    isr_is,
    led_by,
    scene,
    undo,
)

B01_TRUNCATE_TO_HW = scene(
    "b01-truncate-to-hw",
    do("g1", Fault.DEAF, F2, words="last replica of {name}"),
    Wait(0.3, "the records that the deaf follower's last fetch committed are acknowledged"),
    do("g2", Fault.KILL, L, words="leader({name})"),
    led_by(F1),
    Wait(0.5, "the deaf follower learns of its new leader and truncates"),
    WhereController(L, (do("g4", Fault.CUT_FROM_BROKERS, L, words="former leader({name})"), undo("g2"))),
    do("g3", Fault.KILL, F1, words="leader({name})"),
    led_by(F2),
    RESTORE,
    apart=False,
    shows=(Expectation("trunc_hw", "B01", ("I01", "I02", "lost-write"), lag_ms=3_000),),
)
"""docs/protocol.md B01, the loss that KIP-101 ended: a new follower truncates to its high watermark and is
elected before it could fetch again.

1. F2 goes deaf to L and F1: what they send to it is dropped, what it sends arrives. A follower learns the
   high watermark one fetch response late, so the fetch it has under way makes records committed, and
   acknowledged, without its ever knowing that they are. L cannot move on without F2: those stay the last.
2. L is killed before it can drop F2 from the ISR. F1 is elected, ISR [F1, F2]; F2 becomes follower in the new
   epoch. With the defect it truncates to its high watermark, and being deaf it cannot fetch again.
3. F1 is killed. F2 is elected, from the ISR, or from the ELR when F1 had time to drop it.
4. Everything is healed. The acknowledged records are on F1 and L only, which now follow F2.

Where L is one of the controllers too, it is started again between 2 and 3, cut off from the brokers alone:
without it F1's death would leave no majority of three controllers, and nobody could be elected. It cannot
fetch, so it stays out of the ISR.

Without the defect F2 still holds them when it is elected. Needs load, and a replica.lag.time.max of a
second or more (step 2)."""

ACKS1_LEADER_POWER_CUT = scene(
    "acks1-leader-power-cut",
    do("g1", Fault.ISOLATED, L, words="leader({name})"),
    Wait(0.7, "the leader acknowledges what no follower can fetch"),
    do("g2", Fault.POWER_CUT, L, words="leader({name})"),
    Until(State.ANOTHER_LEADS, (L,)),
    Wait(1.0, "clients write to the new leader"),
    RESTORE,
    replicas=2,
    apart=False,
    shows=(
        Expectation(
            "acks=1",
            "B06",
            ("lost-write",),
            lag_ms=20_000,
            exposing={"acks": 1},
            text="B06. What clients wrote is on the leader alone, which loses its power.",
        ),
    ),
)
"""With acks=1: what only the leader has is acknowledged, then the leader loses its power.

The leader is cut off from every other host for a moment, so its followers (and the ISR) stay behind while
clients go on writing to it."""

UNCHECKED_TAIL = scene(
    "unchecked-tail",
    do("g1", Fault.CUT_FROM_BROKERS, F1),
    Wait(0.5, "L and F2 hold what F1 does not"),
    do("g2", Fault.KILL, L),
    led_by(F1),
    Wait(2.0, "clients write to F1"),
    undo("g1"),
    Wait(1.0, "F2 follows F1"),
    RESTORE,
    shows=(Expectation("no_divergence_check", "B55", ("I03", "I15", "I17", "divergence"), lag_ms=20_000),),
)
"""B55 (``no_divergence_check``): a follower whose log is another's must find out before it fetches on.

F1 is cut off, so what comes next is on L and F2 only; L is killed before it drops F1. F1 leads and takes
other records at the same offsets; then F2 may fetch from it. With the defect it goes on behind its own
records. Needs a replica.lag.time.max well beyond the session timeout."""

EMPTY_ANSWER = scene(
    "empty-answer",
    do("g1", Fault.CUT_FROM_BROKERS, F1),
    Wait(0.5, "L and F2 hold what F1 does not"),
    do("g2", Fault.NO_CLIENTS, L),
    Wait(2.0, "F2 is answered that there is nothing new"),
    do("g3", Fault.KILL, L),
    led_by(F1),
    Wait(2.0, "clients write to F1"),
    undo("g1"),
    Wait(1.0, "F2 follows F1"),
    RESTORE,
    shows=(
        Expectation(
            "drop_lfe_on_empty+lfe_sticky",
            "B26",
            ("I03", "I17", "I15", "divergence"),
            defects=("drop_lfe_on_empty", "lfe_sticky"),
            lag_ms=20_000,
            setting={"weak_client": True, "broker": {"max_incremental_fetch_session_cache_slots": 0}},
            harmless=("drop_lfe_on_empty",),
        ),
    ),
)
"""B26 (``drop_lfe_on_empty`` with ``lfe_sticky``): an answer without records says nothing of epochs.

As ``unchecked-tail``, but L's clients are cut off before it is killed, until F2 has been answered that
there is nothing new. With the defects F2's next fetch, from F1, names no epoch, and it goes on behind its
own records. Needs answers that name partitions without news: no fetch sessions."""

LONGER_THAN_LEADER = scene(
    "longer-than-leader",
    do("g1", Fault.SHORT_ANSWERS, F2, F1, words="followers"),
    do("g2", Fault.NO_CLIENTS, F1),
    do("g3", Fault.CUT_FROM_BROKERS, F1),
    Wait(0.5, "L and F2 hold what F1 does not"),
    do("g4", Fault.KILL, L),
    led_by(F1),
    undo("g3"),
    Wait(1.5, "F2 asks F1 for what is behind F1's end"),
    do("g5", Fault.KILL, F1, words="leader"),
    led_by(F2),
    Wait(1.0, "clients find F2"),
    RESTORE,
    shows=(
        Expectation(
            "oor_to_start",
            "B38",
            ("I02", "lost-write"),
            defects=("no_divergence_check", "oor_to_start"),
            lag_ms=20_000,
            harmless=("no_divergence_check",),
        ),
    ),
)
"""B38 (``oor_to_start``): a follower that is ahead of its leader does not begin anew.

F1 is cut off from clients and brokers, so L and F2 hold what it does not; L is killed before it drops F1.
F1 leads, F2 asks it for what lies behind F1's end, and only short answers arrive. With the defect F2
empties its log. F1 is killed, and F2, in the ISR, leads. Without it F2 cuts what F1 does not have. Needs a
replica.lag.time.max well beyond the session timeout."""

LED_IN_SILENCE = scene(
    "led-in-silence",
    do("g1", Fault.NO_CLIENTS, F1),
    do("g2", Fault.KILL, L),
    led_by(F1),
    Wait(0.5, "F1 leads, and nobody writes to it"),
    do("g3", Fault.ISOLATED, F1, words="leader"),
    led_by(F2),
    Wait(1.5, "clients write to F2"),
    undo("g1", "g3"),
    in_isr(F1, patience_s=8.0),
    undo("g2"),
    isr_is(L, F1, F2, patience_s=8.0),
    shows=(Expectation("keep_epoch_on_noop_trunc", "B25", ("liveness",), setting={"min_isr": 1}),),
)
"""B25 (``keep_epoch_on_noop_trunc``): an epoch without a record is no part of a log.

F1 is cut off from clients. L is killed, so F1 leads and writes nothing; then F1 loses its session, F2
leads and clients write to it. F1 follows, and must forget its own epoch, though it has nothing to cut.
With the defect it asks for that epoch for ever and never gets back into the ISR. Needs MinISR 1."""

BEGUN_BATCH = scene(
    "begun-batch",
    do("g1", Fault.CUT_FROM_BROKERS, L),
    Wait(0.7, "L holds what nobody else does"),
    do("g2", Fault.KILL, L),
    led_by(F1),
    Wait(3.0, "F1's log grows past the end of L's"),
    undo("g1", "g2"),
    isr_is(L, F1, F2, patience_s=8.0),
)
"""H18 (``drop_begun_batch``): a log that ends in the middle of a batch of its leader's takes that batch
whole.

L is cut off, so what comes next is on L alone; L is killed before it drops the others. F1 leads and takes
other batches at the same offsets. L comes back, and where nothing tells it that the logs differ it fetches
from its end. With the defect it asks for the same batch for ever and never gets back into the ISR. Needs
clients whose batches are long and of several lengths, and a replica.lag.time.max well beyond the session
timeout."""

ANOTHERS_RECORD = scene(
    "anothers-record",
    do("g1", Fault.ISOLATED, L),
    led_by(F1),
    Wait(3.0, "clients that are free write to F1"),
    RESTORE,
    Wait(1.0, "L answers what still waits"),
    shows=(Expectation("ack_by_hwm_only", "B49", ("I17", "I01", "lost-write"), session_ms=1_500),),
)
"""B49, KAFKA-20634 (``ack_by_hwm_only``): a request does not outlive the term of its leader.

L is cut off from everybody but its clients, whose records wait there. F1 is elected and commits other
records at the same offsets. L comes back, follows, cuts its own records; with the defect it acknowledges
them when the high watermark passes. Needs clients that wait long enough, and more of them than L can hold
up."""

FORGOTTEN_PRODUCER = scene(
    "forgotten-producer",
    do("g1", Fault.CUT_FROM_BROKERS, F2),
    Wait(0.5, "records are on L and F1, and no response leaves"),
    do("g2", Fault.KILL, L),
    undo("g1"),
    led_by(F1),
    Wait(2.0, "producers try again at F1"),
    RESTORE,
    shows=(Expectation("forget_producer_state", "B40", ("duplicate",), lag_ms=20_000),),
)
"""B40 (``forget_producer_state``): a new leader knows who wrote what.

F2 is cut off, so what (idempotent) producers send waits at L, and F1 has it. L is killed, nobody was
answered; the producers try again at F1, which with the defect appends the same batches once more. Needs a
replica.lag.time.max well beyond the session timeout."""

FAILING_WRITE = scene(
    "failing-write",
    do("g1", Fault.FAILING_WRITE, L),
    Wait(4.0, "L is gone, or goes on"),
    RESTORE,
    shows=(Expectation("continue_after_io_error", "B57", ("impossible",), lag_ms=3_000),),
)
"""B57 (``continue_after_io_error``): a broker whose log could not be written stops.

One write to L's disk fails. A right broker ends, and F1 leads. With the defect it goes on with a log that
is not what it tells of it."""

SLOW_GOODBYE = scene(
    "slow-goodbye",
    do("g1", Fault.PAUSE, F2),
    do("g2", Fault.RESTART, L),
    led_by(F1),
    Wait(1.0, "clients have found F1"),
    RESTORE,
    shows=(
        Expectation(
            "stop_md_on_shutdown",
            "B51",
            ("deaf",),
            lag_ms=1_500,
            session_ms=5_000,
            setting={"min_isr": 1},
        ),
    ),
)
"""B51 (``stop_md_on_shutdown``): a leader that shuts down steps down at once.

F2 is paused, so L, which is told to stop, may not go before F2's session is over. F1 leads meanwhile. With
the defect L does not learn of that and sends no client there. Needs MinISR 1, a short replica.lag.time.max
and a session of several seconds."""

SCENES = (
    B01_TRUNCATE_TO_HW,
    ACKS1_LEADER_POWER_CUT,
    UNCHECKED_TAIL,
    EMPTY_ANSWER,
    LONGER_THAN_LEADER,
    LED_IN_SILENCE,
    BEGUN_BATCH,
    ANOTHERS_RECORD,
    FORGOTTEN_PRODUCER,
    FAILING_WRITE,
    SLOW_GOODBYE,
)
