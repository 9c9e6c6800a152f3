"""The Spark session of an analysis: local by default, quiet, bound to loopback, leaving nothing behind."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

from wrackline.checkers.engine.spark.class_archive import Archive, archive_for
from wrackline.checkers.engine.spark.cluster import ExecutorWatch, bundle, storage_settings, wait_s
from wrackline.checkers.engine.spark.masters import SparkUnavailable, check_master
from wrackline.needs import Missing, mend, require

# Spark takes a second to import. The command line imports this module for its errors alone.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_JAVA = 17
DEFAULT_MEMORY = "2g"
MEMORY_VARIABLE = "WRACKLINE_SPARK_MEMORY"
JAVA_TIMEOUT_S = 30.0
STOP_S = 10.0
"""How long a cluster may take to be told that an analysis was stopped."""
_SCRATCH, _LOCK = "wrackline-spark-", "owner"
_REMARKS = ("WARNING", "Setting default log level", "To adjust logging level", "Using Spark's default log4j")
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_MENDING = f"{mend('java')} (Java {MIN_JAVA} or newer), or set JAVA_HOME"


NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


class JavaMissing(SparkUnavailable):
    """There is no Java, or one that is too old; or no PySpark."""


def java_version() -> str:
    """Returns the output of ``java -version`` of the Java that Spark would run on. Raises JavaMissing for
    one that is too old."""
    java = _java()
    try:
        said = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{java} does not run ({error}): {_MENDING}") from error
    text = said.stderr + said.stdout
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if said.returncode != 0 or match is None:
        first = (said.stderr.strip() or said.stdout.strip() or f"exit code {said.returncode}").splitlines()[0]
        raise JavaMissing(f"{java} -version failed ({first}): {_MENDING}")
    major = int(match[1])
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
    master: str = "local[*]",
    *,
    memory: str | None = None,
    brief: bool = False,
    addresses: Iterable[str] = (),
    properties: Mapping[str, str] = NO_PROPERTIES,
    progress: Callable[[str], None] = lambda _line: None,
) -> Iterator[SparkSession]:
    """A Spark session, stopped at the end unless it was there before. ``memory`` is the driver's heap and
    each executor's (``2g``), by default from the environment variable WRACKLINE_SPARK_MEMORY. ``brief``:
    expect a minute's work at most, for which the JVM's optimising compiler costs more than it saves.
    ``addresses``: of what will be read that is not on this machine. ``properties``: Spark's own, which go
    before ours. ``progress`` is called when a cluster gives no executors.

    Raises JavaMissing or SparkUnavailable; at the end too, where a cluster gave none for long."""
    if find_spec("pyspark") is None:
        try:
            require("spark", "the engine spark")
        except Missing as missing:
            raise JavaMissing(str(missing)) from missing
    from pyspark.sql import SparkSession  # late: see the top

    running = TAKEN_OVER[-1] if TAKEN_OVER else SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    chosen = {**storage_settings(addresses), **properties}
    spark = start(master, memory=memory, brief=brief, properties=chosen)
    watch = None
    if not master.startswith("local"):
        offer = f"{master} offers none with {spark.conf.get('spark.executor.memory')} of memory"
        watch = ExecutorWatch(spark.sparkContext, offer, progress)
    try:
        with jvm_killed_by_interrupt(master):
            yield spark
    finally:
        if watch is not None:
            watch.end()
        if has_jvm():
            spark.stop()
        if watch is not None and watch.gone:
            raise SparkUnavailable(watch.gone)  # goes before what the ended jobs raised


TAKEN_OVER: list[SparkSession] = []
"""Sessions that another thread has started (`wrackline.checkers.engine.spark.ahead`): of Spark each thread
learns only its own."""


def start(
    master: str = "local[*]",
    *,
    memory: str | None = None,
    brief: bool = False,
    properties: Mapping[str, str] = NO_PROPERTIES,
) -> SparkSession:
    """Start Spark (4 to 9 seconds). Raises JavaMissing or SparkUnavailable, for a master that is not there
    within 5 s."""
    check_master(master)
    java_says = java_version()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers are whatever "python3" is
    scratch = _scratch()
    memory = memory or os.environ.get(MEMORY_VARIABLE, DEFAULT_MEMORY)
    chosen = {**settings(master, memory, scratch, brief=brief), **properties}
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
            with _children_killed_by_interrupt():
                # A group of its own, which can be ended with the scripts that start the JVM.
                given = {"stderr": jvm_log, "stdout": jvm_log, "process_group": 0}
                gateway = launch_gateway(conf, given)  # type: ignore[no-untyped-call]
            if archive is not None and archive.is_being_made:
                atexit.register(archive.keep, gateway.proc)
        with jvm_killed_by_interrupt(chosen["spark.master"], gateway), _own_interrupts():
            if chosen["spark.master"].startswith("local"):
                context = SparkContext(conf=conf, gateway=gateway)
            else:
                with _within(wait_s(), SparkContext._gateway or gateway):
                    context = SparkContext(conf=conf, gateway=gateway)
                context.addPyFile(str(bundle(scratch)))
            return SparkSession(context)
    except (PySparkException, Py4JError) as error:
        jvm_log.seek(0)
        why = _reason(jvm_log.read().splitlines()) or str(error).splitlines()[0]
        raise SparkUnavailable(
            f"Spark did not start with master {chosen['spark.master']} and {chosen['spark.driver.memory']} "
            "of memory: "
            f"{why}; "
            f"check the master, or set {MEMORY_VARIABLE}"
        ) from error


@contextlib.contextmanager
def jvm_killed_by_interrupt(master: str, gateway: Any = None) -> Iterator[None]:
    """Kills the JVM on Ctrl-C: whoever stops an analysis waits for no job and for no archive of classes. A
    cluster is told first."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    try:
        yield
    except KeyboardInterrupt:
        gateway, context = SparkContext._gateway or gateway, SparkContext._active_spark_context
        if gateway is not None:
            if context is not None and not master.startswith("local"):
                with contextlib.suppress(Py4JError), _within(STOP_S, gateway):
                    context.stop()
            if context is not None:  # its thread would print how it lost the JVM
                context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
            end_group(gateway.proc.pid)
            gateway.proc.wait()
        raise


