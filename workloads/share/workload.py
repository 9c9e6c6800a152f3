"""The workload ``share``: senders, transactions among them, and the members of share groups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from wrackline.history.model import Type
from wrackline.workloads.clients.base import ClientError, Unavailable
from wrackline.workloads.clients.sharing import ShareGroups, SharingLibrary
from wrackline.workloads.log.drain import Drained
from wrackline.workloads.log.processes import Context, Process
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.workload import Workload
from wrackline.workloads.share.member import MemberProcess, ShareGroup
from wrackline.workloads.share.spec import OPEN, ShareSpec
from wrackline.workloads.txn.worker import Worker

CONFIGURE_TRIES = 5
AGAIN_S = 1.0
LAG_S = 30.0
"""How long a group may take until its lag is zero, besides ``ShareSpec.group_patience_s``."""


class ShareWorkload(Workload):
    settings = ShareSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, ShareSpec)
        self._share = spec
        names = [f"wrackline-{context.tag.hex()}-{number}" for number in range(spec.groups)]
        self._names: Sequence[str] = names
        sending = spec.senders * spec.in_flight
        senders = [Sender(context, slot, spec.in_flight) for slot in range(0, sending, spec.in_flight)]
        transactions = spec.transactions
        self._workers = [
            Worker(context, sending + number, transactions) for number in range(spec.transactors)
        ]
        self._first = sending + 3 * spec.transactors
        self._members: list[MemberProcess] = []
        return [*senders, *self._workers]

    @property
    def groups(self) -> Sequence[str]:
        """Offsets are none of these groups' business: nobody asks what they have committed."""
        return ()

    @property
    def groups_made(self) -> Sequence[str]:
        return self._names

    @property
    def share_groups(self) -> Sequence[str]:
        return self._names

    @property
    def transactional_ids(self) -> Sequence[str]:
        return [worker.transactional_id for worker in self._workers]

    def start(self) -> None:
        """Gives the groups their settings before anybody joins. Raises Unavailable."""
        with self._context.enter():
            groups = [ShareGroup(name, self._configured(name)) for name in self._names]
        spec, width = self._share, 1 + OPEN
        for number in range(spec.groups * spec.members):
            group, place = groups[number // spec.members], number % spec.members
            slot, explicit = self._first + number * width, place >= spec.implicit_members
            self._members.append(MemberProcess(self._context, slot, spec, group, explicit=explicit))
        self._processes += self._members
        super().start()

    def _administration(self) -> ShareGroups:
        context = self._context
        assert isinstance(context.library, SharingLibrary)
        return context.library.share_groups(context.bootstrap, context.spec)

    def _configured(self, group: str) -> int:
        """Returns the group's delivery limit. Raises Unavailable."""
        administration, settings = self._administration(), self._share.group_settings
        try:
            for left in reversed(range(CONFIGURE_TRIES)):
                try:
                    administration.configure(group, settings)
                    return administration.delivery_limit(group)
                except ClientError as refused:
                    if not left or not refused.again:
                        given = ", ".join(f"{name}={value}" for name, value in settings.items())
                        raise Unavailable(
                            f"share group {group} does not get its settings ({given}): {refused.name}: "
                            f"{refused.said}"
                        ) from refused
                    time.sleep(AGAIN_S)
        finally:
            administration.close()
        raise AssertionError("the last try returns or raises")

    def drain(self, *, deadline_s: float) -> list[Drained]:
        """Every group is polled until nothing comes and its lag is zero, before the final read: no client may
        have an answer after that has begun."""
        longest_s = min(deadline_s, LAG_S + self._share.group_patience_s)
        with self._context.enter():
            for name in self._names:
                self._drain_group(name, time.monotonic() + longest_s)
        return super().drain(deadline_s=deadline_s)

    def _drain_group(self, group: str, deadline: float) -> None:
        ended = [one for one in self._members if one.group.name == group and not one.is_alive()]
        if not ended:
            return
        member, administration = ended[0], self._administration()
        try:
            while True:
                member.poll_all(self._share.longest_lock_s + AGAIN_S, deadline)
                if self._is_done(administration, group, member.process) or time.monotonic() >= deadline:
                    break
        finally:
            member.drop_client()
            with suppress(ClientError):
                administration.close()

    def _is_done(self, administration: ShareGroups, group: str, process: int) -> bool:
        """Asks for the group's lags, as an operation of the process; tells whether all are zero."""
        context = self._context
        context.record(process, Type.INVOKE, "lag", extra={"group": group})
        begin = time.monotonic_ns()
        try:
            lags = administration.lags(group, context.topic)
        except ClientError as refused:
            latency = time.monotonic_ns() - begin
            context.record(process, Type.FAIL, "lag", error=refused.name, latency_ns=latency)
            return False
        extra = {
            "group": group,
            "starts": {str(partition): one.start for partition, one in sorted(lags.items())},
            "lags": {str(partition): one.lag for partition, one in sorted(lags.items())},
        }
        context.record(process, Type.OK, "lag", extra=extra, latency_ns=time.monotonic_ns() - begin)
        return all(one.lag == 0 for one in lags.values())
