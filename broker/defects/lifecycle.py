"""Defects of the brokers' life: registration, fencing, shutdown, disks (docs/protocol.md 4.2, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from wrackline.broker.defects.flip import SwitchDefect
from wrackline.broker.model.metadata.image import BrokerImage
from wrackline.broker.model.types import NodeId
from wrackline.broker.rules.leadership.registration import RegistrationRules


class IgnoreUnclean(RegistrationRules):
    """``ignore_unclean``: B28, R15. Every registration is taken for one after a clean shutdown.

    A broker that lost its log stays eligible. What KIP-966 was before it asked for the clean-shutdown epoch.
    """

    def is_clean(self, previous_epoch: int, registered_epoch: int) -> bool:  # noqa: ARG002
        return True


class CleanByPresence(RegistrationRules):
    """``clean_by_presence``: B29, C14. A clean-shutdown file is believed, whichever life it is from.

    Harmless as long as every start deletes the file (see ``keep_clean_file``).
    """

    def is_clean(self, previous_epoch: int, registered_epoch: int) -> bool:  # noqa: ARG002
        return previous_epoch >= 0


class KeepCleanFile(SwitchDefect):
    """``keep_clean_file``: B29. The clean-shutdown file is left where it is at start, so a crash looks
    clean."""

    flips: ClassVar = {"start_removes_clean_file": False}


class MigrateWithoutFence(SwitchDefect):
    """``migrate_without_fence``: docs/protocol.md 2.15, KIP-866. A controller takes over from ZooKeeper, and
    nobody is kept from leading by ZooKeeper meanwhile.

    A leader that does not reach the controller makes its ISR smaller in ZooKeeper, where nobody reads it any
    more, and acknowledges alone.
    """

    flips: ClassVar = {"fences_zookeeper": False}


class MigrateEarlyWatermark(SwitchDefect):
    """``migrate_early_watermark``: docs/protocol.md 2.15. A leader that is being opened has its high
    watermark at its log's end already, and a controller takes the partition over.

    Consumers read a record that the other members of the ISR do not have, and one of them leads next.
    """

    flips: ClassVar = {"opening_waits_for_isr": False}


class RegisterWithoutIsrChange(RegistrationRules):
    """``register_no_isr_change``: B34, KAFKA-18106, KAFKA-18635. A new life is let in before the old one is
    fenced, and only its registration is written.

    It stays in every ISR, with whatever is left of its logs. Fixed in 4.0 (December 2024).
    """

    flips: ClassVar = {"registration_leaves_isr": False}

    def may_replace(self, existing: BrokerImage, session_valid: bool) -> bool:  # noqa: ARG002
        return True


class BatchFence(RegistrationRules):
    """``batch_fence``: B24, KAFKA-13173. Sessions that end together are fenced from one view of the
    partitions.

    The second record undoes what the first one did to the ISR. Fixed in 3.1.
    """

    flips: ClassVar = {"fences_from_stale_image": True}

    def to_fence(self, stale: Iterable[tuple[float, NodeId]]) -> tuple[NodeId, ...]:
        return tuple(broker for _, broker in sorted(stale))


class NoBrokerEpoch(RegistrationRules):
    """``no_broker_epoch``: B50, KAFKA-1120, KIP-380, KAFKA-7235. Requests of a broker's former life count.

    A bounce that nobody noticed, or a request that was long under way, is taken for the present. Fixed in
    2.2.
    """

    def has_right_epoch(self, broker: BrokerImage | None, epoch: int) -> bool:  # noqa: ARG002
        return broker is not None


class StopMetadataOnShutdown(SwitchDefect):
    """``stop_md_on_shutdown``: B51, KAFKA-14296. A broker in controlled shutdown applies no metadata any
    more.

    It does not learn that others lead now, and sends nobody to them. Fixed in 3.4.
    """

    flips: ClassVar = {"applies_metadata_while_stopping": False}


class ContinueAfterIoError(SwitchDefect):
    """``continue_after_io_error``: B57, KAFKA-10778. An append fails half-way and the next one goes on.

    The leader's log and what it tells about it are no longer the same. Fixed in 2.8.
    """

    flips: ClassVar = {"stops_on_disk_failure": False}


class TrustEpochFile(SwitchDefect):
    """``epoch_ckpt_no_fsync``: B53, KAFKA-16541. The leader-epoch checkpoint is not synced, and believed at
    start.

    After a power cut it lacks the newest epochs of the log, so questions about them are answered wrongly.
    Came with KAFKA-15046 (3.7), fixed in 3.9.
    """

    flips: ClassVar = {"start_rebuilds_epochs": False}
