"""A remote tier for Apache Kafka (KIP-405): a RemoteStorageManager of our own over a folder that hosts share,
or over a server that speaks S3.

The Java files beside this one are compiled against the version under test, once for each, and are given to
brokers by a class path of their own; for a tier in S3 with Amazon's client of it, which Maven gets.
What the tier does on purpose it reads from the shared folder, of whatever kind it is
(`wrackline.nemesis.faults.disks.tier`). Where segments lie in the tier Kafka's own
TopicBasedRemoteLogMetadataManager keeps, in the topic ``__remote_log_metadata``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from wrackline.maven import Artifact, MavenFailed, resolve
from wrackline.needs import find_java
from wrackline.plugins.fields import SECONDS, Strict
from wrackline.systems.base import DeployError, TierTraffic
from wrackline.systems.jvm.store import Release, Store

SINCE = (3, 9, 0)
"""From this version on tiered storage is ready for use."""
FOLDER = "tier"
"""Below the hosts' shared folder."""
HERE = Path(__file__).parent
_SOURCES = ("FaultyTier.java", "Store.java", "FolderStore.java")
_S3_SOURCE = "S3Store.java"
_MAIN = "wrackline.FaultyTier"
_COMPILE_S = 300.0
_SDK = "2.31.78"
_GROUP = "software.amazon.awssdk"
_CLIENT = (
    # Its other clients of HTTP bring Netty and Apache's.
    Artifact(_GROUP, "s3", _SDK, ((_GROUP, "netty-nio-client"), (_GROUP, "apache-client"))),
    Artifact(_GROUP, "url-connection-client", _SDK),
)
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
"""Variables of this machine's environment that have the credentials of a tier in S3."""


JOURNAL = "journal"
"""Below that: a file for each broker, with a line for each call."""


def traffic_of(journals: str) -> TierTraffic:
    """Reads the journals of all brokers, whose lines `FaultyTier.java` describes."""
    words = [line.split() for line in journals.splitlines()]
    lines = [one for one in words if len(one) == 8]
    copied = {(one[4], one[5]) for one in lines if one[2] == "stored"}
    fetched = [(one[4], one[5]) for one in lines if one[2] == "fetched"]
    return TierTraffic(len(copied), len(set(fetched)), len(fetched))


class Tier(Strict):
    """Settings of the remote tier."""

    kind: Literal["folder", "s3"] = "folder"
    """Where it keeps segments: a folder that hosts share, or a bucket of a server that speaks S3."""
    endpoint: str = ""
    """Of ``s3``: the server's address, ``http://127.0.0.1:7070``. Hosts must reach it."""
    bucket: str = ""
    """Of ``s3``: a bucket that is there already."""
    region: str = "us-east-1"
    """Of ``s3``."""
    interval_s: Annotated[float, Field(ge=0.1, le=60), SECONDS] = 0.5
    """How often brokers look for segments to copy, and for local ones to delete."""
    metadata_partitions: Annotated[int, Field(ge=1, le=50)] = 2
    """How many partitions the topic ``__remote_log_metadata`` has."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if self.kind == "s3" and not (self.endpoint and self.bucket):
            raise ValueError("kind: s3 needs an endpoint and a bucket")
        if self.kind == "folder" and (self.endpoint or self.bucket):
            raise ValueError("endpoint and bucket are of kind: s3")
        return self


def credentials(environment: Mapping[str, str] = os.environ) -> tuple[str, str]:
    """Returns the credentials of a tier in S3. Raises DeployError."""
    missing = [name for name in KEYS if not environment.get(name)]
    if missing:
        raise DeployError(
            f"control node: system.tier.kind: s3 needs {' and '.join(missing)} in the environment"
        )
    return environment[KEYS[0]], environment[KEYS[1]]


def properties(
    tier: Tier, classes: Path, shared: str, listener: str, brokers: int, cluster_id: str, credentials: str
) -> dict[str, str]:
    """Returns the settings of a node. ``classes``: of `compiled`. ``shared``: the hosts' shared folder.
    ``credentials``: a file of the node's with those for S3."""
    every_ms = str(round(tier.interval_s * 1000))
    rlmm = "rlmm.config.remote.log.metadata"
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _MAIN,
        "remote.log.storage.manager.class.path": f"{classes}{os.sep}{os.pathsep}{classes}{os.sep}*",
        "rsm.config.dir": f"{shared}/{FOLDER}",
        **_store(tier, cluster_id, credentials),
        "remote.log.metadata.manager.listener.name": listener,
        f"{rlmm}.topic.replication.factor": str(min(3, brokers)),
        f"{rlmm}.topic.min.isr": str(min(2, brokers)),
        f"{rlmm}.topic.num.partitions": str(tier.metadata_partitions),
        f"{rlmm}.initialization.retry.interval.ms": "500",
        "remote.log.manager.task.interval.ms": every_ms,
        # Local retention, every five minutes by default, and the first time after 30 s.
        "log.retention.check.interval.ms": every_ms,
        "log.initial.task.delay.ms": every_ms,
    }


