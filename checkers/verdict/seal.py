"""The seal of a verdict: digests of the verdict itself and of what it was made from.

It shows that a file was changed by accident or by hand since the run was judged. It is no signature: whoever
can write the files can also make a new seal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from wrackline.history.store.folder import PARQUET, RUN_JSON

if TYPE_CHECKING:
    from upath import UPath  # late: whoever only asks for --help would wait for it

SEAL: Final = "seal"
"""Key of verdict.json: {"verdict": digest, "files": {name: digest}}."""
SEALED: Final = (RUN_JSON, "spec.yaml")
UNSEALED: Final = (
    "not sealed: an earlier version judged the run, and nobody can tell whether it was changed since"
)
_TAIL: Final = 8
"""A Parquet file ends with the length of its footer, and four bytes of magic."""


def sealed(folder: Path, verdict: Mapping[str, Any]) -> dict[str, Any]:
    """The verdict with its seal. Raises OSError."""
    files = {name: digest for name, digest in _digests(folder) if digest}
    return {**verdict, SEAL: {"verdict": _of_verdict(verdict), "files": files}}


def why_broken(folder: Path | UPath, verdict: Mapping[str, Any]) -> str:
    """Says which file was changed since the run was judged, and how to mend it, in one line; empty:
    nothing, or the verdict has no seal. A file that is gone was not edited. Raises OSError."""
    seal = verdict.get(SEAL)
    if seal is None:
        return ""
    files = seal.get("files") if isinstance(seal, dict) else None
    if not isinstance(files, dict):
        return _edited("verdict.json", folder)
    if seal.get("verdict") != _of_verdict(verdict):
        return _edited("verdict.json", folder)
    for name, digest in _digests(folder):
        if digest and files.get(name) not in (None, digest):
            return _edited(name, folder)
    return ""


def _edited(name: str, folder: Path | UPath) -> str:
    return (
        f"{name} was changed after the run had been judged, so verdict.json is not its verdict: "
        f"`wrackline analyze {folder.name}` judges it again"
    )


def _of_verdict(verdict: Mapping[str, Any]) -> str:
    plain = {name: value for name, value in verdict.items() if name != SEAL}
    return sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _digests(folder: Path | UPath) -> Iterator[tuple[str, str]]:
    """File and digest; empty where the file is not there. A history that lies elsewhere is not asked."""
    for name in SEALED:
        try:
            yield name, sha256((folder / name).read_bytes()).hexdigest()
        except FileNotFoundError:
            yield name, ""
    here = getattr(folder, "protocol", "") in ("", "file", "local")
    yield PARQUET, _of_history(folder / PARQUET) if here else ""


def _of_history(file: Path | UPath) -> str:
    """Returns the digest of the history's footer, which has place, size and statistics of every page; each
    page has a checksum of its own."""
    try:
        with file.open("rb") as history:
            size = history.seek(0, 2)
            history.seek(max(0, size - _TAIL))
            length = int.from_bytes(history.read(4), "little")
            history.seek(max(0, size - _TAIL - length))
            return sha256(history.read()).hexdigest()
    except FileNotFoundError:
        return ""
