"""Carrying a remote command's output: until it ends, with a deadline (paramiko's own reads block one stream
at a time), or while it goes on."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import paramiko

KILL_AFTER_S = 1.0
"""Between the deadline's SIGTERM and its SIGKILL on the host."""
SILENCE_S = 0.3
"""After the exit code, how long a child that kept the output open may stay silent before we go."""


class Sink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class SshStream:
    """A command on a host that goes on, with a connection of its own."""

    def __init__(self, channel: paramiko.Channel, disconnect: Callable[[], None]) -> None:
        self._channel = channel
        self._disconnect = disconnect

    def read(self, timeout_s: float) -> bytes:
        """Returns the output since the last call (errors too), as soon as there is some; ``b""`` when the
        command or the connection has ended. Raises TimeoutError when there was none for so long, as also a
        host without power does."""
        self._channel.settimeout(timeout_s)
        return self._channel.recv(1 << 16)

    def close(self) -> None:
        """Stop listening: the command meets a broken pipe when it says the next thing."""
        self._disconnect()


def pump(channel: paramiko.Channel, stdout: Sink, stderr: Sink, deadline: float) -> int:
    """Carry output until the command ends; its exit code. Raises TimeoutError at the deadline."""
    quiet_since: float | None = None
    poll = select.poll()  # select() cannot take the descriptors of a process with more than 1,024 of them
    poll.register(channel.fileno(), select.POLLIN)
    while not channel.eof_received:
        limit = deadline if quiet_since is None else min(deadline, quiet_since + SILENCE_S)
        ready = poll.poll(1000 * max(0.0, min(limit - time.monotonic(), 0.1)))
        moved = _move(channel, stdout, stderr) if ready else False
        if time.monotonic() > deadline:
            raise TimeoutError
        if channel.exit_status_ready():
            # A daemon that was started without redirecting its output would keep us here for its whole life.
            if moved or quiet_since is None:
                quiet_since = time.monotonic()
            elif time.monotonic() > quiet_since + SILENCE_S:
                break
    _move(channel, stdout, stderr)
    if not channel.status_event.wait(max(0.0, deadline - time.monotonic())):
        raise TimeoutError
    if channel.exit_status < 0:
        from paramiko import SSHException  # late: nobody should wait for it who has no host with SSH

        raise SSHException("ended without an exit code: killed, or the host went away")
    return channel.exit_status


def _move(channel: paramiko.Channel, stdout: Sink, stderr: Sink) -> bool:
    moved = False
    while channel.recv_ready():
        stdout.write(channel.recv(1 << 16))
        moved = True
    while channel.recv_stderr_ready():
        stderr.write(channel.recv_stderr(1 << 16))
        moved = True
    return moved
