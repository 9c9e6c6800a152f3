"""The page of metrics of a node, as numbers."""

from __future__ import annotations

import urllib.request


def metrics(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    values = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name.removeprefix("wrackline_"): int(value) for name, _, value in values}
