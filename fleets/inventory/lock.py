"""A host belongs to one run at a time. The lock is a process on the host, at the end of a connection of its
own: when its owner dies, the connection ends and the lock with it; when the owner's machine vanishes, the
silence ends it. So there is no lock that is stale and has to be judged by its age."""

from __future__ import annotations

import getpass
import platform
import shlex
import threading
from datetime import UTC, datetime
from pathlib import Path

import paramiko

from wrackline.fleets.base import Host
from wrackline.fleets.connection import HostConnection

FILE = "/var/tmp/wrackline.lock"
"""Every user of a host can write there, and nothing removes it while it is held."""
WORD_EVERY_S = 5.0
PATIENCE_S = 45.0
"""So long after the last word the host is free."""
TAKE_S = 20.0
_PROGRAM = Path(__file__).with_name("lock_program.py")


def owner(run: str) -> str:
    """Returns the owner's description for other runs."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return f"{run} of {getpass.getuser()}@{platform.node()}, since {now}"


class HostLocks:
    """The locks of one fleet. Safe to use from several threads for different hosts."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._held: dict[str, tuple[HostConnection, paramiko.Channel]] = {}
        self._ended = threading.Event()
        self._words: threading.Thread | None = None

    def take(self, host: Host, connection: HostConnection) -> None:
        """``connection``: one to this host that nobody else uses. Raises FleetError when another has the
        host, with who and since when."""
        self.drop(host)
        arguments = [FILE, owner(self._run), f"{PATIENCE_S:g}"]
        command = shlex.join(
            [host.python, "-I", "-S", "-c", _PROGRAM.read_text(encoding="ascii"), *arguments]
        )
        said = b""
        try:
            channel = connection.channel(TAKE_S, "take the host's lock")
            channel.set_combine_stderr(True)
            channel.settimeout(TAKE_S)
            channel.exec_command(f"exec {command}")
            while not said.endswith(b"\n") and (chunk := channel.recv(4096)):
                said += chunk
        except (paramiko.SSHException, EOFError, OSError) as wrong:
            connection.drop()
            raise connection.error(
                f"its lock {FILE} could not be taken: {str(wrong) or 'no answer'}"
            ) from wrong
        word, _, rest = said.decode(errors="replace").strip().partition(" ")
        if word == "taken":
            self._held[host.name] = (connection, channel)
            self._speak()
            return
        connection.drop()
        if word == "held":
            raise connection.error(f"it is in use by {rest or 'another run'}; wait for that to end")
        last = (said.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
        raise connection.error(f"its lock {FILE} could not be taken: {last}")

    def drop(self, host: Host) -> None:
        """Give the host back. Idempotent."""
        held = self._held.pop(host.name, None)
        if held is not None:
            connection, channel = held
            try:
                channel.shutdown_write()  # the end of its input: it removes its file
                channel.settimeout(5.0)
                channel.recv(1)
            except (paramiko.SSHException, EOFError, OSError):
                pass  # the host is gone, and the lock with it
            connection.drop()

    def lost(self) -> list[str]:
        """Names of hosts whose lock is gone, though nobody gave it back."""
        return [name for name, (_, channel) in list(self._held.items()) if channel.closed]

    def close(self) -> None:
        """Ends the connection to the lock's program; the lock is dropped by the end of this process at the
        latest."""
        self._ended.set()

    def _speak(self) -> None:
        if self._words is None:
            self._words = threading.Thread(target=self._speak_on, name="host-locks", daemon=True)
            self._words.start()

    def _speak_on(self) -> None:
        while not self._ended.wait(WORD_EVERY_S):
            for _, channel in list(self._held.values()):
                try:
                    channel.settimeout(1.0)
                    channel.sendall(b".")
                except (TimeoutError, paramiko.SSHException, EOFError, OSError):
                    continue  # without power, or behind a fault: it is taken again when the host is back
