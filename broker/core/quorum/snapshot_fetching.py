"""Snapshots in the quorum (docs/protocol.md 2.12.7, KIP-630): a follower whose log ends before the leader's
begins fetches one, piece by piece, and goes on after it.

It counts as news of the leader, so no election comes between; if one does, what was fetched is dropped. The
log is replaced only when the snapshot is safe on the disk, and only by a follower: a leader has everything
committed.
"""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.roles import RETRY, RaftRoles
from wrackline.broker.core.quorum.snapshots import Download
from wrackline.broker.model.config import ControllerConfig
from wrackline.broker.model.effects import Effect, Trace
from wrackline.broker.model.messages.requests import Response
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.metadata import snapshot_format
from wrackline.broker.model.metadata.image import ClusterImage
from wrackline.broker.model.types import SnapshotId
from wrackline.broker.rules.profile import Rules


class RaftSnapshots(RaftRoles):
    def __init__(self, config: ControllerConfig, rules: Rules) -> None:
        super().__init__(config, rules)
        self._received: tuple[SnapshotId, ClusterImage, int] | None = None
        """Fetched whole and being written, in this turn."""

    @property
    def is_asking(self) -> bool:
        """A question to another voter is not answered yet, or a snapshot that was fetched not written."""
        return self._ctx.is_asking or self._received is not None

    def make_snapshot(self, image: ClusterImage, now_ms: float) -> list[Effect]:
        """When one is due. ``image``: everything that is committed."""
        out = self._ctx.begin(now_ms)
        self.log.make_snapshot(image, now_ms, out)
        return out

    def snapshot_written(self, snapshot: SnapshotId, now_ms: float) -> list[Effect]:
        out = self._ctx.begin(now_ms)
        self.log.snapshot_written(snapshot, out)
        if self._received is not None and self._received[0] == snapshot:
            _, image, turn = self._received
            self._received = None
            if turn == self._turn:
                self.log.load(snapshot, now_ms, out)
                self.loaded = image
                self._fetching = False
                self._fetch()
            elif snapshot.end_offset > self.log.high_watermark:
                self.log.snapshots.drop(snapshot, out)
        return out

    # --- the leader's side ----------------------------------------------------------------------------------

    def _answer_snapshot(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        if request.cluster_id != self._ctx.config.cluster_id:
            error = ErrorCode.inconsistent_cluster_id
        elif self.leadership is None:
            error = ErrorCode.not_leader_or_follower
        else:
            return self.leadership.piece(request)
        return FetchSnapshotResponse(error, leader_id=self.leader_id, leader_epoch=self.epoch)

    # --- the follower's side --------------------------------------------------------------------------------

    def _download(self, snapshot: SnapshotId) -> None:
        if snapshot.end_offset <= self.log.high_watermark:
            self._give_download_up(
                f"the leader offers {snapshot}, the high watermark is {self.log.high_watermark}"
            )
            return
        self._fetching = True
        self._ctx.out.append(Trace("snapshot_fetch", {**snapshot._asdict(), "leo": self.log.leo}))
        self._ask_piece(Download(snapshot))

    def _ask_piece(self, download: Download) -> None:
        config, turn = self._ctx.config, self._turn

        def answered(response: Response | None) -> None:
            if turn == self._turn:
                self._piece(download, response)

        request = download.request(
            config.cluster_id,
            self._ctx.me,
            config.quorum_fetch_snapshot_max_bytes,
            epoch=self.epoch,
            directory=self.state.directory_id,
        )
        timeout_ms = min(config.quorum_request_timeout_ms, config.quorum_fetch_timeout_ms)
        self._ctx.ask(self.state.leader_id, request, timeout_ms, answered)

    def _piece(self, download: Download, response: Response | None) -> None:
        if not isinstance(response, FetchSnapshotResponse):
            self._give_download_up(None)
            return
        if self._learn(response.leader_id, response.leader_epoch):
            return
        if response.error is not ErrorCode.none or response.leader_epoch != self.epoch:
            self._give_download_up(None)
            return
        self._has_fetched = True
        self._wait(self._ctx.config.quorum_fetch_timeout_ms, self._ask_around)
        try:
            if not download.take(response):
                self._ask_piece(download)
                return
            data = download.data
            self._received = download.id, snapshot_format.read(data, download.id), self._turn
        except ValueError as wrong:
            self._give_download_up(str(wrong))
            return
        self.log.snapshots.take(download.id, data, self._ctx.out)

    def _give_download_up(self, why: str | None) -> None:
        """The next fetch tells which snapshot there is now: a leader may have dropped the one that was asked
        for."""
        if why is not None:
            self._ctx.out.append(Trace("snapshot_bad", {"why": why}, loud=True))
        self._ctx.wait(RETRY, self._ctx.config.quorum_retry_backoff_ms, self._fetch_again)

    def _fetch_again(self) -> None:
        self._fetching = False
        self._fetch()
