"""Hosts as folders of this machine, for a laptop: no root, no namespaces, no SSH; everything is on loopback.

What one fleet ``f`` with host ``n1`` consists of, and nothing else:

* a folder ``f`` below ``.process`` in the state root, with a folder for each host: ``n1/opt``, ``n1/etc``,
  ``n1/var``, ``n1/run`` and the data in ``n1/data``;
* addresses of its own, 127.x.y.11 and so on, so that every host listens on the same ports;
* the processes that were started on its hosts: each is marked by a variable of its environment.

There is no power switch and no network to cut: the hosts share this machine's kernel and its page cache. What
a broker has written, synced or not, survives whatever is done to its process.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path, PurePosixPath

from wrackline.fleets.base import FleetError, Host, Remote, further_disks
from wrackline.fleets.local.remote import LocalRemote
from wrackline.fleets.local.state import FleetLock, boot_id, check_names, host_numbers
from wrackline.fleets.none.fleet import NoPowerSwitch
from wrackline.fleets.process.state import (
    BELOW,
    MARK,
    AddressLock,
    ProcessFolder,
    ProcessState,
    clean,
    give_back,
)

KEPT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH")
"""Variables of our own environment that hosts have too."""
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")
"""Paths that no command has to quote."""


class ProcessFleet:
    """The `Fleet` of folders. One owner per name; several fleets live side by side."""

    def __init__(
        self, name: str, hosts: Sequence[str], *, state_dir: Path, detached: bool = False, disks: int = 1
    ) -> None:
        """``state_dir``: the state root of all fleets. ``detached``: the fleet outlives this process.
        ``disks``: how many folders for data each host has. Raises FleetError for names and paths that cannot
        be."""
        check_names(name, tuple(hosts))
        self.name = name
        self.folder = ProcessFolder(state_dir.resolve() / BELOW, name)
        if not _PLAIN.fullmatch(str(self.folder.path)):
            raise FleetError(
                f"{state_dir}: hosts of the fleet process cannot lie there: the path may have letters, digits"
                " and ._+- only; name another with WRACKLINE_STATE_DIR"
            )
        self._disks = disks
        self._prefix = prefix_of(name)
        numbers = host_numbers(hosts)
        self.hosts = tuple(self._host(host, number) for host, number in zip(hosts, numbers, strict=True))
        self.power = NoPowerSwitch("a host that is a folder of this machine has no power of its own")
        self._state = ProcessState(
            name, tuple(hosts), tuple(host.address for host in self.hosts), os.getpid(), boot_id(), detached
        )
        self._mutex = threading.RLock()
        self._lock: FleetLock | None = None
        self._addresses: AddressLock | None = None
        self._remotes: dict[str, LocalRemote] = {}

    def _host(self, name: str, last: int) -> Host:
        folder = self.folder.host(name)
        return Host(
            name,
            f"{self._prefix}{last}",
            user=os.environ.get("USER", str(os.getuid())),
            data_dir=PurePosixPath(folder / "data"),
            more_disks=further_disks(PurePosixPath(folder / "data"), self._disks),
            python=_python(),
            root=PurePosixPath(folder),
            shared=PurePosixPath(self.folder.path / "shared"),
            is_folder=True,
            reads_here=True,
        )

    def __enter__(self) -> ProcessFleet:
        self.up()
        return self

    def __exit__(self, *exception: object) -> None:
        self.down()

    # -- life ------------------------------------------------------------------------------------------------

    def up(self) -> None:
        """The folders are there and the addresses ours. Idempotent; ends what killed runs left. Raises
        FleetError and leaves nothing."""
        with self._mutex:
            if self._lock is not None:
                return
            try:
                self.folder.root.mkdir(parents=True, exist_ok=True)
                self._check_owner()
                clean(self.folder.root)
                self._lock = FleetLock.try_acquire(self.folder.lock_file)
            except OSError as error:
                raise FleetError(
                    f"{self.folder.root} cannot be written: {error.strerror}; name another folder with "
                    "WRACKLINE_STATE_DIR"
                ) from error
            if self._lock is None:
                raise FleetError(f"fleet {self.name} is in use; wait for it to end, or take another name")
            left = self.folder.read()
            if left is not None and left.lives_alone:
                self._lock.release(remove=False)
                self._lock = None
                raise FleetError(
                    f"fleet {self.name} is up already; `wrackline fleet down {self.name}` ends it"
                )
            try:
                self._addresses = AddressLock(self._prefix)
                self.folder.write(self._state)
                (self.folder.path / "shared").mkdir()
                for host in self.hosts:
                    for folder in (*host.disks, host.root / "tmp"):
                        Path(folder).mkdir(parents=True)
            except BaseException:
                self.down()
                raise

    def down(self) -> None:
        """End every process of the fleet and remove its folder. Idempotent; a fleet that this object did not
        bring up is left alone."""
        with self._mutex:
            if self._lock is None:
                return
            self.folder.dismantle()
            self._let_go(remove=True)

    def detach(self) -> None:
        """Lets the fleet live on without this object; ``wrackline fleet down`` ends it."""
        with self._mutex:
            if self._lock is not None:
                self.folder.write(replace(self._state, detached=True))
                self._let_go(remove=False)

    def _check_owner(self) -> None:
        owner = self.folder.root.stat().st_uid
        if owner != os.geteuid():  # /var/tmp is everybody's
            raise FleetError(
                f"{self.folder.root} belongs to user {owner}; name a folder of your own with "
                "WRACKLINE_STATE_DIR"
            )

    def _let_go(self, *, remove: bool) -> None:
        if self._addresses is not None:
            self._addresses.release()
        assert self._lock is not None
        if remove:
            give_back(self._lock, self.folder.root)
        else:
            self._lock.release(remove=False)
        self._lock = self._addresses = None

    # -- use -------------------------------------------------------------------------------------------------

    def remote(self, host: Host) -> Remote:
        with self._mutex:
            known = {one.name: one for one in self.hosts}
            if host.name not in known:
                raise FleetError(f"no host {host.name} in fleet {self.name}; it has {', '.join(known)}")
            if host.name not in self._remotes:
                self._remotes[host.name] = LocalRemote(known[host.name], environment(self.folder.path, host))
            return self._remotes[host.name]

    def entered(self) -> AbstractContextManager[None]:
        """The hosts are in the network in which we are anyway."""
        return nullcontext()


def environment(fleet: Path, host: Host) -> dict[str, str]:
    """The variables of everything that is started on a host."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {MARK: str(fleet), "WRACKLINE_HOST": host.name, "LC_ALL": "C.UTF-8"}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **kept, **own}


def prefix_of(name: str) -> str:
    """The addresses of a fleet follow from its name, since a system is told them before the fleet is up; runs
    have names that differ."""
    first, second = hashlib.blake2b(name.encode(), digest_size=2).digest()
    return f"127.{1 + first % 254}.{second}."


def _python() -> str:
    """The interpreter that we run on, without the libraries of its virtual environment: a broker has its
    own."""
    plain = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return str(plain) if plain.exists() else sys.executable
