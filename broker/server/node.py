"""A node's life: lock and recover the disk, bind the port, boot the core, serve, stop.

The order matters: whatever a person can get wrong (port, directory, configuration) fails before the core
has said a word to the cluster, and clients are let in only when it knows its roles.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import uvloop

from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.events import Boot, StopRequested
from wrackline.broker.rules.profile import Rules
from wrackline.broker.server.config import Settings
from wrackline.broker.server.cores import make_role
from wrackline.broker.server.descriptors import TooFew, share_out
from wrackline.broker.server.meter import LoopMeter
from wrackline.broker.server.metrics import MetricsPage, of_all
from wrackline.broker.server.network.connection import Connection
from wrackline.broker.server.shell import Shell
from wrackline.broker.server.trace import TraceWriter
from wrackline.broker.storage.aside import AsideLimits
from wrackline.broker.storage.descriptors import OPEN
from wrackline.broker.storage.files import replace_file
from wrackline.broker.storage.logdir import Found, LogDir
from wrackline.broker.storage.logs.log import LogSettings
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.proof import ClusterSecret

_LOG = logging.getLogger("broker.node")

EXIT_CRASHED = 70
EXIT_KILLED = 130
_BACKLOG = 512
_SHORTEST_SECRET = 16
_SECRET = f"it must hold the cluster's secret, {_SHORTEST_SECRET} characters or more, the same on every node"


class StartError(Exception):
    """The node cannot start; one line: what, where, how to mend."""


@dataclass(slots=True)
class _Part:
    """A core and everything of its own: the process has one, a combined one two."""

    settings: Settings
    logs: LogDir
    listeners: dict[Listener, socket.socket]
    secret: ClusterSecret
    metrics: socket.socket | None
    found: Found
    incarnation: UUID
    trace: TraceWriter


def run(settings: Settings, rules: Rules) -> int:
    """Serve until told to stop; the exit code. Raises StartError and DataDirError before anything is
    served."""
    try:
        share = share_out()
    except TooFew as few:
        raise StartError(str(few)) from few
    OPEN.most = share.files
    with ExitStack() as opened:
        parts = [_open(part, rules, opened) for part in settings.parts]
        _write_effective(settings)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_serve(parts, rules, share.connections // len(parts)))


def _open(settings: Settings, rules: Rules, opened: ExitStack) -> _Part:
    shell = settings.shell
    secret = _read_secret(settings)
    logs = LogDir(
        Path(shell.data_dir),
        LogSettings(
            shell.segment_bytes,
            shell.index_interval_bytes,
            continue_after_error=not rules.switches.stops_on_disk_failure,
        ),
        node_id=settings.node.node_id,
        cluster_id=settings.node.cluster_id,
        voter=settings.is_controller,
        aside=AsideLimits(shell.damaged_max_entries, shell.damaged_max_bytes),
    )
    opened.callback(logs.close)
    node = settings.node
    listeners = {name: _bind(settings, port, opened) for name, port in _ports(node)}
    metrics = None if node.metrics_port is None else _bind(settings, node.metrics_port, opened)
    result = logs.open()
    incarnation = uuid4()
    trace = _open_trace(settings, incarnation)
    return _Part(settings, logs, listeners, secret, metrics, result, incarnation, trace)


def _ports(node: BrokerConfig | ControllerConfig) -> list[tuple[Listener, int]]:
    if isinstance(node, ControllerConfig):
        return [(Listener.CONTROLLER, node.port)]
    return [(Listener.CLIENT, node.port), (Listener.REPLICATION, node.replication_port)]


def _read_secret(settings: Settings) -> ClusterSecret:
    path = settings.shell.secret_file
    try:
        secret = Path(path).read_bytes().strip()
    except OSError as failure:
        raise StartError(f"cannot read secret_file {path}: {failure.strerror}; {_SECRET}") from failure
    if len(secret) < _SHORTEST_SECRET:
        raise StartError(f"secret_file {path} has {len(secret)} characters; {_SECRET}")
    return ClusterSecret(secret, settings.node.cluster_id)


def _bind(settings: Settings, port: int, opened: ExitStack) -> socket.socket:
    host = settings.shell.listen or settings.node.host
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.callback(listener.close)
        listener.bind(address)
    except OSError as failure:
        raise StartError(
            f"cannot listen on {host}:{port}: {failure.strerror or failure}; "
            "choose another port or listen address"
        ) from failure
    return listener


def _open_trace(settings: Settings, incarnation: UUID) -> TraceWriter:
    path = settings.shell.trace_file
    try:
        return TraceWriter(None if path is None else Path(path), settings.node.node_id, incarnation)
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


async def _serve(parts: Sequence[_Part], rules: Rules, most_connections: int) -> int:
    """Serves until a part ends: of a combined node both parts live and die together; when one ends unasked,
    so does the process."""
    loop = asyncio.get_running_loop()
    roles = [make_role(part.settings, rules) for part in parts]
    shells = [
        Shell(role, part.settings, part.logs, part.secret, part.incarnation, part.trace, most_connections)
        for role, part in zip(roles, parts, strict=True)
    ]
    loop.set_exception_handler(lambda _, context: _crashed(shells, context))
    stops = _Stops(shells)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stops.asked)
    for part in parts:
        if part.metrics is not None:
            reads = [LoopMeter(loop).metrics, *(role.metrics for role in roles)]
            reads += [shell.meter.metrics for shell in shells]
            await loop.create_server(partial(MetricsPage, partial(of_all, reads)), sock=part.metrics)
    serving = [loop.create_task(_serve_part(part, shell)) for part, shell in zip(parts, shells, strict=True)]
    for task in serving:
        task.add_done_callback(_pass_on)
    try:
        code = await stops.ended()
    finally:
        for task in serving:
            task.cancel()
        for shell in shells:
            await shell.close()
    return code


def _pass_on(task: asyncio.Task[None]) -> None:
    """Passes what a task raised to the supervisor of the loop."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        raise failure


