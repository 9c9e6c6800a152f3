"""One host of a ``qemu`` fleet as a machine: powered on, told who it is, looked at, switched off."""

from __future__ import annotations

import contextlib
import logging
import secrets
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wrackline.fleets.base import FileLoss, FleetError, Host
from wrackline.fleets.local.disk import MOUNT_OPTIONS
from wrackline.fleets.local.keys import ETC
from wrackline.fleets.local.links import mac_address, plug_in, wait_banner
from wrackline.fleets.local.look import FileSeen
from wrackline.fleets.local.namespaces import entered_netns, find_tool
from wrackline.fleets.local.state import FleetFolder, FleetState
from wrackline.fleets.qemu import qmp
from wrackline.fleets.qemu.agent import Agent
from wrackline.fleets.qemu.disk import Disks
from wrackline.fleets.qemu.settings import PROGRAM, channels, command, own
from wrackline.fleets.qemu.snapshots import Snapshot

log = logging.getLogger(__name__)

LOOK_S = 3.0
"""So long a guest may take to say which files it has, before its power goes without."""
DROP_S = 30.0
RESUME_SHARE = 0.25
"""Of the time to boot: so long a guest may take to go on from its snapshot before it is booted from cold."""
DEATH_S = 10.0


@dataclass(frozen=True, slots=True)
class Model:
    """What all hosts of a fleet have in common."""

    computer: tuple[str, ...]
    """Arguments of QEMU: what the guest sees from its first instruction on."""
    snapshot: Snapshot | None
    """None: every power-on is a cold boot."""
    boot_s: float
    prefix_length: int


