"""Linux namespaces, for the ``netns`` fleet: entering a network, finding and stopping what lives in one.

Network namespaces are a property of a *thread*, so a thread can step into a fleet's network, open a socket
and step out again while its siblings stay where they are (``setns(2)``; Python 3.12 has it in ``os``, 3.11
does not).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.local.look import is_alive, signal_all
from wrackline.fleets.local.state import lent_locks

NETNS_DIR = Path("/run/netns")
CLONE_NEWNET = 0x40000000
IP_TIMEOUT_S = 20.0
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

_libc = ctypes.CDLL(None, use_errno=True)


class Mount(NamedTuple):
    """A line of /proc/self/mountinfo."""

    point: Path
    filesystem: str
    source: str


def mounts() -> list[Mount]:
    """All that this process sees."""
    result = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        of_mount, _, of_filesystem = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), of_mount.split()[4])
        result.append(Mount(Path(point), *of_filesystem.split()[:2]))
    return result


def find_tool(name: str) -> str:
    """Absolute path of a system tool, also where ``/usr/sbin`` is not on PATH. Raises FleetError when it is
    absent."""
    result = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin")
    if result is None:
        raise FleetError(f"{name} is not installed on this machine; `wrackline doctor` says what does")
    return result


def run_tool(arguments: Sequence[str], *, stdin: str = "", timeout_s: float = IP_TIMEOUT_S) -> str:
    """Run a tool of the machine; its standard output. Raises FleetError with the tool's own last words."""
    command = [find_tool(arguments[0]), *arguments[1:]]
    try:
        with lent_locks() as locks:
            done = subprocess.run(
                command,
                input=stdin,
                text=True,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                pass_fds=locks,
            )
    except subprocess.TimeoutExpired as error:
        raise FleetError(f"`{' '.join(arguments)}` did not end within {timeout_s:g} s") from error
    if done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise FleetError(f"`{' '.join(arguments)}`: {'; '.join(words)}")
    return done.stdout


def ip_batch(lines: Sequence[str], *, netns: str | None = None) -> None:
    """Run several ``ip`` commands in one process, inside ``netns`` when given. The first failure stops the
    batch."""
    where = ["-n", netns] if netns else []
    try:
        run_tool(["ip", *where, "-batch", "-"], stdin="\n".join(lines) + "\n")
    except FleetError as error:
        raise FleetError(f"{error} (commands: {' | '.join(lines)})") from error


def netns_path(netns: str) -> Path:
    return NETNS_DIR / netns


def netns_exists(netns: str) -> bool:
    return netns_path(netns).exists()


def delete_netns(netns: str) -> None:
    """Remove a named network namespace; fine when it is not there."""
    if not netns_exists(netns):
        return
    try:
        run_tool(["ip", "netns", "del", netns])
    except FleetError:
        # An owner killed between creating the name and mounting the namespace on it leaves an empty file
        # behind.
        if netns_exists(netns):
            netns_path(netns).unlink()


@contextlib.contextmanager
def entered_netns(netns: str) -> Iterator[None]:
    """Enters the network namespace ``netns`` with this thread, and with threads and processes started by it.
    Nests; always restores."""
    try:
        target = os.open(netns_path(netns), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise FleetError(f"the network {netns} does not exist: the fleet is not up") from error
    try:
        origin = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(target, netns)
            try:
                yield
            finally:
                _setns(origin, "the network this thread came from")
        finally:
            os.close(origin)
    finally:
        os.close(target)


def _setns(descriptor: int, name: str) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise FleetError(f"cannot enter {name}: {os.strerror(code)}; network namespaces need root")


def set_link(control: socket.socket, link: str, *, up: bool) -> None:
    """Set a link up or down through ``control``, a socket made in the link's namespace: no process, so it
    takes microseconds. Raises OSError."""
    request = struct.pack("16sh14x", link.encode(), 0)
    (flags,) = struct.unpack_from("H", fcntl.ioctl(control, SIOCGIFFLAGS, request), 16)
    flags = flags | IFF_UP if up else flags & ~IFF_UP
    fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", link.encode(), flags))


# -- processes -----------------------------------------------------------------------------------------------


def processes_in(kind: str, inode: int) -> list[int]:
    """Process ids whose namespace of this kind (``net``, ``pid``) has this inode."""
    expected = f"{kind}:[{inode}]"
    result = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry.name}/ns/{kind}") == expected:  # noqa: PTH115 - it names no file
                result.append(int(entry.name))
    return result


def processes_in_netns(netns: str) -> list[int]:
    """Process ids whose main thread is in ``netns``; none when it does not exist."""
    try:
        return processes_in("net", netns_path(netns).stat().st_ino)
    except FileNotFoundError:
        return []


def own_family() -> set[int]:
    """This process and its ancestors: never to be killed by a clean-up, wherever they stand."""
    family = {os.getpid()}
    parent = os.getppid()
    while parent > 1 and parent not in family:
        family.add(parent)
        with contextlib.suppress(OSError, IndexError, ValueError):
            parent = int(Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[1])
    return family


def wait_dead(pids: Iterable[int], *, timeout_s: float = 10.0) -> None:
    """Waits until none of the killed processes is left. Raises FleetError at the deadline."""
    deadline = time.monotonic() + timeout_s
    while left := [pid for pid in pids if is_alive(pid)]:
        if time.monotonic() > deadline:
            raise FleetError(f"processes {left} did not die within {timeout_s:g} s of SIGKILL")
        time.sleep(0.002)


def kill_processes_in_netns(netns: str, *, timeout_s: float = 10.0) -> None:
    """SIGKILL everything in ``netns`` except this process and its ancestors, and wait until it is gone."""
    deadline = time.monotonic() + timeout_s
    spared = own_family()
    while left := [pid for pid in processes_in_netns(netns) if pid not in spared and is_alive(pid)]:
        if time.monotonic() > deadline:
            raise FleetError(f"processes {left} in {netns} did not die within {timeout_s:g} s of SIGKILL")
        signal_all(left, signal.SIGKILL)
        time.sleep(0.005)


def namespace_connector(netns: str) -> Callable[[Host, float], socket.socket]:
    """Connects from within ``netns``: a socket stays in the network it was made in, so only its making
    enters."""

    def connect(host: Host, timeout_s: float) -> socket.socket:
        with entered_netns(netns):
            connection = socket.socket()
        try:
            connection.settimeout(timeout_s)
            connection.connect((host.address, host.port))
        except OSError:
            connection.close()
            raise
        return connection

    return connect