async def _serve_part(part: _Part, shell: Shell) -> None:
    settings, result = part.settings, part.found
    _LOG.info(
        "%s %d starts: %d logs, previous broker epoch %d, profile %s, incarnation %s",
        "controller" if settings.is_controller else "broker",
        settings.node.node_id,
        len(result.logs),
        result.previous_broker_epoch,
        settings.node.profile,
        part.incarnation,
    )
    shell.post(
        Boot(
            part.incarnation,
            result.logs,
            result.metadata,
            result.previous_broker_epoch,
            result.quorum_state,
            result.directory_id,
            result.snapshots,
            result.offline,
        )
    )
    either: set[asyncio.Future[Any]] = {shell.ready, shell.stopped}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if shell.ready.done():
        most_bytes = settings.shell.socket_request_max_bytes
        for name, listener in part.listeners.items():
            await asyncio.get_running_loop().create_server(
                partial(Connection, shell, most_bytes, name), sock=listener, backlog=_BACKLOG
            )
            _LOG.info("listening on %s:%d (%s)", *listener.getsockname()[:2], name.value)


class _Stops:
    """The first signal asks for a controlled shutdown, the second ends the process as it stands."""

    def __init__(self, shells: Sequence[Shell]) -> None:
        self._shells = shells
        self._asked = False

    def asked(self) -> None:
        if self._asked:
            _LOG.warning("second signal: stopping at once, without a clean-shutdown file")
            _stop_all(self._shells, EXIT_KILLED)
            return
        self._asked = True
        _LOG.info("shutting down in the controlled way")
        self._shells[0].post(StopRequested())

    async def ended(self) -> int:
        """The exit code, when everything has stopped. A broker's controlled shutdown needs the controllers,
        the one beside it perhaps among them: that one is asked to stop when the broker has."""
        first, *rest = self._shells
        code: int | None = None
        if rest:
            await asyncio.wait([shell.stopped for shell in self._shells], return_when=asyncio.FIRST_COMPLETED)
            code = next(shell.stopped.result() for shell in self._shells if shell.stopped.done())
            if not (first.stopped.done() and code == 0):
                return code
        for shell in rest:
            shell.post(StopRequested())
            code = code or await shell.stopped
        return await first.stopped if code is None else code


def _stop_all(shells: Sequence[Shell], code: int) -> None:
    for shell in shells:
        shell.stop(code)


def _crashed(shells: Sequence[Shell], context: dict[str, object]) -> None:
    """The one supervisor: a bug anywhere on the loop ends the process, as a crash would (no clean shutdown).
    Going on with a core that stopped in the middle of an event would test something that does not exist."""
    failure = context.get("exception")
    _LOG.critical(
        "bug: %s", context.get("message"), exc_info=failure if isinstance(failure, BaseException) else None
    )
    _stop_all(shells, EXIT_CRASHED)
