"""The base of every fleet of this machine: a name with one owner, a network of its own, and an end that
leaves nothing. A kind of fleet says what its hosts are."""

from __future__ import annotations

import ipaddress
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, Self, TypedDict, TypeVar

from wrackline.fleets.base import CLIENTS, FleetError, Host, Remote, further_disks
from wrackline.fleets.local.clean import DATA_DIR, clean, dismantle, folders_mounted
from wrackline.fleets.local.disk import check_disk, check_room
from wrackline.fleets.local.keys import host_files, make_keys, sshd_config
from wrackline.fleets.local.look import is_alive
from wrackline.fleets.local.network.namespaces import (
    entered_netns,
    ip_batch,
    namespace_connector,
    netns_exists,
    run_tool,
)
from wrackline.fleets.local.power import LocalPower, Powered
from wrackline.fleets.local.remote import NamespaceRemote
from wrackline.fleets.local.state import (
    DEFAULT_STATE_ROOT,
    FleetFolder,
    FleetLock,
    FleetState,
    boot_id,
    check_names,
    host_numbers,
)

if TYPE_CHECKING:
    from wrackline.fleets.ssh import SshRemote

LOCK_TIMEOUT_S = 5.0
SPARE_ROOM_MB = 64
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LocalMachine(Powered, Protocol):
    """A host of such a fleet, as a machine."""

    host: Host
    files: Mapping[str, tuple[str, int]]
    """Files of the host's /etc: path → content, mode."""

    def make_disks(self) -> None:
        """Make what of its disks outlives a power cut, where it is not there. Raises FleetError."""


M = TypeVar("M", bound=LocalMachine)


class Options(TypedDict, total=False):
    """What every fleet of this machine may be given; `LocalFleet` says what it means."""

    subnet: str
    state_dir: Path
    filesystem: str
    disks: int
    detached: bool


