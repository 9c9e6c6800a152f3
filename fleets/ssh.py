"""The one typed module over Fabric and paramiko: a kept, thread-safe connection to a host.

Fabric makes and owns the connection; commands run on channels of its paramiko transport directly, because
those may be opened from several threads at once and end on a deadline. A command is never sent twice: a
connection found dead before the command left is made again, one that dies later is an error.
"""

from __future__ import annotations

import contextlib
import io
import logging
import shlex
import shutil
import socket
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

import fabric
import paramiko

from wrackline.fleets.base import FleetError, Host, Remote, Result
from wrackline.fleets.channel import Sink, SshStream, pump
from wrackline.fleets.netns.namespaces import entered_netns

CONNECT_TIMEOUT_S = 10.0
FILE_TIMEOUT_S = 60.0
KILL_AFTER_S = 1.0
"""Between the deadline's SIGTERM and its SIGKILL on the host."""
GRACE_S = 3.0
"""How much longer than the host we wait for a command's deadline: the host reports it better than we can
guess it."""
T = TypeVar("T")
Connector = Callable[[Host, float], socket.socket]
"""Opens a TCP connection to a host within so many seconds; raises OSError or FleetError."""

logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def plain_connector(host: Host, timeout_s: float) -> socket.socket:
    return socket.create_connection((host.address, host.port), timeout=timeout_s)


def namespace_connector(netns: str) -> Connector:
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


class _UnknownHost(paramiko.SSHException):
    """Its message is the fingerprint of the key."""


