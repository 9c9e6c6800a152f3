"""Distributions as pip leaves them, without pip."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wrackline.plugins import registry


def installed(
    site: Path,
    name: str,
    version: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
) -> None:
    """``points``: kind in the plural -> name -> value. ``modules``: name -> source."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for kind, each in points.items()
        for line in (f"[wrackline.{kind}]", *(f"{key} = {value}" for key, value in each.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source)
    registry.forget()
