"""Frames of real clients and nodes, and wrong ones made of them: each by a seed and a number, so it can be
made again."""

from __future__ import annotations

import json
import random
import struct
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.wire.encoder import filled
from tests.broker.wire.samples import AnyNode
from wrackline.broker.model.messages.controller import BrokerRegistrationRequest
from wrackline.broker.model.messages.requests import Refused, Request
from wrackline.broker.model.messages.snapshots import FetchSnapshotRequest, FetchSnapshotResponse
from wrackline.broker.model.types import Endpoint, SnapshotId
from wrackline.broker.wire.api import Api, Listener
from wrackline.broker.wire.apis import API_VERSIONS, API_VERSIONS_RANGE, BY_KEY
from wrackline.broker.wire.codec import Caller, Codec, Incoming
from wrackline.broker.wire.proof import AUTHENTICATE, HANDSHAKE, PROOF
from wrackline.broker.wire.schema import Schema, WireError, request_schema, response_schema
from wrackline.broker.wire.unserved import UNSERVED

_FETCH_SNAPSHOT = 59
_REGISTRATION = 62
_OF_METADATA_ALONE = (52, 53, 54)
"""Vote, BeginQuorumEpoch, EndQuorumEpoch: an example of any topic is none of theirs; recorded they are."""
FRAMES = Path(__file__).parent / "frames"
_HEADER = struct.Struct(">hhih")
_LONGEST = 2**15 - 1
_NEAR = 1_024
"""Nothing is looked for further behind: there lies what an earlier mutation made long."""
_NUMBERS = (0, 1, -1, -2, 127, -128, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**31 - 2, 2**63 - 1, -(2**63))
_VARINTS = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\xff\x01",
    b"\xff\xff\x03",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x80",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A frame without its size; of an answer also the request it belongs to."""

    api: str
    source: str
    frame: bytes
    request: bytes | None = None


def cases() -> dict[str, list[Case]]:
    """By the name of an API, with ``-answer`` behind it where a node reads its answers: what was recorded,
    and an example of every version."""
    found: dict[str, list[Case]] = defaultdict(list)
    for path in sorted(FRAMES.glob("*.jsonl")):
        for line in map(json.loads, path.read_text().splitlines()):
            frame = bytes.fromhex(line["request"])
            found[line["api"]].append(Case(line["api"], path.stem, frame))
            if "answer" in line and BY_KEY[_HEADER.unpack_from(frame)[0]].sent == line["version"]:
                name = f"{line['api']}-answer"
                found[name].append(Case(name, path.stem, bytes.fromhex(line["answer"]), frame))
    spoken = [
        (api.key, api.name, span) for api in BY_KEY.values() for span in (api.clients, api.peers) if span
    ]
    spoken += [(key, api.name, api.versions) for key, api in UNSERVED.items()]
    spoken += [(HANDSHAKE, "SaslHandshake", PROOF[HANDSHAKE])]
    spoken += [(AUTHENTICATE, "SaslAuthenticate", PROOF[AUTHENTICATE])]
    for key, name, (low, high) in [*spoken, (API_VERSIONS, "ApiVersions", API_VERSIONS_RANGE)]:
        for version in range(low, high + 1) if key not in _OF_METADATA_ALONE else ():
            found[name].append(Case(name, "example", _example(key, version)))
    for api in BY_KEY.values():
        if api.sent is not None and api.key not in _OF_METADATA_ALONE:
            schema = response_schema(api.key, api.sent)
            head = b"\x00\x00\x00\x07" + b"\x00" * schema.flexible
            answer, name = head + schema.write(_answer(api, schema)), f"{api.name}-answer"
            found[name].append(Case(name, "example", answer, _example(api.key, api.sent)))
    return dict(found)


_EXACT: Mapping[int, Request] = {
    # It must be of the metadata log, and recorded it is only when a node has been away for very long.
    _FETCH_SNAPSHOT: FetchSnapshotRequest("a cluster", 2, SnapshotId(900, 3), 0, 1_000, 4, UUID(int=9)),
    # It must name its listeners.
    _REGISTRATION: BrokerRegistrationRequest(
        2, "a cluster", UUID(int=9), "n2", 9092, "r", 7, replication_port=9094
    ),
}


def _example(key: int, version: int) -> bytes:
    if (asked := _EXACT.get(key)) is not None:
        return Codec(names=lambda _: None).encode_request(7, "me", asked)[4:]
    schema = request_schema(key, version)
    head = _HEADER.pack(key, version, 7, 2) + b"me" + b"\x00" * schema.flexible
    return head + schema.write(filled(schema.root))


def _answer(api: Api, schema: Schema) -> Any:
    if api.key == _FETCH_SNAPSHOT:
        piece = FetchSnapshotResponse(
            ErrorCode.none, SnapshotId(900, 3), 1_000, 10, b"part of a snapshot", 101, 4
        )
        return api.encode_response(schema, None, piece)
    return filled(schema.root)


_WHY = "why " * 20_000
"""More than a string of an old version can hold."""


# --- mutations ----------------------------------------------------------------------------------------------


