"""The JVM in this process, and the classes of one version of kafka-clients in it.

There is one JVM in a process, for its whole life; each version of the library has a class loader of its own.
Java calls give Python's interpreter lock back while they last. What a client starts of threads is made by the
thread that makes the client, and so is in the network which that thread has entered.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from wrackline.clients_java.errors import Thrown, error_of
from wrackline.needs import mend
from wrackline.workloads.clients.base import RefusedSetting, Unavailable

log = logging.getLogger("wrackline.client")

OPTIONS = (
    # Signals stay Python's: Ctrl-C ends a run in steps.
    "-Xrs",
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
)
_CLIENTS = "org.apache.kafka.clients"
_starting = threading.Lock()
MADE_TRIES = 10
"""How often a client is made at most whose own thread does not begin in time."""
END_S = 3.0
"""How long the end of the process waits for threads that use a client still."""


def look() -> str:
    """Path of the library that a JVM is. Starts nothing. Raises Unavailable."""
    try:
        import jpype  # an optional dependency: only clients in Java need it
    except ImportError as missing:
        raise Unavailable(f"library java needs JPype, which is not installed: {mend('jvm')}") from missing
    try:
        return str(jpype.getDefaultJVMPath())
    except (jpype.JVMNotFoundException, jpype.JVMNotSupportedException, OSError) as missing:
        raise Unavailable(
            f"library java needs a JVM, Java 17 or newer, and none is found: {mend('java')}, or set JAVA_HOME"
        ) from missing


def started() -> Any:
    """JPype, with the JVM running. Raises Unavailable."""
    path = look()
    import jpype  # see above
    import jpype.config

    with _starting:
        if not jpype.isJVMStarted():
            # At the end nobody waits for Java's threads: the clients are closed, what is left does nothing.
            jpype.config.destroy_jvm = False
            try:
                jpype.startJVM(path, *OPTIONS, classpath=[], interrupt=False)
            except (OSError, RuntimeError) as error:
                raise Unavailable(f"the JVM {path} does not start: {error}") from error
            atexit.register(_end_all)
    return jpype


class Closing(Protocol):
    def end(self) -> None:
        """End the client at once, whatever it is doing; from any thread."""


_open: weakref.WeakSet[Closing] = weakref.WeakSet()
"""Clients that were not closed yet."""


def opened(client: Closing) -> None:
    _open.add(client)


def closed(client: Closing) -> None:
    _open.discard(client)


def _end_all() -> None:
    """Python ends: what is left open is ended, and threads that are inside of Java come back. One that came
    back later would abort the process."""
    left = list(_open)
    for client in left:
        with contextlib.suppress(RuntimeError, Unavailable):
            client.end()
    deadline = time.monotonic() + END_S
    for thread in threading.enumerate() if left else ():
        if thread is not threading.current_thread():
            with contextlib.suppress(RuntimeError, AssertionError):  # Java's own threads cannot be joined
                thread.join(max(0.0, deadline - time.monotonic()))
    _stop_releases()


def _stop_releases() -> None:
    """Java stops to release what it held of Python: the thread that does so would meet the end of Python and
    abort the process, whatever its exit code was to be."""
    import jpype

    with contextlib.suppress(jpype.JException, TypeError):
        jpype.JClass("org.jpype.ref.JPypeReferenceQueue").getInstance().stop()


class Kafka:
    """The classes of one version. Safe to use from several threads."""

    def __init__(self, version: str, jars: Sequence[Path]) -> None:
        """Starts the JVM, if nobody did. Raises Unavailable."""
        self.version = version
        self.jpype = started()
        java = self.jpype.JClass
        self._thread = java("java.lang.Thread")
        self.duration = java("java.time.Duration")
        self.arrays = java("java.util.ArrayList")
        self.maps = java("java.util.HashMap")
        self.sets = java("java.util.HashSet")
        urls = [java("java.io.File")(str(jar)).toURI().toURL() for jar in jars]
        parent = java("java.lang.ClassLoader").getPlatformClassLoader()
        self._loader = java("java.net.URLClassLoader")(self.jpype.JArray(java("java.net.URL"))(urls), parent)
        self._bytes = self.jpype.JArray(self.jpype.JByte)
        self._throwable = java("java.lang.Throwable")
        self._errors = self.named("org.apache.kafka.common.protocol.Errors")
        self.place = self.named("org.apache.kafka.common.TopicPartition")
        self.offset = self.named(f"{_CLIENTS}.consumer.OffsetAndMetadata")
        self.record = self.named(f"{_CLIENTS}.producer.ProducerRecord")
        self._fields: dict[tuple[str, str], Any] = {}
        """(class, name of a field) -> the field, as reflection has it."""
        self.long, self.int = self.jpype.JLong, self.jpype.JInt

    def named(self, name: str) -> Any:
        """A class of the library, by its whole name."""
        return self.jpype.JClass(name, loader=self._loader)

    def has(self, name: str) -> bool:
        try:
            self.named(name)
        except self.jpype.JException:
            return False
        return True

    def made(self, kind: str, config: Mapping[str, str], *extra: Any) -> Any:
        """A client; ``kind``: ``producer.KafkaProducer``. The library finds classes that a setting names by
        the class loader of the thread. Raises RefusedSetting.

        A consumer waits for its own thread to begin, and no longer than for an answer of a broker. On a busy
        machine that is too short, and says nothing of the settings: it is made again.
        """
        self.enter()
        for tries in reversed(range(MADE_TRIES)):
            try:
                return self.named(f"{_CLIENTS}.{kind}")(self.map(config), *extra)
            except self.jpype.JException as error:
                thrown = self.thrown(error)
                cause = thrown if thrown.cause is None else thrown.cause
                if not tries or "TimeoutException" not in cause.kinds:
                    raise RefusedSetting(" ".join(cause.said.split())) from error
                log.debug("%s is made again: %s", kind, cause.said)
        raise AssertionError("the last try returns or raises")

    def close(self, client: Closing, handle: Any, how: Any) -> None:
        """Closes a client of the library for good. ``how``: a time to wait, or options. What goes wrong is
        told in the log: nobody could do anything about it."""
        try:
            handle.close(how)
        except self.jpype.JException as error:
            log.debug("%s", error)
        closed(client)

    def enter(self) -> None:
        """This thread's class loader is that of the library. A thread that is known to Java would keep the
        process from ending, unless it is a daemon."""
        self._thread.currentThread().setContextClassLoader(self._loader)

    def bytes(self, content: bytes) -> Any:
        return self._bytes(content)

    def ms(self, seconds: float) -> Any:
        return self.duration.ofMillis(round(seconds * 1e3))

    def map(self, entries: Mapping[Any, Any]) -> Any:
        made = self.maps()
        for key, value in entries.items():
            made.put(key, value)
        return made

    def list(self, entries: Sequence[Any]) -> Any:
        made = self.arrays()
        for entry in entries:
            made.add(entry)
        return made

    def offsets(self, topic: str, offsets: Mapping[int, int]) -> Any:
        return self.map({self.place(topic, p): self.offset(self.long(at)) for p, at in offsets.items()})

    def callback(self, interface: str, **methods: Callable[..., Any]) -> Any:
        """An object with this interface of the library, whose methods are these."""
        return self.jpype.JProxy(self.named(f"{_CLIENTS}.{interface}"), dict=methods)

    def thrown(self, wrong: Any) -> Thrown:
        """Returns what a Java exception says."""
        kinds, above = [], wrong.getClass()
        while above is not None:
            kinds.append(str(above.getSimpleName()))
            above = above.getSuperclass()
        error = self._errors.forException(wrong)
        cause = wrong.getCause()
        return Thrown(
            kinds=tuple(kinds),
            kafka_name=str(error.name()),
            code=int(error.code()),
            kafka_said=str(error.message() or ""),
            said=str(wrong.getMessage() or kinds[0]),
            cause=self.thrown(cause) if cause is not None else None,
        )

    @contextlib.contextmanager
    def in_our_words(self) -> Iterator[None]:
        """Raises ClientError in the place of Java's exceptions."""
        try:
            yield
        except self.jpype.JException as error:
            raise error_of(self.thrown(error)) from error

    def field(self, of: Any, name: str) -> Any:
        """Returns a private field of an object, its class's own or inherited. Raises AttributeError."""
        result = self._declared(of, name)
        if result is None:
            raise AttributeError(name)
        return result.get(of)

    def has_field(self, of: Any, name: str) -> bool:
        return self._declared(of, name) is not None

    def _declared(self, of: Any, name: str) -> Any:
        kind = of.getClass()
        key = str(kind.getName()), name
        if key not in self._fields:
            result = None
            while kind is not None and result is None:
                result = next((one for one in kind.getDeclaredFields() if one.getName() == name), None)
                kind = kind.getSuperclass()
            if result is not None:
                result.setAccessible(True)
            self._fields[key] = result
        return self._fields[key]

    def has_method(self, of: Any, name: str) -> bool:
        return any(method.getName() == name for method in of.getClass().getDeclaredMethods())

    def ask(self, of: Any, name: str, *arguments: Any) -> Any:
        """Call a method that is not public; its name and how many arguments it has are enough to find it."""
        for method in of.getClass().getDeclaredMethods():
            if method.getName() == name and method.getParameterCount() == len(arguments):
                method.setAccessible(True)
                return method.invoke(of, *arguments)
        raise AttributeError(name)
