"""The broker and what it needs, packed once on the control node so that a host needs only a Python.

Two archives, because they change at different paces: ``deps`` (the runtime dependencies, from the versions
installed beside us) and ``broker`` (our packages). Both are named after the hash of their content, are
precompiled, and unpack to ``lib/``. The dependencies come without their sources: they are more than a
thousand modules, and every file that a host need not unpack is time before each run. The broker is packed as
files; nothing here imports it.
"""

from __future__ import annotations

import compileall
import gzip
import hashlib
import importlib.metadata
import importlib.util
import py_compile
import shutil
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wrackline.systems.base import DeployError
from wrackline.systems.wrackline.mutant import put_mutant

PACKAGES = ("wrackline.broker", "wrackline.kafka_client")
"""The client: the command ``wrackline-broker admin`` runs on hosts, too."""
OF_ZOOKEEPER = ("core", "server")
"""Folders of ``wrackline.zookeeper`` in which the broker finds, by name, what it is on ZooKeeper."""
PACKAGE = "wrackline"
"""The folder of our packages in an archive."""
DEPENDENCIES = ("kio", "uvloop", "crc32c", "cramjam", "orjson", "typing_extensions", "kazoo")
SEEN_BY_HOSTS = Path("/var/lib/wrackline/bundles")
"""Where hosts of the fleet netns see what is unpacked: our own folders are hidden from them."""
_UNUSED = {".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h", ".pyc"}
"""Not needed to run: stubs and the sources of compiled modules."""


@dataclass(frozen=True, slots=True)
class Archive:
    name: str
    """``deps`` or ``broker``."""
    digest: str
    path: Path


@dataclass(frozen=True, slots=True)
class Bundle:
    python: str
    """The minor version its compiled parts are for: ``3.11``."""
    archives: tuple[Archive, ...]


def build(cache: Path, mutant: str = "") -> Bundle:
    """The bundle for this interpreter's minor version, from ``cache`` when its content is there already.
    ``mutant``: the deviation that the broker is packed with (wrackline.systems.wrackline.mutant).

    Raises DeployError when a dependency is not installed here or the cache cannot be written.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        archives = (
            _archive("deps", _dependency_files(), cache, sources=False),
            _archive("broker", _package_files(), cache, sources=True, mutant=mutant),
        )
    except OSError as error:
        raise DeployError(
            f"control node: cannot build the bundle in {cache}: {error}; "
            "free some space or name another folder"
        ) from error
    return Bundle(python, archives)


def unpacked(bundle: Bundle, into: Path) -> tuple[str, ...]:
    """The search path of a bundle, unpacked now if it is not there already: for hosts that read files of this
    machine. Raises DeployError."""
    folders = []
    for archive in bundle.archives:
        folder = into / f"{archive.name}-{archive.digest}"
        try:
            into.mkdir(parents=True, exist_ok=True)
            if not folder.exists():
                with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{archive.name}-") as scratch:
                    whole = Path(scratch, "whole")
                    with tarfile.open(archive.path) as packed:
                        packed.extractall(whole)
                    try:
                        whole.rename(folder)
                    except OSError:
                        if not folder.exists():
                            raise  # else another run was first
        except OSError as error:
            raise DeployError(
                f"control node: cannot unpack the bundle in {into}: {error}; free some space"
            ) from error
        folders.append(str(folder / "lib"))
    return tuple(folders)


def _package_files() -> dict[str, Path]:
    roots = []
    for package in PACKAGES:
        result = importlib.util.find_spec(package)
        if result is None or not result.submodule_search_locations:
            raise DeployError(f"control node: the package {package} is not installed beside the harness")
        roots.append(Path(result.submodule_search_locations[0]))
    ours = roots[0].parent
    era = ours / "zookeeper"
    folders = [*roots, *(era / name for name in OF_ZOOKEEPER)]
    inside = (file for folder in folders for file in folder.rglob("*"))
    expected = _wanted([ours / "__init__.py", *era.glob("*.py"), *inside])
    return {file.relative_to(ours.parent).as_posix(): file for file in expected}


def _dependency_files() -> dict[str, Path]:
    files: dict[str, Path] = {}
    for name in DEPENDENCIES:
        try:
            listed = importlib.metadata.distribution(name).files or []
        except importlib.metadata.PackageNotFoundError as missing:
            raise DeployError(
                f"control node: {name}, which the broker needs, is not installed: install wrackline again"
            ) from missing
        # METADATA: some packages ask for their own version when they are imported.
        inside = [
            file
            for file in listed
            if ".." not in file.parts and (".dist-info" not in file.parts[0] or file.name == "METADATA")
        ]
        files |= {str(file): Path(str(file.locate())) for file in inside}
    return {name: file for name, file in files.items() if file.suffix not in _UNUSED and file.is_file()}


def _wanted(files: Iterable[Path]) -> list[Path]:
    return sorted(file for file in files if file.is_file() and file.suffix not in _UNUSED)


def _digest(files: Mapping[str, Path], *, sources: bool, mutant: str) -> str:
    tag = f"{sys.implementation.cache_tag} {sysconfig.get_platform()} {sources}{mutant}"
    digest = hashlib.sha256(tag.encode())
    for name in sorted(files):
        now = files[name].stat()
        content = _of_content(files[name], now.st_mtime_ns, now.st_size)
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _of_content(file: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001
    """A process that makes several runs reads what has not changed once."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _archive(
    name: str, files: Mapping[str, Path], cache: Path, *, sources: bool, mutant: str = ""
) -> Archive:
    digest = _digest(files, sources=sources, mutant=mutant)
    path = cache / f"{name}-{digest}.tar.gz"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache, prefix=f"{name}-") as scratch:
            _pack(files, Path(scratch), path, sources=sources, mutant=mutant)
    return Archive(name, digest, path)


def _pack(files: Mapping[str, Path], scratch: Path, path: Path, *, sources: bool, mutant: str) -> None:
    lib = scratch / "lib"
    for name, source in files.items():
        target = lib / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    if mutant:
        put_mutant(lib / PACKAGE, mutant)
    # Unchecked: the files on the host never change, and copying them there changes their times.
    compileall.compile_dir(
        lib,
        quiet=2,
        stripdir=str(lib),
        prependdir="/opt/wrackline/lib",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        legacy=not sources,  # beside the source, where it is found without one
    )
    if not sources:
        for source in lib.rglob("*.py"):
            source.unlink()
    packed = scratch / "packed"
    with (
        gzip.open(packed, "wb", compresslevel=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        tar.add(lib, arcname="lib", filter=_as_root)
    packed.replace(path)  # atomic: two harnesses may build the same archive


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry
