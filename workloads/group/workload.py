"""The workload ``group``: senders, and the members of one group or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wrackline.workloads.group.member import GroupMember
from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.group.watcher import Watcher
from wrackline.workloads.log.deletions import deleters
from wrackline.workloads.log.processes import Context, Process
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.workload import Workload


class GroupWorkload(Workload):
    settings = GroupSpec

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, GroupSpec)
        every = f"wrackline-{context.tag.hex()}"
        self._groups = {name: f"{every}-{name}" if name else every for name in spec.by_group}
        first, total = spec.senders * spec.in_flight, spec.all_members
        senders = [Sender(context, slot, spec.in_flight) for slot in range(0, first, spec.in_flight)]
        members: list[Process] = []
        for name, one in spec.by_group.items():
            members += [
                GroupMember(context, first + len(members) + number, one, self._groups[name], number, total)
                for number in range(one.members)
            ]
        watchers = [
            Watcher(context, first + 3 * total + number, spec, self.groups, number)
            for number in range(spec.watchers)
        ]
        return [*senders, *members, *watchers, *deleters(context)]

    @property
    def groups(self) -> Sequence[str]:
        return list(self._groups.values())

    @property
    def named_groups(self) -> Mapping[str, str]:
        return self._groups
