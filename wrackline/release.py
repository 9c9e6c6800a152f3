"""The release of this Wrackline: its version, and the revision that it was built or checked out from."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

NAME = "wrackline"
UNKNOWN = "source"
GIT_S = 10.0
_ROOT = Path(__file__).resolve().parents[1]
_WRITTEN = Path(__file__).with_name("revision.txt")
"""Written into wheels and archives when they are built (hatch_build.py)."""


@cache
def checkout() -> dict[str, Any] | None:
    """The table ``project`` of our pyproject.toml; None where we are installed without one."""
    try:
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    return project if project.get("name") == NAME else None


def version() -> str:
    """``1.0.0``; ``source`` where nothing says it."""
    own = checkout()
    if own is not None:
        return str(own.get("version", UNKNOWN))
    try:
        return distribution(NAME).version
    except PackageNotFoundError:
        return UNKNOWN


@cache
def revision() -> str:
    """The commit, in 8 or more hexadecimal digits, with ``.dirty`` where tracked files differ from it. Empty
    where nobody can say: no git, or an archive without one."""
    if _WRITTEN.is_file():
        return _WRITTEN.read_text(encoding="utf-8").strip()
    if checkout() is None or not (_ROOT / ".git").exists():
        return ""
    # A checkout may belong to somebody else; it is only read.
    command = ["git", "-c", f"safe.directory={_ROOT}", "-C", str(_ROOT), "--no-optional-locks"]
    command += ["describe", "--always", "--exclude=*", "--abbrev=8", "--dirty=.dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def full_version() -> str:
    """``1.0.0+g5ab508e1``, as PEP 440 writes a version with a revision; without one where none is known."""
    return f"{version()}+g{revision()}" if revision() else version()
