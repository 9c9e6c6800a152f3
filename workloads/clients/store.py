"""The versions of client libraries that are installed on this machine, each in a folder of its own: its files
(jars of kafka-clients, by Maven; the wheel of confluent-kafka, by pip), and ``client.json``, written last,
with the checksum of each.

They lie beside the releases of the server, not in them: clients run on this machine alone, need a tenth of a
server's jars, and may be of another version than the cluster.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from wrackline.maven import Artifact, MavenFailed, resolve
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.versions import KAFKA_CLIENTS, LIBRDKAFKA, Package

VARIABLE = "WRACKLINE_KAFKA_CLIENTS_DIR"
DEFAULT = Path("/var/lib/wrackline/kafka-clients")
CLIENT = "client.json"
_SILENT = Artifact("org.slf4j", "slf4j-nop", "1.7.36")
"""What the library logs is for nobody: what it reports, it reports to who calls it."""
_SAYS = Artifact("org.slf4j", "slf4j-simple", "1.7.36")
"""What an application logs goes to its standard error."""


@dataclass(frozen=True, slots=True)
class Installed:
    """One version of the library."""

    package: Package
    version: str
    folder: Path
    sha256: Mapping[str, str]
    """Path of each file below the folder -> its checksum."""

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(self.folder / name for name in sorted(self.sha256))

    def verify(self) -> None:
        """Checks that every file is what it was when it was installed. Raises Unavailable."""
        for name, sum_ in self.sha256.items():
            file = self.folder / name
            if not file.is_file() or _sha256(file) != sum_:
                raise Unavailable(
                    f"{file} is not what was installed: "
                    f"`wrackline get kafka --remove {self.package.option} {self.version}`, then run again"
                )


class ClientStore:
    """The folder of all versions of one library. Two processes may use it at the same time."""

    def __init__(self, root: Path | None = None, *, package: Package = KAFKA_CLIENTS) -> None:
        self.root = root or Path(os.environ.get(VARIABLE) or DEFAULT)
        self._package = package
        self._prefix = package.prefix

    def find(self, version: str) -> Installed | None:
        folder = self._folder(version)
        try:
            sums = orjson.loads((folder / CLIENT).read_bytes())["sha256"]
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            return None
        return Installed(self._package, version, folder, sums)

    def all(self) -> tuple[Installed, ...]:
        folders = sorted(self.root.glob(f"{self._prefix}[0-9]*"))
        versions = (folder.name.removeprefix(self._prefix) for folder in folders)
        return tuple(found for version in versions if (found := self.find(version)) is not None)

    def _folder(self, version: str) -> Path:
        return self.root / f"{self._prefix}{version}"

    def install(
        self,
        version: str,
        *,
        repositories: Sequence[str] = (),
        say: Callable[[str], None] = lambda _line: None,
    ) -> Installed:
        """The version, installed now if it was not. ``repositories``: URLs asked before Maven Central, or
        PyPI. Raises Unavailable, ValueError."""
        name = self._package.name
        self._package.check(version)
        if (result := self.find(version)) is not None:
            return result
        try:
            with self._locked(version):
                return self.find(version) or self._install(version, repositories, say)
        except MavenFailed as error:
            raise Unavailable(f"{name} {version} cannot be installed: {error}") from error
        except OSError as error:
            what = f"{error.filename or self.root}: {error.strerror or error}"
            raise Unavailable(
                f"{name} {version} cannot be installed: {what}; use sudo, or name another folder with "
                f"{VARIABLE}"
            ) from error

    def _install(self, version: str, repositories: Sequence[str], say: Callable[[str], None]) -> Installed:
        folder = self._folder(version)
        shutil.rmtree(folder, ignore_errors=True)  # unfinished
        folder.mkdir()
        try:
            if self._package is LIBRDKAFKA:
                _wheel(folder, version, repositories, say)
            else:
                _jars(self._package, folder, version, repositories, say)
        except (MavenFailed, Unavailable):
            shutil.rmtree(folder)
            raise
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        sums = {str(file.relative_to(folder)): _sha256(file) for file in files}
        fresh = folder / f"{CLIENT}.new"
        fresh.write_bytes(orjson.dumps({"sha256": sums}, option=orjson.OPT_INDENT_2) + b"\n")
        fresh.replace(folder / CLIENT)
        return Installed(self._package, version, folder, sums)

    def remove(self, version: str) -> bool:
        """False when there was nothing of it. Raises Unavailable."""
        folder = self._folder(version)
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
        with (self.root / f".{self._prefix}{version}.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _jars(
    package: Package,
    folder: Path,
    version: str,
    repositories: Sequence[str],
    say: Callable[[str], None],
) -> None:
    logger = _SILENT if package is KAFKA_CLIENTS else _SAYS
    expected = (Artifact("org.apache.kafka", package.name, version), logger)
    otherwise = f"or copy the folder of another machine to {folder}"
    for jar in resolve(folder / "maven", expected, first=repositories, otherwise=otherwise, progress=say):
        shutil.copyfile(jar, folder / jar.name)
    shutil.rmtree(folder / "maven")


def _wheel(folder: Path, version: str, repositories: Sequence[str], say: Callable[[str], None]) -> None:
    """Raises Unavailable."""
    say(f"confluent-kafka {version} is fetched by pip")
    first = [f"--index-url={repositories[0]}"] if repositories else []
    done = subprocess.run(
        (
            *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"),
            *("--disable-pip-version-check", "--root-user-action=ignore", "--no-compile", *first),
            *(f"--target={folder}", f"confluent-kafka=={version}"),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.splitlines()
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines
        why = errors[-1] if errors else f"pip ended with {done.returncode}"
        raise Unavailable(
            f"confluent-kafka {version} cannot be installed: {why}; or copy the folder of another machine to "
            f"{folder}"
        )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
