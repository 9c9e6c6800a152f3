"""The process that holds the JVM: reads requests on standard input, answers on standard output. No library of
ours needs to be in it but columns of int64; whoever started it may kill it at any time.

    python -m wrackline.checkers.jvm.child FOLDER HEAP CLASSPATH [OPTION OF THE JVM ...]

It works in FOLDER, an empty one: code that a JVM loads writes files where it is. (dom-top, which Elle is
written with, writes each class that its macro ``loopr`` makes; a JVM that crashes writes its log.) Who
started it removes the folder; if nobody is left to do that, it does so itself.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import shutil
import sys
import threading
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, BinaryIO

import jpype
import jpype.config

from wrackline.checkers.jvm.compiled import JVM_OPTIONS


def main(folder: str, heap: str, classpath: str, *options: str) -> None:
    os.chdir(folder)
    # The JVM and Clojure may print: answers have a descriptor of their own.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests, folder), daemon=True).start()
    jvm = _Jvm(heap, classpath.split(os.pathsep), options)
    while True:
        function, arguments = requests.get()
        try:
            answer: Any = getattr(jvm, function)(*arguments)
        except (jpype.JException, TypeError, ValueError, RuntimeError) as error:
            answer = ("error", _told(error))
        pickle.dump(answer, answers)
        answers.flush()


def _told(wrong: Exception) -> str:
    """Describes an error in one line, with its root cause: Clojure wraps what went wrong in "Syntax error
    at ..."."""
    cause: Any = wrong
    for _ in range(16):
        below = cause.getCause() if isinstance(cause, jpype.JException) else None
        if below is None:
            break
        cause = below
    told = [f"{type(one).__name__}: {(str(one).splitlines() or [''])[0]}" for one in (wrong, cause)]
    return told[0] if cause is wrong else f"{told[0]} ({told[1]})"


def _cycle(indexes: Any, edges: Any) -> tuple[list[int], list[tuple[Any, ...]]]:
    """(indexes of the completions, edges as (kind, key, value, next value, process))."""
    return (
        [int(index) for index in indexes],
        [(str(kind), *(int(number) for number in numbers)) for kind, *numbers in edges],
    )


def _listen(stream: BinaryIO, requests: queue.SimpleQueue[Any], folder: str) -> None:
    """Ends the process, whatever the JVM is doing, when nobody is left to answer."""
    try:
        while True:
            requests.put(pickle.load(stream))
    except (EOFError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


class _Jvm:
    def __init__(self, heap: str, classpath: list[str], options: Sequence[str]) -> None:
        # Clojure's thread pool would hold up the end of the process for a minute.
        jpype.config.destroy_jvm = False
        jpype.startJVM(
            f"-Xmx{heap}",
            "-Xrs",  # or the JVM answers Ctrl-C by itself
            "-XX:+ExitOnOutOfMemoryError",
            *JVM_OPTIONS,
            *options,
            classpath=classpath,
            convertStrings=False,
        )
        jpype.JClass("java.util.logging.LogManager").getLogManager().reset()
        logging.raiseExceptions = False
        self._clojure = jpype.JClass("clojure.java.api.Clojure")
        self._loaded: set[str] = set()

    def hello(self) -> tuple[str, str]:
        """(version of Java, version of Clojure)."""
        version = self._clojure.var("clojure.core", "clojure-version").invoke()
        return str(jpype.JClass("java.lang.System").getProperty("java.version")), str(version)

    def load(self, name: str) -> str:
        if name not in self._loaded:
            loader = jpype.JClass("java.lang.ClassLoader").getSystemClassLoader()
            if loader.getResource(f"wrackline/{name}__init.class") is not None:
                self._clojure.var("clojure.core", "require").invoke(self._clojure.read(f"wrackline.{name}"))
            else:
                source = files("wrackline.checkers.jvm").joinpath(f"{name}.clj").read_text()
                self._clojure.var("clojure.core", "load-string").invoke(source)
            self._loaded.add(name)
        return "loaded"

    def knossos(
        self, model: str, initial: int | None, memo: bool, fs: list[str], *columns: Any
    ) -> tuple[int, int, Any]:
        """See ``check`` in knossos.clj; the last two columns are the codes of nil and empty."""
        self.load("knossos")
        *arrays, nothing, empty = columns
        result = self._clojure.var("wrackline.knossos", "check").invoke(
            model,
            None if initial is None else jpype.JLong(initial),
            memo,
            jpype.java.util.ArrayList([jpype.JString(f) for f in fs]),
            *(jpype.JArray(jpype.JLong)(array) for array in arrays),
            jpype.JLong(nothing),
            jpype.JLong(empty),
        )
        states = [tuple([int(number) for number in numbers] for numbers in state) for state in result[2]]
        return int(result[0]), int(result[1]), states

    def elle(
        self, model: str, consistency: str, assumed: list[str], timeout_ms: int, *columns: Any
    ) -> tuple[int, Any, Any]:
        """See ``check`` in elle.clj; the last column is the code of nil."""
        self.load("elle")
        *arrays, nothing = columns
        valid, anomalies, refuted = self._clojure.var("wrackline.elle", "check").invoke(
            model,
            consistency,
            jpype.java.util.ArrayList([jpype.JString(one) for one in assumed]),
            jpype.JLong(timeout_ms),
            *(jpype.JArray(jpype.JLong)(array) for array in arrays),
            jpype.JLong(nothing),
        )
        result = [
            (
                str(kind),
                int(count),
                [
                    ([int(index) for index in indexes], str(text), _cycle(*cycle), str(facts))
                    for indexes, text, cycle, facts in some
                ],
            )
            for kind, count, some in anomalies
        ]
        return int(valid), result, [str(one) for one in refuted]


if __name__ == "__main__":
    main(*sys.argv[1:])
