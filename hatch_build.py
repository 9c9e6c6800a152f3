"""Writes the revision into wheels and archives, where no git can be asked (wrackline/release.py reads it)."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Revision(BuildHookInterface[Any]):
    """For every target but an editable wheel, which asks git itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        release = runpy.run_path(str(Path(self.root, "wrackline", "release.py")))
        revision = release["revision"]()
        if revision:
            self._folder = tempfile.TemporaryDirectory(prefix="wrackline-revision-")
            written = Path(self._folder.name, "revision.txt")
            written.write_text(f"{revision}\n", encoding="utf-8")
            build_data["force_include"][str(written)] = "wrackline/revision.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        if hasattr(self, "_folder"):
            self._folder.cleanup()
