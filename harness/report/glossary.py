"""One sentence per anomaly, with Jepsen's nearest name (anomalies.md sections 1 to 5)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    finding: str
    jepsen: str = ""


GLOSSARY: Final[dict[str, Entry]] = {
    "lost-write": Entry("An acknowledged value is absent from the final read.", "lost-write / unseen"),
    "vanished-read": Entry("A record some consumer was given is not in the final read."),
    "lost-on-replica": Entry(
        "After healing and catch-up, an acknowledged value is missing from a replica that is in the ISR.",
        "lost-on-node",
    ),
    "inconsistent-offset": Entry("Two values were seen at one offset.", "inconsistent-offsets"),
    "replica-divergence": Entry(
        "Two replicas hold different records at one offset below both high watermarks."
    ),
    "duplicate": Entry("One value lies at two offsets.", "duplicate"),
    "aborted-read": Entry("The value of a send that certainly failed was read.", "G1a"),
    "phantom": Entry("A value was read that nobody sent."),
    "misrouted": Entry("A value was read from another topic or partition than it was sent to."),
    "corrupt": Entry("Payload, key, headers or timestamp differ from what was sent."),
    "epoch-order": Entry("Leader epochs of records decrease along the offsets."),
    "append-order": Entry(
        "A send had completed before another was invoked, yet lies at the larger offset.", "G0-realtime"
    ),
    "session-order": Entry("One process's later send has the smaller offset.", "nonmonotonic-send"),
    "batch-order": Entry("Within one operation, sends are stored in another order.", "int-nonmonotonic-send"),
    "poll-skip": Entry(
        "A consumer jumps over known offsets with no seek between.", "poll-skip / int-poll-skip"
    ),
    "poll-rewind": Entry(
        "A consumer goes back past known offsets with no seek between.", "nonmonotonic-poll"
    ),
    "write-cycle": Entry("A cycle of write-write and real-time edges.", "G0"),
    "read-cycle": Entry("A cycle that needs a write-read edge.", "G1c"),
    "stale-read": Entry(
        "A read or end-offset request invoked after an ack had completed does not see it.", "realtime-lag"
    ),
    "future-read": Entry("A record was returned before its send was invoked."),
    "watermark-regression": Entry(
        "Of two observations, one after the other, the later shows a smaller high watermark."
    ),
    "not-linearizable": Entry("The partition's history has no valid order."),
    "register-not-linearizable": Entry("The register's history has no valid order.", "Knossos"),
    "queue-not-linearizable": Entry("The queue's history has no valid order.", "Knossos"),
    "commit-regression": Entry("A committed offset goes back with no rewind asked for."),
    "commit-beyond-end": Entry("An offset past the end of the log was committed."),
    "group-skip": Entry("A record was committed past without any member having been given it."),
    "zombie-commit": Entry("The commit of a fenced member took effect."),
    "no-progress": Entry("Nothing succeeded in a phase."),
    "unproven-write": Entry("A send of unknown outcome, counted by whether its value was read."),
}


def explain(anomaly: str) -> Entry:
    return GLOSSARY.get(anomaly, Entry(""))


def rank(anomaly: str) -> int:
    """Where it stands in anomalies.md; the report lists anomalies of one meaning in this order."""
    return list(GLOSSARY).index(anomaly) if anomaly in GLOSSARY else len(GLOSSARY)
