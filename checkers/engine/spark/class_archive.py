"""The classes that Spark loads, kept as the JVM wants them (class data sharing): a session that begins with
such an archive starts, and makes its first plans, in half the time.

The first session that ends on a machine makes the archive, for this Java and this Spark; later ones map it.
It is a cache: without it everything is as it was but for the time, and one with which the JVM does not start
is thrown away (wrackline.checkers.engine.spark.session).
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO

from wrackline.cache import cache_folder
from wrackline.history.store.folder import whole_file

log = logging.getLogger("wrackline.checkers")

DUMP_S = 120.0
"""How long a JVM may take to write the archive; some 5 s on a quiet machine."""
ROOM_BYTES = 1 << 30
"""So much room there must be on its disk; an archive takes 160 MB."""


def archive_for(java: Path, java_says: str) -> Path:
    """Returns the path at which the archive of this Java and the installed Spark is, or would be.
    ``java_says``: what ``java -version`` prints."""
    of = "\n".join((str(java.resolve()), java_says, version("pyspark")))
    return cache_folder() / f"spark-{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"


@dataclass
class Archive:
    """One session's part in it: it uses the archive, makes it, or does without."""

    file: Path
    scratch: Path
    _lock: IO[str] | None = field(default=None, init=False)

    @property
    def _made(self) -> Path:
        return self.scratch / self.file.name

    @property
    def is_being_made(self) -> bool:
        return self._lock is not None

    def option(self) -> str:
        """Returns the option for the JVM's command line; empty where there is no archive and somebody else
        makes it, or there is no room."""
        if self.file.is_file():
            return f"-XX:SharedArchiveFile={self.file} "
        if self._may_be_made():
            return f"-XX:ArchiveClassesAtExit={self._made} "
        return ""

    def _may_be_made(self) -> bool:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            room = os.statvfs(self.file.parent)
            lock = self.file.with_suffix(".lock").open("w")
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        if room.f_bavail * room.f_frsize < ROOM_BYTES or self.file.is_file():
            lock.close()
            return False
        self._lock = lock
        return True

    def keep(self, jvm: subprocess.Popen[bytes]) -> None:
        """End the JVM, which writes what it has loaded, and put that where the next session looks."""
        if jvm.poll() is not None:
            return self.leave()
        print(
            "wrackline: this writes an archive with which later analyses start faster (once, some 10 s)",
            file=sys.stderr,
        )
        try:
            if jvm.stdin is not None:
                jvm.stdin.close()  # PySpark's JVM lives as long as this is open
            # With another exit code what it wrote may be cut short, and a JVM dies of such an archive.
            if jvm.wait(DUMP_S) == 0:
                with whole_file(self.file) as part:
                    shutil.copyfile(self._made, part)
        except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt) as error:
            log.info("no archive of Spark's classes: %s", str(error) or "stopped")
            jvm.kill()
        finally:
            self.leave()

    def leave(self) -> None:
        """Releases the lock, so that others can make the archive."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
