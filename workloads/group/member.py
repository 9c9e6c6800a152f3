"""Members of the group: one client each, that polls, commits, leaves and crashes.

Its rebalances are told in the middle of a poll; then and there it asks what the group has committed, begins
at that, and before partitions are taken away it commits what it was given of them. Commits are of processes
of their own, since a rebalance is told while the member's poll is open, and an asynchronous commit stays open
while the member goes on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from wrackline.history.model import Type
from wrackline.workloads.clients.base import ClientError, Member
from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.log.processes import (
    Context,
    Process,
    committed_offsets,
    coordinator_of,
    positions_of,
    read_records,
)
from wrackline.workloads.pace import Slot

_COMMIT, _LATER, _ASK, _CRASH, _LEAVE, _AWAY, _PROTOCOL = range(1, 8)
"""Salts: each choice of a slot has its own."""
NEVER_SENT = frozenset({"_NO_OFFSET", "_STATE", "_INVALID_ARG", "_NOT_IMPLEMENTED"})
"""A commit that the client itself refused has no effect. Whatever a broker answers may be about the second
try, when the first one took effect."""


class GroupMember(Process):
    """Acts as one member after another: what comes back after a crash is another process."""

    f = "poll"

    def __init__(
        self, context: Context, slot: int, spec: GroupSpec, group: str, number: int, apart: int
    ) -> None:
        """``spec``: of its group. ``apart``: how far those who commit are from who polls, as processes."""
        super().__init__(context, slot)
        self._spec = self._joins = spec
        self._group = group
        self._instance = f"member-{number}"
        self._committing = slot + apart
        """Who commits synchronously."""
        self._later = slot + 2 * apart
        """Who commits asynchronously."""
        self._client: Member | None = None
        self._held: set[int] = set()
        self._positions: dict[int, int] = {}
        """Next offset, where it is known, of partitions that it has."""
        self._saved: dict[int, int] = {}
        """What it knows to be committed, or where it began."""
        self._commit: tuple[dict[int, int], dict[str, Any], int, int] | None = None
        """The asynchronous commit under way: its offsets, what it said, since when, and the coordinator
        then."""
        self._back_at = 0.0

    # --- one poll

    def operate(self, slot: Slot) -> None:
        if (away_s := self._back_at - time.monotonic()) > 0:
            time.sleep(away_s)
        client = self._joined(slot)
        self.record(self.process, Type.INVOKE, "poll")
        begin = time.monotonic_ns()
        polled = client.poll(timeout_s=self.context.spec.poll_wait_s)
        records, corrupt = read_records(polled.records, self.context)
        for record in records:
            self._positions[record.partition] = record.offset + 1
        extra: dict[str, Any] = {"positions": positions_of(self._positions)}
        if corrupt:
            extra["corrupt"] = corrupt
        latency = time.monotonic_ns() - begin
        if polled.error and not records:
            self.record(self.process, Type.FAIL, "poll", error=polled.error, latency_ns=latency)
        else:
            if polled.error:
                extra["error"] = polled.error
            self.record(self.process, Type.OK, "poll", records=records, extra=extra, latency_ns=latency)
        self._and_then(slot, client, brought=bool(records))

    def _and_then(self, slot: Slot, client: Member, *, brought: bool) -> None:
        spec = self._spec
        if client.broken or _now(slot, spec.crash_every, _CRASH):
            self._crash(slot)
        elif _now(slot, spec.leave_every, _LEAVE):
            self._leave(slot)
        elif brought and _now(slot, spec.commit_every, _COMMIT):
            if slot.choice(1_000, salt=_LATER) < spec.async_commits * 1_000:
                self._commit_later(client)
            else:
                self._commit_now(client, self._held)
        elif self._held and _now(slot, spec.ask_every, _ASK):
            self._ask(client)  # while it waits to be given any, the answer would wait too

    def _ask(self, client: Member) -> dict[int, int]:
        try:
            return committed_offsets(self.context, client, self._committing, self._group)
        except ClientError:
            return {}

    # --- coming and going

    def _joined(self, slot: Slot) -> Member:
        if self._client is None:
            context = self.context
            self._joins = self._spec.of_member(lambda several: slot.choice(several, salt=_PROTOCOL))
            settings = self._joins.taking_part(self._group, self._instance)
            self._client = context.library.member(context.bootstrap, context.spec, settings)
            extra = {"partitions": list(range(context.partitions)), "group": self._group}
            self.record(self.process, Type.INVOKE, "subscribe", extra=extra)
            self._client.subscribe(context.topic, self)
            self.record(self.process, Type.OK, "subscribe", extra=extra)
        return self._client

    def _crash(self, slot: Slot) -> None:
        if self._client is not None:
            threading.Thread(target=self._client.crash, name="crash-client", daemon=True).start()
        extra = {"group": self._group, "partitions": sorted(self._held)}
        self.record(self.process, Type.OK, "crash", extra=extra)
        self._gone(slot)

    def _leave(self, slot: Slot) -> None:
        if self._client is not None:
            self._client.close()  # tells of the revoke, and commits by that
        self._gone(slot)

    def _gone(self, slot: Slot | None) -> None:
        """The next member is another process."""
        self._client = None
        self._held, self._positions, self._saved, self._commit = set(), {}, {}, None
        self.process += self.context.stride
        self._committing += self.context.stride
        self._later += self.context.stride
        if slot is not None:
            self._back_at = time.monotonic() + slot.choice(self._spec.away_ms + 1, salt=_AWAY) / 1e3

    def drop_client(self) -> None:
        """Drops the client; at the end it leaves as a member does, so that its last commit is there to be
        read."""
        if self._client is not None:
            self._client.close()
            self._gone(None)

    # --- what the group tells (clients.base.Listener)

    def assigned(self, partitions: Sequence[int]) -> Mapping[int, int]:
        assert self._client is not None
        self._held |= set(partitions)
        told = self._ask(self._client)
        starts = {p: max(0, told[p]) for p in partitions if p in told}
        self._positions.update(starts)
        self._saved.update(starts)
        self._rebalanced({"positions": positions_of(starts)} if starts else {})
        return starts

    def revoked(self, partitions: Sequence[int]) -> None:
        assert self._client is not None
        self._commit_now(self._client, partitions)
        self._taken(partitions)
        self._rebalanced({"revoked": sorted(partitions)})

    def lost(self, partitions: Sequence[int]) -> None:
        self._taken(partitions)
        self._rebalanced({"revoked": sorted(partitions), "lost": True})

    def committed(self, error: str | None) -> None:
        if self._commit is not None:
            (offsets, extra, begin, node), self._commit = self._commit, None
            if self._client is not None:
                extra = {**extra, **coordinator_of(self._client, node)}
            self._committed(self._later, extra, begin, error)
            if error is None:
                self._saved.update((p, at) for p, at in offsets.items() if p in self._held)
            elif error not in NEVER_SENT:
                self._later += self.context.stride

    def _taken(self, partitions: Iterable[int]) -> None:
        for partition in partitions:
            self._held.discard(partition)
            self._positions.pop(partition, None)
            self._saved.pop(partition, None)

    def _rebalanced(self, extra: Mapping[str, Any]) -> None:
        said = {
            "partitions": sorted(self._held),
            "group": self._group,
            "protocol": self._joins.rebalances,
            **self._membership(),
            **(coordinator_of(self._client, self._client.coordinator()) if self._client else {}),
            **extra,
        }
        self.record(self.process, Type.OK, "rebalance", extra=said)

    def _membership(self) -> dict[str, Any]:
        """Returns the membership as an operation says it: in KIP-848 each member has an epoch of its own,
        which orders no two of them."""
        if self._client is None:
            return {}
        member, generation = self._client.membership()
        name = "epoch" if self._joins.protocol == "consumer" else "generation"
        return {"member": member} | ({name: generation} if generation >= 0 else {})

    # --- commits

    def _due(self, partitions: Iterable[int]) -> dict[int, int]:
        return {
            p: self._positions[p]
            for p in sorted(partitions)
            if p in self._positions and self._positions[p] != self._saved.get(p)
        }

    def _commit_now(self, client: Member, partitions: Iterable[int]) -> None:
        offsets = self._due(partitions)
        if not offsets:
            return
        node = client.coordinator()
        extra, begin = self._commit_begun(self._committing, offsets, "sync")
        error = None
        try:
            client.commit(self.context.topic, offsets)
        except ClientError as refused:
            error = refused.name
        else:
            self._saved.update(offsets)
        now = self._membership()
        if any(extra.get(name) != told for name, told in now.items()):  # under which of them nobody knows
            extra = {name: value for name, value in extra.items() if name != "generation"}
        extra = {**extra, **coordinator_of(client, node)}
        self._committed(self._committing, extra, begin, error)
        if error is not None and error not in NEVER_SENT:
            self._committing += self.context.stride

    def _commit_later(self, client: Member) -> None:
        offsets = self._due(self._held)
        if not offsets or self._commit is not None:
            return
        node = client.coordinator()
        self._commit = (offsets, *self._commit_begun(self._later, offsets, "async"), node)
        try:
            client.commit_later(self.context.topic, offsets)
        except ClientError as refused:
            self.committed(refused.name)

    def _commit_begun(
        self, process: int, offsets: Mapping[int, int], mode: str
    ) -> tuple[dict[str, Any], int]:
        extra = {
            "offsets": positions_of(offsets),
            "group": self._group,
            "mode": mode,
            **self._membership(),
        }
        self.record(process, Type.INVOKE, "commit", extra=extra)
        return extra, time.monotonic_ns()

    def _committed(self, process: int, extra: Mapping[str, Any], begin_ns: int, error: str | None) -> None:
        kind = Type.OK if error is None else Type.FAIL if error in NEVER_SENT else Type.INFO
        latency = time.monotonic_ns() - begin_ns
        self.record(process, kind, "commit", error=error, extra=extra, latency_ns=latency)


def _now(slot: Slot, every: int, salt: int) -> bool:
    return every > 0 and slot.choice(every, salt=salt) == 0
