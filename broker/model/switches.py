"""Switches that a profile or a historic bug turns on or off without deciding anything.

A decision (may this follower join the ISR?) is a method in ``broker/rules``. What is here has no facts to
decide by: the core does a step, or leaves it out. The defaults are the right behaviour of profile ``kip966``.
``broker/rules/profile.py`` sets the switches of the older profiles, and a defect in ``broker/defects`` names
those that it turns the wrong way (docs/protocol.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """Each field says what is done when it is true."""

    # --- what the profiles differ in -----------------------------------------------------------------------

    has_elr: bool = True
    """The controller remembers in ELR and LastKnownELR who left an ISR below MinISR, and compares the logs of
    replicas before it elects one of them uncleanly (KIP-966). False in profiles kraft35, kip101 and zk08:
    nobody outside the ISR is remembered, and no log is asked for (K26, K37)."""
    min_isr_gates_high_watermark: bool = True
    """The high watermark stands still while the ISR is below MinISR (R14). False in profiles kraft35,
    kip101 and zk08 (conflict C1), and the bug B12 (``hw_no_minisr``)."""
    has_min_isr: bool = True
    """A topic's min.insync.replicas counts (K27). False in profile zk08, whose document has no such thing: a
    leader that is alone in the ISR acknowledges alone (B52)."""
    asks_epoch_first: bool = False
    """A follower asks its leader where the follower's last epoch ends before it fetches in a new leader epoch
    (KIP-101). True in profile kip101; in the others every fetch asks (K52)."""
    has_controller: bool = True
    """Controllers elect leaders and keep the metadata, and records name the leader epoch that they were
    written in. False in profile zk08: its brokers coordinate through ZooKeeper (Z29), and there are no
    epochs (B05)."""
    fetch_names_epoch: bool = True
    """A fetch names the epoch of the last record of the follower's log, so that the leader notices a
    divergence. False in profiles kip101 and zk08, and the bug B55 (``no_divergence_check``), which is half
    of B02."""

    # --- followers -----------------------------------------------------------------------------------------

    empty_answer_outlives_epoch: bool = False
    """A follower whose last answer had no records still believes so after a change of leader epoch, though it
    was another leader's answer. True is the half of B26 (``lfe_sticky``) that makes the other half lose
    data."""
    cuts_epochs_of_short_log: bool = True
    """A truncation cuts the leader epoch cache also where the log ends already: the cache may hold an epoch
    in which nothing was written. False is the bug B25 (``keep_epoch_on_noop_trunc``, KAFKA-10706)."""
    takes_begun_batch: bool = True
    """A follower whose log ends inside a batch of the leader's cuts to where that begins and takes it whole,
    since no part of a batch can be fetched (H18). False is the bug ``drop_begun_batch``: it waits for a batch
    that begins at its end."""
    added_replica_follows_at_once: bool = True
    """A replica that a reassignment adds follows the leader that is there, since growing the set of replicas
    brings no new leader epoch (K54). False is the bug B44 (``added_needs_epoch``)."""
    session_outlives_stay: bool = False
    """A fetch session goes on over a partition that comes back to its fetcher, or whose answer was not taken.
    The leader tells nothing of an idle partition twice, so the follower's high watermark would stay behind.
    True is the bug of docs/protocol.md 2.13 (``keep_told_session``)."""

    # --- leaders -------------------------------------------------------------------------------------------

    assigns_epoch_on_election: bool = True
    """A leader enters its epoch into the leader epoch cache before it has written in it (H13). False is the
    bug B25 (``no_epoch_assign``, KAFKA-7415)."""
    isr_change_moves_high_watermark: bool = True
    """The high watermark is computed anew when the ISR has changed: a smaller ISR may have committed more
    without another fetch (K31). False is the bug B43 (``no_adv_on_isr``, KAFKA-13091)."""
    waits_for_joining: bool = True
    """The high watermark waits for a follower outside of the maximal ISR that is about to join it (H08).
    False in profile zk08, whose ISR alone is asked (Z21), and the bug B60 (``hw_passes_joining``)."""
    overtaken_answer_frees_slot: bool = True
    """The answer to an AlterPartition frees the request slot also when metadata has settled the proposal
    meanwhile. False is the bug B41 (``inflight_leak``, KAFKA-12686, KAFKA-12751)."""
    new_leader_forgets_producers: bool = False
    """A new leader forgets which producer wrote what, and takes a retry for a new batch (K30). True is the
    bug B40 (``forget_producer_state``)."""
    produce_outlives_leadership: bool = False
    """A waiting acks=all request is acknowledged when the high watermark gets there, though its leader's term
    is over and the record may be another leader's. True is the bug B49 (``ack_by_hwm_only``, KAFKA-20634)."""

    # --- the disk ------------------------------------------------------------------------------------------

    start_removes_clean_file: bool = True
    """A start removes the clean-shutdown file, or a later crash would look clean (R10). False is the bug B29
    (``keep_clean_file``)."""
    start_rebuilds_epochs: bool = True
    """A start reads the leader epochs from the log's own batches, since the checkpoint may be older than the
    log. False is the bug B53 (``epoch_ckpt_no_fsync``, KAFKA-16541)."""
    checkpoints_leaderless: bool = True
    """The high watermark checkpoint holds partitions without a leader too: the file is written whole, and a
    partition left out starts again from 0 (Z23). False is the bug B37 (``hw_ckpt_skip``, KAFKA-1647)."""
    stops_on_disk_failure: bool = True
    """Nothing is written after a failed write: what that write left in the log is unknown. False is the bug
    B57 (``continue_after_io_error``, KAFKA-10778)."""

    # --- the life of brokers -------------------------------------------------------------------------------

    applies_metadata_while_stopping: bool = True
    """A broker in controlled shutdown learns that it leads no more, and says so. False is the bug B51
    (``stop_md_on_shutdown``, KAFKA-14296)."""
    registration_leaves_isr: bool = True
    """A new registration takes the broker out of every ISR in the same batch of records. False is the bug B34
    (``register_no_isr_change``, KAFKA-18106)."""
    fences_from_stale_image: bool = False
    """Brokers whose sessions end together are all fenced from the partitions as the event found them, so the
    second fencing undoes what the first did to an ISR (R36). True is the bug B24 (``batch_fence``,
    KAFKA-13173)."""

    fences_zookeeper: bool = True
    """When a controller takes over from ZooKeeper (docs/protocol.md 2.15, KIP-866), a broker stops to lead as
    soon as the level says so, and looks at it before it serves anybody; and the controller writes each ISR
    once more as it reads it, so that nobody who has yet to hear changes it. False is the bug
    ``migrate_without_fence``: brokers lead on until the controller takes their registration, and what they
    write into ZooKeeper meanwhile is lost."""

    opening_waits_for_isr: bool = True
    """A new leader that a controller may take over from (docs/protocol.md 2.15, KIP-866) moves its high
    watermark to its log's end when the ISR that has all of it is written, not before. False is the bug
    ``migrate_early_watermark``."""

    # --- the controller quorum -----------------------------------------------------------------------------

    remembers_vote: bool = True
    """The vote is on disk before anybody hears of it, so that a restarted voter does not vote again in the
    same epoch (KIP-595). False is the bug B46 (``raft_forget_vote``)."""
