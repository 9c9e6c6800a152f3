"""Kafka's text form of a UUID: URL-safe base64 of its 16 bytes without padding (22 characters)."""

from __future__ import annotations

import base64
from uuid import UUID


def encode_uuid(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def decode_uuid(text: str) -> UUID:
    """Raises ValueError when the text is not 16 bytes of URL-safe base64."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return UUID(bytes=raw)