@contextlib.contextmanager
def _children_killed_by_interrupt() -> Iterator[None]:
    """Kills on Ctrl-C the child processes that this thread has begun inside: PySpark tells of its JVM only
    when that has answered."""
    own = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = own.read_text().split()
    try:
        yield
    except KeyboardInterrupt:
        for pid in set(own.read_text().split()) - set(before):
            end_group(int(pid))
        raise


@contextlib.contextmanager
def _own_interrupts() -> Iterator[None]:
    """PySpark's answer to Ctrl-C asks the JVM to cancel all jobs, and is an error of its own where that does
    not answer."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def end_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def has_jvm() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None and SparkContext._gateway.proc.poll() is None


@contextlib.contextmanager
def _within(seconds: float, gateway: Any) -> Iterator[None]:
    """A cluster that takes the application by then, or no JVM that waits for it any longer: Spark would ask a
    ResourceManager of YARN for a quarter of an hour."""
    timer = threading.Timer(seconds, gateway.proc.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _reason(said: Sequence[str]) -> str:
    """The JVM's own reason: its first error, else the first line that is no remark about logging."""
    errors = [line.split(" ERROR ", 1)[1] for line in said if " ERROR " in line]
    plain = [line for line in said if line.strip() and not line.startswith(_REMARKS)]
    return (errors or plain or [""])[0].strip()


def settings(master: str, memory: str, scratch: Path, *, brief: bool = False) -> dict[str, str]:
    """Spark's configuration for a small machine; on a cluster (``--master``) addresses are left to Spark."""
    log_config = files("wrackline.checkers").joinpath("log4j2.properties")
    local = master.startswith("local")
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
        # A row of the shuffles has facts of some hundred KiB (wrackline.checkers.engine.fact_codec).
        "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
        "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
        # Each sort of a task holds a page. Spark gives a task some twelve by default, however much memory
        # there is, and what is looked for together has more sorts than that at once.
        "spark.buffer.pageSize": "1m",
        "spark.sql.session.timeZone": "UTC",
        # How the work is cut is known beforehand (wrackline.checkers.plan): what Spark would ask on the way
        # costs more.
        "spark.sql.adaptive.enabled": "false",
    }
    if brief:
        # To compile the code of the stages costs more than small histories gain by it.
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
