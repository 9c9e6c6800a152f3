"""A node's life: lock and recover the disk, bind the port, boot the core, serve, stop.

The order matters: whatever a person can get wrong (port, directory, configuration) fails before the core
has said a word to the cluster, and clients are let in only when it knows its roles.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import uvloop

from broker.core.events import Boot, StopRequested
from broker.rules.profile import Rules
from broker.server.config import Settings
from broker.server.connection import Connection
from broker.server.cores import make_role
from broker.server.shell import Shell
from broker.server.trace import TraceWriter
from broker.storage.files import replace_file
from broker.storage.log import LogSettings
from broker.storage.logdir import Found, LogDir

_LOG = logging.getLogger("broker.node")

EXIT_CRASHED = 70
EXIT_KILLED = 130
_BACKLOG = 512


class StartError(Exception):
    """The node cannot start; one line: what, where, how to mend."""


def run(settings: Settings, rules: Rules) -> int:
    """Serve until told to stop; the exit code. Raises StartError and DataDirError before anything is served."""
    shell = settings.shell
    logs = LogDir(
        Path(shell.data_dir),
        LogSettings(
            shell.segment_bytes,
            shell.index_interval_bytes,
            continue_after_error=not rules.storage.stops_on_failure(),
        ),
        node_id=settings.node.node_id,
        cluster_id=settings.node.cluster_id,
    )
    try:
        listener = _bind(settings)
        try:
            found = logs.open()
            incarnation = uuid4()
            trace = _open_trace(settings, incarnation)
            _write_effective(settings)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                return runner.run(_serve(settings, rules, logs, found, incarnation, trace, listener))
        finally:
            listener.close()
    finally:
        logs.close()


def _bind(settings: Settings) -> socket.socket:
    host = settings.shell.listen or settings.node.host
    port = settings.node.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as failure:
        raise StartError(
            f"cannot listen on {host}:{port}: {failure.strerror or failure}; choose another port or listen address"
        ) from failure
    return listener


def _open_trace(settings: Settings, incarnation: UUID) -> TraceWriter | None:
    path = settings.shell.trace_file
    if path is None:
        return None
    try:
        return TraceWriter(Path(path), settings.node.node_id, incarnation)
    except OSError as failure:
        raise StartError(f"cannot write trace_file {path}: {failure.strerror}") from failure


def _write_effective(settings: Settings) -> None:
    path = Path(settings.shell.data_dir) / "effective-config.toml"
    try:
        replace_file(path, settings.to_toml().encode(), durable=False)
    except OSError as failure:
        raise StartError(
            f"cannot write {path}: {failure.strerror}; the disk must have room to start"
        ) from failure


async def _serve(
    settings: Settings,
    rules: Rules,
    logs: LogDir,
    found: Found,
    incarnation: UUID,
    trace: TraceWriter | None,
    listener: socket.socket,
) -> int:
    loop = asyncio.get_running_loop()
    shell = Shell(make_role(settings, rules), settings, logs, incarnation, trace)
    loop.set_exception_handler(lambda _, context: _crashed(shell, context))
    stops = _Stops(shell)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stops.asked)
    previous = found.previous_broker_epoch
    _LOG.info(
        "%s %d starts: %d logs, previous broker epoch %d, profile %s, incarnation %s",
        settings.role,
        settings.node.node_id,
        len(found.logs),
        previous,
        settings.node.profile,
        incarnation,
    )
    shell.post(
        Boot(incarnation, found.logs, found.metadata, previous, found.quorum_state, found.directory_id)
    )
    try:
        either: set[asyncio.Future[Any]] = {shell.ready, shell.stopped}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if shell.ready.done():
            await loop.create_server(
                lambda: Connection(shell, settings.shell.socket_request_max_bytes),
                sock=listener,
                backlog=_BACKLOG,
            )
            _LOG.info("listening on %s:%d", *listener.getsockname()[:2])
        return await shell.stopped
    finally:
        await shell.close()


class _Stops:
    """The first signal asks for a controlled shutdown, the second ends the process as it stands."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._asked = False

    def asked(self) -> None:
        if self._asked:
            _LOG.warning("second signal: stopping at once, without a clean-shutdown file")
            self._shell.stop(EXIT_KILLED)
            return
        self._asked = True
        _LOG.info("shutting down in the controlled way")
        self._shell.post(StopRequested())


def _crashed(shell: Shell, context: dict[str, object]) -> None:
    """The one supervisor: a bug anywhere on the loop ends the process, as a crash would (no clean shutdown).
    Going on with a core that stopped in the middle of an event would test something that does not exist."""
    failure = context.get("exception")
    _LOG.critical(
        "bug: %s", context.get("message"), exc_info=failure if isinstance(failure, BaseException) else None
    )
    shell.stop(EXIT_CRASHED)
