"""Commands and files over SSH.

Commands run on channels of paramiko's transport directly, because those may be opened from several threads at
once and end on a deadline. A command is never sent twice: a connection found dead before the command left is
made again, one that dies later is an error.
"""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

import paramiko

from wrackline.fleets.base import Become, FleetError, Host, Remote, Result
from wrackline.fleets.become import carried
from wrackline.fleets.channel import KILL_AFTER_S, Sink, SshStream, pump
from wrackline.fleets.connection import CONNECT_TIMEOUT_S, Connector, HostConnection, plain_connector

FILE_TIMEOUT_S = 60.0
GRACE_S = 3.0
"""How much longer than the host we wait for a command's deadline: the host reports it better than we can
guess it."""
LONGEST = 200
"""Characters of a command in an error."""
T = TypeVar("T")


class SshRemote:
    """A kept SSH connection to one host; safe to use from several threads; reconnects by itself."""

    def __init__(
        self, host: Host, connector: Connector = plain_connector, *, known_hosts: Path, slowness: float = 1.0
    ) -> None:
        """``known_hosts``: the only keys the host may show. ``slowness``: deadlines are for hosts as fast as
        this machine; here everything may take so many times as long."""
        self.host = host
        self._slowness = slowness
        self._connection = HostConnection(host, connector, known_hosts=known_hosts, slowness=slowness)
        self._sftp: paramiko.SFTPClient | None = None
        self._sftp_mutex = threading.Lock()

    # -- commands --------------------------------------------------------------------------------------------

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        """Run ``command`` in the host's ``sh``. On the deadline it is killed on the host too, with its
        process group. Raises FleetError when the host cannot be reached, on the deadline, and (with
        ``check``) on an exit code other than 0."""
        stdout = io.BytesIO()
        result = self._execute(command, stdout, timeout_s * self._slowness)
        result = replace(result, stdout=stdout.getvalue().decode(errors="replace"))
        if check and not result.ok:
            raise self._connection.error(
                f"`{short(command)}` ended with exit code {result.exit_code}: {_last_lines(result)}"
            )
        return result

    def _execute(self, command: str, stdout: Sink, timeout_s: float) -> Result:
        began = time.monotonic()
        channel = self._connection.channel(timeout_s, command)
        stderr = io.BytesIO()
        try:
            wrapped = carried(self.host, command, f"timeout -k {KILL_AFTER_S:g} {timeout_s:g}")
            channel.settimeout(timeout_s)
            channel.exec_command(wrapped)
            channel.shutdown_write()
            code = pump(channel, stdout, stderr, began + timeout_s + GRACE_S)
        except TimeoutError as error:
            self._connection.drop(channel.get_transport())
            raise self._deadline(command, timeout_s, stderr, "the host stopped answering") from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._connection.drop(channel.get_transport())
            raise self._connection.error(
                f"connection lost during `{short(command)}` ({str(error) or 'closed'}); "
                "whether it ran is not known"
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
        errors = stderr.getvalue().decode(errors="replace").strip()[-200:]
        return self._connection.error(
            f"`{short(command)}` did not end within {timeout_s:g} s ({how}); its errors: {errors or 'none'};"
            " give it longer, or see what keeps it with `wrackline fleet ssh`"
        )

    def follow(self, command: str, *, timeout_s: float = 30.0) -> SshStream:
        """Start a command that goes on, over a connection of its own: neither the deadline of another command
        nor ``close`` ends it. Raises FleetError when it could not be started in time."""
        own = self._connection.again()
        try:
            channel = own.channel(timeout_s * self._slowness, command)
            channel.set_combine_stderr(True)
            channel.settimeout(timeout_s * self._slowness)
            channel.exec_command(carried(self.host, command))
            channel.shutdown_write()
        except (paramiko.SSHException, EOFError, OSError) as error:
            own.drop()
            raise self._connection.error(
                f"`{short(command)}` could not be started: {str(error) or 'connection closed'}"
            ) from error
        except FleetError:
            own.drop()
            raise
        return SshStream(channel, own.drop)

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
        self._connection.drop()

    # -- files -----------------------------------------------------------------------------------------------

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file on the host, atomically, making its folders. Raises FleetError."""
        if self.host.become is Become.ROOT:
            self._put_as_root(content, path, mode)
            return
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
                raise self._connection.error(f"cannot write {path}: {why}") from error

        self._with_files(f"put {path}", write)

    def _put_as_root(self, content: Path | bytes, path: str, mode: int) -> None:
        """Writes a file as root, by way of a file of the user's own: SFTP has the user's rights."""
        target = PurePosixPath(path)
        own, half_written = f"/var/tmp/.wrackline.{uuid.uuid4().hex}", target.with_name(f".{target.name}.new")

        def write(sftp: paramiko.SFTPClient) -> None:
            with _opened(content) as source:
                sftp.putfo(source, own)

        self._with_files(f"put {path}", write)
        self.run(
            f"mkdir -p {shlex.quote(str(target.parent))} && cp {own} {shlex.quote(str(half_written))} && "
            f"chmod {mode:o} {shlex.quote(str(half_written))} && "
            f"mv -f {shlex.quote(str(half_written))} {shlex.quote(path)}; done=$?; rm -f {own}; exit $done",
            timeout_s=FILE_TIMEOUT_S,
        )

    def get(self, path: str) -> bytes:
        """A file of the host. Raises FleetError when it is not there."""

        def read(sftp: paramiko.SFTPClient) -> bytes:
            content = io.BytesIO()
            try:
                sftp.getfo(path, content)
            except OSError as error:
                if _is_broken(sftp, error):
                    raise
                raise self._connection.error(f"cannot read {path}: {error.strerror or error}") from error
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
            result = self._execute(command, archive, FILE_TIMEOUT_S * self._slowness)
            if not result.ok:
                raise self._connection.error(
                    f"cannot fetch {path}: {result.stderr.strip() or f'exit code {result.exit_code}'}"
                )
            archive.seek(0)
            return self._unpack(archive, path, into)

    def _unpack(self, archive: IO[bytes], path: str, into: Path) -> list[Path]:
        """Unpacks an archive; only regular files below ``into`` are written: Debian 12's Python has no
        extraction filters yet."""
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
            raise self._connection.error(
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
                    self._connection.drop()
                    if not kept:
                        raise self._connection.error(
                            f"{what}: connection lost ({str(error) or 'closed'})"
                        ) from error

    def _session(self, what: str) -> tuple[bool, paramiko.SFTPClient]:
        """Returns whether the SFTP session was there already, and the session."""
        if self._sftp is not None:
            channel = self._sftp.get_channel()
            if channel is not None and not channel.closed:
                return True, self._sftp
        channel = self._connection.channel(CONNECT_TIMEOUT_S * self._slowness, what)
        try:
            channel.settimeout(FILE_TIMEOUT_S * self._slowness)
            channel.invoke_subsystem("sftp")
            self._sftp = paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError, TimeoutError) as error:
            channel.close()
            raise self._connection.error(f"{what}: no SFTP ({error})") from error
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


def short(command: str) -> str:
    """A command as an error names it: some have whole programs in them."""
    first, more = command[:LONGEST].partition("\n")[0], len(command) > LONGEST or "\n" in command
    return f"{first} ..." if more else first


def _opened(content: Path | bytes) -> IO[bytes]:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def _is_broken(sftp: paramiko.SFTPClient, error: OSError) -> bool:
    """Tells whether the connection failed, and not the file."""
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
    lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
    return "; ".join(lines[-3:]) or "it printed nothing"
