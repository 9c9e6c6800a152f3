"""Defects of reassignment (docs/protocol.md 4.2, 4.3). The one of settings, B32, is in ``elections``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.model.metadata.records import PartitionChangeRecord
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.leadership.election import ElectionRules
from wrackline.broker.rules.leadership.eligible import ChangeInput
from wrackline.broker.rules.placement.reassign import Assignment, ReassignRules


class ReassignNoMinIsr(ReassignRules):
    """``reassign_no_minisr``: B36, KAFKA-15665. A reassignment completes however few remain in the ISR.

    What MinISR replicas had committed is then on one. Fixed in 3.8; with an ELR the removed ones are no help
    either, since they delete their logs.
    """

    def has_min_isr(self, final_isr: Collection[NodeId], min_isr: int) -> bool:  # noqa: ARG002
        return bool(final_isr)


class TouchWipesElr(ReassignRules):
    """``touch_wipes_elr``: B58. A change that does not concern the ISR writes an empty ELR.

    In Kafka, until a fix of 2026, an assignment of log directories does it. There are none to assign here:
    what touches the partition is a reassignment that begins. Who was in the ELR had everything, and may not
    lead.
    """

    def change(
        self, election: ElectionRules, given: ChangeInput, to: Assignment
    ) -> PartitionChangeRecord | None:
        record = super().change(election, given, to)
        return record if record is None or record.isr is not None else replace(record, elr=())


class AddedNeedsEpoch(SwitchDefect):
    """``added_needs_epoch``: B44. An added replica begins to follow only with a new leader epoch.

    The growing of a reassignment brings none, so it never ends.
    """

    flips: ClassVar = {"added_replica_follows_at_once": False}
