"""Members of a share group: one client each, that acquires records, acknowledges them, holds them past their
lock, leaves and crashes with them.

An acknowledgement is an operation of a process of its own: what became of one is told in the middle of a
later poll. Only what a broker confirmed is certain. After any error, INVALID_RECORD_STATE too, nobody knows:
the client may have sent the request a second time, when the first one had taken effect.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from wrackline.history.model import Type
from wrackline.workloads.clients.base import ClientError
from wrackline.workloads.clients.sharing import ACCEPT, RENEW, ShareMember, SharingLibrary
from wrackline.workloads.log.processes import Context, Process, read_records
from wrackline.workloads.pace import Slot
from wrackline.workloads.share.spec import OPEN, ShareSpec

_HOLD, _HELD, _CRASH, _LEAVE, _AWAY, _COMMIT, _ANSWER = 1, 2, 3, 4, 5, 6, 100
"""Salts: each choice of a slot has its own."""
SYNC, ASYNC, POLL, CLOSE = "sync", "async", "poll", "close"
"""How acknowledgements are sent."""
NO_ANSWER = "_NO_ANSWER"
QUIET_POLL_S = 0.5

Key = tuple[int, int]
"""Partition and offset of a record."""


@dataclass(eq=False)
class _Acknowledgement:
    """An operation that is under way."""

    process: int
    kinds: Mapping[Key, str]
    said: Mapping[str, Any]
    begin_ns: int
    left: set[Key]
    """Of these nobody has heard yet."""
    errors: dict[Key, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShareGroup:
    """A group of the run. ``limit``: how often a record is delivered to it at most."""

    name: str
    limit: int


class MemberProcess(Process):
    """Acts as one member after another: what comes back after a crash is another process."""

    f = "acquire"

    def __init__(
        self, context: Context, slot: int, spec: ShareSpec, group: ShareGroup, *, explicit: bool
    ) -> None:
        super().__init__(context, slot)
        self._spec, self._group, self._explicit = spec, group, explicit
        assert isinstance(context.library, SharingLibrary)
        self._library = context.library
        self._client: ShareMember | None = None
        self._held: dict[Key, int] = {}
        """What it has acquired and not acknowledged, with the delivery count."""
        self._renewed: dict[Key, int] = {}
        """What it will be given again since it renewed the lock, with the delivery count."""
        self._idle = deque(slot + 1 + number for number in range(OPEN))
        """Processes that acknowledge nothing now."""
        self._open: deque[_Acknowledgement] = deque()
        self._back_at = 0.0

    @property
    def group(self) -> ShareGroup:
        return self._group

    # --- one poll

    def operate(self, slot: Slot) -> None:
        if (away_s := self._back_at - time.monotonic()) > 0:
            time.sleep(away_s)
        client = self._joined()
        brought = self._acquire(client, self._spec.poll_wait_s)
        spec = self._spec
        if brought and _now(slot, spec.hold_every, _HOLD):
            time.sleep(spec.longest_lock_s * (1.1 + slot.choice(500, salt=_HELD) / 1e3))
        if client.broken or _now(slot, spec.crash_every, _CRASH):
            self._gone(slot, left=False)
        elif _now(slot, spec.leave_every, _LEAVE):
            self._gone(slot, left=True)
        elif brought:
            self._answer(client, slot)

    def _acquire(self, client: ShareMember, wait_s: float) -> bool:
        """Polls once; tells whether that brought records."""
        if not self._explicit and self._held:
            self._begin(dict.fromkeys(self._held, ACCEPT), POLL)
        self.record(self.process, Type.INVOKE, "acquire")
        now_ns, begin = self.context.recorder.now_ns(), time.monotonic_ns()
        polled = client.poll(wait_s)
        latency = time.monotonic_ns() - begin
        if polled.error is not None:
            self.record(self.process, Type.FAIL, "acquire", error=polled.error, latency_ns=latency)
            return False
        records, corrupt = read_records(polled.records, self.context)
        given = {(r.partition, r.offset): n for r, n in zip(records, polled.counts, strict=True)}
        again = [list(key) for key, count in given.items() if self._renewed.pop(key, None) == count]
        extra: dict[str, Any] = {
            "group": self._group.name,
            "counts": list(polled.counts),
            "since_ns": now_ns - round(polled.age_s * 1e9),
        }
        extra |= {"renewed": again} if again else {}
        extra |= {"corrupt": corrupt} if corrupt else {}
        self.record(self.process, Type.OK, "acquire", records=records, extra=extra, latency_ns=latency)
        self._held |= given
        return bool(given)

    # --- acknowledgements

    def _answer(self, client: ShareMember, slot: Slot) -> None:
        """Acknowledges all that it has, and sends that in one of three ways."""
        spec, drawn = self._spec, slot.choice(1_000, salt=_COMMIT) / 1e3
        mode = SYNC if drawn < spec.sync_commits else POLL
        if mode == POLL and drawn < spec.sync_commits + spec.async_commits:
            mode = ASYNC
        kinds = dict.fromkeys(self._held, ACCEPT)
        if self._explicit:
            weights = spec.answers.model_dump()
            for number, key in enumerate(kinds):
                kinds[key] = _drawn(weights, slot, _ANSWER + number)
        elif mode == POLL:
            return  # the next poll accepts it
        self._send(client, kinds, mode)

    def _send(self, client: ShareMember, kinds: Mapping[Key, str], mode: str) -> None:
        if self._explicit:
            try:
                for (partition, offset), kind in kinds.items():
                    client.acknowledge(partition, offset, kind)
            except ClientError:
                self._gone(None, left=False)  # the library does not go on without it
                return
        operation = self._begin(kinds, mode)
        try:
            if mode == SYNC:
                told = client.commit()
                for key in list(operation.left):
                    if key[0] in told:
                        self._settle(operation, [key], told[key[0]])
                self._complete(operation, NO_ANSWER)
            elif mode == ASYNC:
                client.commit_later()
        except ClientError as refused:
            self._complete(operation, refused.name)

    def _begin(self, kinds: Mapping[Key, str], mode: str) -> _Acknowledgement:
        """Writes down that these are acknowledged, by a process that does nothing else. Where all have
        something under way, nobody waits for the oldest any more."""
        if not self._idle:
            self._complete(self._open[0], NO_ANSWER)
        process = self._idle.popleft()
        said = {"group": self._group.name, "member": self.process, "mode": mode}
        self.record(process, Type.INVOKE, "acknowledge", extra={**said, "acks": _by_kind(kinds, kinds)})
        operation = _Acknowledgement(process, dict(kinds), said, time.monotonic_ns(), set(kinds))
        self._open.append(operation)
        for key in kinds:
            count = self._held.pop(key, 0)
            if kinds[key] == RENEW:
                self._renewed[key] = count
        return operation

    def _told(self, partition: int, offsets: Sequence[int], error: str | None) -> None:
        """Takes what became of acknowledgements; the oldest that is not settled comes first."""
        for key in ((partition, offset) for offset in offsets):
            operation = next((one for one in self._open if key in one.left), None)
            if operation is not None:
                self._settle(operation, [key], error)
                if not operation.left:
                    self._complete(operation)

    @staticmethod
    def _settle(operation: _Acknowledgement, keys: Iterable[Key], error: str | None) -> None:
        for key in keys:
            operation.left.discard(key)
            if error is not None:
                operation.errors[key] = error

    def _complete(self, operation: _Acknowledgement, error: str | None = None) -> None:
        """``error``: of that of which nobody heard."""
        if operation not in self._open:
            return
        self._open.remove(operation)
        done = [key for key in operation.kinds if key not in operation.left and key not in operation.errors]
        extra: dict[str, Any] = {**operation.said, "acks": _by_kind(done, operation.kinds)}
        names = sorted(set(operation.errors.values()))
        if names:
            extra["errors"] = {
                name: _by_partition(key for key, told in operation.errors.items() if told == name)
                for name in names
            }
        kind = Type.OK if len(done) == len(operation.kinds) else Type.INFO
        told = None if kind is Type.OK else (names[0] if names else error)
        latency = time.monotonic_ns() - operation.begin_ns
        self.record(operation.process, kind, "acknowledge", error=told, extra=extra, latency_ns=latency)
        again = operation.process if kind is Type.OK else operation.process + self.context.stride
        self._idle.append(again)

    # --- coming and going

    def _joined(self) -> ShareMember:
        if self._client is None:
            context, spec = self.context, self._spec
            self._client = self._library.share_member(
                context.bootstrap, spec, self._group.name, explicit=self._explicit
            )
            share = {
                "limit": self._group.limit,
                "lock_ms": round(spec.longest_lock_s * 1e3),
                "session_ms": spec.longest_session_ms,
                "isolation": spec.isolation_level,
                "explicit": self._explicit,
            }
            extra = {
                "partitions": list(range(context.partitions)),
                "group": self._group.name,
                "share": share,
            }
            self.record(self.process, Type.INVOKE, "subscribe", extra=extra)
            self._client.subscribe(context.topic, self._told)
            self.record(self.process, Type.OK, "subscribe", extra=extra)
        return self._client

    def _gone(self, slot: Slot | None, *, left: bool) -> None:
        """The next member is another process. One that acknowledges implicitly may accept what it has when it
        is closed."""
        client, self._client = self._client, None
        if client is not None:
            if left and not self._explicit and self._held:
                self._begin(dict.fromkeys(self._held, ACCEPT), CLOSE)
            extra = {"group": self._group.name, "left": left}
            self.record(self.process, Type.OK, "crash", extra=extra)
            if left:
                client.close()
            else:
                threading.Thread(target=client.crash, name="crash-client", daemon=True).start()
        for operation in list(self._open):
            self._complete(operation, NO_ANSWER)
        self._held, self._renewed = {}, {}
        self.process += self.context.stride
        if slot is not None:
            self._back_at = time.monotonic() + slot.choice(self._spec.away_ms + 1, salt=_AWAY) / 1e3

    def drop_client(self) -> None:
        """At the end it leaves as a member does."""
        if self._client is not None:
            self._gone(None, left=True)

    # --- when all others have stopped

    def poll_all(self, quiet_s: float, deadline: float) -> None:
        """Polls, and accepts what comes, until nothing has come for so long. By a process that has ended its
        work."""
        self._explicit = True
        quiet_at = time.monotonic() + quiet_s
        while time.monotonic() < min(quiet_at, deadline):
            client = self._joined()
            if self._acquire(client, QUIET_POLL_S):
                self._send(client, dict.fromkeys(self._held, ACCEPT), SYNC)
                quiet_at = time.monotonic() + quiet_s
            elif client.broken:
                self._gone(None, left=False)


def _by_kind(keys: Iterable[Key], kinds: Mapping[Key, str]) -> dict[str, dict[str, list[int]]]:
    result: dict[str, list[Key]] = {}
    for key in keys:
        result.setdefault(kinds[key], []).append(key)
    return {kind: _by_partition(some) for kind, some in result.items()}


def _by_partition(keys: Iterable[Key]) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for partition, offset in sorted(keys):
        result.setdefault(str(partition), []).append(offset)
    return result


def _drawn(weights: Mapping[str, float], slot: Slot, salt: int) -> str:
    at = slot.choice(10_000, salt=salt) / 1e4 * sum(weights.values())
    sums = zip(accumulate(weights.values()), weights, strict=True)
    return next(kind for total, kind in sums if at < total)


def _now(slot: Slot, every: int, salt: int) -> bool:
    return every > 0 and slot.choice(every, salt=salt) == 0
