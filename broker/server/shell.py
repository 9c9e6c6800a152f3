"""The shell around a core: events in, effects out (docs/architecture.md section 4).

One event at a time goes through ``core.handle``; its effects are carried out in order before the next event.
Appends and truncations are done when the next effect begins; flushes, requests to other nodes and timers
answer by events later; what a log's directory needs besides is done behind the loop (``storage.backlog``).
Behind a vote everything waits until the disk has it, without holding up the loop. Nothing here decides
anything about the protocol.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.messages.requests import Refused, Response
from wrackline.broker.model.types import METADATA, Endpoint, NodeId, TopicPartition
from wrackline.broker.server.answers import read_from, resolve
from wrackline.broker.server.config import Settings
from wrackline.broker.server.cores import Role, ZooKeeper, connect_zookeeper
from wrackline.broker.server.flusher import Flusher
from wrackline.broker.server.meter import RequestMeter
from wrackline.broker.server.network.connection import Connection, PendingReply
from wrackline.broker.server.network.connections import Connections
from wrackline.broker.server.network.link import Link
from wrackline.broker.server.timers import Timers
from wrackline.broker.server.trace import TraceWriter
from wrackline.broker.storage.descriptors import out_of_descriptors
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import PartitionLog
from wrackline.broker.wire.codec import Codec
from wrackline.broker.wire.proof import ClusterSecret
from wrackline.broker.wire.schema import WireError

_LOG = logging.getLogger("broker.shell")

EXIT_DISK_FAILED = 3
_LEAVING = (fx.Send, fx.Reply, fx.NoReply)
"""What tells others of the effects before it."""


class Shell:
    """Lives on one event loop. ``ready`` is done when clients may be let in, ``stopped``, with the exit code,
    when the process is to end."""

    def __init__(
        self,
        role: Role,
        settings: Settings,
        log_dir: LogDir,
        secret: ClusterSecret,
        incarnation: UUID,
        trace: TraceWriter,
        most_connections: int,
    ) -> None:
        self._role = role
        self._settings = settings
        self._log_dir = log_dir
        self._trace = trace
        self._loop = asyncio.get_running_loop()
        self.incarnation = incarnation
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.stopped: asyncio.Future[int] = self._loop.create_future()
        node = settings.node
        self.codec = Codec(
            names=log_dir.topic_name,
            me=Endpoint(node.node_id, node.host, node.port),
            features=role.features,
            secret=secret,
        )
        self._flusher = Flusher(self._flushed, self._flush_failed)
        self._events: deque[ev.Event] = deque()
        self._effects: Iterator[fx.Effect] = iter(())
        """Of the event that was taken up, those not carried out yet."""
        self._draining = False
        self._held = False
        """The effects wait for the disk."""
        self._writes_behind = False
        self._closes = False
        self._request_ids = itertools.count(1)
        self.meter = RequestMeter("controller" if settings.is_controller else "broker")
        self._slots: dict[int, PendingReply] = {}
        shell = settings.shell
        self._connections = Connections(
            min(shell.max_connections, most_connections), shell.connections_max_idle_ms / 1000
        )
        self._links: dict[tuple[NodeId, str], Link] = {}
        self._timers = Timers(lambda key: self.post(ev.TimerFired(key)))
        self._zookeeper: ZooKeeper | None = None
        if shell.zookeeper_connect is not None:
            self._zookeeper = connect_zookeeper(shell.zookeeper_connect, self.post, trace.flush)
        self._disk_refused: OSError | None = None
        """While the effects of one event are carried out: what the disk said. The core wrote those that
        follow in the belief that all went well, so they are not carried out."""
        self._cut_short = False  # likewise: a fetch from that offset would claim a batch that went whole
        self._carriers: Mapping[type, Callable[[Any], None]] = {
            fx.Send: self._send,
            fx.Reply: self._reply,
            fx.NoReply: self._no_reply,
            fx.CreateLog: self._create_log,
            fx.DeleteLog: self._delete_log,
            fx.Append: self._append,
            fx.Flush: self._flush,
            fx.Truncate: self._truncate,
            fx.ResetLog: self._reset_log,
            fx.MoveLogStart: self._move_log_start,
            fx.Retain: self._retain,
            fx.ConfigureLog: self._configure_log,
            fx.WriteEpochs: self._write_epochs,
            fx.WriteCheckpoint: self._write_checkpoint,
            fx.WriteQuorumState: self._write_quorum_state,
            fx.WriteSnapshot: self._write_snapshot,
            fx.DeleteSnapshot: self._delete_snapshot,
            fx.CloseLogs: self._close_logs,
            fx.SetTimer: self._timers.set,
            fx.CancelTimer: self._timers.cancel,
            fx.Trace: self._write_trace,
            fx.Exit: self._exit,
            **({} if self._zookeeper is None else self._zookeeper.carriers),
        }

    # --- the loop --------------------------------------------------------------------------------------

    def post(self, event: ev.Event) -> None:
        """Hand an event to the core, now or, from within an effect, after the effects before it."""
        self._events.append(event)
        if not self._draining and not self._held:
            self._drain()

    def _drain(self) -> None:
        self._draining = True
        try:
            while True:
                for effect in self._effects:
                    self._carry_out(effect)
                    if self._held:
                        return
                self._trace.flush()
                if not self.ready.done() and self._role.ready():
                    self.ready.set_result(None)
                if not self._events or self.stopped.done():
                    break
                self._take_up(self._events.popleft())
        finally:
            self._draining = False
        self._write_behind()

    def _take_up(self, event: ev.Event) -> None:
        self._disk_refused, self._cut_short = None, False
        self._trace.begin()
        self._effects = iter(self._role.core.handle(event, self._loop.time() * 1000))

    def _carry_out(self, effect: fx.Effect) -> None:
        if self._log_dir.owes and isinstance(effect, _LEAVING):
            with self._disk(METADATA):
                self._log_dir.settle()
        if self._disk_refused is None:
            self._carriers[type(effect)](effect)
        else:
            self._refuse(effect, self._disk_refused)

    def stop(self, code: int) -> None:
        if not self.stopped.done():
            self.stopped.set_result(code)

    async def close(self) -> None:
        """Say good-bye: replies that are ready leave, everything else is dropped."""
        self._timers.close()
        if self._zookeeper is not None:
            await self._zookeeper.closed()
        for link in self._links.values():
            link.close()
        self._connections.stop()
        for connection in self._connections:
            connection.close()
        deadline = self._loop.time() + 0.5
        while len(self._connections) and self._loop.time() < deadline:
            await asyncio.sleep(0.005)
        self._flusher.close()
        self._trace.close()

    # --- requests (the RequestSink of connections) ----------------------------------------------------------

    def opened(self, connection: Connection) -> bool:
        return self._connections.admit(connection)

    def active(self, connection: Connection) -> None:
        self._connections.active(connection)

    def closed(self, connection: Connection, unanswered: list[PendingReply]) -> None:
        self._connections.closed(connection)
        for slot in unanswered:
            if self._slots.pop(slot.request_id, None) is not None:
                self.post(ev.RequestCancelled(slot.request_id))

    def received(self, slot: PendingReply, client_host: str) -> None:
        assert slot.incoming is not None
        slot.request_id = next(self._request_ids)
        self._slots[slot.request_id] = slot
        incoming = slot.incoming
        slot.since_s = self._loop.time()
        self.meter.asked(incoming.api.name, incoming.request, slot.size)
        self.post(
            ev.RequestReceived(
                slot.request_id, incoming.request, incoming.client_id, client_host, time.time() * 1000
            )
        )

    def _reply(self, effect: fx.Reply) -> None:
        slot = self._slots.pop(effect.request_id, None)
        if slot is None or slot.incoming is None:
            return
        response: Response = effect.response
        self._trace.flush()
        try:
            response = resolve(
                self._log_dir, slot.incoming.request, response, self._settings.node.fetch_max_bytes
            )
        except OSError as failure:
            response = Refused(ErrorCode.kafka_storage_error, str(failure))
            if out_of_descriptors(failure):
                _LOG.warning("%s: not read: %s", read_from(effect.response), failure)
            else:
                self._disk_failed(read_from(effect.response), failure)
        try:
            frame = self.codec.encode_response(slot.incoming, response)
        except WireError as error:
            slot.connection.hang_up(str(error))
            return
        self._answer(slot, response, frame)

    def _answer(self, slot: PendingReply, response: Response | None, frame: bytes) -> None:
        if slot.incoming is not None:
            name, request = slot.incoming.api.name, slot.incoming.request
            self.meter.answered(name, request, response, len(frame), self._loop.time() - slot.since_s)
        slot.connection.answer(slot, frame)

    def _refuse(self, effect: fx.Effect, failure: OSError) -> None:
        """An effect behind one that the disk refused. A follower's next fetch would acknowledge what it does
        not have, a reply would: askers are told of the disk, everything else is left undone."""
        match effect:
            case fx.Reply():
                refused = Refused(ErrorCode.kafka_storage_error, str(failure))
                self._reply(fx.Reply(effect.request_id, refused))
            case fx.NoReply():
                self._no_reply(fx.NoReply(effect.request_id, close=True))
            case fx.Exit():
                self._exit(effect)

    def _no_reply(self, effect: fx.NoReply) -> None:
        slot = self._slots.pop(effect.request_id, None)
        if slot is None:
            return
        self._answer(slot, None, b"")
        if effect.close:
            slot.connection.hang_up("an acks=0 request failed, and closing is the only way to say so")

    # --- other nodes -----------------------------------------------------------------------------------

    def _send(self, effect: fx.Send) -> None:
        endpoint = self._role.endpoints(effect.destination)
        if endpoint is None or self._cut_short:
            reason = "the log was cut short" if endpoint else f"no address is known of {effect.destination}"
            self._events.append(ev.SendFailed(effect.correlation, effect.destination, reason))
            return
        self._trace.flush()
        key = (effect.destination, effect.channel)
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = Link(
                f"node {effect.destination} ({effect.channel})",
                self.codec,
                f"node-{self._settings.node.node_id}",
                connect_timeout_s=self._settings.shell.connect_timeout_ms / 1000,
                max_frame_bytes=self._settings.shell.socket_request_max_bytes,
                on_response=self._responded,
                on_failure=self._send_failed,
            )
        link.send(effect, endpoint)

    def _responded(self, send: fx.Send, response: Response) -> None:
        self.post(ev.ResponseReceived(send.correlation, send.destination, response))

    def _send_failed(self, send: fx.Send, reason: str) -> None:
        self.post(ev.SendFailed(send.correlation, send.destination, reason))

    # --- the disk --------------------------------------------------------------------------------------

    def _disk_failed(self, tp: TopicPartition, failure: OSError) -> None:
        """Reports a disk failure to the core: nothing more is written to any log from here on (B57), and the
        core ends."""
        _LOG.error("disk: %s: %s", tp, failure)
        # Before any other event: what the core believes of its logs is wrong.
        self._events.appendleft(ev.DiskFailed(tp, str(failure)))
        if self._log_dir.take_offline(f"{tp}: {failure}"):
            self._disk_refused = failure

    @contextmanager
    def _disk(self, tp: TopicPartition) -> Iterator[None]:
        try:
            yield
        except OSError as failure:
            self._disk_failed(tp, failure)

    def _create_log(self, effect: fx.CreateLog) -> None:
        with self._disk(effect.tp):
            self._log_dir.create(effect.tp, effect.topic_id, effect.start_offset)

    def _delete_log(self, effect: fx.DeleteLog) -> None:
        with self._disk(effect.tp):
            self._log_dir.delete(effect.tp)

    def _append(self, effect: fx.Append) -> None:
        log = self._log_dir.get(effect.tp)
        if log is None:
            self._disk_failed(effect.tp, OSError("its log could not be created"))
            return
        try:
            rolled = log.append(effect.batches)
        except OSError as failure:
            self._disk_failed(effect.tp, failure)
            return
        if rolled:
            self._flusher.flush(log)

    def _flush(self, effect: fx.Flush) -> None:
        log = self._log_dir.get(effect.tp)
        if log is not None:
            self._flusher.flush(log)

    def _flushed(self, log: PartitionLog, upto: int) -> None:
        if self._log_dir.get(log.tp) is log:
            self.post(ev.Flushed(log.tp, upto))

    def _flush_failed(self, log: PartitionLog, failure: OSError) -> None:
        if self._log_dir.get(log.tp) is log:
            _LOG.error("disk: %s: flush: %s", log.tp, failure)
            self._log_dir.take_offline(f"{log.tp}: flush: {failure}")
            self.post(ev.DiskFailed(log.tp, f"flush: {failure}"))

    def _truncate(self, effect: fx.Truncate) -> None:
        try:
            end = self._log_dir.truncate(effect.tp, effect.to_offset)
        except OSError as failure:
            self._disk_failed(effect.tp, failure)
            return
        self._cut_short |= end < effect.to_offset
        if end < effect.to_offset:
            # As a failure of the disk is reported.
            self._events.appendleft(ev.LogCut(effect.tp, end))

    def _reset_log(self, effect: fx.ResetLog) -> None:
        with self._disk(effect.tp):
            self._log_dir.reset(effect.tp, effect.start_offset)

    def _move_log_start(self, effect: fx.MoveLogStart) -> None:
        with self._disk(effect.tp):
            self._log_dir.move_log_start(effect.tp, effect.to_offset)

    def _retain(self, effect: fx.Retain) -> None:
        limits = effect.retention_bytes, effect.retention_ms
        try:
            start = self._log_dir.retain(effect.tp, limits, effect.upto, time.time() * 1000)
        except OSError as failure:
            self._disk_failed(effect.tp, failure)
            return
        if start is not None:
            self._events.append(ev.LogStartMoved(effect.tp, start))

    def _configure_log(self, effect: fx.ConfigureLog) -> None:
        log = self._log_dir.get(effect.tp)
        if log is not None:
            log.configure(effect.overrides)

    def _write_epochs(self, effect: fx.WriteEpochs) -> None:
        with self._disk(effect.tp):
            self._log_dir.write_epochs(effect.tp, effect.entries)

    def _write_checkpoint(self, effect: fx.WriteCheckpoint) -> None:
        with self._disk(METADATA):
            self._log_dir.write_checkpoint_later(effect.kind, effect.offsets)

    def _write_behind(self) -> None:
        """Writes what the events before have left to do, one batch at a time: the larger, the cheaper."""
        if self._writes_behind or self._closes or (job := self._log_dir.behind()) is None:
            return

        def done(failure: OSError | None) -> None:
            self._writes_behind = False
            if failure is None:
                self._write_behind()
            else:
                # Even where nothing depends on the one file, the disk is the logs' (as Kafka has it).
                self._failed_behind("log directory", failure)

        self._writes_behind = True
        self._flusher.write_behind(job, done)

    def _failed_behind(self, what: str, failure: OSError) -> None:
        _LOG.error("disk: %s: %s", what, failure)
        self._log_dir.take_offline(f"{what}: {failure}")
        self.post(ev.DiskFailed(METADATA, f"{what}: {failure}"))

    def _write_quorum_state(self, effect: fx.WriteQuorumState) -> None:
        def done(failure: OSError | None) -> None:
            self._held = False
            if failure is not None:
                # What follows in this event rests on it (a vote that is not on disk must not be answered),
                # and is not carried out.
                self._disk_failed(METADATA, failure)
            self._drain()

        self._held = True
        self._flusher.write(lambda: self._log_dir.write_quorum_state(effect.state), done)

    def _write_snapshot(self, effect: fx.WriteSnapshot) -> None:
        def done(failure: OSError | None) -> None:
            if failure is None:
                self.post(ev.SnapshotWritten(effect.id))
            else:
                self._failed_behind(f"snapshot {effect.id}", failure)

        try:
            self._flusher.write(self._log_dir.snapshot_writer(effect.id, effect.data), done)
        except OSError as failure:
            self._disk_failed(METADATA, failure)

    def _delete_snapshot(self, effect: fx.DeleteSnapshot) -> None:
        try:
            self._log_dir.delete_snapshot(effect.id)
        except OSError as failure:
            self._disk_failed(METADATA, failure)

    def _close_logs(self, effect: fx.CloseLogs) -> None:
        """Closes the logs: from here on nothing else is written, neither by the core nor behind it."""
        points: dict[TopicPartition, int] = {}

        def close() -> None:
            points.update(self._log_dir.close_cleanly(effect.broker_epoch, effect.high_watermarks))

        def done(failure: OSError | None) -> None:
            if failure is None:
                self.post(ev.LogsClosed(points))
                return
            _LOG.error("the logs could not be closed cleanly: %s; the next start will recover them", failure)
            self.stop(EXIT_DISK_FAILED)

        self._closes = True
        self._flusher.rest(lambda: self._flusher.write_behind(close, done))

    # --- trace, end ------------------------------------------------------------------------------------

    def _write_trace(self, effect: fx.Trace) -> None:
        self._trace.write(effect.kind, effect.fields)
        if effect.loud:
            fields = ", ".join(f"{name}={value}" for name, value in effect.fields.items())
            _LOG.warning("%s: %s", effect.kind, fields)

    def _exit(self, effect: fx.Exit) -> None:
        level = logging.INFO if effect.code == 0 else logging.ERROR
        where = "" if effect.code == 0 else f" (data_dir {self._settings.shell.data_dir})"
        _LOG.log(level, "stopping with code %d: %s%s", effect.code, effect.reason, where)
        self.stop(effect.code)