def mutated(of: Sequence[Case], every: Sequence[bytes], seed: int, number: int) -> tuple[Case, bytes]:
    """The ``number``-th mutation of an API's cases: (what it was made of, the frame)."""
    draw = random.Random(f"{seed}/{of[0].api}/{number}")
    case = draw.choice(of)
    frame = bytearray(case.frame)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        draw.choice(_MUTATIONS)(frame, draw, every)
    return case, bytes(frame)


Mutation = Callable[[bytearray, random.Random, Sequence[bytes]], None]


def _at(frame: bytearray, draw: random.Random) -> int:
    return draw.randint(0, len(frame))


def _flip_bits(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    for _ in range(draw.choice((1, 1, 2, 8))):
        if frame:
            frame[draw.randrange(len(frame))] ^= 1 << draw.randrange(8)


def _truncate(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    del frame[_at(frame, draw) :]


def _overwrite_number(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    size = draw.choice((1, 2, 4, 8))
    at = _at(frame, draw)
    frame[at : at + size] = (draw.choice(_NUMBERS) % (1 << 8 * size)).to_bytes(size, "big")


def _overwrite_varint(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    at = _at(frame, draw)
    frame[at : at + 1] = draw.choice(_VARINTS)


def _inject_tags(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    """In the place of a zero byte, which may be an empty set of tagged fields."""
    zeros = [at for at, byte in enumerate(frame[:_NEAR]) if byte == 0]
    if zeros:
        at = draw.choice(zeros)
        tag, size = draw.choice((0, 1, 2, 100)), draw.choice((0, 1, 16, 17))
        frame[at : at + 1] = bytes((draw.choice((1, 1, 2)), tag, size)) + draw.randbytes(
            draw.choice((size, size, 3))
        )


def _drop(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    at = _at(frame, draw)
    del frame[at : at + draw.choice((1, 2, 4, 16))]


def _repeat(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    at = _at(frame, draw)
    frame[at:at] = frame[at : at + draw.choice((1, 4, 16, 64))] * draw.choice((1, 2, 20))


def _insert(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    at = _at(frame, draw)
    frame[at:at] = draw.randbytes(draw.choice((1, 2, 4, 16)))


def _stretch(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    """Some string becomes as long as one can be; whoever quotes it has no room for another word."""
    found = []
    for at, size in enumerate(frame[:_NEAR]):
        text = frame[at + 1 : at + 1 + size]
        if 0 < size < 0x7F and len(text) == size and text.isascii():
            found.append((at, size))
    if found:
        at, size = draw.choice(found)
        if at and frame[at - 1] == 0:
            frame[at - 1 : at + 1 + size] = (_LONGEST).to_bytes(2, "big") + b"x" * _LONGEST
        else:
            frame[at : at + size] = b"\x80\x80\x02" + b"x" * _LONGEST


def _splice(frame: bytearray, draw: random.Random, every: Sequence[bytes]) -> None:
    other = draw.choice(every)
    frame[_at(frame, draw) :] = other[draw.randint(0, len(other)) :]


def _other_version(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    """The body of one version under the header of another."""
    frame[2:4] = draw.choice((*range(18), 99, -1)).to_bytes(2, "big", signed=True)


def _other_header(frame: bytearray, draw: random.Random, _: Sequence[bytes]) -> None:
    frame[8:10] = (draw.choice(_NUMBERS) % (1 << 16)).to_bytes(2, "big")


_MUTATIONS: tuple[Mutation, ...] = (
    _flip_bits,
    _flip_bits,
    _truncate,
    _overwrite_number,
    _overwrite_number,
    _overwrite_varint,
    _overwrite_varint,
    _inject_tags,
    _drop,
    _repeat,
    _insert,
    _stretch,
    _splice,
    _other_version,
    _other_header,
)


# --- reading them -------------------------------------------------------------------------------------------


class Readers:
    """Each listener, as it reads frames of a client or, where nodes ask, of a node that may speak for all.
    Everything but a refusal in one line is raised."""

    def __init__(self) -> None:
        me = Endpoint(1, "n1", 9092)
        self.codec = Codec(names=lambda _: "topic", me=me)
        self.callers = {one: Caller(one, None if one is Listener.CLIENT else AnyNode()) for one in Listener}

    def understood(self, case: Case, frame: bytes) -> list[Listener]:
        """Where it is taken for a message. Whoever takes a request must be able to refuse it."""
        takers, codec = [], self.codec
        for listener, caller in self.callers.items():
            try:
                if case.request is None:
                    incoming = codec.decode_request(frame, caller)
                    if isinstance(incoming, Incoming):
                        codec.encode_response(incoming, Refused(ErrorCode.kafka_storage_error, _WHY))
                else:
                    codec.decode_response(frame, self._asked(case.request))
                takers.append(listener)
            except WireError as refused:
                said = str(refused)
                if "\n" in said or "MemoryError" in said:
                    raise AssertionError(f"more than one line, or room was made first: {said}") from refused
        return takers

    def _asked(self, request: bytes) -> Request:
        for caller in self.callers.values():
            with suppress(WireError):
                incoming = self.codec.decode_request(request, caller)
                if isinstance(incoming, Incoming):
                    return incoming.request
        raise AssertionError(f"no request: {request.hex()}")
