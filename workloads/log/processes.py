"""The processes of the workload: one operation at a time each, everything on record.

A process is retired after an operation of unknown outcome: whoever acted as it goes on as process ``old +
stride``, as Jepsen does. Those who read are here, a thread and a client each; those who send are in
`senders`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from wrackline.history.model import Event, Record, Type
from wrackline.workloads.clients.base import Client, ClientError, Consumer, Fetched, Library, Polled
from wrackline.workloads.log.spec import ClientsSpec
from wrackline.workloads.log.tally import Tally
from wrackline.workloads.pace import Generator, Slot
from wrackline.workloads.payload import decode, kept_timestamp

if TYPE_CHECKING:
    from wrackline.history import Recorder

log = logging.getLogger(__name__)

Place = tuple[str, int]
"""Topic and partition."""
CLOSE_S = 10.0
"""How long a client may take to end before we stop waiting for it."""


@dataclass
class Context:
    """The context that all processes of one run share."""

    bootstrap: str
    library: Library
    topics: Mapping[str, int]
    """Name -> partitions."""
    spec: ClientsSpec
    recorder: Recorder
    generator: Generator
    tag: bytes
    stride: int
    """Of process ids: a retired process is followed by ``old + stride``."""
    enter: Callable[[], AbstractContextManager[None]]
    """Enters the fleet's network, for the thread that calls it."""
    on_failure: Callable[[str], None]
    """Is called with the reason when a process cannot go on because of the harness, not of the system."""
    tally: Tally = field(default_factory=Tally)

    def record(self, process: int, kind: Type, f: str, **columns: Any) -> None:
        """Writes a row of the history, and counts it."""
        event = Event(process, kind, f, **{"topic": self.topic, **columns})
        self.tally.count(self.recorder.record(event))

    def states(self, fetched: Sequence[Fetched], records: Sequence[Record]) -> dict[str, Any]:  # noqa: ARG002
        """Returns what a row of the final read says of the state that an application gave its records."""
        return {}

    @cached_property
    def places(self) -> Sequence[Place]:
        """Every partition of every topic. A lane of the generator is an index into it."""
        return tuple((topic, p) for topic, partitions in self.topics.items() for p in range(partitions))

    @property
    def topic(self) -> str:
        """The only topic, for workloads that take one (``ClientsSpec.takes_topics``)."""
        return next(iter(self.topics))

    @property
    def partitions(self) -> int:
        """The partitions of the only topic."""
        return self.topics[self.topic]


@contextmanager
def catch_all(context: Context, what: str) -> Iterator[None]:
    """The one supervisor of the workload: whatever breaks a thread of it must end the run with a word about
    it, else fewer and fewer clients would go on and the night would look green."""
    try:
        yield
    except Exception as error:
        log.debug("%s", what, exc_info=True)
        context.on_failure(f"{what}: {type(error).__name__}: {error}")


class Process(threading.Thread):
    """A thread that acts as one logical process after another. Subclasses define what an operation is."""

    f = ""

    def __init__(self, context: Context, slot: int) -> None:
        super().__init__(name=f"{self.f}-{slot}", daemon=True)
        self.context = context
        self.process = slot
        self.record = context.record

    def operate(self, slot: Slot) -> None:
        """Do one operation and record it."""
        raise NotImplementedError

    def drop_client(self) -> None:
        """Close the client, if there is one."""
        raise NotImplementedError

    def run(self) -> None:
        with catch_all(self.context, f"process {self.process} ({self.f})"), self.context.enter():
            self.work()

    def work(self) -> None:
        """One operation after another, until there are no more to do."""
        while (slot := self.context.generator.take(self.f)) is not None:
            try:
                self.operate(slot)
            finally:
                self.context.generator.done(slot)
        self.drop_client()

    def retire(self) -> None:
        self.drop_client()
        self.process += self.context.stride


def close_in_background(client: Client) -> None:
    """A client may take seconds to end a client whose broker is silent: nobody waits for that."""
    threading.Thread(target=client.close, name="close-client", daemon=True).start()


class Reading(Process):
    """A process with a consumer."""

    reset = ""
    """``auto.offset.reset``; empty: the loss of its position is an error."""
    _client: Consumer | None = None

    def client(self) -> Consumer:
        if self._client is None:
            context = self.context
            self._client = context.library.consumer(context.bootstrap, context.spec, reset=self.reset)
        return self._client

    def drop_client(self) -> None:
        if self._client is not None:
            close_in_background(self._client)
            self._client = None

    def invoke(self, **columns: Any) -> None:
        self.record(self.process, Type.INVOKE, self.f, **columns)

    def complete(self, kind: Type, begin_ns: int, **columns: Any) -> None:
        latency = time.monotonic_ns() - begin_ns
        self.record(self.process, kind, self.f, latency_ns=latency, **columns)


class Ender(Reading):
    """Asks a partition's leader where the log ends: the freshest answer the protocol has."""

    f = "end"

    def operate(self, slot: Slot) -> None:
        topic, partition = self.context.places[slot.lane]
        client = self.client()
        place: dict[str, Any] = {"topic": topic, "partition": partition}
        self.invoke(**place)
        begin = time.monotonic_ns()
        try:
            low, high = client.ends(topic, partition)
        except ClientError as refused:
            self.complete(Type.FAIL, begin, **place, error=refused.name)
        else:
            self.complete(Type.OK, begin, **place, offset=low, high_watermark=high)
        if client.broken:
            self.retire()


