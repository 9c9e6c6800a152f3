"""The codes of docs/protocol.md by which stories are named, and what its rows say of them: a page of stories
stands alone."""

from __future__ import annotations

from typing import Final

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
"""Code -> what stands there: of a bug its name, of another row its name and its text."""
