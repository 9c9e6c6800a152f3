"""Writes the revision into wheels and archives, where no git can be asked (wrackline/release.py reads it),
and adds extension modules to a wheel when it is asked to (wrackline/compiled.py imports them)."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILE = "WRACKLINE_COMPILE"
_BUILD = """
import sys
from mypyc.build import mypycify
from setuptools import setup
folder, *sources = sys.argv[1:]
options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
made = mypycify([*options, *sources], debug_level="0", multi_file=True, group_name="wrackline")
setup(name="wrackline", packages=[], ext_modules=made, script_args=["-q", "build_ext", "--build-lib", folder])
"""


class Additions(BuildHookInterface[Any]):
    """Of every target but an editable wheel, which asks git itself and runs from its sources."""

    def dependencies(self) -> list[str]:
        """Of a pure wheel there are none."""
        return (
            [*self._compile["requires"], *_named(self.metadata.core.dependencies, "kio")]
            if self._compile
            else []
        )

    @property
    def _compile(self) -> dict[str, list[str]]:
        """What to compile, and how; empty where nobody asks for it."""
        wanted = self.target_name == "wheel" and os.environ.get(COMPILE)
        return self.build_config.target_config["compile"] if wanted else {}

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        if self._compile:
            self._add_extensions(build_data)
        release = runpy.run_path(str(Path(self.root, "wrackline", "release.py")))
        revision = release["revision"]()
        if revision:
            self._folder = tempfile.TemporaryDirectory(prefix="wrackline-revision-")
            written = Path(self._folder.name, "revision.txt")
            written.write_text(f"{revision}\n", encoding="utf-8")
            build_data["force_include"][str(written)] = "wrackline/revision.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        del version, build_data, artifact_path
        for name in ("_folder", "_compiled"):
            if hasattr(self, name):
                getattr(self, name).cleanup()

    def _add_extensions(self, build_data: dict[str, Any]) -> None:
        """Without a compiler the wheel is a pure one, with one line that says so."""
        missing = _missing()
        if missing:
            self.app.display_warning(f"{COMPILE}: nothing is compiled: {missing}")
            return
        self._compiled = tempfile.TemporaryDirectory(prefix="wrackline-compiled-")
        extensions = compile_modules(Path(self.root), Path(self._compiled.name), self._compile)
        build_data["force_include"][str(extensions)] = "wrackline/extensions"
        build_data["pure_python"], build_data["infer_tag"] = False, True


def _named(requirements: list[str], name: str) -> list[str]:
    return [one for one in requirements if one.startswith(name)]


def _missing() -> str:
    """Says what a compiler needs and is not there; empty if all is."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return f"no compiler {compiler} (package gcc)"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return "" if header.is_file() else f"no {header} (package python3-dev)"


def compile_modules(root: Path, folder: Path, settings: dict[str, list[str]]) -> Path:
    """Returns the folder with the extension modules and their manifest. Raises SystemExit with the end of
    what mypyc and the compiler printed."""
    package, extensions = folder / "wrackline", folder / "extensions"
    shutil.copytree(root / "wrackline", package, ignore=shutil.ignore_patterns("__pycache__"))
    chosen = {file for pattern in settings["modules"] for file in package.glob(pattern)}
    chosen -= {package / name for name in settings["except"]}
    sources = sorted(str(file.relative_to(folder)) for file in chosen if file.name != "__init__.py")
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, str(extensions), *sources],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{COMPILE}: {done.stdout[-3000:]}")
    made = {str(file.relative_to(extensions)): file for file in extensions.rglob("*") if file.is_file()}
    read = (file for room in settings["reads"] for file in (package / room).rglob("*.py"))
    manifest = {
        "modules": {name.partition(".")[0].replace("/", "."): name for name in sorted(made)},
        "sources": {
            str(file.relative_to(package)): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in sorted(read)
        },
    }
    (extensions / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return extensions