class Poller(Reading):
    """Takes some partitions of a topic by itself and reads on; from time to time takes others, or the same
    from elsewhere."""

    f = "poll"

    def __init__(self, context: Context, slot: int) -> None:
        super().__init__(context, slot)
        self.reset = context.spec.reset
        self._topic = context.topic
        self._positions: dict[int, int] = {}
        """Next offset of every partition held."""
        self._known: dict[Place, int] = {}
        """The last position ever reached, of every partition."""
        self._lost = False

    def operate(self, slot: Slot) -> None:
        every = self.context.spec.seek_every
        if not self._positions or (not self._lost and every and slot.choice(every, salt=2) == 0):
            self._take_topic(slot)
            client = self.client()
            self._assign(client, self._take_partitions(slot))
        else:
            client = self.client()
            if self._lost:
                self._assign(client, inside_the_log(client, self._topic, self._positions))
        self.invoke(topic=self._topic)
        begin = time.monotonic_ns()
        polled = client.poll(timeout_s=self.context.spec.poll_wait_s)
        self._complete(polled, begin)
        if client.broken:
            self.retire()
            self._positions = {}

    def _complete(self, polled: Polled, begin_ns: int) -> None:
        error, self._lost = polled.error, polled.position_lost
        records, corrupt = read_records(polled.records, self.context)
        for record in records:
            self._positions[record.partition] = record.offset + 1
        self.context.tally.followed(self._topic, records, polled.followers)
        self._known.update({(self._topic, partition): at for partition, at in self._positions.items()})
        extra: dict[str, Any] = {"positions": positions_of(self._positions)}
        if polled.followers:
            extra["followers"] = positions_of(polled.followers)
        if corrupt:
            extra["corrupt"] = corrupt
        if error and records:
            extra["error"] = error
        if error and not records:
            self.complete(Type.FAIL, begin_ns, topic=self._topic, error=error)
        else:
            self.complete(Type.OK, begin_ns, topic=self._topic, records=records, extra=extra)

    def _take_topic(self, slot: Slot) -> None:
        """An event has one topic, so one is read at a time; by a fresh client, which cannot have kept records
        of another."""
        topics = list(self.context.topics)
        topic = topics[slot.choice(len(topics), salt=1)]
        if topic != self._topic:
            self._topic = topic
            self.drop_client()

    def _take_partitions(self, slot: Slot) -> dict[int, int]:
        """One partition or several; each from the start, from where this thread last was in it, or a bit
        before."""
        partitions = self.context.topics[self._topic]
        count = 1 + slot.choice(partitions, salt=3)
        first = slot.choice(partitions, salt=4)
        taken = {}
        for step in range(count):
            partition = (first + step) % partitions
            known = self._known.get((self._topic, partition), 0)
            back = slot.choice(50, salt=6 + step)
            taken[partition] = (0, known, known, max(0, known - back))[slot.choice(4, salt=5)]
        return taken

    def _assign(self, client: Consumer, positions: dict[int, int]) -> None:
        self._positions, self._lost = dict(positions), False
        extra: dict[str, Any] = {"positions": positions_of(positions)}
        if self.reset:
            extra["reset"] = self.reset
        self.record(self.process, Type.INVOKE, "assign", topic=self._topic, extra=extra)
        client.assign(self._topic, positions)
        self.record(self.process, Type.OK, "assign", topic=self._topic, extra=extra)


def inside_the_log(client: Consumer, topic: str, positions: Mapping[int, int]) -> dict[int, int]:
    """Positions inside the log as it is now, after a poll failed because they lay outside of it."""
    result = {}
    for partition, position in positions.items():
        try:
            low, high = client.ends(topic, partition)
        except ClientError:
            result[partition] = position  # the next poll fails again if it still lies outside
        else:
            result[partition] = min(max(position, low), high)
    return result


def committed_offsets(
    context: Context, client: Consumer, process: int, group: str, topic: str = ""
) -> dict[int, int]:
    """Returns the offsets that the group has committed, asked as an operation of this process. ``topic``:
    empty for the only one. Raises ClientError."""
    topic = topic or context.topic
    record = partial(context.record, process, f="committed", topic=topic)
    kind = {"group": group} | ({"stable": True} if client.requires_stable else {})
    record(Type.INVOKE, extra=kind)
    node, begin = client.coordinator(), time.monotonic_ns()
    try:
        offsets = client.committed(topic, range(context.topics[topic]))
    except ClientError as refused:
        latency = time.monotonic_ns() - begin
        extra = {**kind, **coordinator_of(client, node)}
        record(Type.FAIL, extra=extra, error=refused.name, latency_ns=latency)
        raise
    answer = {"offsets": positions_of(offsets), **kind, **coordinator_of(client, node)}
    record(Type.OK, extra=answer, latency_ns=time.monotonic_ns() - begin)
    return offsets


def coordinator_of(client: Consumer, before: int) -> dict[str, Any]:
    """Returns what an operation says of the coordinator that answered it: nothing where the library has
    changed its mind since ``before``."""
    node = client.coordinator()
    return {"coordinator": node, "coordinator_by": "client"} if node == before >= 0 else {}


def positions_of(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(positions.items())}


def read_records(
    fetched: Sequence[Fetched], context: Context
) -> tuple[tuple[Record, ...], list[dict[str, Any]]]:
    """Returns a consumer's records as records of the history, and what is wrong with those that are corrupt
    or foreign."""
    records = []
    error = []
    for partition, offset, epoch, timestamp, key, payload in fetched:
        kept = kept_timestamp(timestamp, epoch)
        result = decode(context.tag, payload, key=key, timestamp_ms=kept, key_of=context.spec.key_of)
        records.append(Record(partition, offset, result.value, epoch, timestamp))
        if result.detail is not None:
            error.append({"partition": partition, "offset": offset, "detail": result.detail})
    return tuple(records), error
