"""Installing a version of Apache Kafka on this machine: jars by Maven or from a release's own archive, then
what the server is asked once (wrackline.systems.kafka.server)."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from wrackline.maven import Artifact, resolve
from wrackline.systems.base import DeployError
from wrackline.systems.jvm.java import java_version
from wrackline.systems.jvm.store import Release, Store
from wrackline.systems.kafka.releases import artifacts, on_zookeeper, parsed
from wrackline.systems.kafka.server import formatted, learn_settings, make_archive
from wrackline.systems.zookeeper_door import install_zookeeper

_SERVER = re.compile(r"kafka_2\.\d+-(\d+(?:\.\d+){2,3})\.jar$")


def silent(_line: str) -> None:
    """Says nothing."""


def install(
    store: Store,
    version: str,
    *,
    repositories: Sequence[str] = (),
    tarball: Path | None = None,
    say: Callable[[str], None] = silent,
) -> Release:
    """The version, installed now if it was not. ``repositories``: URLs asked before Maven Central;
    ``tarball``: the release as Apache publishes it, instead of Maven. Another process that installs the same
    is waited for. With a version that needs ZooKeeper that is installed, too. Raises DeployError, in one
    line."""
    try:
        expected = artifacts(version)
    except ValueError as error:
        raise DeployError(str(error)) from error
    beside = None
    if on_zookeeper(version):
        if tarball is not None:
            raise DeployError(f"{tarball}: Kafka {version} is taken from Maven alone: name its version")
        beside = install_zookeeper(store, repositories=repositories, say=say)

    def made(scratch: Path, java: str) -> Release:
        if tarball is not None:
            jars, origin = _unpacked(tarball, scratch), tarball.name
        else:
            jars, origin = _resolved(version, expected, scratch, repositories, say)
        folder = store.begin(version, jars)
        release = store.unfinished(folder, version, origin, java)
        say(f"Kafka {version}: {len(jars)} jars; the server is asked for its settings")
        learn_settings(release)
        formatted(release, {})
        say(f"Kafka {version}: one start, so that the JVM keeps its classes for later ones")
        make_archive(release, beside)
        return release

    return store.installed(version, java_version, made)


def _resolved(
    version: str,
    wanted: Sequence[Artifact],
    scratch: Path,
    repositories: Sequence[str],
    say: Callable[[str], None],
) -> tuple[dict[str, Path], str]:
    """Jars by name, and where they came from. Raises MavenFailed."""
    otherwise = f"or give the release itself: wrackline get kafka kafka_2.13-{version}.tgz"
    jars = resolve(scratch, wanted, first=repositories, otherwise=otherwise, progress=say)
    return {jar.name: jar for jar in jars}, ", ".join(repositories) or "Maven"


def version_of(tarball: Path) -> str:
    """Returns which version a release's archive holds. Raises DeployError."""
    try:
        with tarfile.open(tarball) as archive:
            names = archive.getnames()
    except (OSError, tarfile.TarError) as error:
        raise DeployError(f"{tarball}: cannot be read as a release of Kafka: {error}") from error
    for name in names:
        if match := _SERVER.search(name):
            parsed(match[1])
            return match[1]
    raise DeployError(f"{tarball}: no server in it (libs/kafka_2.13-VERSION.jar): is it a release of Kafka?")


def _unpacked(tarball: Path, into: Path) -> dict[str, Path]:
    """The archive's jars, by name. Raises DeployError."""
    _check(tarball)
    jars: dict[str, Path] = {}
    try:
        with tarfile.open(tarball) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                packed = archive.extractfile(member) if name.match("libs/*.jar") else None
                if packed is not None:  # a file, not a folder of that name
                    jars[name.name] = into / name.name
                    with packed, jars[name.name].open("wb") as jar:
                        shutil.copyfileobj(packed, jar)
    except tarfile.TarError as error:
        raise DeployError(f"{tarball}: cannot be unpacked: {error}; fetch it again") from error
    return jars


def _check(tarball: Path) -> None:
    """Against the checksum that Apache publishes, where it lies beside: ``FILE: 0A1B 2C3D ...`` over several
    lines, or as sha512sum writes it. Raises DeployError."""
    beside = tarball.with_name(tarball.name + ".sha512")
    if not beside.is_file():
        return
    said = beside.read_text(errors="replace").replace(tarball.name, "")
    expected = "".join(re.findall(r"[0-9A-Fa-f]+", said)).lower()
    with tarball.open("rb") as file:
        result = hashlib.file_digest(file, "sha512").hexdigest()
    if result != expected:
        raise DeployError(
            f"{tarball} is not what {beside.name} says (SHA-512 {result[:16]}...): fetch it again"
        )
