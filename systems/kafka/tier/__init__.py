"""A remote tier for Apache Kafka (KIP-405): a RemoteStorageManager of our own on a folder that hosts share.

`FolderTier.java` beside this file is compiled against the version under test, once for each, and is given to
brokers by a class path of its own. What it does on purpose it reads from the shared folder
(`wrackline.nemesis.faults.disks.tier`). Where segments lie in the tier Kafka's own
TopicBasedRemoteLogMetadataManager keeps, in the topic ``__remote_log_metadata``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

from pydantic import Field

from wrackline.needs import find_java
from wrackline.plugins.fields import SECONDS, Strict
from wrackline.systems.base import DeployError
from wrackline.systems.jvm.store import Release

SINCE = (3, 9, 0)
"""From this version on tiered storage is ready for use."""
FOLDER = "tier"
"""Below the hosts' shared folder."""
SOURCE = Path(__file__).with_name("FolderTier.java")
_MAIN = "wrackline.FolderTier"
_COMPILE_S = 300.0


class Tier(Strict):
    """Settings of the remote tier."""

    interval_s: Annotated[float, Field(ge=0.1, le=60), SECONDS] = 0.5
    """How often brokers look for segments to copy, and for local ones to delete."""
    metadata_partitions: Annotated[int, Field(ge=1, le=50)] = 2
    """How many partitions the topic ``__remote_log_metadata`` has."""


def properties(tier: Tier, classes: Path, shared: str, listener: str, brokers: int) -> dict[str, str]:
    """Returns the settings of every node. ``classes``: of `compiled`. ``shared``: the hosts' shared
    folder."""
    every_ms = str(round(tier.interval_s * 1000))
    rlmm = "rlmm.config.remote.log.metadata"
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _MAIN,
        "remote.log.storage.manager.class.path": f"{classes}{os.sep}",
        "rsm.config.dir": f"{shared}/{FOLDER}",
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


def compiled(release: Release) -> Path:
    """Returns the folder with the tier's classes for a version, compiled now if they were not. Raises
    DeployError."""
    mark = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    folder = release.folder / "tier" / mark
    if folder.is_dir():
        return folder
    javac = shutil.which(str(Path(find_java()).with_name("javac")) if os.sep in find_java() else "javac")
    if javac is None:
        raise DeployError(
            "control node: system.tier needs javac to compile its plug-in: install openjdk-17-jdk-headless"
        )
    try:
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            command = [javac, "--release", "17", "-d", scratch, "-cp", release.classpath, str(SOURCE)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_S, check=False)
            if done.returncode:
                error_line = (done.stderr.strip() or "nothing").splitlines()[0]
                raise DeployError(
                    f"control node: {release.title}: {SOURCE.name} does not compile: {error_line}"
                )
            Path(scratch).chmod(0o755)
            if not folder.is_dir():
                shutil.copytree(scratch, folder)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DeployError(f"control node: {release.title}: the tier's plug-in: {error}") from error
    return folder
