"""Metrics over HTTP in Prometheus's text format: ``GET /metrics``, and nothing else (docs/broker.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from wrackline.broker.model.metric import Metric

Read = Callable[[], Iterable[Metric]]
_PREFIX = "wrackline_"
_MOST_BYTES = 8_192
"""Of a request's head."""
_PATIENCE_S = 5.0


def of_all(parts: Iterable[Read]) -> Iterable[Metric]:
    """Yields the metrics of every part of a process: a metric that two have is reported once, with the
    samples of both."""
    told: dict[str, Metric] = {}
    for metric in (metric for read in parts for metric in read()):
        before = told.get(metric.name, metric)
        told[metric.name] = metric._replace(samples={**before.samples, **metric.samples})
    return told.values()


def text(metrics: Iterable[Metric]) -> str:
    lines = []
    for metric in metrics:
        name = f"{_PREFIX}{metric.name}"
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
        for labels, value in metric.samples.items():
            lines.append(f"{name}{{{labels}}} {value}" if labels else f"{name} {value}")
    return "\n".join([*lines, ""])


class MetricsPage(asyncio.Protocol):
    """One connection: a request, its answer, the end."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._head = b""
        self._transport: asyncio.Transport | None = None
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's by shape, not by inheritance.
        self._transport = cast(asyncio.Transport, transport)
        self._patience = asyncio.get_running_loop().call_later(_PATIENCE_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if self._transport is None or self._transport.is_closing():
            return
        if b"\r\n\r\n" in self._head or len(self._head) > _MOST_BYTES:
            self._transport.write(self._answer())
            self._transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _answer(self) -> bytes:
        expected = self._head.split(b"\r\n", 1)[0].split(b" ")[:2]
        if expected == [b"GET", b"/metrics"]:
            status, body = "200 OK", text(self._read())
        else:
            status, body = "404 Not Found", "there is GET /metrics\n"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n"
        )
        return (head + body).encode()
