"""How one API of the protocol is translated: a row of the table in ``apis``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wrackline.broker.wire.common import TopicNames
from wrackline.broker.wire.schema import Schema

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Api:
    key: int
    name: str
    request: type
    decode_request: Callable[[Any, TopicNames], Any]
    encode_response: Callable[[Schema, Any, Any], Any]
    clients: Range | None = None
    peers: Range | None = None
    on_controller: bool = False
    on_broker: bool = True
    sent: int | None = None
    encode_request: Callable[[Schema, Any], Any] | None = None
    decode_response: Callable[[Any, Any], Any] | None = None

    def accepts(self, version: int) -> bool:
        return within(self.clients, version) or within(self.peers, version)


def within(spoken: Range | None, version: int) -> bool:
    return spoken is not None and spoken[0] <= version <= spoken[1]
