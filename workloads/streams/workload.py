"""The workload ``streams``: clients of the input topic, readers of both, and the application between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from wrackline.workloads.log.processes import Context, Process
from wrackline.workloads.log.spec import ClientsSpec
from wrackline.workloads.log.workload import AppendingWorkload
from wrackline.workloads.streams.application import Instance, Migration, Watcher, prepare
from wrackline.workloads.streams.spec import StreamsSpec
from wrackline.workloads.streams.transit import StreamsContext

LOOK_S = 0.25


class StreamsWorkload(AppendingWorkload):
    settings = StreamsSpec
    context = StreamsContext

    @staticmethod
    def prepare(spec: ClientsSpec, say: Callable[[str], None]) -> None:
        prepare(spec.client.version, say)

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, StreamsSpec)
        assert isinstance(context, StreamsContext)
        self._transit = context
        self._application = f"wrackline-{context.tag.hex()}"
        classpath = prepare(spec.client.version, lambda _: None)
        migration = Migration(spec)
        self._instances = [
            Instance(context, spec, number, classpath, self._application, migration)
            for number in range(spec.instances)
        ]
        self._watcher = Watcher(context, self._application, context.committed)
        return super().processes(context)

    @property
    def groups(self) -> Sequence[str]:
        return [self._application]

    def start(self) -> None:
        for thread in (*self._instances, self._watcher):
            thread.start()
        super().start()

    def stop(self, *, timeout_s: float) -> list[str]:
        """The application goes on, undisturbed, until it has processed all that was acknowledged."""
        deadline = time.monotonic() + timeout_s
        for instance in self._instances:
            instance.calm()
        stuck = super().stop(timeout_s=timeout_s)
        while self._transit.behind and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        if behind := self._transit.behind:
            stuck.append(f"streams, which is {behind:,} records behind,")
        self._watcher.over.set()
        for instance in self._instances:
            instance.end()
        for thread in (self._watcher, *self._instances):
            if thread.ident is not None:
                thread.join()
        return stuck

    def _final_commits(self, group: str) -> None:
        """The application commits by itself, and none of it is on record: an answer would say nothing."""
