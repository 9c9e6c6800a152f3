"""Lists the installed anomalies, by the source files of their checks. The register of checks is not asked:
what was taken out of it, or never got into it, shows as the difference."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from wrackline.plugins.registry import Group, entries

_OURS = Path(__file__).parents[1] / "anomalies"


@cache
def installed() -> tuple[str, ...]:
    """Name of each anomaly that some file declares by ``check`` or ``found_by``, in our folder or in a module
    that an entry point names. A name that is no literal is not seen. Raises OSError and SyntaxError."""
    files = [*_files_of(_OURS)]
    for entry in entries(Group.CHECKS):
        spec = find_spec(entry.module)
        places = [] if spec is None else spec.submodule_search_locations or [spec.origin or ""]
        files += [file for place in places for file in _files_of(Path(place))]
    result = [name for file in dict.fromkeys(files) for name in _declared(file)]
    return tuple(dict.fromkeys(result))


def _files_of(place: Path) -> list[Path]:
    place = place.resolve()
    return sorted(place.rglob("*.py")) if place.is_dir() else [place] if place.suffix == ".py" else []


def _declared(file: Path) -> Iterator[str]:
    source = file.read_bytes()
    if b"check(" not in source and b"found_by(" not in source:
        return  # to parse the others would take longer than to judge a small run
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name("check") | ast.Attribute(attr="check"), args=[one, *_]):
                yield from _literal(one)
            case ast.Call(
                func=ast.Name("found_by") | ast.Attribute(attr="found_by"), args=[_, _, ast.Dict(keys=names)]
            ):
                for name in names:
                    yield from _literal(name)


def _literal(name: ast.expr | None) -> Iterator[str]:
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield name.value
