"""The disk cuts no batch in two: when a truncation took more than it was asked to, the core hears of it
before anything else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest

from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.types import Endpoint, TopicPartition
from wrackline.broker.server.network.link import Link
from wrackline.broker.server.shell import Shell
from wrackline.broker.wire.proof import ClusterSecret

T = TopicPartition("t", 0)


class Core:
    """Truncates at the first event, and remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[ev.Event] = []

    def handle(self, event: ev.Event, now_ms: float) -> list[fx.Effect]:
        del now_ms
        self.heard.append(event)
        send: Any = fx.Send(7, 2, "fetcher-0", MagicMock(), 1_000)
        return [fx.Truncate(T, 2), fx.Truncate(T, 5), send] if len(self.heard) == 1 else []


def shell(core: Core, ends: dict[int, int]) -> Shell:
    """Whose disk has these ends after truncations to these offsets."""
    settings: Any = SimpleNamespace(
        node=SimpleNamespace(node_id=1, host="n1", port=9092),
        is_controller=False,
        shell=SimpleNamespace(
            max_connections=9,
            connections_max_idle_ms=1_000,
            connect_timeout_ms=1_000,
            socket_request_max_bytes=1_000,
            zookeeper_connect=None,
        ),
    )
    log_dir: Any = SimpleNamespace(
        truncate=lambda _, to_offset: ends[to_offset], topic_name=str, behind=lambda: None, owes=False
    )
    role: Any = SimpleNamespace(
        core=core,
        ready=lambda: False,
        features=lambda: None,
        endpoints=lambda node: Endpoint(node, "n2", 9092),
    )
    trace: Any = MagicMock()
    return Shell(role, settings, log_dir, ClusterSecret(b"", "c"), UUID(int=1), trace, 9)


@pytest.mark.parametrize(
    ("ends", "told"),
    [({2: 2, 5: 5}, []), ({2: 1, 5: 5}, [ev.LogCut(T, 1)])],
    ids=["between two batches", "inside one"],
)
def test_the_core_hears_of_a_batch_that_went_whole_and_asks_for_nothing_in_the_belief_that_it_did_not(
    ends: dict[int, int], told: list[ev.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[fx.Send] = []
    monkeypatch.setattr(Link, "send", lambda _, send, endpoint: sent.append(send))  # noqa: ARG005

    async def driven() -> list[ev.Event]:
        core = Core()
        one = shell(core, ends)
        one._events.append(ev.Flushed(T, 9))  # waits: another event's turn comes after it
        one.post(ev.TimerFired("next"))
        return core.heard

    heard = asyncio.run(driven())
    failed = [event for event in heard if isinstance(event, ev.SendFailed)]
    assert [event for event in heard if event not in failed] == [
        ev.Flushed(T, 9),
        *told,
        ev.TimerFired("next"),
    ]
    assert (len(sent), [event.correlation for event in failed]) == ((0, [7]) if told else (1, []))
