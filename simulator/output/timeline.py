"""A run as text of fixed columns: one line per event, the same bytes for the same seed.

``Timeline`` is an observer that keeps lines; ``Digest`` one that only hashes them (every step, every field
that is rendered), to compare whole runs.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.events import Event
from wrackline.broker.model.messages import controller
from wrackline.broker.model.messages import requests as msg
from wrackline.broker.model.types import NodeId
from wrackline.simulator.world.network import Message
from wrackline.simulator.world.world import FIRST_CLIENT, FIRST_CONTROLLER, PROBE, StepRecord, World

WIDTH = 160
_QUIET_KINDS = frozenset({"receive", "closed"})
HEAD = f"{'time s':>10} {'step':>7} {'node':<5} {'kind':<8} event -> effects"


def node_name(node: NodeId) -> str:
    """n1, c1, p3 (a client), ``-`` for the world itself."""
    if node == 0:
        return "-"
    if node >= FIRST_CLIENT:
        return f"p{node - FIRST_CLIENT + 1}"
    if node == PROBE:
        return "ask"
    if node >= FIRST_CONTROLLER:
        return f"c{node - FIRST_CONTROLLER + 1}"
    return f"n{node}"


def line_of(record: StepRecord, width: int | None = WIDTH) -> str:
    """One line; ``width`` None: never shortened."""
    text = " ".join(part for part in (_what(record), _outcome(record)) if part)
    line = (
        f"{record.at_ms / 1000:10.4f} {record.number:7d} {node_name(record.node):<5} {record.kind:<8} {text}"
    )
    if width is not None and len(line) > width:
        line = line[: width - 1] + "…"
    return line


def is_quiet(record: StepRecord) -> bool:
    """Tells whether a record has nothing for a reader who looks for a cause: housekeeping, empty fetches,
    heartbeats."""
    if record.cut or record.kind in ("boot", "down", "fault", "refused"):
        return False
    if record.kind in _QUIET_KINDS:
        return True
    name = record.message.name if record.message is not None else ""
    if any(isinstance(effect, fx.Trace) for effect in record.effects):
        return False
    if name.startswith(("BrokerHeartbeat", "Metadata", "ListOffsets")):
        return True
    if "Fetch" in name:
        return _is_empty(record.message)
    heavy = (fx.Append, fx.Truncate, fx.ResetLog, fx.Exit, fx.CloseLogs, fx.CreateLog, fx.DeleteLog)
    if any(isinstance(effect, heavy) for effect in record.effects):
        return False
    return isinstance(record.event, ev.TimerFired | ev.Flushed | ev.RequestCancelled)


def _is_empty(message: Message | None) -> bool:
    response = None if message is None else message.response
    if not isinstance(response, msg.FetchResponse):
        return True
    return not any(
        part.records or part.error is not ErrorCode.none or part.diverging for part in response.partitions
    )


class Timeline:
    """``lines`` of the last ``keep`` steps worth reading (None: all); with ``full`` really every step."""

    def __init__(self, keep: int | None = None, *, full: bool = False, width: int | None = WIDTH) -> None:
        self.lines: deque[str] = deque(maxlen=keep)
        self._full = full
        self._width = width

    def __call__(self, _: World, record: StepRecord) -> None:
        if self._full or not is_quiet(record):
            self.lines.append(line_of(record, self._width))

    def text(self) -> str:
        return "\n".join((HEAD, *self.lines))


class Digest:
    """SHA-256 over every step's whole line."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.lines = 0

    def __call__(self, _: World, record: StepRecord) -> None:
        self.lines += 1
        self._hash.update(line_of(record, None).encode())
        self._hash.update(b"\n")

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


# --- what happened -----------------------------------------------------------------------------------------


def _what(record: StepRecord) -> str:
    if record.note and record.event is None:
        return record.note
    if record.message is not None:
        return _message(record.message)
    return "" if record.event is None else _event(record.event)


def _message(message: Message) -> str:
    ends = f"{node_name(message.source)}>{node_name(message.destination)}"
    if message.kind == "response" and message.response is not None:
        return f"{ends} {message.name}{_response(message.response)}"
    if message.request is not None:
        return f"{ends} {message.name}{_request(message.request)}"
    return f"{ends} close"


def _event(event: Event) -> str:
    match event:
        case ev.TimerFired():
            return event.key
        case ev.Flushed():
            return f"{event.tp} upto {event.upto}"
        case ev.SendFailed():
            return f"send {event.correlation} to {node_name(event.destination)} failed: {event.reason}"
        case ev.Boot():
            logs = " ".join(f"{tp}:{log.leo}" for tp, log in sorted(event.logs.items()))
            return f"previous epoch {event.previous_broker_epoch} logs {logs or 'none'}"
        case _:
            return type(event).__name__


def _outcome(record: StepRecord) -> str:
    """The effects of a step, in one line. A trace line with the same content as an effect replaces it."""
    traced = {effect.kind for effect in record.effects if isinstance(effect, fx.Trace)}
    lines = [
        line
        for effect in record.effects
        if not (isinstance(effect, fx.Append) and "append" in traced)
        and not (isinstance(effect, fx.Truncate) and "truncate" in traced)
        and (line := _effect(effect))
    ]
    if record.cut:
        lines.append(f"CUT {record.note}")
    return ("-> " + "; ".join(lines)) if lines else ""


