"""The differences between the rules of two eras in each story, and why they decide how it ends.

``where`` is a regular expression of a line of the transcript (``transcript.Line``: who, a space, what);
the first line that it matches is the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Explanation:
    where: str
    why: str


_CUTS = r"^\d cuts its log"
_FOLLOWS = r"^\d follows \d$"
_ACKNOWLEDGES = r"^\d acknowledges m2"
_REFUSES = r"^\d refuses a write"
_TELLS = r"^\d tells \d that epoch"
_ANSWERS = "1 answers: "
_FENCED_OUT = r"^controller leader 2, ISR \[2, 3\]$"

EXPLANATIONS: Mapping[tuple[str, str], Explanation] = {
    ("restart-then-failover", "zk08"): Explanation(
        _CUTS,
        "Whoever begins to follow cuts its log to its own high watermark. Broker 2 has m2 and has yet "
        "to hear that it is committed, so it cuts m2 away. It stays in the ISR all the while: when 1 "
        "dies before 2 has fetched m2 again, 2 may lead without it.",
    ),
    ("restart-then-failover", "kip101"): Explanation(
        _FOLLOWS,
        "Broker 2 cuts nothing: since KIP-101 a follower cuts only what is not in its leader's log, "
        "which it tells by the leader epochs of both. Besides, the controller took 2 out of the ISR "
        "when its session was over. So m2 is still on both disks when 1 dies, and the partition waits "
        "for 1.",
    ),
    ("restart-then-failover", "kraft35"): Explanation(
        _FOLLOWS,
        "Broker 2 cuts nothing: a follower hears where its log parts from its leader's as it fetches, "
        "and cuts only there. It left the ISR when its session was over; the last member of an ISR "
        "stays in it, so the partition waits for 1, which has m2.",
    ),
    ("restart-then-failover", "kip966"): Explanation(
        _FOLLOWS,
        "Broker 2 cuts nothing, as in kraft35. The ISR may become empty here: 1 moves to the ELR, comes "
        "back after an unclean stop, and leads once the controller has asked for its log. m2 is in it.",
    ),
    ("double-power-loss", "zk08"): Explanation(
        r"^1 follows 2$",
        "Broker 1 has a high watermark that says two records are committed, and its log has two: there "
        "is nothing to cut, and it fetches on at 2. At offset 1 it has m2 and its leader has m3, and "
        "nobody will ever notice. A high watermark tells how much is committed, and not what.",
    ),
    ("double-power-loss", "kip101"): Explanation(
        r"^1 cuts its log",
        "Before it fetches broker 1 asks where the epoch of its last record ends in its leader's log "
        "(OffsetForLeaderEpoch, KIP-101). The answer is 1, so it cuts m2 and copies m3. m2 is lost, as "
        "it may be when everybody loses power; but the logs are one.",
    ),
    ("double-power-loss", "kraft35"): Explanation(
        _TELLS,
        "The fetch itself names the epoch of broker 1's last record. The leader sees that this epoch "
        "ends earlier in its own log and says so in its answer: 1 cuts m2 and copies m3. The logs are "
        "one.",
    ),
    ("double-power-loss", "kip966"): Explanation(
        _TELLS,
        "As in kraft35 the answer to the fetch says where the logs part. And because 2 came back after "
        "an unclean stop it could not simply lead: the controller asked for its log first, and reported "
        "a possible loss.",
    ),
    ("failover-twice", "zk08"): Explanation(
        _CUTS,
        "To follow the new leader a replica cuts its log to its own high watermark, and so loses m2, "
        "which it would be given again with its next fetch. The new leader dies before that. The "
        "replica is in the ISR still: being in it says that it had everything, not that it has.",
    ),
    ("failover-twice", "kip101"): Explanation(
        _FOLLOWS,
        "The replica cuts nothing before the new leader has told it where their epochs part. The leader "
        "dies before it can, and m2 is still there when the replica leads.",
    ),
    ("failover-twice", "kraft35"): Explanation(
        _FOLLOWS,
        "To follow is no reason to cut: only the answer to a fetch can be one. The leader dies before "
        "it answers, and m2 is still there when the replica leads.",
    ),
    ("failover-twice", "kip966"): Explanation(
        _FOLLOWS,
        "As in kraft35 only the answer to a fetch makes a follower cut. The leader that died waits in "
        "the ELR meanwhile.",
    ),
    ("isolated-then-unclean", "zk08"): Explanation(
        _ACKNOWLEDGES,
        "The design has no MinISR: a leader that is alone in its ISR goes on "
        "acknowledging, and m2 is on one disk. An unclean election gives it up. When 1 is back its own "
        "high watermark covers m2, so it cuts nothing, and the logs differ as well.",
    ),
    ("isolated-then-unclean", "kip101"): Explanation(
        _REFUSES,
        "min.insync.replicas=2 asks for a second copy before anything is acknowledged: the client is "
        "told that m2 may not be there. The unclean election then gives up nothing that was promised, "
        "and by leader epoch 1 finds out that it must cut m2.",
    ),
    ("isolated-then-unclean", "kraft35"): Explanation(
        _REFUSES,
        "min.insync.replicas=2 keeps the leader that is alone from acknowledging m2. The unclean "
        "election gives up nothing that was promised, and 1 cuts m2 as it fetches.",
    ),
    ("isolated-then-unclean", "kip966"): Explanation(
        _REFUSES,
        "The leader that is alone refuses m2. And as the ISR shrank below MinISR the others went to the "
        "ELR: while they are in it nothing can be committed without them, so one of them leads, and the "
        "election is a clean one.",
    ),
    ("split", "zk08"): Explanation(
        _ACKNOWLEDGES,
        "Broker 2 alone reaches ZooKeeper, so it is elected, drops the two that it "
        "cannot hear, and acknowledges m2 on its own. Its power fails before m2 is flushed, and no "
        "other copy was ever made, although two brokers were well.",
    ),
    ("split", "kip101"): Explanation(
        _REFUSES,
        "Broker 2 leads, and its ISR is itself alone: with min.insync.replicas=2 it takes no write at "
        "all. Nothing was promised, so nothing is lost.",
    ),
    ("split", "kraft35"): Explanation(
        _REFUSES,
        "Broker 2 leads, and its ISR is itself alone: with min.insync.replicas=2 it takes no write at "
        "all. Nothing was promised, so nothing is lost.",
    ),
    ("split", "kip966"): Explanation(
        _REFUSES,
        "Broker 2 takes no write, since its ISR is below MinISR. 1 is in the ELR, so when 2 loses power "
        "the partition need not wait for it: 1 leads.",
    ),
    ("power-back-early", "zk08"): Explanation(
        r"^ZooKeeper leader 1, ISR \[1, 2, 3\]$",
        "Nobody in this design can know that broker 1 came back with less: it is in the ISR still, and "
        "preferred, so it leads. The others have more than their leader, and cut it away to match.",
    ),
    ("power-back-early", "kip101"): Explanation(
        _FENCED_OUT,
        "A broker that comes back registers anew, and may not while its former life has a session. When "
        "that is over the controller takes 1 out of the ISR: 2 leads, which has m2, and 1 copies it.",
    ),
    ("power-back-early", "kraft35"): Explanation(
        _FENCED_OUT,
        "A broker that comes back registers anew and gets a new broker epoch, which it may not while "
        "its former life has a session. When that is over the controller takes 1 out of the ISR: 2 "
        "leads, which has m2, and 1 copies it.",
    ),
    ("power-back-early", "kip966"): Explanation(
        _FENCED_OUT,
        "As in kraft35 broker 1 leaves the ISR before it may register again. Besides, it registers "
        "without a clean-shutdown file, so it could be in no ELR either, had the ISR been smaller.",
    ),
    ("zombie-leader", "zk08"): Explanation(
        _ANSWERS,
        "The question and the news of the new leader wait side by side until broker 1 goes on, and the "
        "question comes first. This design has no leader epochs, so nothing in the question tells 1 "
        "that another leads: it answers with the end that it knows, which is past.",
    ),
    ("zombie-leader", "kip101"): Explanation(
        _ANSWERS,
        "The client names the leader epoch that it knows (KIP-320). It is newer than broker 1's own, so "
        "1 knows that it has missed something, and refuses to answer.",
    ),
    ("zombie-leader", "kraft35"): Explanation(
        _ANSWERS,
        "The client names the leader epoch that it knows (KIP-320). It is newer than broker 1's own, so "
        "1 refuses to answer.",
    ),
    ("zombie-leader", "kip966"): Explanation(
        _ANSWERS,
        "As in kraft35 the leader epoch in the question is newer than broker 1's own, so 1 refuses to "
        "answer.",
    ),
}
"""(story, profile) -> the place, and the reason."""

CODES: Final = {
    "B01": "Truncation to the high watermark loses records. KAFKA-1211, KIP-101 scenario 1; 0.11.",
    "B02": "Truncation to the high watermark lets replicas diverge. KIP-101 scenario 2; 0.11.",
    "B05": "A leader that was replaced goes on. By design: there is no read lease.",
    "B34": "An unclean registration changes no ISR. KAFKA-18106, KAFKA-18635.",
    "B52": (
        "The ISR shrinks to an isolated leader, which goes on with acks=all, then an unclean "
        "election follows. Found with Jepsen in Kafka 0.8."
    ),
    "H16": (
        "Scenario: data loss. Truncation to the high watermark and an election right after it "
        "lose a committed message. The epoch rule keeps it, and a new entry appears (B01)."
    ),
    "H17": (
        "Scenario: divergence. Both replicas lose power, and truncation to the high watermark "
        "keeps a foreign message. The epoch rule truncates it (B02)."
    ),
    "H19": ("Unclean election. One waits for an ISR member, or elects the first replica that returns (B09)."),
    "K28": (
        "MinISR at produce. While the ISR is smaller, new acks=all requests get "
        "NOT_ENOUGH_REPLICAS (19) and append nothing; pending ones get "
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND (20) (C5)."
    ),
    "R11": (
        "Unclean Exclusion. After an unclean restart a replica is out of leadership, ISR and ELR "
        "until it is proved caught up (I08)."
    ),
    "Z12": (
        "Primary and backups, no quorum. n replicas survive n-1 failures. The leader drops a slow "
        "member and goes on, so two replicas are useful too."
    ),
}
"""Code of docs/protocol.md -> what stands there, since a page stands alone: of a bug its name, of another row
its name and its text."""
