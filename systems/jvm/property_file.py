"""Property files, as Java reads them."""

from __future__ import annotations

from collections.abc import Mapping


def property_text(value: str | int | float | bool) -> str:
    """Formats a value for a properties file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def text(settings: Mapping[str, str]) -> str:
    """Formats settings as a properties file: a backslash and what begins a new line are written so that
    they are read as they are."""
    escaped = ((key, value.replace("\\", "\\\\").replace("\n", "\\n")) for key, value in settings.items())
    return "".join(f"{key}={value}\n" for key, value in escaped)
