"""The workload ``group``: senders, and the members of one group."""

from __future__ import annotations

from collections.abc import Sequence

from wrackline.workloads.group.member import GroupMember
from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.log.processes import Context, Process
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.workload import Workload


class GroupWorkload(Workload):
    settings = GroupSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, GroupSpec)
        self._group = f"wrackline-{context.tag.hex()}"
        sending = spec.senders * spec.in_flight
        senders = [Sender(context, slot, spec.in_flight) for slot in range(0, sending, spec.in_flight)]
        members = [
            GroupMember(context, sending + number, spec, self._group, number)
            for number in range(spec.members)
        ]
        return [*senders, *members]

    @property
    def groups(self) -> Sequence[str]:
        return [self._group]