def _store(tier: Tier, cluster_id: str, credentials: str) -> dict[str, str]:
    """Returns the settings of the store. In a bucket each cluster has a prefix of its own."""
    if tier.kind == "folder":
        return {"rsm.config.store": "wrackline.FolderStore"}
    return {
        "rsm.config.store": "wrackline.S3Store",
        "rsm.config.s3.endpoint": tier.endpoint,
        "rsm.config.s3.bucket": tier.bucket,
        "rsm.config.s3.region": tier.region,
        "rsm.config.s3.prefix": cluster_id,
        "rsm.config.s3.credentials": credentials,
    }


def prepare(tier: Tier, store: Store, say: Callable[[str], None]) -> None:
    """Brings what the tier is made of, and looks for what it asks of the environment. Raises DeployError."""
    if tier.kind == "s3":
        credentials()
        _client(store, say)


def _client(store: Store, say: Callable[[str], None]) -> Sequence[Path]:
    """Returns the jars of the client of S3, which Maven gets once. Raises DeployError."""
    folder = store.root / "tier" / f"s3-{_SDK}"
    if not folder.is_dir():
        with store.locked("tier"), tempfile.TemporaryDirectory(dir=store.root) as scratch:
            try:
                jars = resolve(
                    Path(scratch) / "maven", _CLIENT, otherwise="or leave system.tier.kind out", progress=say
                )
                (Path(scratch) / "jars").mkdir()
                for jar in jars:
                    shutil.copyfile(jar, Path(scratch) / "jars" / jar.name)
                folder.parent.mkdir(exist_ok=True)
                if not folder.is_dir():
                    (Path(scratch) / "jars").rename(folder)
            except (MavenFailed, OSError) as error:
                raise DeployError(f"control node: the client of S3: {error}") from error
    # The broker's own; a class path with another beside it ends the broker (a loader constraint is broken).
    return sorted(jar for jar in folder.glob("*.jar") if not jar.name.startswith("slf4j-"))


def compiled(release: Release, tier: Tier, say: Callable[[str], None] = lambda _line: None) -> Path:
    """Returns the folder with the tier's classes for a version, and the jars that they need, made now if it
    was not. Raises DeployError."""
    names = (*_SOURCES, _S3_SOURCE) if tier.kind == "s3" else _SOURCES
    sources = [HERE / name for name in names]
    made_of = b"".join(one.read_bytes() for one in (*sources, Path(__file__)))
    mark = hashlib.sha256(made_of).hexdigest()[:12]
    folder = release.folder / "tier" / mark
    if folder.is_dir():
        return folder
    javac = shutil.which(str(Path(find_java()).with_name("javac")) if os.sep in find_java() else "javac")
    if javac is None:
        raise DeployError(
            "control node: system.tier needs javac to compile its plug-in: install openjdk-17-jdk-headless"
        )
    jars = _client(Store(release.folder.parent), say) if tier.kind == "s3" else ()
    classpath = os.pathsep.join([release.classpath, *map(str, jars)])
    try:
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            command = [javac, "--release", "17", "-d", scratch, "-cp", classpath, *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_S, check=False)
            if done.returncode:
                error_line = (done.stderr.strip() or "nothing").splitlines()[0]
                raise DeployError(
                    f"control node: {release.title}: the tier's plug-in does not compile: {error_line}"
                )
            for jar in jars:
                shutil.copyfile(jar, Path(scratch) / jar.name)
            Path(scratch).chmod(0o755)
            if not folder.is_dir():
                shutil.copytree(scratch, folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeployError(f"control node: {release.title}: the tier's plug-in: {error}") from error
    return folder
