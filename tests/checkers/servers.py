"""Real servers on loopback for the tests of clusters: Spark's standalone master and workers, HDFS, and an
S3-compatible server. What they are made of comes from the registries once and is kept in the cache."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyspark
import pytest

from tests.broker.clients.loopback import free_ports
from wrackline import maven
from wrackline.cache import cache_folder
from wrackline.maven import Artifact

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
START_S = 180.0
HADOOP = "3.5.0"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
"""An S3 gateway in Go whose objects are files: multipart uploads, listings and signatures are real."""
BUCKET = "nights"
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_SPARK_MEMORY = "600m"
_ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "256m",
    "WRACKLINE_SPARK_MEMORY": _SPARK_MEMORY,
}
_LOG4J = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.SimpleLayout
"""


def wait_for(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """The first group of a pattern in a daemon's log."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.2)
    raise AssertionError(f"{log.name} never said {pattern!r}: {log.read_text(errors='replace')[-2000:]}")


def _end_with_the_tests() -> None:
    """In the child: it is told to end when the tests are killed too."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@contextlib.contextmanager
def daemon(
    folder: Path, name: str, command: Sequence[object], environment: Mapping[str, str] = _ENVIRONMENT
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A server in the foreground, ended at the end with all that it started."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)),
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            preexec_fn=_end_with_the_tests,
        )
    try:
        yield process, log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # executors of a worker that had to be killed


@dataclass(frozen=True)
class SparkCluster:
    master: str
    folder: Path
    """With the logs of the daemons, and a folder of each worker."""

    def executors(self) -> list[int]:
        """Process ids of the executors of this cluster."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                at_home = (process / "cwd").resolve().is_relative_to(self.folder)
                if at_home and any(word.endswith(b"CoarseGrainedExecutorBackend") for word in words):
                    found.append(int(process.name))
        return found

    def logs(self) -> str:
        return "".join(
            file.read_text(errors="replace") for file in self.folder.glob("worker-*/app-*/*/stderr")
        )


@contextlib.contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """A master and two workers of one core each, on ports of their own choice. Their Python knows the
    libraries and nothing of ours: as on machines without a checkout."""
    python = bare_python(folder / "python")
    environment = {**_ENVIRONMENT, "PYSPARK_PYTHON": str(python)}
    local = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master_class, worker_class = (
        f"org.apache.spark.deploy.{name}" for name in ("master.Master", "worker.Worker")
    )
    with contextlib.ExitStack() as stack:
        master, log = stack.enter_context(
            daemon(folder, "master", [SPARK_CLASS, master_class, *local], environment)
        )
        url = wait_for(log, r"Starting Spark master at (spark://\S+)", master)
        workers = []
        for name in ("worker-1", "worker-2"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            command = [SPARK_CLASS, worker_class, *local, *size, url]
            workers.append(stack.enter_context(daemon(folder, name, command, environment)))
        for worker, log in workers:
            wait_for(log, r"(Successfully registered with master)", worker)
        yield SparkCluster(url, folder)


def bare_python(home: Path) -> Path:
    """A Python with links to this one's libraries, and without Wrackline."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=60)
    [site] = home.glob("lib/python*/site-packages")
    for library in Path(sysconfig.get_path("purelib")).iterdir():
        if "wrackline" not in library.name and not (site / library.name).exists():
            (site / library.name).symlink_to(library)
    python = home / "bin" / "python"
    tried = subprocess.run(
        [python, "-c", "import wrackline"], cwd=home, env={}, capture_output=True, check=False, timeout=60
    )
    assert b"No module named 'wrackline'" in tried.stderr
    return python


def wrackline(
    *arguments: str | Path, cluster: SparkCluster | None = None, **environment: str
) -> subprocess.Popen[str]:
    """A command in a process of its own, begun: a process has one Spark session."""
    python = {"PYSPARK_PYTHON": str(cluster.folder / "python" / "bin" / "python")} if cluster else {}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "wrackline.harness.cli.entry", *map(str, arguments)],
        env={**os.environ, **_ENVIRONMENT, **python, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass(frozen=True)
class Storage:
    address: str
    """Of an empty folder."""
    environment: Mapping[str, str]
    """By which its clients find it."""


@contextlib.contextmanager
def hdfs(folder: Path) -> Iterator[Storage]:
    """A NameNode and a DataNode, each a process."""
    jars = maven.resolve(
        cache_folder() / "tests-hdfs",
        [
            Artifact("org.apache.hadoop", name, HADOOP)
            for name in ("hadoop-common", "hadoop-hdfs", "hadoop-hdfs-client")
        ],
        otherwise="or look at its log",
    )
    port, pages = free_ports(2)
    _write_hdfs_settings(folder, port, pages)
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, [folder, *jars]))]
    name_node, data_node = (
        f"org.apache.hadoop.hdfs.server.{name}" for name in ("namenode.NameNode", "datanode.DataNode")
    )
    subprocess.run(
        [*java, name_node, "-format", "-nonInteractive"],
        check=True,
        capture_output=True,
        timeout=START_S,
        cwd=folder,
    )
    with contextlib.ExitStack() as stack:
        names, log = stack.enter_context(daemon(folder, "name-node", [*java, name_node]))
        stack.enter_context(daemon(folder, "data-node", [*java, data_node]))
        wait_for(log, r"(registerDatanode: from)", names)
        yield Storage(f"hdfs://127.0.0.1:{port}/{BUCKET}", {"HADOOP_USER_NAME": "nightly"})


