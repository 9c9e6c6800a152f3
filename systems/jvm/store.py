"""The versions of Apache Kafka that are installed on this machine, each in a folder of its own:

=====================  ==================================================================================
``libs/*.jar``         the server and all it needs
``formatted/*.json``   what an empty data folder is given, for each set of features
``kafka.jsa``          the JVM's archive of loaded classes: with it a server starts three times as fast
``settings.json``      names of the settings that brokers and topics of this version know
``release.json``       version, origin, Java, and the SHA-256 of every jar; written last
=====================  ==================================================================================

The folder ``zookeeper`` has the versions of ZooKeeper that those before 3 need, in the same way.

Hosts of the netns fleet see the folder at the same path, and the archive needs that: it knows its jars by
path, size and time. A folder without release.json was not finished and is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from wrackline.maven import MavenFailed
from wrackline.systems.base import DeployError

VARIABLE = "WRACKLINE_KAFKA_DIR"
DEFAULT = Path("/var/lib/wrackline/kafka")
_INVISIBLE = ("/tmp", "/var/tmp", "/run", "/root", "/home")
"""Folders that hosts of the netns fleet have empty, or of their own."""
RELEASE = "release.json"


@dataclass(frozen=True, slots=True)
class Release:
    """One installed version."""

    version: str
    folder: Path
    origin: str
    """Where its jars came from."""
    java: str
    """The JVM that made its archive of classes."""
    sha256: Mapping[str, str]
    """Name of each jar -> its checksum."""
    program: str = "Kafka"
    """What it is a version of: ``Kafka`` or ``ZooKeeper``."""

    @property
    def title(self) -> str:
        """``Kafka 4.4.0``."""
        return f"{self.program} {self.version}"

    @property
    def jars(self) -> tuple[Path, ...]:
        """Returns the jars in the order of the class path."""
        return tuple(self.folder / "libs" / name for name in sorted(self.sha256))

    @property
    def classpath(self) -> str:
        return os.pathsep.join(map(str, self.jars))

    @property
    def archive(self) -> Path:
        """The JVM's archive of loaded classes; a JVM that cannot use it starts without."""
        return self.folder / "kafka.jsa"

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())

    def verify(self) -> None:
        """Every jar is what it was when it was installed. Raises DeployError."""
        for jar in self.jars:
            if not jar.is_file() or _sha256(jar) != self.sha256[jar.name]:
                again = (
                    f"`wrackline get kafka --remove {self.version}`, then `wrackline get kafka "
                    f"{self.version}`"
                    if self.program == "Kafka"
                    else f"remove {self.folder}, and the next run brings it again"
                )
                raise DeployError(f"{jar} is not what was installed: {again}")


class Store:
    """The folder of all versions. Two processes may use it at the same time."""

    def __init__(self, root: Path | None = None, program: str = "Kafka") -> None:
        self.root = root or Path(os.environ.get(VARIABLE) or DEFAULT)
        self._program = program

    @property
    def zookeeper(self) -> Store:
        """Returns the store of ZooKeeper's own versions: a folder beside those of Kafka's."""
        return Store(self.root / "zookeeper", "ZooKeeper")

    def releases(self) -> tuple[Release, ...]:
        """Returns the releases that are complete, oldest first."""
        folders = self.root.iterdir() if self.root.is_dir() else ()
        result = (self.find(folder.name) for folder in folders if not folder.name.startswith("."))
        return tuple(sorted(filter(None, result), key=lambda one: _numbers(one.version)))

    def find(self, version: str) -> Release | None:
        folder = self.root / version
        try:
            said = orjson.loads((folder / RELEASE).read_bytes())
            return Release(
                said["version"], folder, said["origin"], said["java"], said["sha256"], self._program
            )
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            return None

    @contextlib.contextmanager
    def locked(self, version: str) -> Iterator[None]:
        """One process at a time installs or removes a version; another waits. Raises DeployError when the
        folder cannot be written, or could not be seen by hosts."""
        root = str(self.root.resolve())
        # Who is not root makes no hosts but those of the fleet process, which see what he sees.
        if os.geteuid() == 0 and any(root == one or root.startswith(one + "/") for one in _INVISIBLE):
            raise DeployError(
                f"{VARIABLE}={self.root}: hosts do not see this machine's {', '.join(_INVISIBLE)}; "
                f"choose another folder, {DEFAULT} for example"
            )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            file = (self.root / f".{version}.lock").open("a")
        except OSError as error:
            raise DeployError(
                f"{self.root} cannot be written: {error.strerror}; use sudo, or name another folder with "
                f"{VARIABLE}"
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def scratch(self, version: str) -> Path:
        """An empty folder for what is fetched, to be called with the lock held. It stays after a failure: the
        log of Maven is in it."""
        folder = self.root / f".fetch-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def installed(
        self, version: str, java: Callable[[], str], make: Callable[[Path, str], Release]
    ) -> Release:
        """The version; if it is not here, what ``make`` makes of it in a scratch folder while other processes
        wait. ``java`` says before that which JVM there is. Raises DeployError, in one line."""
        if (result := self.find(version)) is not None:
            return result
        jvm = java()
        with self.locked(version):
            if (result := self.find(version)) is not None:
                return result
            try:
                scratch = self.scratch(version)
                release = make(scratch, jvm)
                self.finish(release)
                shutil.rmtree(scratch)
            except MavenFailed as error:
                raise DeployError(f"{self._program} {version} cannot be installed: {error}") from error
            except OSError as error:
                what = f"{error.filename or self.root}: {error.strerror or error}"
                raise DeployError(f"{self._program} {version} cannot be installed: {what}") from error
        return release

    def begin(self, version: str, jars: Mapping[str, Path]) -> Path:
        """A new folder of the version with these jars, by name; to be called with the lock held. What was
        left there unfinished is removed."""
        folder = self.root / version
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "libs").mkdir(parents=True)
        for name, jar in jars.items():
            shutil.copyfile(jar, folder / "libs" / name)
        return folder

    def unfinished(self, folder: Path, version: str, origin: str, java: str) -> Release:
        """The release in a folder that ``begin`` made; nobody finds it before ``finish``."""
        sums = {jar.name: _sha256(jar) for jar in sorted((folder / "libs").glob("*.jar"))}
        return Release(version, folder, origin, java, sums, self._program)

    def finish(self, release: Release) -> None:
        """Marks a release as installed."""
        said: dict[str, Any] = {
            "version": release.version,
            "origin": release.origin,
            "java": release.java,
            "sha256": dict(release.sha256),
        }
        fresh = release.folder / f"{RELEASE}.new"
        fresh.write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2) + b"\n")
        fresh.replace(release.folder / RELEASE)

    def remove(self, version: str) -> bool:
        """False when there was nothing of it. Raises DeployError."""
        folder = self.root / version
        with self.locked(version):
            if not folder.is_dir():
                return False
            (folder / RELEASE).unlink(missing_ok=True)  # first: what is half removed is not installed
            shutil.rmtree(folder)
        return True


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
