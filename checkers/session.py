"""The Spark session of an analysis: local by default, quiet, bound to loopback, leaving nothing behind."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING

from wrackline.checkers.class_archive import Archive, archive_for
from wrackline.plugins.registry import Group, entries

# Spark takes a second to import. The command line imports this module for its errors alone.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_JAVA = 17
DEFAULT_MEMORY = "2g"
MEMORY_VARIABLE = "WRACKLINE_SPARK_MEMORY"
JAVA_TIMEOUT_S = 30.0
MASTER_KNOCK_S = 5.0
_STANDALONE = "spark://"
_MASTERS = re.compile(
    r"local|local\[(\*|\d+)(, "
    r"*\d+)?\]|local-cluster\[.*\]|yarn|k8s://.+|spark://[^,\s]+:\d{1,5}(,[^,\s]+:\d{1,5})*"
)
_SCRATCH, _LOCK = "wrackline-spark-", "owner"
_REMARKS = ("WARNING", "Setting default log level", "To adjust logging level", "Using Spark's default log4j")
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_PIECES = "spark.sql.shuffle.partitions"
_MENDING = f"install a Java {MIN_JAVA} runtime (Debian: openjdk-{MIN_JAVA}-jre-headless) or set JAVA_HOME"


class SparkUnavailable(Exception):
    """Spark cannot be started here. One line: what, where, how to mend. The command line exits with code
    2."""


class JavaMissing(SparkUnavailable):
    """There is no Java, or one that is too old."""


def check_master(master: str) -> None:
    """Is there a master at all? One that does not answer keeps Spark trying for 100 seconds without a word,
    so this knocks at it first. Raises SparkUnavailable within ``MASTER_KNOCK_S``, and at once for what is no
    master's name."""
    if not _MASTERS.fullmatch(master):
        raise SparkUnavailable(
            f"{master!r} is no Spark master: give local[*], local[4], spark://HOST:PORT[,HOST:PORT...], yarn "
            "or k8s://..."
        )
    if not master.startswith(_STANDALONE):
        return
    deadline, said = time.monotonic() + MASTER_KNOCK_S, []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection(
                (host.strip("[]"), int(port)), timeout=max(0.1, deadline - time.monotonic())
            ):
                return
        except OSError as wrong:
            said.append(f"{address}: {wrong.strerror or wrong}")
    raise SparkUnavailable(
        f"no Spark master answers at {master} ({'; '.join(said)}); start it, or give another with --master "
        "(local[*] needs "
        "none)"
    )


def java_version() -> str:
    """What the Java that Spark would run on says of itself. Raises JavaMissing for one that is too old."""
    java = _java()
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise JavaMissing(f"{java} does not run ({wrong}): {_MENDING}") from wrong
    text = said.stderr + said.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if said.returncode != 0 or found is None:
        first = (said.stderr.strip() or said.stdout.strip() or f"exit code {said.returncode}").splitlines()[0]
        raise JavaMissing(f"{java} -version failed ({first}): {_MENDING}")
    major = int(found[1])
    if major < MIN_JAVA:
        raise JavaMissing(f"{java} is Java {major}; the analysis needs {MIN_JAVA} or newer: {_MENDING}")
    return text


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no {java}: {_MENDING}")
        return str(java)
    java_on_path = shutil.which("java")
    if java_on_path is None:
        raise JavaMissing(f"no Java found (neither JAVA_HOME nor java on PATH): {_MENDING}")
    return java_on_path


@contextlib.contextmanager
def session(
    master: str = "local[*]", *, memory: str | None = None, brief: bool = False
) -> Iterator[SparkSession]:
    """A Spark session, stopped at the end unless it was there before. ``memory`` is the driver's heap
    (``2g``), by default from the environment variable WRACKLINE_SPARK_MEMORY. ``brief``: expect a minute's
    work at most, for which the JVM's optimising compiler costs more than it saves.

    Raises JavaMissing or SparkUnavailable."""
    from pyspark.sql import SparkSession  # late: see the top

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    spark = start(master, memory=memory, brief=brief)
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def in_one_piece(spark: SparkSession) -> Iterator[None]:
    """What is joined and grouped meanwhile is shuffled in one piece, as few rows want it: each piece is a
    task of its own in a hundred stages."""
    before = str(spark.conf.get(_PIECES))
    spark.conf.set(_PIECES, 1)
    try:
        yield
    finally:
        spark.conf.set(_PIECES, before)


def start(master: str = "local[*]", *, memory: str | None = None, brief: bool = False) -> SparkSession:
    """Start Spark (4 to 9 seconds). Raises JavaMissing or SparkUnavailable, for a master that is not there
    within 5 s."""
    check_master(master)
    java_says = java_version()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever "python3" is
    scratch = _scratch()
    memory = memory or os.environ.get(MEMORY_VARIABLE, DEFAULT_MEMORY)
    chosen = settings(master, memory, scratch, brief=brief)
    archive = Archive(archive_for(Path(_java()), java_says), scratch) if master.startswith("local") else None
    option = archive.option() if archive is not None else ""
    with (scratch / "jvm.log").open("w+") as jvm_log, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return _start({**chosen, _JVM_OPTIONS: chosen[_JVM_OPTIONS] + option}, jvm_log, scratch, archive)
        except SparkUnavailable:
            if archive is None or not option or archive.is_being_made:
                raise
            jvm_log.seek(0)
            jvm_log.truncate()
            spark = _start(chosen, jvm_log, scratch, None)
            archive.file.unlink(missing_ok=True)  # it was the archive: cut short, or of another build
            return spark