class LocalFleet(ABC, Generic[M]):
    """Hosts on this machine (needs root). One owner per name; several fleets live side by side."""

    kind: ClassVar[str]
    reads_here: ClassVar[bool] = False
    """Of its hosts (`wrackline.fleets.base.Host`)."""
    shared: ClassVar[PurePosixPath | None] = None
    """Of its hosts, too."""
    power: LocalPower[M]

    def __init__(
        self,
        name: str,
        hosts: Sequence[str],
        *,
        subnet: str = "198.18.0.0/24",
        state_dir: Path = DEFAULT_STATE_ROOT,
        disk_mb: int = 256,
        filesystem: str = "ext4",
        disks: int = 1,
        detached: bool = False,
        slowness: float = 1.0,
    ) -> None:
        """``state_dir``: folder for the folders of all fleets. ``disks``: how many data disks each host
        has. ``detached``: the fleet outlives this process.
        ``slowness``: so many times the usual deadline a command on a host may take."""
        check_names(name, tuple(hosts))
        check_disk(filesystem, disk_mb)
        self._network = _network(subnet)
        addresses = _addresses(self._network, hosts)
        self.name = name
        self.folder = FleetFolder(state_dir.resolve(), name)
        self.hosts = tuple(
            Host(
                host,
                address,
                key_file=self.folder.key,
                reads_here=self.reads_here,
                shared=self.shared,
                more_disks=further_disks(DATA_DIR, disks),
            )
            for host, address in zip(hosts, addresses, strict=True)
        )
        self.state = FleetState(
            name,
            tuple(hosts),
            tuple(addresses),
            subnet,
            filesystem,
            disk_mb,
            os.getpid(),
            boot_id(),
            detached,
            self.kind,
            disks,
        )
        self._slowness = slowness
        self._mutex = threading.RLock()
        self._lock: FleetLock | None = None
        self._remotes: dict[str, SshRemote] = {}
        self._machines = {host.name: self._machine(host) for host in self.hosts}
        self.power = self._switch()

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        self.down()

    # -- what a kind of fleet says ---------------------------------------------------------------------------

    @abstractmethod
    def _machine(self, host: Host) -> M:
        """Returns the machine of a host, which is not started yet."""

    def _switch(self) -> LocalPower[M]:
        return LocalPower(self._machines, self._forget)

    def _prepare(self) -> None:
        """Bring to this machine what hosts are made of; before the name is taken. Raises FleetError."""

    def _build_hosts(self, public_key: str, host_key: str) -> None:
        """Make what belongs to each host and outlives a power cut. The network is there, no host is on."""
        sshd = sshd_config()
        for machine in self._machines.values():
            machine.files = host_files(
                machine.host, self.hosts, public_key=public_key, host_key=host_key, sshd=sshd
            )
        self._each(lambda host: self._machines[host.name].make_disks())

    @property
    def _needed_mb(self) -> int:
        """Room on the disk that a host may come to take."""
        return self.state.disk_mb * self.state.disks

    # -- life ------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """All hosts on, with SSH. Idempotent; removes what killed runs left. Raises FleetError and leaves
        nothing."""
        with self._mutex:
            if self._lock is not None:
                self._each(self.power.on)
                return
            _check_root(self.kind)
            self._prepare()
            clean(self.folder.root)
            self._take_name()
            try:
                self._build()
                self._each(self.power.on)
            except BaseException:
                self.down()
                raise

    def down(self) -> None:
        """Remove everything ``up`` made. Idempotent; a fleet this object did not bring up is left alone."""
        with self._mutex:
            for remote in self._remotes.values():
                remote.close()
            self._remotes.clear()
            if self._lock is None:
                return
            dismantle(self.folder, self.state, list(self._machines.values()))
            self._lock.release()
            self._lock = None

    def detach(self) -> None:
        """Lets the fleet live on without this object; ``wrackline fleet down`` ends it."""
        with self._mutex:
            if self._lock is not None:
                self._lock.release(remove=False)
                self._lock = None

    # -- use -------------------------------------------------------------------------------------------------

    def remote(self, host: Host) -> Remote:
        """The kept connection to a host (one per host, made on first use)."""
        with self._mutex:
            if host.name not in self.state.hosts:
                raise FleetError(
                    f"no host {host.name} in fleet {self.name}; it has {', '.join(self.state.hosts)}"
                )
            if host.name not in self._remotes:
                from wrackline.fleets.ssh import SshRemote  # late: to check a specification takes no SSH

                self._remotes[host.name] = SshRemote(
                    host,
                    namespace_connector(self.state.control),
                    known_hosts=self.folder.known_hosts,
                    slowness=self._slowness,
                )
            return self._remotes[host.name]

    def entered(self) -> AbstractContextManager[None]:
        """Opens sockets of this thread, and of threads and processes started inside, in the fleet's
        network."""
        return entered_netns(self.state.control)

    @property
    def clients(self) -> Remote:
        """Commands in the network that we and the clients are in: that of the bridge."""
        host = Host(CLIENTS, self._gateway, root=PurePosixPath(self.folder.clients), is_folder=True)
        return NamespaceRemote(host, {"PATH": _PATH, "LC_ALL": "C.UTF-8"}, self.state.control)

    @property
    def _gateway(self) -> str:
        return str(next(self._network.hosts()))

    # -- building --------------------------------------------------------------------------------------------

    def _take_name(self) -> None:
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while (lock := FleetLock.try_acquire(self.folder.lock_file)) is None:
            owner = self.folder.read()
            # A clean-up of another process holds each lock for a moment; an owner holds it for its life.
            if time.monotonic() > deadline or (owner is not None and is_alive(owner.owner_pid)):
                who = f"process {owner.owner_pid}" if owner else "another process"
                raise FleetError(
                    f"fleet {self.name} is in use by {who}; wait for it to end, or take another name"
                )
            time.sleep(0.02)
        left = self.folder.read()
        if left is not None and left.lives_alone:
            lock.release(remove=False)
            raise FleetError(f"fleet {self.name} is up already; `wrackline fleet down {self.name}` ends it")
        if left is not None:
            # It died between clean() and here.
            dismantle(self.folder, left)
        if netns_exists(self.state.control):
            for elsewhere in [folder for folder in folders_mounted() if folder.name == self.name]:
                clean(elsewhere.root)
        if netns_exists(self.state.control):
            lock.release()
            raise FleetError(
                f"the network namespace {self.state.control} exists, but {self.folder.root} knows "
                "no such fleet; it belongs to another --state-dir, or remove it with "
                f"`ip netns del {self.state.control}`"
            )
        self._lock = lock

    def _build(self) -> None:
        self.folder.write(self.state)
        check_room(self.folder.path, self._needed_mb * len(self.hosts) + SPARE_ROOM_MB)
        public_key, host_key = make_keys(self.folder, self.hosts)
        self.folder.system.mkdir(mode=0o700)
        self.folder.clients.mkdir(mode=0o700)
        self.folder.shared.mkdir()
        run_tool(["mount", "-t", "tmpfs", "-o", "mode=700", f"wl-{self.name}", str(self.folder.system)])
        ip_batch([f"netns add {self.state.control}"])
        ip_batch(
            [
                "link add br0 type bridge",
                f"addr add {self._gateway}/{self._network.prefixlen} dev br0",
                "link set lo up",
                "link set br0 up",
            ],
            netns=self.state.control,
        )
        self._build_hosts(public_key, host_key)

    def _each(self, action: Callable[[Host], object]) -> None:
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            for done in [pool.submit(action, host) for host in self.hosts]:
                done.result()

    def _forget(self, host: Host) -> None:
        """The connections of a host died with it."""
        remote = self._remotes.get(host.name)
        if remote is not None:
            remote.close()


def _check_root(kind: str) -> None:
    if os.geteuid() != 0:
        raise FleetError(
            f"a {kind} fleet needs root (network namespaces, mounts, loop devices); run it with sudo"
        )


def _network(subnet: str) -> ipaddress.IPv4Network:
    try:
        network = ipaddress.IPv4Network(subnet)
    except ValueError as error:
        raise FleetError(f"subnet {subnet!r}: {error}; for example 198.18.0.0/24") from error
    if network.num_addresses < 64:
        raise FleetError(
            f"subnet {subnet} is too small for a fleet; /26 or larger, for example 198.18.0.0/24"
        )
    return network


def _addresses(network: ipaddress.IPv4Network, hosts: Sequence[str]) -> list[str]:
    numbers = host_numbers(hosts)
    if max(numbers) >= network.num_addresses - 1:
        raise FleetError(f"{len(hosts)} hosts do not fit into {network}")
    return [str(network[number]) for number in numbers]