class _Unknown(paramiko.MissingHostKeyPolicy):
    """A host without a line in known_hosts is refused, before anybody logs in."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        del client, hostname
        raise _UnknownHost(f"{key.get_name()} {key.fingerprint}")


class SshRemote:
    """A kept SSH connection to one host; safe to use from several threads; reconnects by itself."""

    def __init__(self, host: Host, connector: Connector = plain_connector, *, known_hosts: Path) -> None:
        """``known_hosts``: the only keys the host may show. There is no fleet without it: who takes any key
        gives root's commands and files to whoever answers."""
        self.host = host
        self._connector = connector
        self._known_hosts = known_hosts
        self._mutex = threading.Lock()
        self._connection: fabric.Connection | None = None
        self._sftp: paramiko.SFTPClient | None = None
        self._sftp_mutex = threading.Lock()

    # -- commands --------------------------------------------------------------------------------------------

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        """Run ``command`` in the host's ``sh``. On the deadline it is killed on the host too, with its
        process group. Raises FleetError when the host cannot be reached, on the deadline, and (with
        ``check``) on an exit code other than 0."""
        stdout = io.BytesIO()
        result = self._execute(command, stdout, timeout_s)
        result = Result(
            result.host,
            command,
            result.exit_code,
            stdout.getvalue().decode(errors="replace"),
            result.stderr,
            result.duration_s,
        )
        if check and not result.ok:
            raise self._error(f"`{command}` ended with exit code {result.exit_code}: {_last_lines(result)}")
        return result

    def _execute(self, command: str, stdout: Sink, timeout_s: float) -> Result:
        began = time.monotonic()
        channel = self._channel(timeout_s, command)
        stderr = io.BytesIO()
        try:
            wrapped = f"exec timeout -k {KILL_AFTER_S:g} {timeout_s:g} sh -c {shlex.quote(command)}"
            channel.settimeout(timeout_s)
            channel.exec_command(wrapped)
            channel.shutdown_write()
            code = pump(channel, stdout, stderr, began + timeout_s + GRACE_S)
        except TimeoutError as error:
            self._drop()
            raise self._deadline(command, timeout_s, stderr, "the host stopped answering") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._drop()
            raise self._error(
                f"connection lost during `{command}` ({error or 'closed'}); whether it ran is not known"
            ) from error
        finally:
            channel.close()
        duration_s = time.monotonic() - began
        if code in (124, 137) and duration_s >= timeout_s:
            raise self._deadline(command, timeout_s, stderr, "killed on the host")
        return Result(
            self.host.name, command, code, "", stderr.getvalue().decode(errors="replace"), duration_s
        )

    def _deadline(self, command: str, timeout_s: float, stderr: io.BytesIO, how: str) -> FleetError:
        said = stderr.getvalue().decode(errors="replace").strip()[-200:]
        return self._error(
            f"`{command}` did not end within {timeout_s:g} s ({how}); its errors: {said or 'none'};"
            " give it longer, or see what keeps it with `wrackline fleet ssh`"
        )

    def follow(self, command: str, *, timeout_s: float = 30.0) -> SshStream:
        """Start a command that goes on, over a connection of its own: neither the deadline of another command
        nor ``close`` ends it. Raises FleetError when it could not be started in time."""
        own = SshRemote(self.host, self._connector, known_hosts=self._known_hosts)
        try:
            channel = own._channel(timeout_s, command)
            channel.set_combine_stderr(True)
            channel.settimeout(timeout_s)
            channel.exec_command(f"exec sh -c {shlex.quote(command)}")
            channel.shutdown_write()
        except (paramiko.SSHException, EOFError, OSError) as error:
            own.close()
            raise self._error(f"`{command}` could not be started: {error or 'connection closed'}") from error
        except FleetError:
            own.close()
            raise
        return SshStream(channel, own.close)

    # -- files -----------------------------------------------------------------------------------------------

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file on the host, atomically, making its folders. Raises FleetError."""
        target = PurePosixPath(path)
        half_written = str(target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}"))

        def write(sftp: paramiko.SFTPClient) -> None:
            try:
                _make_folders(sftp, target.parent)
                with _opened(content) as source:
                    sftp.putfo(source, half_written)
                sftp.chmod(half_written, mode)
                sftp.posix_rename(half_written, path)
            except OSError as error:
                if _is_broken(sftp, error):
                    raise
                why = self._why_not_written(error, target.parent)
                with contextlib.suppress(OSError):
                    sftp.remove(half_written)
                raise self._error(f"cannot write {path}: {why}") from error

        self._with_files(f"put {path}", write)

    def get(self, path: str) -> bytes:
        """A file of the host. Raises FleetError when it is not there."""

        def read(sftp: paramiko.SFTPClient) -> bytes:
            content = io.BytesIO()
            try:
                sftp.getfo(path, content)
            except OSError as error:
                if _is_broken(sftp, error):
                    raise
                raise self._error(f"cannot read {path}: {error.strerror or error}") from error
            return content.getvalue()

        return self._with_files(f"get {path}", read)

    def get_tree(self, path: str, into: Path, *, patterns: Sequence[str] = ("*",)) -> list[Path]:
        """Fetch the files below a folder of the host whose names match one of the patterns (one compressed
        stream). Returns the local paths, sorted. A file that grows meanwhile is fetched as far as it was.
        Raises FleetError."""
        names = " -o ".join(f"-name {shlex.quote(pattern)}" for pattern in patterns)
        command = (
            f"cd {shlex.quote(path)} && find . -type f \\( {names} \\) -print0"
            " | tar --create --null --files-from=- --ignore-failed-read --warning=no-file-changed"
            " --warning=no-file-removed | gzip -1"
        )
        with tempfile.TemporaryFile() as archive:
            result = self._execute(command, archive, FILE_TIMEOUT_S)
            if not result.ok:
                raise self._error(
                    f"cannot fetch {path}: {result.stderr.strip() or f'exit code {result.exit_code}'}"
                )
            archive.seek(0)
            return self._unpack(archive, path, into)

    def _unpack(self, archive: IO[bytes], path: str, into: Path) -> list[Path]:
        """By hand, regular files below ``into`` only: Debian 12's Python has no extraction filters yet."""
        written = []
        try:
            with tarfile.open(fileobj=archive, mode="r|gz") as tar:
                for member in tar:
                    target = into / member.name
                    source = tar.extractfile(member)
                    if source is None or not target.resolve().is_relative_to(into.resolve()):
                        raise tarfile.ReadError(f"{member.name} is no file below the folder")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as file:
                        shutil.copyfileobj(source, file)
                    written.append(target)
        except (tarfile.TarError, EOFError) as error:
            raise self._error(
                f"what came for {path} is no whole archive ({error}); fetch it again"
            ) from error
        return sorted(written)

    def _with_files(self, what: str, action: Callable[[paramiko.SFTPClient], T]) -> T:
        """Do something with the kept SFTP session, one at a time. A kept session that turns out to be dead is
        replaced and the action done again: writing and reading whole files may be repeated."""
        with self._sftp_mutex:
            while True:
                kept, sftp = self._session(what)
                try:
                    return action(sftp)
                except (paramiko.SSHException, EOFError, OSError) as error:
                    self._sftp = None
                    self._drop()
                    if not kept:
                        raise self._error(f"{what}: connection lost ({error or 'closed'})") from error

    def _session(self, what: str) -> tuple[bool, paramiko.SFTPClient]:
        """Whether the SFTP session was there already, and the session."""
        if self._sftp is not None:
            channel = self._sftp.get_channel()
            if channel is not None and not channel.closed:
                return True, self._sftp
        channel = self._channel(CONNECT_TIMEOUT_S, what)
        try:
            channel.settimeout(FILE_TIMEOUT_S)
            channel.invoke_subsystem("sftp")
            self._sftp = paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError, TimeoutError) as error:
            channel.close()
            raise self._error(f"{what}: no SFTP ({error})") from error
        return False, self._sftp

    def _why_not_written(self, error: OSError, folder: PurePosixPath) -> str:
        """SFTP has one word, "Failure", for a full disk and much else; the host's df tells them apart."""
        reason = error.strerror or str(error)
        with contextlib.suppress(FleetError, IndexError, ValueError):
            free = (
                self.run(f"df -Pk {shlex.quote(str(folder))}", timeout_s=10).stdout.splitlines()[-1].split()
            )
            if int(free[3]) < 64:
                return (
                    f"no space left on {free[5]} ({free[1]} KiB in all); remove files or make the disk larger"
                )
        return reason

    # -- connection ------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
        self._drop()

    def _drop(self) -> None:
        with self._mutex:
            connection, self._connection = self._connection, None
        transport = self._transport_of(connection)
        if transport is not None:
            transport.close()

    @staticmethod
    def _transport_of(connection: fabric.Connection | None) -> paramiko.Transport | None:
        transport: paramiko.Transport | None = (
            connection.client.get_transport() if connection is not None else None
        )
        return transport if transport is not None and transport.is_active() else None

    def _channel(self, timeout_s: float, what: str) -> paramiko.Channel:
        deadline = time.monotonic() + min(timeout_s, CONNECT_TIMEOUT_S)
        kept = True
        while True:
            kept, transport = self._transport(deadline, what)
            try:
                return transport.open_session(timeout=max(0.1, deadline - time.monotonic()))
            except (paramiko.SSHException, EOFError, OSError) as error:
                self._drop()
                # A kept connection may have died unnoticed, with the host; a new one that fails is news.
                if not kept or time.monotonic() > deadline:
                    raise self._error(f"no answer to `{what}`: {error or 'connection closed'}") from error

    def _transport(self, deadline: float, what: str) -> tuple[bool, paramiko.Transport]:
        """Whether the connection was there already, and its transport."""
        if not self._mutex.acquire(timeout=max(0.1, deadline - time.monotonic())):
            raise self._error(
                f"no connection for `{what}` in time: another thread is still waiting for the host"
            )
        try:
            transport = self._transport_of(self._connection)
            if transport is not None:
                return True, transport
            self._connection = self._connect(deadline)
            transport = self._transport_of(self._connection)
            if transport is None:
                raise self._error("the connection closed as soon as it was made")
            return False, transport
        finally:
            self._mutex.release()

    def _connect(self, deadline: float) -> fabric.Connection:
        timeout_s = max(0.5, deadline - time.monotonic())
        where = f"{self.host.address}:{self.host.port}"
        if self.host.key_file is not None and not self.host.key_file.exists():
            raise self._error(f"the key {self.host.key_file} does not exist; is the fleet up?")
        try:
            sock = self._connector(self.host, timeout_s)
        except TimeoutError as error:
            raise self._error(
                f"no answer from {where} within {timeout_s:.0f} s; is the host on and reachable?"
            ) from error
        except ConnectionRefusedError as error:
            raise self._error(f"{where} refused the connection; is sshd running there?") from error
        except socket.gaierror as error:
            raise self._error(
                f"unknown host {self.host.address}: {error.strerror}; check its name"
            ) from error
        except OSError as error:
            raise self._error(f"no connection to {where}: {error.strerror or error}") from error
        # Requests are small and wait for answers: with Nagle's algorithm each command would take 40 ms
        # longer.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._log_in(sock, timeout_s)
        except BaseException:
            sock.close()
            raise

    def _log_in(self, sock: socket.socket, timeout_s: float) -> fabric.Connection:
        host = self.host
        config = fabric.Config(overrides={"load_ssh_configs": False})
        arguments: dict[str, object] = {
            "sock": sock,
            "allow_agent": False,
            "look_for_keys": False,
            "banner_timeout": timeout_s,
            "auth_timeout": timeout_s,
        }
        if host.key_file is not None:
            arguments["key_filename"] = str(host.key_file)
        connection = fabric.Connection(
            host.address, user=host.user, port=host.port, config=config, connect_kwargs=arguments
        )
        try:
            connection.client.load_host_keys(str(self._known_hosts))
        except OSError as error:
            raise self._error(
                f"{self._known_hosts}, which names the keys of hosts, cannot be read: "
                f"{error.strerror or error};"
                " no host is spoken to without it"
            ) from error
        connection.client.set_missing_host_key_policy(_Unknown())
        try:
            connection.open()
        except _UnknownHost as error:
            raise self._error(
                f"{host.address} shows a host key ({error}) and {self._known_hosts} has none for it;"
                " compare the key with the host's own, then add its line there"
            ) from error
        except paramiko.BadHostKeyException as error:
            raise self._error(
                f"{host.address} shows another host key than {self._known_hosts} has;"
                " if the host was made anew, remove its line there"
            ) from error
        except paramiko.AuthenticationException as error:
            raise self._error(
                f"{host.address} does not let {host.user} in with the key {host.key_file}; is it the right "
                "key?"
            ) from error
        except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
            raise self._error(
                f"SSH to {host.address}:{host.port} failed: {error or 'connection closed'}"
            ) from error
        return connection

    def _error(self, words: str) -> FleetError:
        return FleetError(f"host {self.host.name}: {words}")


