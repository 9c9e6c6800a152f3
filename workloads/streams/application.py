"""The application: its jars, and the processes of this machine that run it.

`Application.java` is compiled when a version is used for the first time, and kept beside the version's jars.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wrackline.needs import mend
from wrackline.workloads.clients.base import ClientError, Unavailable
from wrackline.workloads.clients.store import ClientStore
from wrackline.workloads.clients.versions import KAFKA_STREAMS, NEWEST
from wrackline.workloads.log.processes import Context, catch_all
from wrackline.workloads.streams.spec import Protocol, StreamsSpec

SOURCE = Path(__file__).with_name("Application.java")
JVM = ("-Xms32m", "-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
END_S = 12.0
"""How long an instance may take to end when it is asked to."""
LOOK_S = 0.2
COMPILE_S = 120.0


def prepare(version: str, say: Callable[[str], None]) -> str:
    """Fetches and compiles what is not here yet; returns the class path. Raises Unavailable."""
    installed = ClientStore(package=KAFKA_STREAMS).install(version or NEWEST, say=say)
    jars = os.pathsep.join(str(file) for file in installed.files if file.suffix == ".jar")
    classes = installed.folder / f"classes-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}"
    if not classes.is_dir():
        _compile(jars, classes)
    return f"{jars}{os.pathsep}{classes}"


def _compile(jars: str, classes: Path) -> None:
    javac = shutil.which("javac")
    if javac is None:
        raise Unavailable(f"workload streams needs a Java compiler: {mend('javac')}")
    fresh = Path(tempfile.mkdtemp(dir=classes.parent))
    command = (javac, "-nowarn", "--release", "17", "-cp", jars, "-d", str(fresh), str(SOURCE))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_S)
    if done.returncode:
        shutil.rmtree(fresh)
        raise Unavailable(f"{SOURCE} does not compile: {done.stderr.strip() or done.stdout.strip()}")
    try:
        fresh.rename(classes)
    except OSError:  # somebody else was faster
        shutil.rmtree(fresh)


def properties(
    bootstrap: str, name: str, folder: Path, spec: StreamsSpec, instance: int, protocol: Protocol
) -> Mapping[str, str]:
    given = {
        "application.id": name,
        "bootstrap.servers": bootstrap,
        "client.id": f"{name}-{instance}",
        "processing.guarantee": "exactly_once_v2",
        "num.stream.threads": str(spec.threads),
        "num.standby.replicas": str(spec.standbys),
        "commit.interval.ms": str(spec.commit_ms),
        "statestore.cache.max.bytes": "0",
        "state.dir": str(folder / f"state-{instance}"),
        "producer.transaction.timeout.ms": str(spec.transaction_timeout_ms),
        "producer.linger.ms": "5",
        "main.consumer.auto.offset.reset": "earliest",
        "request.timeout.ms": "5000",
        "default.api.timeout.ms": "20000",
        "metadata.max.age.ms": "5000",
        "reconnect.backoff.max.ms": "500",
        "enable.metrics.push": "false",
    }
    if protocol == "streams":
        given["group.protocol"] = "streams"
    else:
        given["main.consumer.session.timeout.ms"] = str(spec.session_timeout_ms)
        given["main.consumer.heartbeat.interval.ms"] = str(max(100, spec.session_timeout_ms // 6))
    return given


class Migration:
    """The change of an application from one protocol to the next, if it makes one. All instances are down,
    and the group is empty, before one of them starts with the next."""

    def __init__(self, spec: StreamsSpec) -> None:
        self._remaining = list(spec.protocols)
        self._empty_s = spec.session_timeout_ms / 1e3
        """An instance of protocol classic that stops does not leave the group: it is out when its time is."""
        self._due = time.monotonic() + spec.migrate_after_s
        self._down = threading.Barrier(spec.instances, self._turn)

    @property
    def protocol(self) -> Protocol:
        """Returns that by which instances take part now."""
        return self._remaining[0]

    @property
    def is_due(self) -> bool:
        return len(self._remaining) > 1 and time.monotonic() > self._due

    def join(self) -> None:
        """An instance is down. Returns when it is the next protocol's turn, or when nobody waits any more."""
        with contextlib.suppress(threading.BrokenBarrierError):
            self._down.wait()

    def end(self) -> None:
        """From now on no instance waits for others."""
        self._down.abort()

    def _turn(self) -> None:
        time.sleep(self._empty_s)
        self._remaining.pop(0)


