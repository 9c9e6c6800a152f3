"""One host of a ``netns`` fleet as a machine: plugged into the bridge, booted, frozen, switched off."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from wrackline.fleets.base import FileLoss, FleetError, Host
from wrackline.fleets.local import throttle
from wrackline.fleets.local.clean import DATA_DIR, discard_data, end_host
from wrackline.fleets.local.disk import (
    LOOP_MAJOR,
    MOUNT_OPTIONS,
    attach_loop,
    compare,
    loops_below,
    make_image,
    shut_down,
    wait_released,
)
from wrackline.fleets.local.keys import ETC
from wrackline.fleets.local.look import FileSeen, files_seen, holders, is_alive, signal_all, stop_all
from wrackline.fleets.local.network.links import mac_address, plug_in, wait_banner
from wrackline.fleets.local.network.namespaces import (
    ip_batch,
    kill_processes_in_netns,
    mounts,
    netns_path,
    processes_in,
    run_tool,
    wait_dead,
)
from wrackline.fleets.local.state import FleetFolder, FleetState, lent_locks

BOOT_TIMEOUT_S = 20.0
UMOUNT_TIMEOUT_S = 10.0
INIT_PROGRAM = Path(__file__).with_name("hostinit.py")
# Folders that machines like to keep on file systems of their own; an overlay of / alone would show them
# empty.
_SEPARATE = (
    "/usr",
    "/usr/local",
    "/usr/lib",
    "/usr/share",
    "/var",
    "/var/lib",
    "/opt",
    "/etc",
    "/lib",
    "/lib64",
)


def layers() -> list[str]:
    """Mount points below / that hold programs and therefore need a layer of their own in a host's root."""
    mounted = {str(mount.point) for mount in mounts()}
    return [folder for folder in _SEPARATE if folder in mounted and not Path(folder).is_symlink()]


@dataclass(frozen=True, slots=True)
class DataDisk:
    """A data disk of a host."""

    number: int
    at: PurePosixPath
    """Where the host has it mounted."""
    image: Path

    @property
    def prefix(self) -> str:
        """How the names of its files begin among those of all disks of the host."""
        return "" if self.number == 1 else f"{self.at.name}/"

    def name_of(self, path: str) -> str:
        """Returns the name of its file among those of all disks of the host."""
        return f"{self.prefix}{path}"

    def has(self, name: str) -> bool:
        """Tells whether a file with that name among those of all disks is on this one."""
        further = re.fullmatch(rf"{DATA_DIR.name}(\d)/.*", name, re.DOTALL)
        return (int(further[1]) if further else 1) == self.number