def _scratch() -> Path:
    """A directory of this process's own, gone with it. What killed processes left of theirs goes now: it is
    theirs as long as they hold its lock."""
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError), (left / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH))
    fresh = scratch / f"{_LOCK}.new"
    held = fresh.open("w")
    fcntl.flock(held, fcntl.LOCK_EX)
    fresh.rename(scratch / _LOCK)  # nobody finds it before it is locked

    def leave() -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        held.close()

    atexit.register(leave)
    return scratch


def _start(
    chosen: Mapping[str, str], jvm_log: IO[str], scratch: Path, archive: Archive | None
) -> SparkSession:
    # Late: see the top.
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # What goes wrong is raised; PySpark would also print it, as one long line of JSON.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    # Says at the interpreter's end, when streams are closed, that it closes its connections too.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
    try:
        # The JVM's own words (incubator modules, native libraries) are no concern of whoever reads a verdict.
        gateway = None
        if SparkContext._gateway is None:
            gateway = launch_gateway(conf, {"stderr": jvm_log, "stdout": jvm_log})  # type: ignore[no-untyped-call]
            if archive is not None and archive.is_being_made:
                atexit.register(archive.keep, gateway.proc)
        context = SparkContext(conf=conf, gateway=gateway)
        if not chosen["spark.master"].startswith("local"):
            context.addPyFile(str(_bundle(scratch)))
        return SparkSession(context)
    except (PySparkException, Py4JError) as wrong:
        jvm_log.seek(0)
        why = _reason(jvm_log.read().splitlines()) or str(wrong).splitlines()[0]
        raise SparkUnavailable(
            f"Spark did not start with master {chosen['spark.master']} and {chosen['spark.driver.memory']} "
            "of memory: "
            f"{why}; "
            f"check the master, or set {MEMORY_VARIABLE}"
        ) from wrong


def _reason(said: Sequence[str]) -> str:
    """The JVM's own reason: its first error, else the first line that is no remark about logging."""
    errors = [line.split(" ERROR ", 1)[1] for line in said if " ERROR " in line]
    plain = [line for line in said if line.strip() and not line.startswith(_REMARKS)]
    return (errors or plain or [""])[0].strip()


def _bundle(scratch: Path) -> Path:
    """What the tasks of a cluster import of ours, and of the packages that checks come from. numpy, pyarrow,
    pandas and scipy must be there. Raises SparkUnavailable for a check whose package is nowhere."""
    bundle = scratch / "wrackline.zip"
    with zipfile.ZipFile(bundle, "w") as archive:
        for package in ("wrackline", "wrackline.checkers", "wrackline.history", "wrackline.plugins"):
            folder = Path(str(files(package)))
            deep = package == "wrackline.checkers"
            for source in sorted(folder.rglob("*.py") if deep else folder.glob("*.py")):
                archive.write(source, f"{package.replace('.', '/')}/{source.relative_to(folder)}")
        for package in dict.fromkeys(one.package for one in entries(Group.CHECKS) if not one.is_ours):
            for source, name in _sources_of(package):
                archive.write(source, name)
    return bundle


def _sources_of(package: str) -> Iterator[tuple[Path, str]]:
    """(file, its name in a bundle) of a package, or of a module that stands alone."""
    spec = find_spec(package)
    if spec is None:
        raise SparkUnavailable(
            f"the package {package} of a check is nowhere; `wrackline plugins` says whose it is"
        )
    if not spec.submodule_search_locations:
        yield Path(str(spec.origin)), f"{package}.py"
    for location in spec.submodule_search_locations or ():
        for source in sorted(Path(location).rglob("*.py")):
            yield source, f"{package}/{source.relative_to(location)}"


def settings(master: str, memory: str, scratch: Path, *, brief: bool = False) -> dict[str, str]:
    """Spark's configuration for a small machine; on a cluster (``--master``) addresses are left to Spark."""
    log_config = files("wrackline.checkers").joinpath("log4j2.properties")
    local = master.startswith("local")
    cores = os.cpu_count() or 2
    chosen = {
        "spark.master": master,
        "spark.app.name": "wrackline",
        "spark.driver.memory": memory,
        _JVM_OPTIONS: f"-Dlog4j2.configurationFile=file:{log_config} -XX:+UseParallelGC "
        f"{'-XX:TieredStopAtLevel=1 ' if brief else ''}"
        f"-Dderby.system.home={scratch} -Djava.io.tmpdir={scratch} -XX:ErrorFile={scratch}/crash.log ",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # A row of the shuffles is a packet of some hundred KiB (wrackline.checkers.packets).
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
        # Each sort of a task holds a page. Spark gives a task some twelve by default, however much memory
        # there is, and what is looked for together has more sorts than that at once.
        "spark.buffer.pageSize": "1m",
        "spark.sql.session.timeZone": "UTC",
        _PIECES: str(2 * cores) if local else "64",
        # How the work is cut is known beforehand (wrackline.checkers.plan): what Spark would ask on the way
        # costs more.
        "spark.sql.adaptive.enabled": "false",
        # To look at a thousand files here takes less time than as many tasks of Spark's.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000" if local else "512",
        "spark.sql.parquet.aggregatePushdown": "false",
    }
    if brief:
        # To compile the code of a hundred stages costs more than small histories gain by it.
        chosen |= {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    if not local:
        chosen["spark.executor.memory"] = memory
    if local:
        chosen |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(scratch),
        }
    return chosen
