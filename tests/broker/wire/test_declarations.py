"""Every API in every version: its declaration fits kio's classes, and what is written is what is read."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.wire.samples import EXPECTED, codec, every_version, incoming
from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.messages import requests as m
from wrackline.broker.model.types import LogSlice, SnapshotSlice, TopicPartition
from wrackline.broker.wire.api import api, client_access
from wrackline.broker.wire.apis import BY_KEY
from wrackline.broker.wire.schema import request_schema, response_schema
from wrackline.broker.wire.translation.declarations import Array, Message, Rows, message
from wrackline.broker.wire.translation.source import DeclarationError

_LINES = (Path(__file__).parent / "golden" / "frames.jsonl").read_text().splitlines()
GOLDEN = {line.pop("api"): line for line in map(json.loads, _LINES)}
SENT = [each.key for each in BY_KEY.values() if each.sent is not None]
PLAIN: Mapping[type, Any] = {int: range(4), str: "abc", float: (1.5,), bytes: (b"some",), bool: (True, False)}


def drawn(kind: Any, draw: random.Random) -> Any:
    """A value of a type of the core's."""
    of = get_args(kind)
    if NoneType in of and draw.random() < 0.3:
        return None
    match get_origin(kind) or kind:
        case origin if origin is tuple and of[1:] == (...,):
            return tuple(drawn(of[0], draw) for _ in range(draw.choice((1, 2, 3))))
        case origin if origin is tuple:
            return tuple(drawn(each, draw) for each in of)
        case origin if origin is Mapping:
            return {drawn(of[0], draw): drawn(of[1], draw) for _ in range(2)}
        case origin if of:
            return drawn(draw.choice([one for one in of if one not in NEVER_SENT]), draw)
    if kind is TopicPartition:
        return TopicPartition(draw.choice("tuv"), draw.randrange(9))
    if kind is UUID:
        return UUID(int=draw.randrange(1, 9))
    if issubclass(kind, (ErrorCode, IntEnum)):
        return draw.choice(list(kind))
    if kind in PLAIN:
        return draw.choice(PLAIN[kind])
    values = {field: drawn(hint, draw) for field, hint in get_type_hints(kind).items()}
    if {"tp", "topic_id"} <= values.keys():
        values["topic_id"] = UUID(int=ord(values["tp"].topic))
    return kind(**values)


NEVER_SENT = (NoneType, LogSlice, SnapshotSlice)


def drawn_request(key: int, draw: random.Random) -> Any:
    request = drawn(BY_KEY[key].request.model, draw)
    return replace(request, desired=()) if isinstance(request, a.ElectLeadersRequest) else request


@pytest.mark.parametrize(("key", "version"), every_version())
def test_a_response_of_every_version_is_a_message_of_kio_s(key: int, version: int) -> None:
    draw, schema = random.Random(f"{key}/{version}"), response_schema(key, version)
    for _ in range(20):
        request, response = drawn_request(key, draw), drawn(BY_KEY[key].response.model, draw)
        entity = BY_KEY[key].encode_response(schema, request, response)
        assert schema.read(schema.write(entity), 0) == entity


@pytest.mark.parametrize("key", SENT)
def test_what_nodes_send_is_read_and_written_again_as_it_was(
    key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.0)
    spoken, draw = BY_KEY[key], random.Random(key)
    assert spoken.sent is not None
    asked, answered = request_schema(key, spoken.sent), response_schema(key, spoken.sent)
    for _ in range(50):
        request, response = drawn_request(key, draw), drawn(spoken.response.model, draw)
        entity = spoken.encode_request(asked, request)
        assert asked.read(asked.write(entity), 0) == entity
        understood = spoken.decode_request(entity, lambda topic_id: f"topic {topic_id}")
        assert spoken.encode_request(asked, understood) == entity
        answer = spoken.encode_response(answered, request, response)
        heard = spoken.decode_response(answer, request)
        again = spoken.encode_response(answered, request, heard)
        assert again == answer or getattr(answer, "error_code", ErrorCode.none) is not ErrorCode.none


@pytest.mark.parametrize(("key", "version"), every_version())
def test_frames_are_the_bytes_that_were_written_by_hand(
    key: int, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded from the translations by hand, before there were declarations."""
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.0)
    spoken, (request, response) = BY_KEY[key], EXPECTED[key]
    side, asked = codec(), incoming(key, version)
    frames = {
        "answer": side.encode_response(asked, response),
        "refusal": side.encode_response(asked, m.Refused(ErrorCode.not_controller, "ask another")),
    }
    if spoken.sent == version:
        frames["request"] = side.encode_request(5, "node-1", request)
    assert {kind: frame.hex() for kind, frame in frames.items()} == GOLDEN[f"{spoken.name} {version}"]


# --- declarations that do not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_of", "says"),
    [
        (
            message(m.ListOffsetsRequest, partitions=Array("topics", m.ListOffsetsPartition)),
            "ListOffsetsTopic has no number of a partition",
        ),
        (
            message(m.ListOffsetsRequest, partitions=Rows("topics", m.ListOffsetsPartition)),
            "there is no field for ListOffsetsRequest.knows_offset_not_available",
        ),
        (
            message(m.ListOffsetsRequest, partition=Rows("topics", m.ListOffsetsPartition)),
            "ListOffsetsRequest has no field partition",
        ),
        (
            message(m.ListOffsetsRequest, partitions=Rows("topic", m.ListOffsetsPartition)),
            "there is no field for ListOffsetsRequest.partitions",
        ),
        (
            message(m.ListOffsetsRequest, partitions=Rows("topics", m.ListOffsetsResult)),
            "there is no field for ListOffsetsResult.error",
        ),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused_in_one_line(request_of: Message, says: str) -> None:
    declared = api(2, "ListOffsets", client_access(1, 7), request_of, BY_KEY[2].response)
    with pytest.raises(DeclarationError, match=says) as refused:
        declared.check()
    assert str(refused.value).startswith("ListOffsets (API key 2): ListOffsetsRequest v7: ")
    assert "\n" not in str(refused.value)


def test_what_a_version_requires_must_be_written() -> None:
    results = message(m.ProduceResult, missing=("current_leader", "topic_id"))
    response = message(m.ProduceResponse, partitions=Rows("responses", results))
    declared = api(0, "Produce", client_access(3, 9), BY_KEY[0].request, response)
    with pytest.raises(DeclarationError, match=r"nothing is written to .*record_errors"):
        declared.check()
    results = message(m.ProduceResult, constants={"log_append_tme": None})
    response = message(m.ProduceResponse, partitions=Rows("responses", results))
    declared = api(0, "Produce", client_access(3, 9), BY_KEY[0].request, response)
    with pytest.raises(DeclarationError, match="PartitionProduceResponse has no field log_append_tme"):
        declared.check()


def test_the_import_fails_when_one_does_not_fit() -> None:
    broken = (
        "from wrackline.broker.wire.translation import declarations as d;"
        "d.KAFKA_NAMES = {**d.KAFKA_NAMES, 'error': 'eror_code'};"
        "import wrackline.broker.wire.apis"
    )
    ended = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.endswith(
        "DeclarationError: Produce (API key 0): ProduceResponse v9: there is no field for ProduceResult.error"
    )
