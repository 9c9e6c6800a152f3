"""The history's Arrow schema: one row per event (docs/architecture.md section 7)."""

from __future__ import annotations

import pyarrow as pa

METADATA_KEY = b"wrackline"

RECORD = pa.struct(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
    ]
)

SCHEMA = pa.schema(
    [
        pa.field("test_id", pa.string(), nullable=False),
        pa.field("index", pa.int64(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("process", pa.int32(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("f", pa.string(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("value", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("high_watermark", pa.int64()),
        pa.field("records", pa.list_(RECORD)),
        pa.field("error", pa.string()),
        pa.field("node", pa.string()),
        pa.field("latency_ns", pa.int64()),
        pa.field("extra", pa.string()),
    ]
)
