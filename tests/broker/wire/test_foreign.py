"""What comes to a Kafka port by mistake is named, and what Kafka's clients send is taken for nothing else."""

from __future__ import annotations

import struct
from pathlib import Path

import orjson
import pytest

from wrackline.broker.wire.framing import FrameReader, foreign
from wrackline.broker.wire.schema import WireError

FRAMES = Path(__file__).parent / "frames"
KNOWN = {
    b"\x16\x03\x01\x02\x00\x01": "a TLS hello",
    b"\x15\x03\x03\x00\x02\x02\x46": "a TLS alert",
    b"GET /metrics HTTP/1.1\r\n": "an HTTP message ('GET /metrics HTTP/1.1')",
    b"POST / HTTP/1.0\r\n": "an HTTP message ('POST / HTTP/1.0')",
    b"HTTP/1.1 400 Bad Request\r\n": "an HTTP message ('HTTP/1.1 400 Bad Request')",
    b"mntr\n": "the ZooKeeper command 'mntr'",
    b"SSH-2.0-x\r\n": "an SSH greeting ('SSH-2.0-x')",
    b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n": "a header of the PROXY protocol ('PROXY TCP4 ",
}


@pytest.mark.parametrize("begin", KNOWN)
def test_it_is_named_with_a_way_out(begin: bytes) -> None:
    with pytest.raises(WireError) as wrong:
        list(FrameReader(104_857_600).feed(begin))
    assert str(wrong.value).startswith(f"what came is {KNOWN[begin]}")
    assert ", and this " in str(wrong.value)


def test_a_sender_writes_no_lines_into_the_log() -> None:
    told = foreign(b"GET /\x0b\x1b[2J\r\x85" + b"x" * 500 + b"\nERROR all is lost")
    assert told is not None
    assert told.isprintable()
    assert "lost" not in told
    assert len(told) < 250


def test_no_frame_of_a_client_or_a_node_is_taken_for_another_protocol() -> None:
    seen = 0
    for path in FRAMES.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            frame = bytes.fromhex(orjson.loads(line)["request"])
            assert foreign(struct.pack(">i", len(frame)) + frame) is None
            seen += 1
    assert seen > 100
