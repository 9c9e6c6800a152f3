"""Addresses of what lies elsewhere: ``s3://bucket/night`` (or ``s3a://``, as Hadoop says), ``hdfs://host:8020/
night``, and whatever else fsspec knows. A path of this machine is an address too.

S3 takes the endpoint, the region and the keys from the environment variables of AWS (``AWS_ENDPOINT_URL``,
``AWS_REGION``, ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY``); HDFS takes its sites from
``HADOOP_CONF_DIR``.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import fsspec
import pyarrow.parquet as pq
from fsspec.core import url_to_fs

from wrackline.errors import InputError

if TYPE_CHECKING:
    from upath import UPath

EXTRA = "pip install 'wrackline[cluster]'"
KNOCK_S = 5.0
_HDFS_PORT = 8020

# fsspec's own class for HDFS needs a native library of Hadoop's; this one needs nothing but its wheel.
fsspec.register_implementation("hdfs", "wrackline.history.store.hdfs.Hdfs", clobber=True)


class Unreachable(InputError):
    """A storage cannot be used. One line: which, why, how to mend."""


def is_elsewhere(address: str | Path) -> bool:
    return "://" in str(address)


def check_reachable(address: str) -> None:
    """Does anybody listen where the address points? Clients of HDFS and S3 ask again and again for a minute
    and more before they say so. Raises Unreachable within ``KNOCK_S``, also where the library for the scheme
    is missing."""
    parts = urlsplit(address)
    try:
        fsspec.get_filesystem_class(parts.scheme)
    except (ImportError, ValueError) as error:
        raise Unreachable(f"{address}: {error}; {EXTRA} brings s3:// and hdfs://") from error
    try:
        place = _listener(parts.scheme, parts.netloc)
        if place is not None:
            socket.create_connection(place, timeout=KNOCK_S).close()
    except (OSError, ValueError) as error:
        raise Unreachable(f"{address}: nobody answers there ({error}); is the server up? {_WHERE}") from error


_WHERE = "AWS_ENDPOINT_URL says where S3 is, the address itself where HDFS is"


def _listener(scheme: str, netloc: str) -> tuple[str, int] | None:
    """Host and port that a client would call; None where a client finds them in ways of its own."""
    if scheme == "hdfs" and not os.environ.get("HADOOP_CONF_DIR"):
        parts = urlsplit(f"//{netloc}")
        return str(parts.hostname), parts.port or _HDFS_PORT
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if scheme in ("s3", "s3a") and endpoint:
        parts = urlsplit(endpoint)
        return str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    return None


@contextmanager
def parquet(address: str, **options: Any) -> Iterator[pq.ParquetFile]:
    """A Parquet file, of which only what is asked for is read. ``options``: pyarrow's. Raises OSError,
    ValueError."""
    if not is_elsewhere(address):
        with pq.ParquetFile(address, **options) as file:
            yield file
        return
    system, path = _at(address)
    # Without a cache: Arrow asks for whole stretches of columns, each once.
    with (
        system.open(path, "rb", cache_type="none") as opened,
        pq.ParquetFile(opened, pre_buffer=True, **options) as file,
    ):
        yield file


def folder_at(address: str | Path | UPath) -> UPath:
    """The folder, with the methods of pathlib."""
    from upath import UPath  # late: what judges has no use for it

    return UPath(address)


def _at(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it. What it remembers of folders is forgotten: Spark
    writes there too."""
    system, path = url_to_fs(address)
    system.invalidate_cache()
    return system, path


def files_below(folder: str) -> dict[str, int]:
    """Path below the folder -> bytes, of all files in it; empty where there is none. Raises OSError."""
    system, path = _at(folder)
    root = path.rstrip("/") + "/"
    return {
        name.removeprefix(root): int(said["size"] or 0)
        for name, said in sorted(system.find(path, detail=True).items())
        if name.startswith(root) and not name.endswith("/")  # an object that stands for a folder
    }


def fetch(address: str, into: Path) -> None:
    """Copy one file to this machine. Raises OSError."""
    system, path = _at(address)
    into.parent.mkdir(parents=True, exist_ok=True)
    system.get_file(path, str(into))


def send(file: Path, address: str) -> None:
    """Copy one file of this machine to an address: it is there whole, or not at all. Raises OSError."""
    system, path = _at(address)
    system.makedirs(path.rpartition("/")[0], exist_ok=True)
    if not address.startswith("hdfs:"):
        system.put_file(str(file), path)  # an object appears when all of it is there
        return
    part = f"{path}.{os.getpid()}.part"
    try:
        system.put_file(str(file), part)
        system.mv(part, path, overwrite=True)
    finally:
        if system.exists(part):
            system.rm(part)


def remove(address: str) -> None:
    """A folder and all that is in it; nothing where there is none. Raises OSError."""
    system, path = _at(address)
    if system.exists(path):
        system.rm(path, recursive=True)


def matching(pattern: str) -> list[str]:
    """Addresses of what matches, sorted; ``*``, ``?`` and ``[...]`` stand for parts of names, as in a shell.
    Raises OSError."""
    system, path = _at(pattern)
    scheme = pattern.partition("://")[0] if is_elsewhere(pattern) else ""
    result = sorted(system.glob(path))
    return [_address(system.unstrip_protocol(one), scheme) if scheme else one for one in result]


def _address(said: str, scheme: str) -> str:
    """Returns the address with the scheme that was asked for: fsspec calls s3a s3."""
    return f"{scheme}://{said.partition('://')[2]}"
