"""The script of the page that reads whole histories: hyparquet and fzstd, bundled with our own.

They come from the npm registry by npm itself, so its settings (a mirror, a proxy) hold; what it gets is held
against the checksums in ``reader/package-lock.json``. The bundle is kept in the cache, and is made again when
one of its sources changes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from wrackline.cache import cache_folder
from wrackline.history.store.folder import whole_file
from wrackline.needs import mend

SOURCE: Final = Path(__file__).parent
FILES: Final = ("package.json", "package-lock.json", "reader.js")
DEADLINE_S: Final = 300.0
_END_OF_SCRIPT: Final = "</script"


class NoReader(Exception):
    """The script cannot be made. One line: why, and how to mend it."""


def reader() -> str:
    """The script, from the cache or made now. Raises NoReader."""
    digest = hashlib.sha256(b"".join((SOURCE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    kept = cache_folder() / f"history-reader-{digest}.js"
    try:
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="wrackline-reader-") as folder:
                made = _make(Path(folder))
                with whole_file(kept) as part:
                    part.write_text(made)
        return kept.read_text()
    except OSError as error:
        raise NoReader(f"{error.filename or kept}: {error.strerror or error}") from error


def main() -> None:
    """Fill the cache."""
    try:
        print(f"{len(reader())} characters are kept")
    except NoReader as error:
        raise SystemExit(str(error)) from error


def _make(folder: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise NoReader(f"no npm found, which gets hyparquet: {mend('pages')}; then build again")
    for name in FILES:
        shutil.copy(SOURCE / name, folder)
    _run(folder, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    esbuild = folder / "node_modules" / ".bin" / "esbuild"
    _run(folder, str(esbuild), "reader.js", "--bundle", "--minify", "--format=iife", "--outfile=out.js")
    made = (folder / "out.js").read_text()
    if _END_OF_SCRIPT in made.lower():
        raise NoReader("the bundle would end its own script element; keep that word out of reader.js")
    return made


def _run(folder: Path, *command: str) -> None:
    name = " ".join((Path(command[0]).name, command[1]))
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise NoReader(f"{name} did not end within {DEADLINE_S:g} s; check the network") from late
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line.lower()] or ["no reason given"]
        raise NoReader(f"{name} failed: {lines[0].strip()}")


if __name__ == "__main__":
    main()
