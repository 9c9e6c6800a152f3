"""The metadata log, fetched from the controller like any partition and kept on disk
(docs/protocol.md K02, K03).

Only committed records are taken, so the local copy is a prefix of the controllers' log up to its high
watermark (I06), and a restart goes on where it ended. Now and then a snapshot replaces what lies behind; a
broker that was away for longer than the controllers keep their log fetches one of theirs (KIP-630).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.log import MetadataLog
from wrackline.broker.core.quorum.snapshots import Download
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching import validation
from wrackline.broker.core.replication.uplink import Uplink
from wrackline.broker.model.batches.batch import CorruptBatch
from wrackline.broker.model.effects import DeleteSnapshot, Effect, Exit, ResetLog, Trace
from wrackline.broker.model.messages.requests import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    Response,
)
from wrackline.broker.model.messages.snapshots import FetchSnapshotResponse
from wrackline.broker.model.metadata import snapshot_format
from wrackline.broker.model.metadata.image import ClusterImage, ImageDelta, ImageError, difference
from wrackline.broker.model.types import (
    METADATA,
    METADATA_TOPIC_ID,
    NO_LEADER,
    NodeId,
    RecoveredLog,
    SnapshotId,
    StoredSnapshot,
)
from wrackline.broker.model.values import NO_ERROR

_TIMER = "metadata-fetch"


class Observer:
    def __init__(self, ctx: Context, uplink: Uplink, on_delta: Callable[[ImageDelta], None]) -> None:
        self._ctx = ctx
        self._uplink = uplink
        self._on_delta = on_delta
        self._stopped = False
        self._received: tuple[SnapshotId, ClusterImage] | None = None
        """Fetched whole and being written."""
        self.log = MetadataLog(ctx.config, ctx.rules.snapshots)

    def start(
        self, recovered: RecoveredLog | None, batches: Sequence[bytes], snapshots: Sequence[StoredSnapshot]
    ) -> None:
        """Bring the image to where the local copy ends, then fetch on from there. A copy that cannot be read
        is fetched anew: the controllers have it, and no role is taken before it is known up to the broker's
        own registration."""
        out: list[Effect] = []
        try:
            self._restore(recovered, batches, snapshots, out)
        except ValueError as error:
            self._ctx.out.append(Trace("metadata_anew", {"why": str(error)}, loud=True))
            self._begin_anew(recovered, snapshots)
        else:
            self._ctx.out += out
        if self._knows_level():
            self._fetch()

    def _restore(
        self,
        recovered: RecoveredLog | None,
        batches: Sequence[bytes],
        snapshots: Sequence[StoredSnapshot],
        out: list[Effect],
    ) -> None:
        """Raises ValueError, and then nothing of it counts."""
        ctx, log = self._ctx, self.log
        loaded = log.restore(recovered, batches, snapshots, ctx.now_ms, out)
        if loaded is not None:
            ctx.image = loaded
        ctx.image.apply_all(log.advance(log.leo))
        if ctx.image.metadata_offset + 1 != log.leo:
            raise ValueError(f"the log ends at {log.leo}, its last record is {ctx.image.metadata_offset}")

    def _begin_anew(self, recovered: RecoveredLog | None, snapshots: Sequence[StoredSnapshot]) -> None:
        ctx = self._ctx
        ctx.image = ClusterImage()
        self.log = MetadataLog(ctx.config, ctx.rules.snapshots)
        ctx.out += [DeleteSnapshot(stored.id) for stored in snapshots]
        if recovered is not None:
            ctx.out.append(ResetLog(METADATA, 0))
            recovered = RecoveredLog(METADATA_TOPIC_ID, 0, 0, 0, 0, recovered.epochs)
        self.log.restore(recovered, (), (), ctx.now_ms, ctx.out)

    def stop(self) -> None:
        self._stopped = True
        self._ctx.cancel_timer(_TIMER)

    def flushed(self, upto: int) -> None:
        if self._stopped:
            self.log.partition_log.on_flushed(upto)
        else:
            self.log.flushed(upto, self._ctx.out)

    # --- snapshots ------------------------------------------------------------------------------------------

    def snapshot_written(self, snapshot: SnapshotId) -> None:
        """One made here, or one that was fetched: then the log goes on after it, and so does the image."""
        if self._stopped:
            return
        self.log.snapshot_written(snapshot, self._ctx.out)
        if self._received is None or self._received[0] != snapshot:
            return
        (_, image), self._received = self._received, None
        self.log.load(snapshot, self._ctx.now_ms, self._ctx.out)
        former, self._ctx.image = self._ctx.image, image
        if self._knows_level():
            self._on_delta(difference(former, image))
            self._fetch()

    def _ask_piece(self, download: Download) -> None:
        config = self._ctx.config
        request = download.request(config.cluster_id, config.node_id, config.quorum_fetch_snapshot_max_bytes)
        asked = self._uplink.controller_id
        self._uplink.send("controller-fetch", request, partial(self._piece, download, asked))

    def _piece(self, download: Download, asked: NodeId, response: Response | None) -> None:
        if self._stopped:
            return
        if not isinstance(response, FetchSnapshotResponse) or response.error is not NO_ERROR:
            if (
                isinstance(response, FetchSnapshotResponse)
                and response.error is ErrorCode.not_leader_or_follower
            ):
                self._uplink.led_by(response.leader_id, asked)
            self._again()
            return
        try:
            if not download.take(response):
                self._ask_piece(download)
                return
            image = snapshot_format.read(download.data, download.id)
        except ValueError as wrong:
            self._ctx.out.append(Trace("snapshot_bad", {"why": str(wrong)}, loud=True))
            self._again()
            return
        self._received = download.id, image
        self.log.snapshots.take(download.id, download.data, self._ctx.out)

    # --- the log --------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        if self._stopped:
            return
        config = self._ctx.config
        part = FetchPartition(
            tp=METADATA,
            fetch_offset=self.log.leo,
            max_bytes=config.replica_fetch_max_bytes,
            last_fetched_epoch=self.log.last_epoch,
            log_start=self.log.log_start,
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
        elif result.snapshot is not None:
            if result.snapshot.end_offset > self.log.leo:
                self._ask_piece(Download(result.snapshot))
            else:
                self._again()
        elif result.diverging is not None:
            self._diverged(f"it ends epoch {result.diverging.epoch} at {result.diverging.end_offset}")
        elif result.error is ErrorCode.offset_out_of_range:
            self._diverged("it says our end is out of its range")
        elif result.error is not NO_ERROR:
            self._again()
        elif self._take(result):
            self._fetch()
        elif result.records:
            self._again()
        else:
            self._fetch()

    def _is_deposed(self, result: FetchResult) -> bool:
        """Tells whether the answering leader leads an epoch older than our newest record: nothing it says of
        our log means anything."""
        leader = result.current_leader
        return leader is not None and leader.leader_epoch < self.log.latest_epoch

    def _diverged(self, what: str) -> None:
        """The controller has lost records that were committed: to cut them here would hide it
        (docs/protocol.md 2.12.4)."""
        self._give_up(
            f"the controller's metadata log does not contain ours up to {self.log.leo}: {what}. "
            "Empty the data directory only when the cluster was made anew"
        )

    def _knows_level(self) -> bool:
        """A level that this profile does not support may bring records that mean nothing to it."""
        if why := self._ctx.rules.features.unknown_level(self._ctx.image.level, self._ctx.rules.levels):
            self._give_up(why)
        return not why

    def _give_up(self, reason: str) -> None:
        self._stopped = True
        self._ctx.trace("stop", reason=reason, how="metadata")
        self._ctx.out.append(Exit(1, reason))

    def _take(self, result: FetchResult) -> bool:
        """Append and apply what is committed; True when there was something."""
        if not result.records:
            return False
        got = validation.fetched(bytes(result.records), self.log.leo)  # type: ignore[arg-type]
        committed = [
            (header, batch) for header, batch in got.batches if header.last_offset < result.high_watermark
        ]
        if not committed:
            return False
        try:
            self.log.take(b"".join(batch for _, batch in committed), self._ctx.out)
            delta = self._ctx.image.apply_all(self.log.advance(self.log.leo))
        except (CorruptBatch, ValueError, ImageError) as error:
            self._give_up(f"a metadata record at or past offset {self.log.leo} cannot be applied: {error}")
            return False
        if not self._knows_level():
            return False
        self._on_delta(delta)
        self.log.make_snapshot(self._ctx.image, self._ctx.now_ms, self._ctx.out)
        return True


def _only(response: Response | None) -> FetchResult | None:
    if not isinstance(response, FetchResponse) or response.error is not NO_ERROR:
        return None
    return next((result for result in response.partitions if result.tp == METADATA), None)
