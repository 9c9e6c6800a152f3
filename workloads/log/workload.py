"""The workload as the runner drives it: start, wait until warm, stop, final read."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, ClassVar

from wrackline.history.offsets import Offsets
from wrackline.workloads.clients.base import ClientError
from wrackline.workloads.clients.libraries import library_of
from wrackline.workloads.log.deletions import deleters
from wrackline.workloads.log.drain import Drained, drain
from wrackline.workloads.log.processes import (
    Context,
    Ender,
    Place,
    Poller,
    Process,
    close_in_background,
    committed_offsets,
)
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.log.spec import AppendingSpec, ClientsSpec, LogSpec
from wrackline.workloads.log.tally import Counts, Kind, Tries
from wrackline.workloads.pace import Generator, Lanes
from wrackline.workloads.payload import run_tag

if TYPE_CHECKING:
    from wrackline.history import Recorder

log = logging.getLogger(__name__)

COMMITTED_TRIES = 5
"""How often the final question for a group's committed offsets is asked."""


_PERFORMERS: dict[type[ClientsSpec], type[Workload]] = {}


def workload_for(spec: ClientsSpec) -> type[Workload]:
    """The workload that these settings are of. Raises TypeError where no class names them."""
    try:
        return _PERFORMERS[type(spec)]
    except KeyError:
        raise TypeError(f"no workload says `settings = {type(spec).__name__}`") from None


