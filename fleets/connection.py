"""A kept, thread-safe SSH connection to a host, that makes itself again when it has died.

Fabric makes and owns the connection; channels of its paramiko transport may be opened from several threads at
once.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import fabric
import paramiko

from wrackline.fleets.base import FleetError, Host

CONNECT_TIMEOUT_S = 10.0
Connector = Callable[[Host, float], "socket.socket | paramiko.Channel"]
"""Opens a TCP connection to a host within so many seconds, itself or through another host; raises OSError
or FleetError."""

logging.getLogger("paramiko").setLevel(logging.CRITICAL)


def plain_connector(host: Host, timeout_s: float) -> socket.socket:
    return socket.create_connection((host.ssh_address, host.port), timeout=timeout_s)


class _UnknownHost(paramiko.SSHException):
    """The host has no line in known_hosts; the message is the fingerprint of its key."""


class _Unknown(paramiko.MissingHostKeyPolicy):
    """A host without a line in known_hosts is refused, before anybody logs in."""

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        raise _UnknownHost(f"{key.get_name()} {key.fingerprint}")


class HostConnection:
    """The connection to one host; safe to use from several threads."""

    def __init__(
        self,
        host: Host,
        connector: Connector = plain_connector,
        *,
        known_hosts: Path,
        slowness: float = 1.0,
    ) -> None:
        """``known_hosts``: the only keys the host may show. There is no fleet without it: who takes any key
        gives root's commands and files to whoever answers. ``slowness``: so many times as long as usual a
        connection may take to be made."""
        self.host = host
        self._connector = connector
        self._known_hosts = known_hosts
        self._slowness = slowness
        self._mutex = threading.Lock()
        self._connection: fabric.Connection | None = None

    def again(self) -> HostConnection:
        """Another connection to the same host, not made yet."""
        return HostConnection(
            self.host, self._connector, known_hosts=self._known_hosts, slowness=self._slowness
        )

    def drop(self, failed: paramiko.Transport | None = None) -> None:
        """End the connection; the next channel makes a new one. ``failed``: end this one only; another thread
        that met the same failure may have made a new one, and may be using it."""
        with self._mutex:
            transport = self._transport_of(self._connection)
            if failed is None or transport in (None, failed):
                self._connection = None
                failed = failed or transport
        if failed is not None:
            with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
                failed.close()  # it says goodbye, and the gateway to the host may have gone first

    @staticmethod
    def _transport_of(connection: fabric.Connection | None) -> paramiko.Transport | None:
        transport: paramiko.Transport | None = (
            connection.client.get_transport() if connection is not None else None
        )
        return transport if transport is not None and transport.is_active() else None

    def channel(self, timeout_s: float, what: str) -> paramiko.Channel:
        """A channel of the kept connection, or of a new one when there is none or it has died. ``what``: what
        it is for, in errors. Raises FleetError."""
        deadline = time.monotonic() + min(timeout_s, CONNECT_TIMEOUT_S * self._slowness)
        kept = True
        while True:
            kept, transport = self._transport(deadline, what)
            try:
                return transport.open_session(timeout=max(0.1, deadline - time.monotonic()))
            except (paramiko.SSHException, EOFError, OSError) as error:
                self.drop(transport)
                # A kept connection may have died unnoticed, with the host; a new one that fails is news.
                if not kept or time.monotonic() > deadline:
                    raise self.error(f"no answer to `{what}`: {str(error) or 'connection closed'}") from error

    def tunnel(self, address: str, port: int, timeout_s: float) -> paramiko.Channel:
        """A connection that the host makes for us, as OpenSSH's ProxyJump has it. Raises FleetError."""
        deadline, where = time.monotonic() + timeout_s, f"{address}:{port}"
        _, transport = self._transport(deadline, f"reach {where}")
        try:
            left = max(0.1, deadline - time.monotonic())
            return transport.open_channel("direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=left)
        except (paramiko.SSHException, EOFError, OSError) as wrong:
            raise self.error(
                f"it cannot reach {where} for us: {str(wrong) or 'connection closed'}"
            ) from wrong

    def _transport(self, deadline: float, what: str) -> tuple[bool, paramiko.Transport]:
        """Returns whether the connection was there already, and its transport."""
        if not self._mutex.acquire(timeout=max(0.1, deadline - time.monotonic())):
            raise self.error(
                f"no connection for `{what}` in time: another thread is still waiting for the host"
            )
        try:
            transport = self._transport_of(self._connection)
            if transport is not None:
                return True, transport
            self._connection = self._connect(deadline)
            transport = self._transport_of(self._connection)
            if transport is None:
                raise self.error("the connection closed as soon as it was made")
            return False, transport
        finally:
            self._mutex.release()

    def _connect(self, deadline: float) -> fabric.Connection:
        timeout_s = max(0.5, deadline - time.monotonic())
        where = f"{self.host.ssh_address}:{self.host.port}"
        if self.host.key_file is not None and not self.host.key_file.exists():
            raise self.error(f"the key {self.host.key_file} does not exist; is the fleet up?")
        try:
            sock = self._connector(self.host, timeout_s)
        except TimeoutError as error:
            raise self.error(
                f"no answer from {where} within {timeout_s:.0f} s; is the host on and reachable?"
            ) from error
        except ConnectionRefusedError as error:
            raise self.error(f"{where} refused the connection; is sshd running there?") from error
        except socket.gaierror as error:
            raise self.error(
                f"unknown host {self.host.ssh_address}: {error.strerror}; check its name"
            ) from error
        except OSError as error:
            raise self.error(f"no connection to {where}: {error.strerror or error}") from error
        # Requests are small and wait for answers: with Nagle's algorithm each command would take 40 ms
        # longer.
        if isinstance(sock, socket.socket):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._log_in(sock, timeout_s)
        except BaseException:
            sock.close()
            raise

    def _log_in(self, sock: socket.socket | paramiko.Channel, timeout_s: float) -> fabric.Connection:
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
            host.ssh_address, user=host.user, port=host.port, config=config, connect_kwargs=arguments
        )
        try:
            connection.client.load_host_keys(str(self._known_hosts))
        except OSError as error:
            raise self.error(
                f"{self._known_hosts}, which names the keys of hosts, cannot be read: "
                f"{error.strerror or error}; no host is spoken to without it"
            ) from error
        connection.client.set_missing_host_key_policy(_Unknown())
        try:
            connection.open()
        except _UnknownHost as error:
            raise self.error(
                f"{host.ssh_address} shows a host key ({error}) and {self._known_hosts} has none for it;"
                " compare the key with the host's own, then add its line there"
            ) from error
        except paramiko.BadHostKeyException as error:
            raise self.error(
                f"{host.ssh_address} shows another host key than {self._known_hosts} has;"
                " if the host was made anew, remove its line there"
            ) from error
        except paramiko.AuthenticationException as error:
            raise self.error(
                f"{host.ssh_address} does not let {host.user} in with the key {host.key_file}; "
                "is it the right key?"
            ) from error
        except (paramiko.SSHException, EOFError, OSError, ValueError) as error:
            raise self.error(
                f"SSH to {host.ssh_address}:{host.port} failed: {str(error) or 'connection closed'}"
            ) from error
        return connection

    def error(self, words: str) -> FleetError:
        """An error whose message begins with the host's name."""
        return FleetError(f"host {self.host.called}: {words}")
