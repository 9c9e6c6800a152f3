"""Commands and files of a host that is a folder of this machine, or a network namespace of it: what
`wrackline.fleets.ssh` does, without SSH."""

from __future__ import annotations

import fnmatch
import os
import select
import selectors
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from wrackline.fleets.base import FleetError, Host, Result
from wrackline.fleets.channel import KILL_AFTER_S, SILENCE_S
from wrackline.fleets.local.network.namespaces import entered_netns

LOOK_S = 0.05
"""How often a command is looked at whose output somebody else keeps open."""


class LocalStream:
    """A command that goes on."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdout is not None
        self._output = process.stdout

    def read(self, timeout_s: float) -> bytes:
        """Returns the output since the last call (errors too), as soon as there is some; ``b""`` when the
        command has ended. Raises TimeoutError when there was none for so long."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        if not poll.poll(1000 * timeout_s):
            raise TimeoutError
        return os.read(self._output.fileno(), 1 << 16)

    def close(self) -> None:
        """Stop listening: the command meets a broken pipe when it says the next thing."""
        self._output.close()
        self._process.poll()


class LocalRemote:
    """The `Remote` of one host. Safe to use from several threads."""

    def __init__(self, host: Host, environment: Mapping[str, str]) -> None:
        """``environment``: all variables that commands have."""
        self.host = host
        self._environment = dict(environment)

    # -- commands --------------------------------------------------------------------------------------------

    def run(self, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
        """Run ``command`` in ``sh``, in the host's folder. On the deadline it is killed with its process
        group. Raises FleetError when it cannot be started, on the deadline, and (with ``check``) on an exit
        code other than 0."""
        began = time.monotonic()
        with self._started(command, stderr=subprocess.PIPE) as process:
            stdout, stderr = bytearray(), bytearray()
            assert process.stdout is not None
            assert process.stderr is not None
            try:
                code = _carry(process, {process.stdout: stdout, process.stderr: stderr}, began + timeout_s)
            except TimeoutError as late:
                _end_group(process)
                errors = stderr.decode(errors="replace").strip()[-200:]
                raise self._error(
                    f"`{command}` did not end within {timeout_s:g} s (killed with its process group); its "
                    f"errors: {errors or 'none'}; give it longer, or see what keeps it"
                ) from late
        result = Result(
            self.host.name,
            command,
            code,
            stdout.decode(errors="replace"),
            stderr.decode(errors="replace"),
            time.monotonic() - began,
        )
        if check and not result.ok:
            said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-3:]
            raise self._error(
                f"`{command}` ended with exit code {code}: {'; '.join(said) or 'it printed nothing'}"
            )
        return result

    def follow(self, command: str, *, timeout_s: float = 30.0) -> LocalStream:  # noqa: ARG002
        """Start a command that goes on. Raises FleetError when it cannot be started."""
        return LocalStream(self._started(command, stderr=subprocess.STDOUT))

    def _started(self, command: str, *, stderr: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                ["sh", "-c", command],
                cwd=self.host.root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise self._error(f"`{command}` cannot be started: {error.strerror}: {error.filename}") from error

    def close(self) -> None:
        """There is no connection to drop."""

    # -- files -----------------------------------------------------------------------------------------------

    def put(self, content: Path | bytes, path: str, *, mode: int = 0o644) -> None:
        """Write a file below the host's folder, atomically, making its folders. Raises FleetError."""
        target = Path(path)
        if not Path(os.path.normpath(target)).is_relative_to(self.host.root):
            raise self._error(f"cannot write {path}: it is outside of the host's folder {self.host.root}")
        half_written = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                half_written.write_bytes(content)
            else:
                shutil.copyfile(content, half_written)
            half_written.chmod(mode)
            half_written.replace(target)
        except OSError as error:
            with suppress(OSError):
                half_written.unlink()
            raise self._error(f"cannot write {path}: {error.strerror or error}") from error

    def get(self, path: str) -> bytes:
        """A file. Raises FleetError when it is not there."""
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise self._error(f"cannot read {path}: {error.strerror or error}") from error

    def get_tree(self, path: str, into: Path, *, patterns: Sequence[str] = ("*",)) -> list[Path]:
        """Copy the files below a folder whose names match one of the patterns. Returns the new paths, sorted.
        One that goes meanwhile is left out. Raises FleetError."""
        below = Path(path)
        if not below.is_dir():
            raise self._error(f"cannot fetch {path}: there is no such folder")
        written = []
        try:
            for folder, _, names in os.walk(below):
                for name in names:
                    source = Path(folder, name)
                    if source.is_symlink() or not any(fnmatch.fnmatchcase(name, one) for one in patterns):
                        continue
                    target = into / source.relative_to(below)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with suppress(FileNotFoundError):
                        shutil.copyfile(source, target)
                        written.append(target)
        except OSError as error:
            raise self._error(f"cannot fetch {path}: {error.strerror or error}") from error
        return sorted(written)

    def _error(self, words: str) -> FleetError:
        return FleetError(f"host {self.host.name}: {words}")


class NamespaceRemote(LocalRemote):
    """Commands of this machine, in one of its network namespaces."""

    def __init__(self, host: Host, environment: Mapping[str, str], netns: str) -> None:
        super().__init__(host, environment)
        self._netns = netns

    def _started(self, command: str, *, stderr: int) -> subprocess.Popen[bytes]:
        with entered_netns(self._netns):
            return super()._started(command, stderr=stderr)


def _carry(process: subprocess.Popen[bytes], sinks: Mapping[IO[bytes], bytearray], deadline: float) -> int:
    """Carry output until the command ends; its exit code. A program that it left behind with its output open
    is not waited for. Raises TimeoutError at the deadline."""
    quiet_since: float | None = None
    with selectors.DefaultSelector() as waiting:
        for source, sink in sinks.items():
            waiting.register(source, selectors.EVENT_READ, sink)
        while waiting.get_map():
            ready = waiting.select(max(0.0, min(LOOK_S, deadline - time.monotonic())))
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                key.data.extend(chunk)
                if not chunk:
                    waiting.unregister(key.fileobj)
            now = time.monotonic()
            if now > deadline:
                raise TimeoutError
            if process.poll() is not None:
                if ready or quiet_since is None:
                    quiet_since = now
                elif now > quiet_since + SILENCE_S:
                    break
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as late:
        raise TimeoutError from late


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, and SIGKILL a moment later, for the command and what it started."""
    for number, patience_s in ((signal.SIGTERM, KILL_AFTER_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