class Workload:
    """All client processes of one run against its topics. Subclasses define which there are."""

    settings: ClassVar[type[ClientsSpec]]
    """The type of its section in a specification; the name there is that of the entry point."""
    context: ClassVar[type[Context]] = Context
    """What its processes share."""

    @staticmethod
    def prepare(spec: ClientsSpec, say: Callable[[str], None]) -> None:
        """Fetches to this machine what the workload needs besides its library. Raises Unavailable."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "settings" in vars(cls):
            _PERFORMERS[cls.settings] = cls

    def __init__(
        self,
        spec: ClientsSpec,
        *,
        bootstrap: str,
        topics: Mapping[str, int],
        seed: int,
        recorder: Recorder,
        enter: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """``topics``: name -> partitions; one, unless ``spec.takes_topics``."""
        partitions = sum(topics.values())
        lanes = {
            f: Lanes(spec.lanes(f, topics), clients)
            for f, (clients, _) in spec.shares.items()
            if clients and f in spec.by_partition
        }
        self._generator = Generator(spec.rate, spec.weights, seed, lanes=lanes, spacing=spec.spacing)
        self._failed = threading.Event()
        self._failure: str | None = None
        self._spec = spec
        self._context = self.context(
            bootstrap=bootstrap,
            library=library_of(spec),
            topics=topics,
            spec=spec,
            recorder=recorder,
            generator=self._generator,
            tag=run_tag(recorder.info.test_id),
            stride=spec.concurrency + partitions,
            enter=enter,
            on_failure=self._on_failure,
        )
        self._processes = self.processes(self._context)

    def processes(self, context: Context) -> list[Process]:
        """The threads of the workload; the ids of their logical processes are below ``spec.concurrency``."""
        raise NotImplementedError

    def _on_failure(self, reason: str) -> None:
        if self._failure is None:
            self._failure = reason
        self._failed.set()

    @property
    def failure(self) -> str | None:
        """Returns why the workload cannot go on, for reasons of our own; None while all is well."""
        return self._failure

    @property
    def left_out(self) -> dict[str, list[int]]:
        """Returns by kind and place (one number for a kind that has no place) the operations that fell due
        while the clients were busy for long, and were not done."""
        return self._generator.left_out

    @property
    def places(self) -> Sequence[Place]:
        """Every partition of every topic, in the order of ``left_out``."""
        return self._context.places

    def counts(self) -> Counts:
        return self._context.tally.counts()

    def tries(self) -> Mapping[Kind, Tries]:
        """The operations so far, by kind and partition."""
        return self._context.tally.tries()

    def by_followers(self) -> dict[str, int]:
        """Returns how many records of each partition followers gave to clients in a rack."""
        return self._context.tally.by_followers()

    def told(self, topic: str, partition: int) -> Offsets:
        """The offsets at which clients were told of a record, by an ack or by reading it."""
        return self._context.tally.told(topic, partition)

    def start(self) -> None:
        library = self._context.library
        self._context.recorder.learn(client={"library": library.name, "version": library.version})
        for process in self._processes:
            process.start()
        self._generator.start()

    def missing_kinds(self) -> list[str]:
        """Kinds of operations that have not succeeded yet."""
        ok = self.counts().ok
        return [f for f in self._spec.weights if not ok.get(f)]

    def stop(self, *, timeout_s: float) -> list[str]:
        """Stops new operations and waits for those that are open. Returns the names of threads that did not
        end in time (their operations stay open in the history, which is the truth about them)."""
        self._generator.stop()
        deadline = time.monotonic() + timeout_s
        for process in self._processes:
            if process.ident is not None:
                process.join(max(0.0, deadline - time.monotonic()))
        return [process.name for process in self._processes if process.is_alive()]

    @property
    def groups(self) -> Sequence[str]:
        """Consumer groups that commit offsets."""
        return ()

    def topic_of(self, group: str) -> str:  # noqa: ARG002
        """Returns the topic that the group commits offsets of; empty for the only one."""
        return ""

    @property
    def groups_made(self) -> Sequence[str]:
        """Returns the groups of any kind that a run leaves in a cluster, unless somebody deletes them."""
        return self.groups

    @property
    def named_groups(self) -> Mapping[str, str]:
        """Returns name in the specification -> group, of those that have one there."""
        return {}

    @property
    def transactional_ids(self) -> Sequence[str]:
        """Returns the transactional ids of the producers that make transactions."""
        return ()

    @property
    def share_groups(self) -> Sequence[str]:
        """Share groups."""
        return ()

    @property
    def coordinated(self) -> Mapping[str, Sequence[str]]:
        """What has a coordinator: kind -> names, as `wrackline.systems.base.Coordinated` has them."""
        share = [f"{group}:{topic}:{p}" for group in self.share_groups for topic, p in self.places]
        return {
            "group": [*self.groups, *self.share_groups],
            "transaction": self.transactional_ids,
            "share": share,
        }

    def drain(self, *, deadline_s: float) -> list[Drained]:
        """The final read of every partition, and of what the groups have committed."""
        drained = drain(self._context, self._spec.concurrency, deadline_s=deadline_s)
        with self._context.enter():
            for group in self.groups:
                self._final_commits(group)
        return drained

    def _final_commits(self, group: str) -> None:
        """A few tries; those that fail are on record. By a process that has ended its final read."""
        context, process = self._context, self._spec.concurrency
        client = context.library.consumer(context.bootstrap, context.spec, group=group)
        for _ in range(COMMITTED_TRIES):
            with suppress(ClientError):
                committed_offsets(context, client, process, group, self.topic_of(group))
                break
        close_in_background(client)


class AppendingWorkload(Workload):
    """Producers, consumers, and those who ask where the log ends."""

    def processes(self, context: Context) -> list[Process]:
        spec = context.spec
        assert isinstance(spec, AppendingSpec)
        sending = spec.senders * spec.width
        senders = [Sender(context, slot, spec.width) for slot in range(0, sending, spec.width)]
        readers: list[type[Process]] = [Poller] * spec.pollers + [Ender] * spec.enders
        return [*senders, *(kind(context, slot) for slot, kind in enumerate(readers, sending))]


class LogWorkload(AppendingWorkload):
    """Clients send to a log, poll it, ask for its end offset, and delete records from its beginning."""

    settings = LogSpec

    def processes(self, context: Context) -> list[Process]:
        return [*super().processes(context), *deleters(context)]
