"""Nodes as forks of one process that has imported the broker: to import it takes ten times as long as to
start it, and the tests start some hundreds.

A node is a process of its own as before, with its own files, limits and end; only its command line is that of
the process it came from, and it lives no longer than that one, which ends with the tests.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
ROOT = Path(__file__).parents[3]


class Forked:
    """A node's process, to be used like a `subprocess.Popen`."""

    def __init__(self, parent: Parent, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._lock = threading.Lock()
        self._fd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["wrackline-broker"], timeout)
        return code

    def _ended(self, within_s: float) -> int | None:
        with self._lock:  # a test may wait in one thread and look in another
            if self.returncode is None and select.select([self._fd], [], [], within_s)[0]:
                self.returncode = int(self._parent.ask(reap=self.pid))
                os.close(self._fd)
            return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._fd, number)


class Parent:
    """The process that nodes are forks of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            start_new_session=True,  # Ctrl-C is for the tests, which end their nodes themselves
        )
        atexit.register(self._end)

    def ask(self, **request: Any) -> Any:
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        with self._lock:
            to.write(json.dumps(request).encode() + b"\n")
            to.flush()
            answer = back.readline()
        assert answer, f"the parent of all nodes has ended ({self._process.poll()})"
        return json.loads(answer)

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(10)


@functools.cache
def _parent(of: int) -> Parent:
    """Of this process: a fork of the tests has its own."""
    del of
    return Parent()


def start(arguments: Sequence[str], log: Path, open_files: int | None) -> Forked:
    """``python -m wrackline.broker ARGUMENTS``, with its output at the end of ``log``."""
    parent = _parent(os.getpid())
    log.touch()
    pid = parent.ask(
        arguments=list(arguments),
        log=str(log),
        open_files=open_files,
        environment=dict(os.environ),
        folder=str(Path.cwd()),
    )
    return Forked(parent, int(pid))


# --- in the parent ----------------------------------------------------------------------------------------


def serve() -> int:
    from wrackline.broker.__main__ import main  # late: the tests themselves have no use for the broker

    libc = ctypes.CDLL(None)
    gc.freeze()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "reap" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["reap"], 0)[1])
        else:
            parent, answer = os.getpid(), os.fork()
            if answer == 0:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(1)
                _become(request)
                return main(request["arguments"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    return 0


def _become(request: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    nowhere = os.open(os.devnull, os.O_RDONLY)
    log = os.open(request["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for source, target in ((nowhere, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.closerange(3, 64)
    if (limit := request["open_files"]) is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


if __name__ == "__main__":
    sys.exit(serve())
