"""Speaking with the first process of a guest, over the serial port that QEMU shows as a Unix socket."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wrackline.fleets.base import FleetError
from wrackline.fleets.qemu import qmp
from wrackline.fleets.qemu.guest.init import WAITING, decode, encode

POLL_S = 0.01
READ_S = 0.2


class Agent:
    """The first process of one guest. Not thread-safe."""

    def __init__(self, path: Path, host: str, still_on: Callable[[], bool]) -> None:
        """``still_on``: whether waiting makes sense."""
        self._path = path
        self._host = host
        self._still_on = still_on
        self._socket: socket.socket | None = None
        self._received = b""

    def await_waiting(self, timeout_s: float) -> None:
        """Waits until the guest asks who it is. Raises FleetError at the deadline, and when the guest has
        ended."""
        deadline = time.monotonic() + timeout_s
        while self._socket is None:
            try:
                self._socket = qmp.connect(self._path, READ_S)
            except OSError:
                self._check(deadline, timeout_s, "it did not open its serial port")
                time.sleep(POLL_S)
        while self._line(deadline, timeout_s, "it did not ask for its name") != WAITING.strip():
            pass

    def ask(self, message: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Tell it something; its answer. Raises FleetError when there is none in time, or it is an error."""
        deadline = time.monotonic() + timeout_s
        if self._socket is None:
            raise FleetError(f"host {self._host}: nobody speaks with its first process")
        try:
            self._socket.settimeout(max(0.1, timeout_s))
            self._socket.sendall(encode(message))
            self._socket.settimeout(READ_S)
        except OSError as error:
            raise FleetError(f"host {self._host}: its serial port: {error}") from error
        while True:
            line = self._line(deadline, timeout_s, "its first process did not answer")
            if line == WAITING.strip():
                continue
            try:
                answer: dict[str, Any] = decode(line)
            except ValueError:
                continue  # half of a line, from before we listened
            if "error" in answer:
                raise FleetError(f"host {self._host}: its first process says: {answer['error']}")
            return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._received = b""

    def _line(self, deadline: float, timeout_s: float, what: str) -> bytes:
        assert self._socket is not None
        while b"\n" not in self._received:
            self._check(deadline, timeout_s, what)
            with contextlib.suppress(TimeoutError):
                try:
                    chunk = self._socket.recv(65536)
                except ConnectionError:
                    chunk = b""
                if not chunk:
                    self._check(0.0, timeout_s, "its serial port was closed")
                self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line.strip()

    def _check(self, deadline: float, timeout_s: float, what: str) -> None:
        if not self._still_on():
            raise FleetError(f"host {self._host}: its QEMU has ended")
        if time.monotonic() > deadline:
            raise FleetError(f"host {self._host}: {what} within {timeout_s:g} s")
