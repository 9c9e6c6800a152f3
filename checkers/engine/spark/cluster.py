"""An analysis on a cluster needs more than a master: our code where tasks run, classes for the storage,
and executors that stay."""

from __future__ import annotations

import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wrackline.checkers.engine.spark.hadoop import installed_jars
from wrackline.checkers.engine.spark.masters import SparkUnavailable
from wrackline.plugins.registry import Group, entries

if TYPE_CHECKING:
    from pyspark import SparkContext

WAIT_VARIABLE = "WRACKLINE_SPARK_WAIT_S"
WAIT_S = 60.0
_TELL_S = 10.0
_LOOK_S = 1.0
_OF_THE_STORAGE = (
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HADOOP_USER_NAME"),
)
"""Variables by which clients of S3 and HDFS are told who asks, and where."""


def storage_settings(addresses: Iterable[str], environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Spark's settings for the storage that the addresses name, so that Java and Python see the same one.
    Raises SparkUnavailable where Spark lacks the classes for it."""
    schemes = {urlsplit(address).scheme for address in addresses}
    chosen = {
        f"spark.executorEnv.{name}": environment[name] for name in _OF_THE_STORAGE if name in environment
    }
    if not schemes & {"s3", "s3a"}:
        return chosen if "hdfs" in schemes else {}
    jars = installed_jars()
    if jars is None:
        raise SparkUnavailable(
            "Spark cannot read from S3 as it comes: `wrackline get spark` gets the jars for that, once"
        )
    chosen["spark.jars"] = ",".join(map(str, jars))
    chosen["spark.hadoop.fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if endpoint:
        chosen["spark.hadoop.fs.s3a.endpoint"] = endpoint
        chosen["spark.hadoop.fs.s3a.path.style.access"] = "true"
        region = region or "us-east-1"
    if region:
        chosen["spark.hadoop.fs.s3a.endpoint.region"] = region
    return chosen


def bundle(scratch: Path) -> Path:
    """Packs the modules that the tasks of a cluster import: ours, and the packages that checks come from.
    The libraries must be there (docs/spark.md). Raises SparkUnavailable for a check whose package is
    nowhere."""
    made = scratch / "wrackline.zip"
    with zipfile.ZipFile(made, "w") as archive:
        for package in ("wrackline", "wrackline.checkers", "wrackline.history", "wrackline.plugins"):
            folder = Path(str(files(package)))
            deep = package != "wrackline"  # whose folders are links
            for source in sorted(folder.rglob("*.py") if deep else folder.glob("*.py")):
                archive.write(source, f"{package.replace('.', '/')}/{source.relative_to(folder)}")
        for package in dict.fromkeys(one.package for one in entries(Group.CHECKS) if not one.is_ours):
            for source, name in _sources_of(package):
                archive.write(source, name)
    return made


def _sources_of(package: str) -> Iterator[tuple[Path, str]]:
    """(file, its name in a bundle) of a package, or of a module that stands alone."""
    spec = find_spec(package)
    if spec is None:
        raise SparkUnavailable(
            f"the package {package} of a check is nowhere; `wrackline list parts` says whose it is"
        )
    if not spec.submodule_search_locations:
        yield Path(str(spec.origin)), f"{package}.py"
    for location in spec.submodule_search_locations or ():
        for source in sorted(Path(location).rglob("*.py")):
            yield source, f"{package}/{source.relative_to(location)}"


def wait_s(environment: Mapping[str, str] = os.environ) -> float:
    """Returns how long an analysis waits for executors, in seconds. Raises SparkUnavailable for what is no
    number of seconds."""
    given = environment.get(WAIT_VARIABLE, "")
    try:
        result = float(given or WAIT_S)
    except ValueError:
        result = 0.0
    if result <= 0:
        raise SparkUnavailable(f"{WAIT_VARIABLE} is {given!r}: give seconds, such as {WAIT_S:g}")
    return result


class ExecutorWatch:
    """Looks whether a cluster gives an analysis executors. Where none is there for long, Spark would wait for
    ever and say nothing: this says so after 10 s, and ends the jobs after ``wait_s``. One executor
    that dies is no matter: its tasks are done again by the others."""

    def __init__(self, context: SparkContext, offer: str, report: Callable[[str], None]) -> None:
        """``offer``: who gives executors, and of what size, for the line. Raises SparkUnavailable."""
        self.gone = ""
        """Why the jobs were ended; empty while all is well."""
        self._context, self._offer, self._report = context, offer, report
        self._wait_s = wait_s()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="executors", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        seen, reported = time.monotonic(), False
        while not self._ended.wait(_LOOK_S):
            try:
                if self._executors():
                    seen, reported = time.monotonic(), False
                    continue
                silent_s = time.monotonic() - seen
                if silent_s > _TELL_S and not reported:
                    reported = True
                    self._report(
                        f"no executor yet: {self._offer}; waiting {self._wait_s:g} s in all ({WAIT_VARIABLE})"
                    )
                if silent_s > self._wait_s:
                    self.gone = (
                        f"no executor within {self._wait_s:g} s: {self._offer}; start workers or free "
                        f"theirs, or wait longer with {WAIT_VARIABLE}"
                    )
                    self._context.cancelAllJobs()
            except (Py4JError, OSError, AttributeError):
                return  # Spark has ended, and whoever asked it for something says why

    def _executors(self) -> int:
        """Returns the number of executors, without the driver, which keeps blocks too."""
        return int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