def run_on_all(
    remotes: Iterable[Remote], command: str, *, timeout_s: float = 30.0, check: bool = True
) -> dict[str, Result | FleetError]:
    """Run one command on several hosts at once: host name → what it did, or why not. Raises nothing
    itself."""

    def one(remote: Remote) -> Result | FleetError:
        try:
            return remote.run(command, timeout_s=timeout_s, check=check)
        except FleetError as error:
            return error

    remotes = list(remotes)
    if not remotes:
        return {}
    with ThreadPoolExecutor(len(remotes)) as pool:
        return dict(zip([remote.host.name for remote in remotes], pool.map(one, remotes), strict=True))


def _opened(content: Path | bytes) -> IO[bytes]:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _is_broken(sftp: paramiko.SFTPClient, error: OSError) -> bool:
    """Whether it was the connection that failed, and not the file."""
    channel = sftp.get_channel()
    return isinstance(error, TimeoutError) or channel is None or channel.closed


def _make_folders(sftp: paramiko.SFTPClient, folder: PurePosixPath) -> None:
    missing = []
    while True:
        try:
            sftp.stat(str(folder))
            break
        except FileNotFoundError:
            missing.append(folder)
            folder = folder.parent
    for path in reversed(missing):
        sftp.mkdir(str(path))


def _last_lines(result: Result) -> str:
    said = (result.stderr.strip() or result.stdout.strip()).splitlines()
    return "; ".join(said[-3:]) or "it said nothing"
