"""Skeletons of parts: the parts of docs/examples/wrackline-example, each alone and under another name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from wrackline.plugins.registry import Group, names

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 40
_EXAMPLE = "wrackline-example"


class SkeletonError(Exception):
    """Raised when no skeleton was written. One line: why, and what to do."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One part of the example."""

    group: Group
    name: str
    """As a specification names it."""
    what: str
    attribute: str
    """Of its module, for the entry point; empty: the module itself."""
    use: str
    """How a specification uses it."""


KINDS: Mapping[str, _Pattern] = {
    "fault": _Pattern(
        Group.FAULTS, "one-core", "a fault", "OneCoreSpec", "nemesis: {random: {faults: [NAME]}}"
    ),
    "workload": _Pattern(
        Group.WORKLOADS, "many-readers", "a workload", "ManyReadersWorkload", "workload: {name: NAME}"
    ),
    "check": _Pattern(Group.CHECKS, "slow-write", "a check", "", "contract: {expected: [NAME]}"),
    "system": _Pattern(
        Group.SYSTEMS, "small-segments", "a system", "SmallSegmentsSpec", "system: {kind: NAME}"
    ),
    "fleet": _Pattern(Group.FLEETS, "netns-xfs", "a fleet", "NetnsXfsSpec", "fleet: {kind: NAME}"),
}


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The files that were written."""

    folder: Path
    files: tuple[Path, ...]
    use: str
    """How a specification uses the part."""


def write(kind: str, name: str, into: Path) -> Skeleton:
    """A package ``wrackline-NAME`` below ``into``, with one part that works and its test. Raises
    SkeletonError for a name that is none or that is taken, for a folder that exists, and where nothing can be
    written."""
    pattern = KINDS[kind]
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise SkeletonError(
            f"{name!r} is no name for a {kind}: at most {_LONGEST} of a-z, 0-9 and -, such as my-{kind}"
        )
    if name in names(pattern.group):
        raise SkeletonError(
            f"there is a {kind} {name!r} already (`wrackline list parts` lists all); take another name"
        )
    folder = into / f"wrackline-{name}"
    contents = _contents(kind, pattern, name)
    try:
        folder.mkdir(parents=True)
        for path, text in contents.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except FileExistsError as there:
        raise SkeletonError(f"{folder} exists, and is left as it is; take another name") from there
    except OSError as error:
        raise SkeletonError(f"{folder}: cannot be written: {error.strerror}; see --into") from error
    return Skeleton(folder, tuple(folder / path for path in contents), pattern.use.replace("NAME", name))


def _contents(kind: str, pattern: _Pattern, name: str) -> dict[str, str]:
    source, package = examples_dir() / _EXAMPLE, f"wrackline_{_snake(name)}"

    def renamed(text: str) -> str:
        for old, new in (
            ("wrackline_example", package),
            (_EXAMPLE, f"wrackline-{name}"),
            (pattern.name, name),
            (_camel(pattern.name), _camel(name)),
            (_snake(pattern.name), _snake(name)),
        ):
            text = text.replace(old, new)
        return text

    def taken(path: str) -> str:
        return renamed((source / path).read_text(encoding="utf-8"))

    value = f"{package}.{kind}" + (f":{renamed(pattern.attribute)}" if pattern.attribute else "")
    return {
        "pyproject.toml": _PYPROJECT.format(
            name=name, package=package, kind=kind, what=pattern.what, group=pattern.group, value=value
        ),
        f"src/{package}/__init__.py": f'"""{pattern.what.capitalize()} for Wrackline: {name}."""\n',
        f"src/{package}/{kind}.py": taken(f"src/wrackline_example/{kind}.py"),
        f"tests/test_{kind}.py": taken(f"tests/test_{kind}.py"),
    }


_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27,<2"]
build-backend = "hatchling.build"

[project]
name = "wrackline-{name}"
version = "0.1.0"
description = "{what} for Wrackline: {name}"
requires-python = ">=3.11,<3.15"
dependencies = ["wrackline"]

# The door. What stands on the left is the name in a specification.
[project.entry-points."{group}"]
{name} = "{value}"

[tool.hatch.build.targets.wheel]
packages = ["src/{package}"]
"""


def _snake(name: str) -> str:
    return name.replace("-", "_")


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def examples_dir() -> Path:
    """The examples of docs/, in a checkout or in an installed wheel."""
    package = Path(str(files("wrackline")))
    installed, checkout = package / "examples", package.resolve().parent / "docs" / "examples"
    return installed if installed.is_dir() else checkout