@dataclass(slots=True)
class Machine:
    """Not thread-safe: its power switch keeps one caller at a time."""

    state: FleetState
    folder: FleetFolder
    host: Host
    disks: Disks
    model: Model | None = None
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Files of the host's /etc: path → content, mode."""
    paused: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _agent: Agent | None = field(default=None, init=False)

    @property
    def link(self) -> str:
        return self.state.port(self.host.name)

    @property
    def is_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def qmp(self) -> Path:
        return self.folder.system / f"{self.host.name}.qmp"

    @property
    def _port(self) -> Path:
        return self.folder.system / f"{self.host.name}.agent"

    # -- power-on --------------------------------------------------------------------------------------------

    def boot(self, before: Mapping[str, FileSeen]) -> dict[str, FileLoss]:
        """Power on; what became of the files that were there ``before``. Returns when the disks are mounted
        and sshd was started. Raises FleetError."""
        assert self.model is not None
        began = time.monotonic()
        plug_in(self.state.control, self.link, up=True)
        self._begin()
        assert self._agent is not None
        left_s = max(1.0, self.model.boot_s - (time.monotonic() - began))
        answer = self._agent.ask(self._plan(before), left_s)
        return {path: FileLoss(*loss) for path, loss in answer["lost"].items()}

    def _begin(self) -> None:
        """Until the guest asks who it is: from the snapshot where there is one, else from cold. The first
        guest of its kind becomes the snapshot."""
        assert self.model is not None
        snapshot = self.model.snapshot
        if snapshot is None:
            self._cold()
            return
        if not snapshot.exists:
            with snapshot.turn():
                if not snapshot.exists:
                    self._cold()
                    try:
                        snapshot.save(self.qmp)
                    except FleetError as wrong:
                        log.warning("host %s: %s", self.host.name, wrong)
                    return
        try:
            self._start(snapshot.arguments, self.model.boot_s * RESUME_SHARE)
        except FleetError as wrong:
            log.warning(
                "%s did not go on from its snapshot, so it boots from cold: %s", self.host.name, wrong
            )
            self.kill()
            snapshot.remove()
            self._cold()

    def _cold(self) -> None:
        assert self.model is not None
        self._start((), self.model.boot_s)

    def _start(self, more: Sequence[str], timeout_s: float) -> None:
        """Returns when the guest asks who it is."""
        assert self.model is not None
        for socket in (self.qmp, self._port):
            socket.unlink(missing_ok=True)
        # Relative: the address of a Unix socket may have 107 characters.
        paths = [f"{self.folder.system.name}/{path.name}" for path in (self._port, self.qmp)]
        log_file = self.folder.log(self.host.name)
        arguments = command(
            find_tool(PROGRAM),
            ("-name", f"wl-{self.state.name}-{self.host.name}"),
            self.model.computer,
            channels(log_file, *paths),
            own(self.disks.system, self.disks.data, self.link),
            more,
        )
        with self.disks.shelved() as prefix:
            with log_file.open("ab") as said, entered_netns(self.state.control):
                self._process = subprocess.Popen(
                    [*prefix, *arguments],
                    cwd=self.folder.path,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            self.paused = False
            self._agent = Agent(self._port, self.host.name, lambda: self.is_on)
            self._await_waiting(timeout_s)

    def _await_waiting(self, timeout_s: float) -> None:
        assert self._agent is not None
        try:
            self._agent.await_waiting(timeout_s)
        except FleetError as wrong:
            raise FleetError(f"{wrong}; its last line: {self.folder.last_words(self.host.name)}") from wrong

    def _plan(self, before: Mapping[str, FileSeen]) -> dict[str, object]:
        assert self.model is not None
        return {
            "time": time.time(),
            "entropy": secrets.token_hex(64),
            "boot_id": str(uuid.uuid4()),
            "hostname": self.host.name,
            "mac": mac_address(self.host.address),
            "address": f"{self.host.address}/{self.model.prefix_length}",
            **self._mount(),
            "before": before,
            "files": self.files,
            "sshd": ["/usr/sbin/sshd", "-D", "-e", "-f", f"{ETC}/sshd_config"],
        }

    def _mount(self) -> dict[str, object]:
        filesystem = self.state.filesystem
        return {"filesystem": filesystem, "mount_options": MOUNT_OPTIONS[filesystem]}

    def wait_ssh(self) -> None:
        """Until sshd answers with its banner. Raises FleetError with the last thing seen."""
        assert self.model is not None
        wait_banner(
            self.state.control,
            self.host,
            self.model.boot_s,
            lambda: self.is_on,
            lambda: self.folder.last_words(self.host.name),
            patience_s=2.0,
        )

    # -- while it is on --------------------------------------------------------------------------------------

    def unplug(self) -> None:
        """Link down: from here on no packet leaves or reaches the host."""
        plug_in(self.state.control, self.link, up=False)

    def freeze_and_look(self) -> Mapping[str, FileSeen] | None:
        """Stop all programs of the host and list the files of its data disk; None when it does not answer in
        time. Only its power may go next."""
        if self._agent is None or self.paused:
            return None
        try:
            answer = self._agent.ask({"order": "freeze-and-look"}, LOOK_S)
        except FleetError as wrong:
            log.warning("what %s loses cannot be counted: %s", self.host.name, wrong)
            return None
        return {path: FileSeen(*seen) for path, seen in answer["files"].items()}

    def drop_page_cache(self) -> tuple[dict[str, FileLoss], float]:
        """What was lost, and how many seconds ago that was. Raises FleetError."""
        if self._agent is None:
            raise FleetError(f"host {self.host.name}: nobody speaks with its first process")
        answer = self._agent.ask({"order": "drop-page-cache", **self._mount()}, DROP_S)
        return {path: FileLoss(*loss) for path, loss in answer["lost"].items()}, answer["ago_s"]

    def copy_disk(self) -> Path:
        """A copy of the data disk, all of it synced; the host stands still meanwhile. Raises FleetError."""
        if self._agent is None or self._process is None:
            raise FleetError(f"host {self.host.name}: nobody speaks with its first process")
        try:
            self._agent.ask({"order": "freeze-and-sync"}, DROP_S)
            return self.disks.copy(self._process.pid)
        finally:
            self._agent.ask({"order": "thaw"}, DROP_S)

    def ask_qemu(self, order: str, **arguments: str | int | bool) -> None:
        """Raises FleetError, also when the host is off."""
        if not self.is_on:
            raise FleetError(f"host {self.host.name} is off: switch it on first")
        qmp.ask(self.qmp, order, arguments)

    # -- power-off -------------------------------------------------------------------------------------------

    def lose_power(self) -> None:
        """From here on nothing reaches the data disk, and what was not flushed is gone from it."""
        if self._process is not None:
            with self.disks.cache_of(self._process.pid) as lose_cache:
                self._process.kill()
                with contextlib.suppress(FleetError):  # shut down already: nothing can reach it any more
                    lose_cache()

    def kill(self) -> None:
        """End its QEMU, and wait until it is gone. Idempotent. Raises FleetError."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None
        if self._process is not None:
            self._process.kill()
            try:
                self._process.wait(DEATH_S)
            except subprocess.TimeoutExpired as error:
                raise FleetError(
                    f"the QEMU of {self.host.name} (process {self._process.pid}) did not die within "
                    f"{DEATH_S:g} s of SIGKILL"
                ) from error
            self._process = None

    def destroy(self) -> None:
        """Kill it and let go of its disks, which stay. Idempotent."""
        self.lose_power()  # spares this machine from writing back what nobody will read
        self.kill()
        self.disks.release()
