"""The state of a fleet of this machine while it is up: one folder, one lock, one JSON file that names
everything.

The state file is written before the first resource is made, so whoever finds it knows everything there can be
to remove. The lock is held by the owner for as long as it lives: the kernel drops it when the owner is
killed, which is how the next run knows a dead fleet from a living one. ``wrackline fleet up`` ends before its
fleet does; such a fleet is *detached* and lives until ``wrackline fleet down`` or the machine's next boot.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from wrackline.fleets.base import FleetError

DEFAULT_STATE_ROOT = Path(f"/var/tmp/wrackline-{os.geteuid()}" if os.geteuid() else "/var/tmp/wrackline")
"""Each user has one. On a disk, not on a tmpfs: an fsync on a host then costs what an fsync costs. The uppers
of the root overlays are on a tmpfs of their own."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_HOST = re.compile(r"[a-z][a-z0-9]{0,9}")
FIRST_OTHER = 31


def check_names(name: str, hosts: tuple[str, ...]) -> None:
    """Raises FleetError for names that Linux could not take for interfaces and namespaces."""
    if not _NAME.fullmatch(name):
        raise FleetError(f"fleet name {name!r}: use up to 24 of a-z, 0-9 and -, no - first, such as hands")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise FleetError(f"host name {host!r}: use up to 10 of a-z and 0-9, a letter first, such as n1")
    if not hosts:
        raise FleetError(f"fleet {name} has no hosts: name some, with commas between, such as n1,n2,n3")
    if len(set(hosts)) != len(hosts):
        raise FleetError(f"fleet {name}: two hosts with one name in {', '.join(hosts)}: name them apart")


def host_numbers(hosts: Sequence[str]) -> list[int]:
    """The last number of each host's address: 11 and up for n1, n2, ..., 21 and up for c1, c2, ..., the rest
    from 31 on."""
    others = itertools.count(FIRST_OTHER)
    numbered = (re.fullmatch(r"([nc])([1-9])", host) for host in hosts)
    return [{"n": 10, "c": 20}[one[1]] + int(one[2]) if one else next(others) for one in numbered]


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class OwnedState:
    """The part of a fleet's state by which others know whose it is."""

    __slots__ = ()
    owner_pid: int
    boot_id: str
    detached: bool

    @property
    def lives_alone(self) -> bool:
        """Tells whether the fleet is meant to stay though nobody holds its lock."""
        return self.detached and self.boot_id == boot_id()


S = TypeVar("S", bound=OwnedState)


@dataclass(frozen=True, slots=True)
class FleetState(OwnedState):
    """Content of ``state.json``."""

    name: str
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    subnet: str
    filesystem: str
    disk_mb: int
    owner_pid: int
    boot_id: str
    detached: bool = False
    kind: str = "netns"
    disks: int = 1
    """How many data disks each host has."""

    @property
    def control(self) -> str:
        """Network namespace with the fleet's bridge; the harness enters this one."""
        return f"wl-{self.name}"

    def port(self, host: str) -> str:
        """A host's link at the bridge, in the control namespace."""
        return f"p-{host}"

    def netns(self, host: str) -> str:
        """Network namespace of a host, where hosts have one; its name at libvirt, where libvirt has it."""
        return f"wl-{self.name}-{host}"


@dataclass(frozen=True, slots=True)
class StateFolder(Generic[S]):
    """The folder of one fleet, with its state."""

    root: Path
    """The folder of such folders."""
    name: str

    state_type: ClassVar[type[Any]]

    @property
    def path(self) -> Path:
        return self.root / self.name

    @property
    def lock_file(self) -> Path:
        return self.root / f"{self.name}.lock"

    @property
    def state_file(self) -> Path:
        return self.path / "state.json"

    def write(self, state: S) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        half_written = self.state_file.with_suffix(".new")
        half_written.write_text(json.dumps(asdict(state), indent=1))  # type: ignore[call-overload]
        half_written.rename(self.state_file)

    def read(self) -> S | None:
        """Returns the fleet's state; None when there is no state file (yet, or any more)."""
        try:
            content = json.loads(self.state_file.read_text()).items()
            # A version of ours that is newer may say more; what it needs to be taken apart it says alike.
            known = {one.name for one in fields(self.state_type)}
            values = {key: tuple(v) if isinstance(v, list) else v for key, v in content if key in known}
            state: S = self.state_type(**values)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise FleetError(
                f"{self.state_file} is not a fleet's state ({error}); remove the folder by hand"
            ) from error
        return state