def _traced(effect: fx.Trace) -> str:
    fields = dict(effect.fields)
    tp = fields.pop("tp", None)
    head = effect.kind if tp is None else f"{effect.kind} {tp}"
    match effect.kind:
        case "append":
            role = "" if fields["leader"] else " (follower)"
            return f"{head} {fields['base']}..{fields['last']} e{fields['epoch']}{role}"
        case "hwm":
            return f"{head} {fields['old']}>{fields['new']}"
        case "truncate":
            return f"{head} {fields['was']}>{fields['to']} ({fields['why']})"
        case _:
            listed = " ".join(f"{name}={_short(value)}" for name, value in fields.items())
            return f"{head} {listed}"


def _effect(effect: Effect) -> str:
    match effect:
        case fx.Trace():
            return _traced(effect)
        case fx.Send():
            asked = f"{type(effect.request).__name__}{_request(effect.request)}"
            return f"send {node_name(effect.destination)} {asked}"
        case fx.Reply():
            return f"reply {type(effect.response).__name__}{_response(effect.response)}"
        case fx.Append():
            return f"write {effect.tp} {effect.base_offset}..{effect.end_offset - 1}"
        case fx.Flush():
            return f"fsync {effect.tp} upto {effect.upto}"
        case fx.Truncate():
            return f"cut {effect.tp} to {effect.to_offset}"
        case fx.ResetLog():
            return f"reset {effect.tp} at {effect.start_offset}"
        case fx.WriteEpochs():
            return f"epochs {effect.tp} {_pairs(effect.entries)}"
        case fx.WriteCheckpoint():
            return f"checkpoint {effect.kind}"
        case fx.Exit():
            return f"EXIT {effect.code} {effect.reason}"
        case fx.SetTimer() | fx.CancelTimer():
            return ""
        case _:
            return type(effect).__name__


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(str(item) for item in value) + "]"
    return str(value)


def _pairs(entries: Iterable[Sequence[int]]) -> str:
    return ",".join(f"{epoch}@{start}" for epoch, start in entries)


def _request(request: msg.Request) -> str:
    match request:
        case msg.ProduceRequest():
            parts = " ".join(f"{part.tp}:{len(part.records)}B" for part in request.partitions)
            return f" acks={request.acks} {parts}"
        case msg.FetchRequest():
            parts = " ".join(
                f"{part.tp}@{part.fetch_offset}/e{part.current_leader_epoch}/l{part.last_fetched_epoch}"
                for part in request.partitions
            )
            return f" {parts}"
        case controller.AlterPartitionRequest():
            parts = " ".join(
                f"{item.tp} le={item.leader_epoch} pe={item.partition_epoch} "
                f"isr={_short([n for n, _ in item.isr])}"
                for item in request.partitions
            )
            return f" {parts}"
        case controller.BrokerRegistrationRequest():
            return f" b{request.broker_id} previous={request.previous_broker_epoch}"
        case controller.BrokerHeartbeatRequest():
            wants = "fence " * request.want_fence + "shutdown" * request.want_shut_down
            return f" e{request.broker_epoch} md={request.current_metadata_offset} {wants}".rstrip()
        case msg.ListOffsetsRequest():
            return " " + " ".join(f"{part.tp}:{part.timestamp}" for part in request.partitions)
        case msg.OffsetForLeaderEpochRequest():
            return " " + " ".join(f"{part.tp}:e{part.leader_epoch}" for part in request.partitions)
        case _:
            return ""


def _response(response: msg.Response) -> str:
    match response:
        case msg.ProduceResponse():
            return "".join(
                f" {part.tp}@{part.base_offset}{_error(part.error)}" for part in response.partitions
            )
        case msg.FetchResponse():
            return _error(response.error) + "".join(_fetched(part) for part in response.partitions)
        case controller.AlterPartitionResponse():
            return _error(response.error) + "".join(
                f" {part.tp} le={part.leader_epoch} pe={part.partition_epoch} "
                f"isr={_short(part.isr)}{_error(part.error)}"
                for part in response.partitions
            )
        case msg.ListOffsetsResponse():
            return "".join(f" {part.tp}={part.offset}{_error(part.error)}" for part in response.partitions)
        case msg.OffsetForLeaderEpochResponse():
            return "".join(
                f" {part.tp}=e{part.leader_epoch}:{part.end_offset}{_error(part.error)}"
                for part in response.partitions
            )
        case controller.BrokerHeartbeatResponse():
            state = "fenced " * response.is_fenced + "stop" * response.should_shut_down
            return f"{_error(response.error)} {state}".rstrip()
        case controller.BrokerRegistrationResponse():
            return f" epoch={response.broker_epoch}{_error(response.error)}"
        case _:
            error = getattr(response, "error", None)
            return _error(error) if isinstance(error, ErrorCode) else ""


def _fetched(part: msg.FetchResult) -> str:
    text = f" {part.tp} hw={part.high_watermark}{_error(part.error)}"
    if part.diverging is not None:
        text += f" diverging=e{part.diverging.epoch}:{part.diverging.end_offset}"
    if isinstance(part.records, bytes):
        return f"{text} {len(part.records)}B"
    return f"{text} {part.records.start_offset}..{part.records.end_offset - 1}"


def _error(error: ErrorCode) -> str:
    return "" if error is ErrorCode.none else f" {error.name.upper()}"
