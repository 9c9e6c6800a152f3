"""Requests that wait: acks=all produces for the high watermark, long polls for bytes
(docs/protocol.md 2.1.8, 2.2.9).

A replica that changed is looked at once per event (``Purgatory.look_at``). Deadlines share one timer each,
set to the earliest: most requests are answered long before theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.parked import ParkedFetch, ParkedProduce, Waiter
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.messages.requests import FetchRequest, ProduceResponse, ProduceResult
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.model.values import NO_ERROR


class Deadlines:
    """One timer for many deadlines."""

    def __init__(self, ctx: Context, key: str, expire: Callable[[int], None]) -> None:
        self._ctx = ctx
        self._key = key
        self._expire = expire
        self.heap: list[tuple[float, int]] = []
        self._armed_ms: float | None = None
        self._alive: set[int] = set()

    def add(self, request_id: int, at_ms: float) -> None:
        self._alive.add(request_id)
        heappush(self.heap, (at_ms, request_id))

    def drop(self, request_id: int) -> None:
        self._alive.discard(request_id)

    def arm(self) -> None:
        """Sets the timer, at the end of an event, so that it fires by the earliest deadline."""
        heap = self.heap
        while heap and heap[0][1] not in self._alive:
            heappop(heap)
        if heap and (self._armed_ms is None or heap[0][0] < self._armed_ms):
            self._armed_ms = heap[0][0]
            self._ctx.set_timer(self._key, self._armed_ms, self._fired)

    def _fired(self) -> None:
        self._armed_ms = None
        while self.heap and self.heap[0][0] <= self._ctx.now_ms:
            _, request_id = heappop(self.heap)
            if request_id in self._alive:
                self._alive.discard(request_id)
                self._expire(request_id)


class ProducePurgatory:
    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._parked: dict[int, ParkedProduce] = {}
        self.deadlines = Deadlines(ctx, "produce-deadlines", self._expire)
        self._order = 0

    def park(
        self,
        request_id: int,
        results: list[ProduceResult],
        waits: list[tuple[int, Replica, int]],
        timeout_ms: float,
    ) -> None:
        """``waits``: (index into results, replica, offset its high watermark must reach)."""
        parked = ParkedProduce(request_id, results)
        self._parked[request_id] = parked
        for index, replica, required in waits:
            self._order += 1
            parked.waiting.add(index)
            heappush(replica.produces, Waiter(required, self._order, index, parked))
            replica.touch()
        self.deadlines.add(request_id, self._ctx.now_ms + timeout_ms)

    def look_at(self, replica: Replica) -> None:
        """Decide what the replica's new state decides (docs/protocol.md 2.1.8)."""
        waiters, rules, leader = replica.produces, self._ctx.rules.produce, replica.leader
        if leader is None and self._ctx.rules.switches.produce_outlives_leadership and not replica.failed:
            while waiters and waiters[0].required <= replica.high_watermark:
                self._decide(heappop(waiters), NO_ERROR)
            return
        if leader is None:
            error = ErrorCode.kafka_storage_error if replica.failed else ErrorCode.not_leader_or_follower
            self._fail_all(replica, error)
            return
        while waiters and waiters[0].required <= replica.high_watermark:
            self._decide(heappop(waiters), rules.on_commit(len(leader.maximal), replica.min_isr))
        if waiters and rules.fails_at_once(
            len(leader.isr), replica.min_isr, self._ctx.config.pending_on_shrink
        ):
            self._fail_all(replica, ErrorCode.not_enough_replicas_after_append)

    def _fail_all(self, replica: Replica, error: ErrorCode) -> None:
        waiters = replica.produces
        while waiters:
            self._decide(heappop(waiters), error)

    def _decide(self, waiter: Waiter, error: ErrorCode) -> None:
        parked = waiter.parked
        if waiter.slot not in parked.waiting:
            return
        parked.waiting.remove(waiter.slot)
        if error is not NO_ERROR:
            parked.results[waiter.slot] = refused(parked.results[waiter.slot], error)
        if not parked.waiting:
            self._answer(parked)

    def _answer(self, parked: ParkedProduce) -> None:
        self.deadlines.drop(parked.request_id)
        del self._parked[parked.request_id]
        trace_acks(self._ctx, parked.request_id, parked.results, -1)
        self._ctx.reply(parked.request_id, ProduceResponse(tuple(parked.results)))

    def _expire(self, request_id: int) -> None:
        parked = self._parked[request_id]
        for index in parked.waiting:
            parked.results[index] = refused(parked.results[index], ErrorCode.request_timed_out)
        self._forget_waiters(parked)
        self._answer(parked)

    def cancel(self, request_id: int) -> None:
        """Nobody waits for the answer any more. What was appended stays appended."""
        parked = self._parked.pop(request_id, None)
        if parked is not None:
            self.deadlines.drop(request_id)
            self._forget_waiters(parked)

    def _forget_waiters(self, parked: ParkedProduce) -> None:
        """The heap entries stay where they are and are skipped when their turn comes."""
        parked.waiting.clear()


class FetchPurgatory:
    """``complete`` answers the request with what there is now; ``readable`` measures one of its partitions
    (None: it must be answered at once, something is wrong with it)."""

    def __init__(
        self,
        ctx: Context,
        complete: Callable[[int, FetchRequest], None],
        readable: Callable[[FetchRequest, TopicPartition], int | None],
    ) -> None:
        self._ctx = ctx
        self._complete = complete
        self._readable = readable
        self._parked: dict[int, tuple[ParkedFetch, tuple[Replica, ...]]] = {}
        self.deadlines = Deadlines(ctx, "fetch-deadlines", self._answer)

    def park(
        self, request_id: int, request: FetchRequest, readable: dict[TopicPartition, int], on: list[Replica]
    ) -> None:
        parked = ParkedFetch(request_id, request, readable, sum(readable.values()))
        self._parked[request_id] = parked, tuple(on)
        for replica in on:
            replica.fetches[request_id] = parked
        self.deadlines.add(request_id, self._ctx.now_ms + request.max_wait_ms)

    def look_at(self, replica: Replica) -> None:
        for parked in list(replica.fetches.values()):
            readable = self._readable(parked.request, replica.tp)
            if readable is None:
                self._answer(parked.request_id)
                continue
            parked.total += readable - parked.readable[replica.tp]
            parked.readable[replica.tp] = readable
            if parked.total >= parked.request.min_bytes:
                self._answer(parked.request_id)

    def _answer(self, request_id: int) -> None:
        request = self._parked[request_id][0].request
        self.cancel(request_id)
        self._complete(request_id, request)

    def cancel(self, request_id: int) -> None:
        entry = self._parked.pop(request_id, None)
        if entry is not None:
            self.deadlines.drop(request_id)
            for replica in entry[1]:
                replica.fetches.pop(request_id, None)


def refused(result: ProduceResult, error: ErrorCode) -> ProduceResult:
    return ProduceResult(result.tp, error, topic_id=result.topic_id)


def trace_acks(ctx: Context, request_id: int, results: list[ProduceResult], acks: int) -> None:
    for result in results:
        ctx.trace(
            "ack",
            req=request_id,
            tp=str(result.tp),
            offset=result.base_offset,
            acks=acks,
            error=result.error.name,
        )