@dataclass(frozen=True, slots=True)
class FleetFolder(StateFolder[FleetState]):
    """The folder of one fleet of namespaces or virtual machines."""

    state_type: ClassVar[type[Any]] = FleetState

    @property
    def key(self) -> Path:
        """The private key that opens every host."""
        return self.path / "id_ed25519"

    @property
    def host_key(self) -> Path:
        return self.path / "host_key"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    @property
    def sshd_config(self) -> Path:
        return self.path / "sshd_config"

    @property
    def system(self) -> Path:
        """Mount point of a tmpfs: in a ``netns`` fleet with the hosts' system disks (the uppers of their root
        overlays), in a ``qemu`` fleet with sockets."""
        return self.path / "system"

    @property
    def clients(self) -> Path:
        """Returns the folder that faults of the clients' network use while they are in force: the root of
        their programs."""
        return self.path / "clients"

    @property
    def shared(self) -> Path:
        """Returns the folder that hosts which share this machine's kernel see alike."""
        return self.path / "shared"

    def image(self, host: str, disk: int = 1) -> Path:
        return self.path / (f"{host}.img" if disk == 1 else f"{host}-{disk}.img")

    def log(self, host: str) -> Path:
        """The output of the host's first process and of its sshd."""
        return self.path / f"{host}.log"

    def last_words(self, host: str) -> str:
        """The end of that output."""
        with contextlib.suppress(OSError):
            return self.log(host).read_text(errors="replace")[-400:].strip() or "nothing"
        return "nothing"

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        if self.path.exists():
            shutil.rmtree(self.path)


def names_below(root: Path) -> list[str]:
    """Names of the fleets that have a folder or a lock below a state root, sorted."""
    if not root.is_dir():
        return []
    names = {entry.name for entry in root.iterdir() if entry.is_dir()}
    return sorted(names | {lock.stem for lock in root.glob("*.lock")})


def folders(root: Path) -> list[FleetFolder]:
    """Every fleet that has a folder or a lock below a state root."""
    return [FleetFolder(root, name) for name in names_below(root) if _NAME.fullmatch(name)]


def look_over(folders: Iterable[StateFolder[S]]) -> list[tuple[S, str]]:
    """The state of each fleet, and its life: ``owned by pid N``, ``detached`` or ``dead``."""
    seen = []
    for folder in folders:
        if (state := folder.read()) is None:
            continue
        life = f"owned by pid {state.owner_pid}"
        if (lock := FleetLock.try_acquire(folder.lock_file)) is not None:
            life = "detached" if state.lives_alone else "dead"
            lock.release(remove=False)
        seen.append((state, life))
    return seen


def lock_of_detached(folder: StateFolder[S]) -> FleetLock:
    """The lock of a fleet that outlived its maker. Raises FleetError when a run owns it."""
    lock = FleetLock.try_acquire(folder.lock_file)
    if lock is None:
        state = folder.read()
        owner = f"process {state.owner_pid}" if state else "another process"
        raise FleetError(
            f"fleet {folder.name} is in use by {owner}; end that run, and its fleet ends with it"
        )
    return lock


class FleetLock:
    """An exclusive lock that ends with its process, whatever ends it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def try_acquire(cls, path: Path) -> FleetLock | None:
        """Takes the lock; None when another fleet object, here or in another process, holds it."""
        while True:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # the last fleet took the empty folder away between the two lines above
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            # The last holder may have removed the file between our open and our lock: then we hold a lock on
            # nothing.
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return cls(path, descriptor)
            os.close(descriptor)

    def release(self, *, remove: bool = True) -> None:
        if self._descriptor < 0:
            return
        if remove:
            self.path.unlink(missing_ok=True)
        self._close()
        if remove:
            with contextlib.suppress(OSError):
                self.path.parent.rmdir()  # only when it is empty

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def lend(self) -> int | None:
        """A second descriptor of the lock, for a program to inherit; the caller closes its own copy."""
        with contextlib.suppress(OSError):
            if self._descriptor >= 0:
                return os.dup(self._descriptor)
        return None


_held: weakref.WeakSet[FleetLock] = weakref.WeakSet()


@contextlib.contextmanager
def lent_locks() -> Iterator[tuple[int, ...]]:
    """Descriptors to pass to a program that works on a fleet. When its owner is killed meanwhile, the lock is
    free only after the program has ended: nobody then clears up in front of an `ip` or `mkfs` that is still
    at work."""
    lent = tuple(copy for lock in list(_held) if (copy := lock.lend()) is not None)
    try:
        yield lent
    finally:
        for descriptor in lent:
            os.close(descriptor)


def _close_in_child() -> None:
    # A forked worker that outlives a killed harness would keep the dead fleet looking alive.
    for lock in list(_held):
        lock._close()


os.register_at_fork(after_in_child=_close_in_child)
