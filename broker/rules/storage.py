"""What a node does about its disk at start and after a failure (docs/protocol.md 2.7.1, 2.14, R09)."""

from __future__ import annotations


class StorageRules:
    """Profile kip966."""

    def takes_clean_file(self) -> bool:
        """A start takes the clean-shutdown file away, or a later crash would look clean (B29)."""
        return True

    def stops_on_failure(self) -> bool:
        """What a failed write left in a log is unknown: nothing may be written after it (KAFKA-10778, B57)."""
        return True

    def rebuilds_epochs(self) -> bool:
        """A start reads the epochs from the log's own batches: the checkpoint may be older than the log, since not
        every write of it is synced (KAFKA-16541, B53)."""
        return True
