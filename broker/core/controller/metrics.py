"""Counts of unclean recoveries in a controller (KIP-966, "Metrics"), for as long as its process lives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from wrackline.broker.core.controller.unclean_recovery import DecidedBy, Decision
from wrackline.broker.core.quorum.log import Entry
from wrackline.broker.model.metadata.records import MetadataRecord, PartitionChangeRecord
from wrackline.broker.model.metric import Metric
from wrackline.broker.model.types import RecoveryStrategy
from wrackline.broker.rules.leadership.election import RECOVERING


class UncleanRecoveries:
    def __init__(self) -> None:
        self.finished: Counter[DecidedBy] = Counter()
        """Elections from outside ISR and ELR that were committed while this controller was active."""
        self.timed_out = 0
        """Times that a window ended before every replica had answered."""

    def count(self, entries: Iterable[Entry], decisions: Mapping[int, Decision]) -> None:
        """``entries`` were committed."""
        for offset, record in entries:
            if is_unclean_election(record):
                decision = decisions.get(offset, Decision(DecidedBy.SETTING))
                self.finished[decision.by] += 1
                self.timed_out += bool(decision.silent)

    def metrics(self, waiting: Iterable[RecoveryStrategy], *, active: bool) -> tuple[Metric, ...]:
        """``waiting``: the strategy of each partition that only an unclean recovery can give a leader."""
        strategies = Counter(waiting)
        manual = strategies.pop(RecoveryStrategy.MANUAL, 0)
        return (
            Metric(
                "active_controller_count",
                "gauge",
                "1 on the controller that decides. The others count nothing below.",
                {"": int(active)},
            ),
            Metric(
                "unclean_recovery_partitions_count",
                "gauge",
                "Partitions without a leader that the controller is recovering, or waits to, by strategy.",
                {
                    f'strategy="{each.value}"': strategies[each]
                    for each in RecoveryStrategy
                    if each is not RecoveryStrategy.MANUAL
                },
            ),
            Metric(
                "manual_leader_election_required_partition_count",
                "gauge",
                "Partitions without a leader that wait for a person to name one (strategy manual).",
                {"": manual},
            ),
            Metric(
                "unclean_recovery_finished_count",
                "counter",
                "Leaders elected from outside ISR and ELR, by who decided: each is a possible loss.",
                {f'by="{each.value}"': self.finished[each] for each in DecidedBy},
            ),
            Metric(
                "unclean_recovery_timeout_count",
                "counter",
                "Windows that ended before every replica had said how far its log reaches.",
                {"": self.timed_out},
            ),
        )


def is_unclean_election(record: MetadataRecord) -> TypeGuard[PartitionChangeRecord]:
    """A leader from outside ISR and ELR: committed records may be lost, and nobody can tell (R34)."""
    return isinstance(record, PartitionChangeRecord) and record.leader_recovery_state == RECOVERING
