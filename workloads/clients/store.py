"""The versions of kafka-clients that are installed on this machine, each in a folder of its own: its jars,
and ``client.json``, written last, with the checksum of each.

They lie beside the releases of the server, not in them: clients run on this machine alone, need a tenth of a
server's jars, and may be of another version than the cluster.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from wrackline.maven import Artifact, MavenFailed, resolve
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.versions import checked

VARIABLE = "WRACKLINE_KAFKA_CLIENTS_DIR"
DEFAULT = Path("/var/lib/wrackline/kafka-clients")
CLIENT = "client.json"
_SILENT = Artifact("org.slf4j", "slf4j-nop", "1.7.36")
"""What the library logs is for nobody: what it reports, it reports to who calls it."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One version of the library."""

    version: str
    folder: Path
    sha256: Mapping[str, str]
    """Name of each jar -> its checksum."""

    @property
    def jars(self) -> tuple[Path, ...]:
        return tuple(self.folder / name for name in sorted(self.sha256))

    def verify(self) -> None:
        """Every jar is what it was when it was installed. Raises Unavailable."""
        for jar in self.jars:
            if not jar.is_file() or _sha256(jar) != self.sha256[jar.name]:
                raise Unavailable(
                    f"{jar} is not what was installed: "
                    f"`wrackline get kafka --remove --client {self.version}`, then run again"
                )


class ClientStore:
    """The folder of all versions. Two processes may use it at the same time."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(os.environ.get(VARIABLE) or DEFAULT)

    def find(self, version: str) -> Installed | None:
        folder = self.root / version
        try:
            return Installed(version, folder, orjson.loads((folder / CLIENT).read_bytes())["sha256"])
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            return None

    def all(self) -> tuple[Installed, ...]:
        folders = sorted(self.root.iterdir()) if self.root.is_dir() else ()
        return tuple(found for folder in folders if (found := self.find(folder.name)) is not None)

    def install(
        self,
        version: str,
        *,
        repositories: Sequence[str] = (),
        say: Callable[[str], None] = lambda _line: None,
    ) -> Installed:
        """The version, installed now if it was not. ``repositories``: URLs asked before Maven Central.
        Raises Unavailable, ValueError."""
        checked(version)
        if (result := self.find(version)) is not None:
            return result
        try:
            with self._locked(version):
                return self.find(version) or self._install(version, repositories, say)
        except MavenFailed as error:
            raise Unavailable(f"kafka-clients {version} cannot be installed: {error}") from error
        except OSError as error:
            what = f"{error.filename or self.root}: {error.strerror or error}"
            raise Unavailable(
                f"kafka-clients {version} cannot be installed: {what}; use sudo, or name another folder with "
                f"{VARIABLE}"
            ) from error

    def _install(self, version: str, repositories: Sequence[str], say: Callable[[str], None]) -> Installed:
        folder = self.root / version
        shutil.rmtree(folder, ignore_errors=True)  # unfinished
        expected = (Artifact("org.apache.kafka", "kafka-clients", version), _SILENT)
        otherwise = f"or copy the folder of another machine to {folder}"
        jars = resolve(folder / "maven", expected, first=repositories, otherwise=otherwise, progress=say)
        for jar in jars:
            shutil.copyfile(jar, folder / jar.name)
        sums = {jar.name: _sha256(folder / jar.name) for jar in jars}
        fresh = folder / f"{CLIENT}.new"
        fresh.write_bytes(orjson.dumps({"sha256": sums}, option=orjson.OPT_INDENT_2) + b"\n")
        shutil.rmtree(folder / "maven")
        fresh.replace(folder / CLIENT)
        return Installed(version, folder, sums)

    def remove(self, version: str) -> bool:
        """False when there was nothing of it. Raises Unavailable."""
        folder = self.root / version
        if not folder.is_dir():
            return False
        try:
            with self._locked(version):
                (folder / CLIENT).unlink(missing_ok=True)  # first: what is half removed is not installed
                shutil.rmtree(folder)
        except OSError as error:
            raise Unavailable(f"{folder} cannot be removed: {error.strerror or error}") from error
        return True

    @contextmanager
    def _locked(self, version: str) -> Iterator[None]:
        """One process at a time installs or removes a version; another waits. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / f".{version}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
