"""Machines that are there before and after a run, and whose owner has them in an Ansible inventory.

A run takes each host's lock, ends what a killed run left, and clears what it will use; when it is over, the
host is as it was found. Everything on a host goes over SSH, through jump hosts where the inventory names
some, to hosts that known_hosts knows.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import paramiko

from wrackline.fleets.base import FleetError, Host, Remote
from wrackline.fleets.connection import HostConnection, plain_connector
from wrackline.fleets.inventory import prepare
from wrackline.fleets.inventory.lock import HostLocks
from wrackline.fleets.inventory.power import ByCommand, BySysrq, InventoryPower, PowerSpec, Way
from wrackline.fleets.inventory.read import Jump, Login
from wrackline.fleets.ssh import SshRemote

MAKE_S = 120.0
ANSWER_S = 2.0


class InventoryFleet:
    """The `Fleet` of such machines."""

    def __init__(
        self,
        name: str,
        logins: Mapping[Host, Login],
        *,
        known_hosts: Path,
        wishes: prepare.Wishes,
        power: PowerSpec | None,
    ) -> None:
        """``name``: of the run, for whoever meets its locks."""
        self.name = name
        self.hosts = tuple(logins)
        self._jumps = {host.name: login.jumps for host, login in logins.items()}
        self._known_hosts = known_hosts
        self._wishes = wishes
        self._mutex = threading.RLock()
        """Held while the fleet comes up or goes down."""
        self._connections = threading.RLock()
        """Held by whoever looks up a connection; the threads of ``up`` do."""
        self._remotes: dict[str, SshRemote] = {}
        self._gateways: dict[tuple[Jump, ...], HostConnection] = {}
        self._locks = HostLocks(name)
        self._taken: list[Host] = []
        self._restore: set[str] = set()
        """Hosts on which something was done."""
        self.power = InventoryPower(self._way(power, logins), self._life, self._came_back, self._forget)

    def __enter__(self) -> InventoryFleet:
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        self.down()

    # -- life ------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Every host is ours, and ready. Idempotent. Raises FleetError, and leaves every host as it was."""
        with self._mutex:
            if self._taken:
                return
            self._taken = list(self.hosts)
            try:
                self._on_all(self._lock)  # all, before anything is done to any
                self._on_all(self._prepare)
            except BaseException:
                self.down()
                raise

    def down(self) -> None:
        """Every host as it was found, with power, and given back. Idempotent. Raises FleetError with all that
        could not be done."""
        with self._mutex:
            hosts, self._taken = self._taken, []
            try:
                self._on_all(self._give_back, hosts)
            finally:
                self._locks.close()
                for remote in self._remotes.values():
                    remote.close()
                for gateway in self._gateways.values():
                    gateway.drop()
                self._remotes.clear()
                self._gateways.clear()

    def detach(self) -> None:
        """Hosts are given back as they are now; the next run clears them."""
        with self._mutex:
            for host in self._taken:
                self._locks.drop(host)
            self._taken = []
            self._locks.close()

    def _lock(self, host: Host) -> None:
        self._locks.take(host, self._connection(host))

    def _prepare(self, host: Host) -> None:
        self._do(host, prepare.check(host))
        self._restore.add(host.name)
        self._do(host, prepare.make_ready(host))
        self._do(host, prepare.end_leftovers(host))
        self._do(host, prepare.provide_disk(host, self._wishes))
        self._do(host, prepare.clear(host))

    def _give_back(self, host: Host) -> None:
        try:
            self.power.on(host)
            if host.name in self._restore:
                self._do(host, prepare.restore(host, self._wishes))
                self._restore.discard(host.name)
        finally:
            self._locks.drop(host)

    def _do(self, host: Host, command: str) -> None:
        done = self.remote(host).run(command, timeout_s=MAKE_S, check=False)
        if not done.ok:
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.exit_code}").splitlines()
            raise FleetError(f"host {host.called}: {said[-1]}")

    def _on_all(self, action: Callable[[Host], None], hosts: Sequence[Host] | None = None) -> None:
        """Does ``action`` on all hosts at once. Raises FleetError with every host's trouble."""
        chosen = self.hosts if hosts is None else hosts
        if not chosen:
            return
        with ThreadPoolExecutor(len(chosen), thread_name_prefix="inventory") as pool:
            futures = [pool.submit(action, host) for host in chosen]
        troubles = [trouble for future in futures if (trouble := future.exception())]
        for trouble in troubles:
            if not isinstance(trouble, FleetError):
                raise trouble
        if troubles:
            raise FleetError("; ".join(map(str, troubles))) from troubles[0]

    # -- use -------------------------------------------------------------------------------------------------

    def remote(self, host: Host) -> Remote:
        with self._connections:
            if host.name not in self._jumps:
                raise FleetError(f"no host {host.name} in fleet {self.name}; it has {', '.join(self._jumps)}")
            if host.name not in self._remotes:
                self._remotes[host.name] = SshRemote(host, self._connect, known_hosts=self._known_hosts)
            return self._remotes[host.name]

    def entered(self) -> AbstractContextManager[None]:
        """Clients are in this machine's network, which reaches the hosts."""
        return nullcontext()

    def _connection(self, host: Host) -> HostConnection:
        return HostConnection(host, self._connect, known_hosts=self._known_hosts)

    def _connect(self, host: Host, timeout_s: float) -> socket.socket | paramiko.Channel:
        if not (jumps := self._jumps[host.name]):
            return plain_connector(host, timeout_s)
        return self._gateway(jumps, host.key_file).tunnel(host.ssh_address, host.port, timeout_s)

    def _gateway(self, jumps: tuple[Jump, ...], key_file: Path | None) -> HostConnection:
        """The kept connection to the last of them; it lets us in by the host's own key."""
        with self._connections:
            if jumps not in self._gateways:
                *before, last = jumps
                through = Host(
                    "jump",
                    last.address,
                    user=last.user,
                    port=last.port,
                    key_file=key_file,
                    alias=last.address,
                )

                def connect(host: Host, timeout_s: float) -> socket.socket | paramiko.Channel:
                    if not before:
                        return plain_connector(host, timeout_s)
                    return self._gateway(tuple(before), key_file).tunnel(host.address, host.port, timeout_s)

                self._gateways[jumps] = HostConnection(through, connect, known_hosts=self._known_hosts)
            return self._gateways[jumps]

    # -- power -----------------------------------------------------------------------------------------------

    def _way(self, power: PowerSpec | None, logins: Mapping[Host, Login]) -> Way | None:
        if power is None:
            return None
        if power.sysrq:
            return BySysrq(power.boot_s, self._do, self._answers)
        return ByCommand(power, {host.name: fields_of(login) for host, login in logins.items()})

    def _life(self, host: Host) -> str:
        return self.remote(host).run(prepare.LIFE, timeout_s=10.0).stdout

    def _answers(self, host: Host) -> bool:
        connection = self._connection(host)
        try:
            connection.channel(ANSWER_S, "see whether it is there").close()
        except FleetError:
            return False
        finally:
            connection.drop()
        return True

    def _came_back(self, host: Host) -> None:
        self._lock(host)
        if self._wishes.data_disk == "make":
            self._do(host, prepare.mount_again(host))

    def _forget(self, host: Host) -> None:
        self.remote(host).close()


def fields_of(login: Login) -> dict[str, object]:
    """Returns the fields that a user's command for the power may name."""
    return {**login.variables, "host": login.alias, "address": login.ssh_address}