def _write_hdfs_settings(folder: Path, port: int, pages: int) -> None:
    """Everything below ``folder`` and on loopback."""
    core = {"fs.defaultFS": f"hdfs://127.0.0.1:{port}", "hadoop.tmp.dir": str(folder / "tmp")}
    sites = {
        "dfs.namenode.name.dir": str(folder / "names"),
        "dfs.datanode.data.dir": str(folder / "blocks"),
        "dfs.replication": "1",
        "dfs.permissions.enabled": "false",
        "dfs.namenode.http-address": f"127.0.0.1:{pages}",
        "dfs.datanode.address": "127.0.0.1:0",
        "dfs.datanode.http.address": "127.0.0.1:0",
        "dfs.datanode.ipc.address": "127.0.0.1:0",
        "dfs.datanode.hostname": "127.0.0.1",
    }
    for file, settings in (("core-site.xml", core), ("hdfs-site.xml", sites)):
        inside = "".join(
            f"<property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in settings.items()
        )
        (folder / file).write_text(f"<configuration>{inside}</configuration>")
    (folder / "log4j.properties").write_text(_LOG4J)
    for page in ("hdfs", "datanode"):  # a distribution has web pages there; the servers want the folders
        (folder / "webapps" / page / "WEB-INF").mkdir(parents=True)
        (folder / "webapps" / page / "WEB-INF" / "web.xml").write_text("<web-app/>")


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[Storage]:
    """versitygw, built from the Go proxy."""
    binary = _versitygw()
    (folder / "objects" / BUCKET).mkdir(parents=True)
    [port] = free_ports(1)
    keys = ("--access", "nightly", "--secret", "not-a-secret")
    command = [binary, "--port", f"127.0.0.1:{port}", *keys, "posix", folder / "objects"]
    with daemon(folder, "s3", command):
        _wait_until_it_listens(port)
        yield Storage(
            f"s3a://{BUCKET}/all",
            {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_ACCESS_KEY_ID": "nightly",
                "AWS_SECRET_ACCESS_KEY": "not-a-secret",
                "AWS_REGION": "us-east-1",
            },
        )


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens on {port}"
            time.sleep(0.1)
        else:
            return


def _versitygw() -> Path:
    home = cache_folder() / "tests-s3" / VERSITYGW.rpartition("@")[2]
    binary = home / "versitygw"
    if not binary.is_file():
        go = shutil.which("go")
        if go is None:
            pytest.fail("the S3 server of this test is built by Go: install it (1.24 or newer)")
        home.mkdir(parents=True, exist_ok=True)
        with_home = {**os.environ, "GOBIN": str(home), "GOFLAGS": ""}
        subprocess.run([go, "install", VERSITYGW], env=with_home, check=True, timeout=1500)
    return binary
