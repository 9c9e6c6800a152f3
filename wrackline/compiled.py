"""Extension modules that a wheel may bring, in place of the sources that they were compiled from.

The build of a wheel (hatch_build.py) compiles the simulator and the broker's core with mypyc, on request, and
puts the result into the folder ``extensions``; the sources stay where they are. A process takes all of them
or none, since they call each other below Python. It takes none where one of the sources is another one now,
with ``WRACKLINE_PURE=1`` in the environment, and where traces are judged: a replay hands the invariants a
world that is made of traces, and a compiled method takes only what its annotations say.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PURE = "WRACKLINE_PURE"
"""Set to anything in the environment, it has every module run from its source."""
MANIFEST = "manifest.json"
INTERPRETED = frozenset({"wrackline.harness.run", "wrackline.simulator.trace_check"})
"""Packages that judge traces: a process that imports one of them runs from the sources."""


class _Extensions(MetaPathFinder):
    """Finds the modules of a manifest. Whether they may be used is looked at when the first is imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        self._modules: Mapping[str, str] = manifest["modules"]
        self._sources: Mapping[str, str] = manifest["sources"]
        """SHA-256 of each, by path below the package."""
        self._usable: bool | None = None

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the finder's protocol
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname in INTERPRETED:
            if self._usable:
                raise ImportError(f"{fullname} does not work with extension modules: set {PURE}=1")
            self._usable = False
        if fullname not in self._modules:
            return None
        if self._usable is None:
            problem = self._problem()
            self._usable = not problem
            if problem:
                line = f"wrackline: runs from its sources: {problem}; install the wheel again"
                print(line, file=sys.stderr)
        file = self._folder / self._modules[fullname]
        return spec_from_file_location(fullname, file) if self._usable else None

    def _problem(self) -> str:
        """Says why the extension modules may not be used; empty if they may."""
        for file in self._modules.values():
            suffix = "".join(Path(file).suffixes)
            if suffix not in EXTENSION_SUFFIXES or not (self._folder / file).is_file():
                return f"{self._folder / file} is not there, or is not of this Python"
        for name, expected in self._sources.items():
            source = self._folder.parent / name
            if not source.is_file() or sha256(source.read_bytes()).hexdigest() != expected:
                return f"{source} is not what the extension modules were compiled from"
        return ""


def install(folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Lets Python find the extension modules of a folder, if there are any."""
    if not environment.get(PURE) and (folder / MANIFEST).is_file():
        sys.meta_path.insert(0, _Extensions(folder))