class Instance(threading.Thread):
    """One instance after another of the same number: it crashes, leaves, or is halted for a while, by chance,
    until it shall be calm."""

    def __init__(
        self,
        context: Context,
        spec: StreamsSpec,
        number: int,
        classpath: str,
        name: str,
        migration: Migration,
    ) -> None:
        super().__init__(name=f"streams-{number}", daemon=True)
        self._migration = migration
        self._context, self._spec, self._number = context, spec, number
        self._classpath, self._application = classpath, name
        self._random = random.Random(f"{name}-{number}")
        self._calm, self._over = threading.Event(), threading.Event()
        self.folder = context.recorder.run_dir / "streams"
        self._state = Path(tempfile.mkdtemp(prefix="wrackline-streams-"))

    def calm(self) -> None:
        """From now on nothing befalls it."""
        self._calm.set()

    def end(self) -> None:
        self._over.set()
        self._calm.set()
        self._migration.end()

    def run(self) -> None:
        try:
            with catch_all(self._context, self.name), self._context.enter():
                while not self._over.is_set():
                    if self._migration.is_due:
                        self._migration.join()
                    else:
                        self._live(self._start())
        finally:
            shutil.rmtree(self._state, ignore_errors=True)

    def _start(self) -> subprocess.Popen[bytes]:
        """It dies with this thread, also when it is halted."""
        context, spec = self._context, self._spec
        self.folder.mkdir(exist_ok=True)
        given = properties(
            context.bootstrap,
            self._application,
            self._state,
            spec,
            self._number,
            self._migration.protocol,
        )
        file = self._state / "application.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        topics = list(context.topics)
        with (self.folder / f"instance-{self._number}.log").open("ab") as log:
            command = ("java", *JVM, "-cp", self._classpath, "Application", str(file), *topics, spec.store)
            return subprocess.Popen(
                ("setpriv", "--pdeathsig", "KILL", *command), stdin=subprocess.PIPE, stdout=log, stderr=log
            )

    def _live(self, process: subprocess.Popen[bytes]) -> None:
        """Until it has ended, of itself or not."""
        spec = self._spec
        every_s = {
            "crash": spec.crash_every_s,
            "leave": spec.leave_every_s,
            "pause": spec.pause_every_s,
        }
        due = {what: self._later(every) for what, every in every_s.items() if every}
        try:
            while process.poll() is None and not self._over.is_set() and not self._migration.is_due:
                what = min(due, key=lambda each: due[each], default="")
                if self._calm.is_set() or not what or time.monotonic() < due[what]:
                    self._over.wait(LOOK_S)
                elif what == "pause":
                    process.send_signal(signal.SIGSTOP)
                    self._wait_away()
                    process.send_signal(signal.SIGCONT)
                    due[what] = self._later(every_s[what])
                else:
                    self._finish(process, at_once=what == "crash")
                    self._wait_away()
        finally:
            self._finish(process, at_once=False)

    def _later(self, every_s: float) -> float:
        """Draws when it is this instance's turn, of all that have one in so many seconds."""
        return time.monotonic() + self._random.expovariate(1 / (every_s * self._spec.instances))

    def _wait_away(self) -> None:
        self._calm.wait(self._random.uniform(0, self._spec.away_ms / 1e3))

    def _finish(self, process: subprocess.Popen[bytes], *, at_once: bool) -> None:
        if process.poll() is None and not at_once:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                at_once = True
        if process.poll() is None:
            process.kill()
            process.wait()


class Watcher(threading.Thread):
    """Asks again and again what the application has committed of the input."""

    EVERY_S = 0.5

    def __init__(self, context: Context, name: str, committed: Callable[[Mapping[int, int]], None]) -> None:
        super().__init__(name="streams-watcher", daemon=True)
        self._context, self._application, self._committed = context, name, committed
        self.over = threading.Event()

    def run(self) -> None:
        context = self._context
        with catch_all(context, self.name), context.enter():
            client = context.library.consumer(context.bootstrap, context.spec, group=self._application)
            while not self.over.wait(self.EVERY_S):
                try:
                    self._committed(client.committed(context.topic, range(context.partitions)))
                except ClientError as refused:
                    if refused.fatal or client.broken:
                        client.close()
                        client = context.library.consumer(
                            context.bootstrap, context.spec, group=self._application
                        )
            client.close()
