"""The metadata log, fetched from the controller like any partition and kept on disk (protocol.md K02, K03).

Only committed records are taken, so the local copy is a prefix of the controllers' log up to its high
watermark (I06), and a restart goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kio.schema.errors import ErrorCode

from broker.core import incoming
from broker.core.batch import BatchHeader, CorruptBatch, split, values_of
from broker.core.context import Context
from broker.core.effects import CreateLog, Exit
from broker.core.image import ImageDelta, ImageError
from broker.core.log import PartitionLog
from broker.core.messages import FetchPartition, FetchRequest, FetchResponse, FetchResult, Response
from broker.core.records import MetadataRecord, decode
from broker.core.types import METADATA, METADATA_TOPIC_ID, NO_LEADER, NodeId, RecoveredLog
from broker.core.uplink import Uplink

_TIMER = "metadata-fetch"


class Observer:
    def __init__(self, ctx: Context, uplink: Uplink, on_delta: Callable[[ImageDelta], None]) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._on_delta = on_delta
        self._stopped = False
        self.log = PartitionLog(METADATA, RecoveredLog(METADATA_TOPIC_ID, 0, 0, 0, 0))

    def start(self, recovered: RecoveredLog | None, batches: Sequence[bytes]) -> None:
        """Bring the image to where the local copy ends, then fetch on from there."""
        if recovered is None:
            self._ctx.out.append(CreateLog(METADATA, METADATA_TOPIC_ID))
        else:
            self.log = PartitionLog(METADATA, recovered)
        try:
            records: list[tuple[int, MetadataRecord]] = []
            for data in batches:
                for header, batch in split(data):
                    records += _records(header, batch)
            self._ctx.image.apply_all(records)
        except (CorruptBatch, ValueError) as wrong:
            self._give_up(f"the local copy of the metadata log cannot be read: {wrong}")
            return
        if self._ctx.image.metadata_offset + 1 != self.log.leo:
            self._give_up(
                f"the local metadata log ends at {self.log.leo}, "
                f"its last record is {self._ctx.image.metadata_offset}"
            )
            return
        self._fetch()

    def stop(self) -> None:
        self._stopped = True
        self._ctx.cancel_timer(_TIMER)

    def flushed(self, upto: int) -> None:
        self.log.on_flushed(upto)
        if not self._stopped:
            self.log.flush(self._ctx.out)

    def _fetch(self) -> None:
        if self._stopped:
            return
        config = self._ctx.config
        part = FetchPartition(
            tp=METADATA,
            fetch_offset=self.log.leo,
            max_bytes=config.replica_fetch_max_bytes,
            last_fetched_epoch=self.log.epochs.latest,
            log_start=0,
            topic_id=METADATA_TOPIC_ID,
        )
        request = FetchRequest(
            max_wait_ms=config.replica_fetch_wait_max_ms,
            min_bytes=1,
            max_bytes=config.replica_fetch_response_max_bytes,
            partitions=(part,),
            replica_id=config.node_id,
            broker_epoch=self._ctx.broker_epoch,
        )
        timeout = config.replica_fetch_wait_max_ms + self._uplink.timeout_ms
        asked = self._uplink.controller_id
        self._uplink.send("controller-fetch", request, partial(self._answered, asked), timeout)

    def _again(self) -> None:
        self._ctx.set_timer(_TIMER, self._ctx.now_ms + self._uplink.retry_ms, self._fetch)

    def _answered(self, asked: NodeId, response: Response | None) -> None:
        if self._stopped:
            return
        result = _only(response)
        if result is None:
            self._again()
        elif result.error is ErrorCode.not_leader_or_follower or self._is_deposed(result):
            # Our place in the log is the same at every controller: the next one goes on from here.
            led_by = result.current_leader
            self._uplink.led_by(NO_LEADER if led_by is None else led_by.leader_id, asked)
            self._again()
        elif result.diverging is not None:
            self._diverged(f"it ends epoch {result.diverging.epoch} at {result.diverging.end_offset}")
        elif result.error is ErrorCode.offset_out_of_range:
            self._diverged("it says our end is out of its range")
        elif result.error is not ErrorCode.none:
            self._again()
        elif self._take(result):
            self._fetch()
        elif result.records:
            self._again()
        else:
            self._fetch()

    def _is_deposed(self, result: FetchResult) -> bool:
        """It leads an epoch older than our newest record: nothing it says of our log means anything."""
        leader = result.current_leader
        return leader is not None and leader.leader_epoch < self.log.epochs.latest

    def _diverged(self, what: str) -> None:
        """The controller has lost records that were committed: to cut them here would hide it (2.12.4)."""
        self._give_up(
            f"the controller's metadata log does not contain ours up to {self.log.leo}: {what}. "
            "Empty the data directory only when the cluster was made anew"
        )

    def _give_up(self, reason: str) -> None:
        self._stopped = True
        self._ctx.trace("stop", reason=reason, how="metadata")
        self._ctx.out.append(Exit(1, reason))

    def _take(self, result: FetchResult) -> bool:
        """Append and apply what is committed; True when there was something."""
        if not result.records:
            return False
        got = incoming.fetched(bytes(result.records), self.log.leo)  # type: ignore[arg-type]
        committed = [
            (header, batch) for header, batch in got.batches if header.last_offset < result.high_watermark
        ]
        if not committed:
            return False
        try:
            records = [pair for header, batch in committed for pair in _records(header, batch)]
            self.log.append(committed, self._ctx.out)
            self.log.flush(self._ctx.out)
            delta = self._ctx.image.apply_all(records)
        except (CorruptBatch, ValueError, ImageError) as wrong:
            self._give_up(f"a metadata record at or past offset {self.log.leo} cannot be applied: {wrong}")
            return False
        self._on_delta(delta)
        return True


def _only(response: Response | None) -> FetchResult | None:
    if not isinstance(response, FetchResponse) or response.error is not ErrorCode.none:
        return None
    return next((result for result in response.partitions if result.tp == METADATA), None)


def _records(header: BatchHeader, batch: bytes | memoryview) -> list[tuple[int, MetadataRecord]]:
    return [(offset, decode(value)) for offset, value in values_of(header, batch)]
