"""Measurements of a node where requests come in and go out, and of how long its loop took up nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.requests import (
    FetchRequest,
    FetchResponse,
    ProduceResponse,
    Request,
    Response,
)
from wrackline.broker.model.metric import Metric

SILENT_MS = 200
"""A loop that takes up nothing for so long is told of."""
_LOOK_S = 0.05
_WINDOW_S = 60.0


@dataclass(slots=True)
class _Api:
    requests: int = 0
    request_bytes: int = 0
    answer_bytes: int = 0
    answers: int = 0
    answer_us: int = 0
    """From each request to its answer, with what it waited for."""
    errors: Counter[ErrorCode] = field(default_factory=Counter)


class RequestMeter:
    """Requests of one part of a process, ``part`` in its labels, by API and by who asked."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._apis: dict[tuple[str, str], _Api] = {}

    def asked(self, name: str, request: Request, size: int) -> None:
        api = self._api(name, request)
        api.requests += 1
        api.request_bytes += size

    def answered(
        self, name: str, request: Request, response: Response | None, size: int, seconds: float
    ) -> None:
        """``response``: None for a request that has none."""
        api = self._api(name, request)
        api.answers += 1
        api.answer_bytes += size
        api.answer_us += int(seconds * 1e6)
        if isinstance(response, ProduceResponse | FetchResponse):
            for result in response.partitions:
                if result.error is not ErrorCode.none:
                    api.errors[result.error] += 1

    def _api(self, name: str, request: Request) -> _Api:
        by = "node" if isinstance(request, FetchRequest) and request.replica_id >= 0 else "client"
        key = name, by if name == "Fetch" else ""
        api = self._apis.get(key)
        if api is None:
            api = self._apis[key] = _Api()
        return api

    def metrics(self) -> Iterator[Metric]:
        labelled = {self._labels(*key): api for key, api in sorted(self._apis.items())}

        def counter(name: str, text: str, value: str) -> Metric:
            return Metric(name, "counter", text, {at: getattr(api, value) for at, api in labelled.items()})

        yield counter("requests_count", "Requests, by API; of Fetch, by who asked.", "requests")
        yield counter("request_bytes_count", "Their bytes.", "request_bytes")
        yield counter("answers_count", "Requests that were answered.", "answers")
        yield counter("answer_bytes_count", "Bytes of the answers.", "answer_bytes")
        yield counter(
            "answer_time_us_count", "Time from a request to its answer, with what it waited for.", "answer_us"
        )
        yield Metric(
            "partition_errors_count",
            "counter",
            "Partitions of Produce and Fetch that were answered with an error.",
            {
                f'{at},error="{error.name}"': count
                for at, api in labelled.items()
                for error, count in api.errors.items()
            },
        )

    def _labels(self, name: str, by: str) -> str:
        labels = f'part="{self._part}",api="{name}"'
        return f'{labels},by="{by}"' if by else labels


class LoopMeter:
    """Looks twenty times a second how late the loop is with looking: so long it took up nothing else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._silences = self._silent_ms = 0
        self._longest_ms = [0.0, 0.0]
        """Of the window before this one, and of this one."""
        self._window_until = loop.time() + _WINDOW_S
        self._due = loop.time()
        self._handle = loop.call_soon(self._look)

    def _look(self) -> None:
        now = self._loop.time()
        late_ms = (now - self._due) * 1_000
        if now >= self._window_until:
            self._longest_ms = [self._longest_ms[1], 0.0]
            self._window_until = now + _WINDOW_S
        self._longest_ms[1] = max(self._longest_ms[1], late_ms)
        if late_ms >= SILENT_MS:
            self._silences += 1
            self._silent_ms += int(late_ms)
        self._due = now + _LOOK_S
        self._handle = self._loop.call_at(self._due, self._look)

    def close(self) -> None:
        self._handle.cancel()

    def metrics(self) -> Iterator[Metric]:
        longest = "Longest time, in the last one to two minutes, in which the loop took up nothing."
        yield Metric("loop_silence_longest_ms", "gauge", longest, {"": int(max(self._longest_ms))})
        silences = f"Times that the loop took up nothing for {SILENT_MS} ms or more."
        yield Metric("loop_silences_count", "counter", silences, {"": self._silences})
        yield Metric(
            "loop_silent_ms_count", "counter", "How long these were together.", {"": self._silent_ms}
        )