@dataclass(slots=True)
class Machine:
    """A host as namespaces of this machine; not thread-safe, since its power switch keeps one caller at a
    time."""

    state: FleetState
    folder: FleetFolder
    host: Host
    prefix_length: int
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Files of the host's /etc: path → content, mode."""
    _chassis: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _init_pid: int = field(default=0, init=False)

    @property
    def netns(self) -> str:
        return self.state.netns(self.host.name)

    @property
    def port(self) -> str:
        return self.state.port(self.host.name)

    @property
    def image(self) -> Path:
        return self.disks[0].image

    @property
    def data(self) -> Path:
        """The host's first data disk, seen from the machine."""
        return self._outside(self.disks[0])

    @property
    def disks(self) -> tuple[DataDisk, ...]:
        return tuple(
            DataDisk(number, at, self.folder.image(self.host.name, number))
            for number, at in enumerate(self.host.disks, start=1)
        )

    def _outside(self, disk: DataDisk) -> Path:
        """Returns where a disk of the host is mounted, seen from the machine."""
        return Path(f"/proc/{self._init_pid}/root{disk.at}")

    @property
    def is_on(self) -> bool:
        return self._init_pid > 0 and is_alive(self._init_pid)

    def _plug(self) -> None:
        """Make the host's network and join it to the bridge."""
        control = self.state.control
        mac = mac_address(self.host.address)
        ip_batch([f"netns add {self.netns}"])
        ip_batch(
            [
                f"link add {self.port} type veth peer name eth0 address {mac} netns {self.netns}",
                f"link set {self.port} master br0 up",
            ],
            netns=control,
        )
        ip_batch(
            [
                f"addr add {self.host.address}/{self.prefix_length} dev eth0",
                "link set lo up",
                "link set eth0 up",
            ],
            netns=self.netns,
        )

    def boot(self, before: Mapping[str, FileSeen]) -> Mapping[str, FileLoss]:
        """Power on; what became of the files that were there ``before``. Returns when the disk is mounted and
        sshd was started. Raises FleetError."""
        self._plug()
        with ExitStack() as stack:
            loops = []
            for disk in self.disks:
                loop = attach_loop(disk.image)
                stack.callback(loop.close)
                loops.append((loop.path, str(disk.at)))
            self._start_init(loops)
        return self._losses(before)

    def _start_init(self, loops: Sequence[tuple[str, str]]) -> None:
        """``loops``: device and mount point of each data disk."""
        reader, writer = os.pipe()
        plan: dict[str, object] = {
            "netns": str(netns_path(self.netns)),
            "hostname": self.host.name,
            "system": str(self.folder.system / self.host.name),
            "layers": layers(),
            "disks": loops,
            "shared": [str(self.folder.shared), str(self.host.shared)],
            "filesystem": self.state.filesystem,
            "mount_options": MOUNT_OPTIONS[self.state.filesystem],
            "files": dict(self.files),
            "sshd": ["/usr/sbin/sshd", "-D", "-e", "-f", f"{ETC}/sshd_config"],
            "ready_fd": writer,
        }
        try:
            with self.folder.log(self.host.name).open("ab") as log, lent_locks() as locks:
                plan["lock_fds"] = locks
                self._chassis = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(INIT_PROGRAM), self.netns],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    pass_fds=(writer, *locks),
                    start_new_session=True,
                )
        finally:
            os.close(writer)
        try:
            assert self._chassis.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._chassis.stdin.write(json.dumps(plan).encode())
                self._chassis.stdin.close()
            self._await_ready(reader)
        finally:
            os.close(reader)

    def _await_ready(self, reader: int) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT_S
        received = b""
        os.set_blocking(reader, False)
        while True:
            messages = [
                json.loads(line) for line in received.splitlines(keepends=True) if line.endswith(b"\n")
            ]
            report = {key: value for message in messages for key, value in message.items()}
            self._init_pid = report.get("pid", self._init_pid)
            if "error" in report:
                raise FleetError(
                    f"host {self.host.name} did not boot: {report['error']}; `wrackline doctor` shows why"
                )
            if "ready" in report and "pid" in report:
                return
            if time.monotonic() > deadline:
                raise FleetError(
                    f"host {self.host.name} did not boot within {BOOT_TIMEOUT_S:g} s; last report: {report}"
                )
            try:
                chunk = os.read(reader, 4096)
            except BlockingIOError:
                time.sleep(0.002)
                continue
            if not chunk:
                raise FleetError(
                    f"host {self.host.name} died while booting; its last line: {self.last_words()}"
                )
            received += chunk

    def last_words(self) -> str:
        return self.folder.last_words(self.host.name)

    def wait_ssh(self) -> None:
        """Waits until sshd answers with its banner. Raises FleetError with the last thing seen."""
        wait_banner(self.state.control, self.host, BOOT_TIMEOUT_S, lambda: self.is_on, self.last_words)

    def unplug(self) -> None:
        """Link down: from here on no packet leaves or reaches the host."""
        plug_in(self.state.control, self.port, up=False)

    def lose_power(self) -> Mapping[str, FileSeen]:
        """Every process stands still, then all that the data disk has not synced is lost. The files that were
        there before. Raises FleetError."""
        self.freeze()
        with ExitStack() as opened:
            return self._lose(self.disks, opened)

    def _lose(self, disks: Sequence[DataDisk], opened: ExitStack) -> dict[str, FileSeen]:
        """All that these disks have not synced is lost: of all at once, after a look at each. The files that
        were there before; they stay open as long as ``opened``. Raises FleetError."""
        before: dict[str, FileSeen] = {}
        silent: list[DataDisk] = []
        for disk in disks:
            try:
                files = opened.enter_context(files_seen(self._outside(disk)))
            except OSError:
                # The disk answers no more (it was shut down before, or failed): nothing of it can reach the
                # image.
                silent.append(disk)
                continue
            before |= {disk.name_of(path): one for path, one in files.items()}
        for disk in disks:
            with contextlib.suppress(*([FleetError] if disk in silent else [])):
                shut_down(self._outside(disk), disk.image)
        return before

    def _losses(
        self, before: Mapping[str, FileSeen], disks: Sequence[DataDisk] | None = None
    ) -> dict[str, FileLoss]:
        """Returns what became of the files that were on these disks ``before``, or on all."""
        result: dict[str, FileLoss] = {}
        for disk in self.disks if disks is None else disks:
            of_disk = {path[len(disk.prefix) :]: one for path, one in before.items() if disk.has(path)}
            result |= {
                disk.name_of(path): loss for path, loss in compare(of_disk, self._outside(disk)).items()
            }
        return result

    def drop_page_cache(self) -> tuple[Mapping[str, FileLoss], float]:
        """Kill the programs that use the data disks, lose what they had not synced, and mount them again.
        What was lost, and how many seconds ago that was. Raises FleetError."""
        # Stopped one and all before the first dies: none may write, or learn, of another's end.
        users = stop_all(self._disk_users)
        with ExitStack() as opened:
            before = self._lose(self.disks, opened)
            lost_at = time.monotonic()
        signal_all(sorted(users), signal.SIGKILL)
        wait_dead(users)
        for disk in self.disks:
            self._remount(disk)
        return self._losses(before), time.monotonic() - lost_at

    def cut_disk(self, number: int) -> Mapping[str, FileSeen]:
        """Take one data disk from under the programs, which go on, with all that it has not synced. Returns
        the files that were there before. Raises FleetError."""
        disk = self._disk(number)
        # They stand still for the look and the cut, so that what was seen is what was there.
        self.freeze()
        try:
            with ExitStack() as opened:
                return self._lose([disk], opened)
        finally:
            self.thaw()

    def restore_disk(self, number: int, before: Mapping[str, FileSeen]) -> Mapping[str, FileLoss]:
        """Kill the programs that still hold on to a data disk, and mount it anew. Returns what became of the
        files that were there ``before``. Raises FleetError."""
        disk = self._disk(number)
        users = stop_all(lambda: self._users_of(disk))
        signal_all(sorted(users), signal.SIGKILL)
        wait_dead(users)
        self._remount(disk)
        return self._losses(before, [disk])

    def _disk(self, number: int) -> DataDisk:
        if not 1 <= number <= len(self.disks):
            raise FleetError(f"host {self.host.name} has {len(self.disks)} data disks, and no disk {number}")
        return self.disks[number - 1]

    def freeze(self) -> None:
        """SIGSTOP every process of the host. None runs another instruction of its own program after this; a
        system call under way ends first."""
        stop_all(self.processes)

    def _disk_users(self) -> list[int]:
        """Processes of the host with an open file, or their working directory, on a data disk."""
        return sorted({pid for disk in self.disks for pid in self._users_of(disk)})

    def _users_of(self, disk: DataDisk) -> list[int]:
        return holders(self.processes(), self._outside(disk).stat().st_dev)

    def processes(self) -> list[int]:
        return processes_in("pid", Path(f"/proc/{self._init_pid}/ns/pid").stat().st_ino)

    def _remount(self, disk: DataDisk) -> None:
        """Take a data disk away and mount it again, inside the running host. Raises FleetError."""
        # With its PIDs, for umount looks into /proc/self; with its root, for in a chroot that is not the
        # namespace's.
        inside = ["nsenter", f"--target={self._init_pid}", "--mount", "--pid", "--root"]
        deadline = time.monotonic() + UMOUNT_TIMEOUT_S
        while True:
            try:
                run_tool([*inside, "umount", str(disk.at)])
                break
            except FleetError:
                # The threads of a killed program let go of its files one after another, and somebody may have
                # come meanwhile.
                if time.monotonic() > deadline:
                    raise
                signal_all(self._users_of(disk), signal.SIGKILL)
                time.sleep(0.02)
        wait_released(self.folder.path, disk.image)
        loop = attach_loop(disk.image)
        try:
            # The host's /dev shows no disks, so that no host reaches for another's.
            node = "/dev/wl-disk"
            options = (
                ["-o", MOUNT_OPTIONS[self.state.filesystem]] if MOUNT_OPTIONS[self.state.filesystem] else []
            )
            run_tool([*inside, "mknod", node, "b", str(LOOP_MAJOR), loop.path.removeprefix("/dev/loop")])
            run_tool([*inside, "mount", "-t", self.state.filesystem, *options, node, str(disk.at)])
            run_tool([*inside, "rm", node])
        finally:
            loop.close()

    def thaw(self) -> None:
        """The end of `freeze`."""
        signal_all(self.processes(), signal.SIGCONT)

    def copy_disk(self) -> Path:
        """A copy of the first data disk beside its image. Everything stands still meanwhile, so that all is
        synced and nothing is half written. Raises FleetError."""
        copy = self.image.with_suffix(".copy")
        self.freeze()
        try:
            run_tool(["sync", "-f", str(self.data)])
            run_tool(["cp", "--sparse=always", "--reflink=auto", str(self.image), str(copy)])
        finally:
            self.thaw()
        return copy

    def wipe_disk(self) -> None:
        """An empty first data disk in place of what was there, while the host is off. Raises FleetError."""
        self.image.unlink()
        self.make_disks()

    def make_disks(self) -> None:
        for disk in self.disks:
            make_image(disk.image, self.state.filesystem, self.state.disk_mb)

    def hold_back(self, bytes_per_s: int | None) -> None:
        """The first data disk reads and writes so many bytes a second each at most. Raises FleetError."""
        device = self._loop()
        if device is not None and bytes_per_s is not None:
            throttle.limit(device, bytes_per_s)
        elif device is not None:
            throttle.free(device)

    def _loop(self) -> str | None:
        """The device that the first data disk is behind; None while the host is off."""
        result = [device for device, image in loops_below(self.folder.path).items() if image == self.image]
        return result[0] if result else None

    def destroy(self) -> None:
        """Kill every process, and remove the host's network and mounts. Its image and system disk stay. Also
        for hosts that another process booted; idempotent."""
        discard_data(self.netns, [disk.image for disk in self.disks])
        if (device := self._loop()) is not None:
            throttle.free(device)  # else what is still to be written takes its time
        kill_processes_in_netns(self.netns)
        if self._chassis is not None:
            wait_dead([self._chassis.pid])
            self._chassis.wait()
            self._chassis = None
        self._init_pid = 0
        for disk in self.disks:
            wait_released(self.folder.path, disk.image)
        end_host(self.folder, self.state, self.host.name)
