"""Defects without a suite in suites/defects, and why nothing shows there (as docs/known-bugs.md says)."""

from __future__ import annotations

from collections.abc import Mapping

_DISK = "it acts on the simulated disk alone"
_IN_ORDER = "answers come in order on a connection, and who gives a request up closes it: none is overtaken"

NOT_ON_HOSTS: Mapping[str, str] = {
    "no_client_epoch": "the client library itself asks where an epoch ends (KIP-320)",
    "apply_stale_off": _IN_ORDER,
    "apply_stale_resp": _IN_ORDER,
    "no_epoch_assign": "it is over as soon as a client writes to the new leader, and clients write on",
    "hw_before_trunc": "it lasts for a round trip, at a follower that nobody reads from",
    "keep_clean_file": _DISK,
    "epoch_ckpt_no_fsync": f"{_DISK}; a real broker reads its epochs from the log",
    "zombie_ctl_fenced": "its answers wait for what it has written, and it writes twice a second",
    "raft_commit_old_epoch": "it is masked, in the simulator too",
    "raft_keep_role": "it leads again with the log that it had; only the quorum itself can tell",
    "raft_no_fsync": "the flush follows at once, and no power cut can be aimed in between",
    "no_check_quorum": "the other voters elect another, and brokers without an answer go over to it",
    "snap_gap": "the next snapshot closes the gap, and a voter that was away begins from that",
    "raft_forget_vote": "two candidates of one epoch must ask one voter just before and after its restart",
    "no_broker_epoch": "what can be held of a former life is a heartbeat that asks for nothing",
    "keep_told_session": "it shows only where nobody writes any more, and a run's clients write to the end",
    "migrate_without_fence": "a leader must be cut off in the very second in which a controller takes over",
    "no_topic_id": "a run never deletes the topic that is judged",
    "hw_ckpt_skip": "it needs brokers that start without a controller, and those do not listen",
}
