"""A host that runs our image, whatever runs the machine: told who it is, and asked about its files."""

from __future__ import annotations

import logging
import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wrackline.fleets.base import FileLoss, FleetError, Host
from wrackline.fleets.local.disk import MOUNT_OPTIONS
from wrackline.fleets.local.look import FileSeen
from wrackline.fleets.local.network.links import mac_address, plug_in, wait_banner
from wrackline.fleets.local.state import FleetFolder, FleetState
from wrackline.fleets.qemu.agent import Agent
from wrackline.fleets.qemu.disk import Disks
from wrackline.fleets.qemu.services import SSHD, Init

log = logging.getLogger(__name__)

LOOK_S = 3.0
"""So long a guest may take to say which files it has, before its power goes without."""
DROP_S = 30.0


@dataclass(slots=True)
class VirtualHost(ABC):
    """A host as a virtual machine; not thread-safe, since its power switch keeps one caller at a time."""

    state: FleetState
    folder: FleetFolder
    host: Host
    disks: Disks
    boot_s: float
    prefix_length: int
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Files of the host's /etc: path → content, mode."""
    init: Init = "minimal"
    """Who runs its services."""
    paused: bool = False
    _agent: Agent | None = field(default=None, init=False)

    @property
    def link(self) -> str:
        return self.state.port(self.host.name)

    @property
    def image(self) -> Path:
        """Returns the host's data disk, as a file of this machine."""
        return self.disks.image

    def make_disks(self) -> None:
        self.disks.make()

    def wipe_disk(self) -> None:
        """An empty data disk in place of what was there, while the host is off. Raises FleetError."""
        self.disks.wipe()

    # -- what runs the machine says --------------------------------------------------------------------------

    @property
    @abstractmethod
    def is_on(self) -> bool: ...

    @abstractmethod
    def _begin(self) -> None:
        """Start the machine with its link up; `_agent` is there afterwards, and its guest asks who it is.
        Raises FleetError."""

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """The process of the machine, where there is one."""

    @abstractmethod
    def switch_off(self) -> None:
        """Ends the guest: from here on nothing reaches the data disk, and what was not flushed is gone from
        it."""

    @abstractmethod
    def destroy(self) -> None:
        """End its machine and let go of its disks, which stay. Idempotent."""

    @abstractmethod
    def hold_back(self, bytes_per_s: int | None) -> None:
        """The data disk reads and writes so many bytes a second each at most. Raises FleetError."""

    @abstractmethod
    def set_link(self, *, up: bool) -> None:
        """Pull the network cable, or plug it in: the guest sees its carrier go. Raises FleetError."""

    @abstractmethod
    def pause(self) -> None:
        """Stop all processors. Raises FleetError."""

    @abstractmethod
    def resume(self) -> None:
        """Raises FleetError."""

    # -- power-on --------------------------------------------------------------------------------------------

    def boot(self, before: Mapping[str, FileSeen]) -> dict[str, FileLoss]:
        """Power on; what became of the files that were there ``before``. Returns when the disks are mounted
        and sshd was started. Raises FleetError."""
        began = time.monotonic()
        self._begin()
        assert self._agent is not None
        left_s = max(1.0, self.boot_s - (time.monotonic() - began))
        answer = self._agent.ask(self._plan(before), left_s)
        return {path: FileLoss(*loss) for path, loss in answer["lost"].items()}

    def _listen(self, port: Path, timeout_s: float) -> None:
        """Waits until the guest behind its serial port asks who it is. Raises FleetError."""
        self._agent = Agent(port, self.host.name, lambda: self.is_on)
        try:
            self._agent.await_waiting(timeout_s)
        except FleetError as error:
            raise FleetError(f"{error}; its last line: {self.folder.last_words(self.host.name)}") from error

    def _plan(self, before: Mapping[str, FileSeen]) -> dict[str, object]:
        return {
            "time": time.time(),
            "entropy": secrets.token_hex(64),
            "boot_id": str(uuid.uuid4()),
            "hostname": self.host.name,
            "mac": mac_address(self.host.address),
            "address": f"{self.host.address}/{self.prefix_length}",
            **self._mount(),
            "before": before,
            "files": self.files,
            "init": self.init,
            "sshd": SSHD,
        }

    def _mount(self) -> dict[str, object]:
        filesystem = self.state.filesystem
        return {"filesystem": filesystem, "mount_options": MOUNT_OPTIONS[filesystem]}

    def wait_ssh(self) -> None:
        """Waits until sshd answers with its banner. Raises FleetError with the last thing seen."""
        wait_banner(
            self.state.control,
            self.host,
            self.boot_s,
            lambda: self.is_on,
            lambda: self.folder.last_words(self.host.name),
            patience_s=2.0,
        )

    # -- while it is on --------------------------------------------------------------------------------------

    def unplug(self) -> None:
        """Link down: from here on no packet leaves or reaches the host."""
        plug_in(self.state.control, self.link, up=False)

    def lose_power(self) -> Mapping[str, FileSeen] | None:
        """All programs stand still, then all that was not synced is lost. The files that were there before;
        None: the host did not say in time, and its power went all the same."""
        seen = self._freeze_and_look()
        self.switch_off()
        return seen

    def _freeze_and_look(self) -> Mapping[str, FileSeen] | None:
        """Stop all programs of the host and list the files of its data disk; None when it does not answer in
        time. Only its power may go next."""
        if self._agent is None or self.paused:
            return None
        try:
            answer = self._agent.ask({"order": "freeze-and-look"}, LOOK_S)
        except FleetError as error:
            log.warning("what %s loses cannot be counted: %s", self.host.name, error)
            return None
        return {path: FileSeen(*seen) for path, seen in answer["files"].items()}

    def drop_page_cache(self) -> tuple[dict[str, FileLoss], float]:
        """Drops the guest's page cache; returns what was lost, and how many seconds ago that was. Raises
        FleetError."""
        answer = self.agent.ask({"order": "drop-page-cache", **self._mount()}, DROP_S)
        return {path: FileLoss(*loss) for path, loss in answer["lost"].items()}, answer["ago_s"]

    def copy_disk(self) -> Path:
        """A copy of the data disk, all of it synced; the host stands still meanwhile. Raises FleetError."""
        agent, pid = self.agent, self.pid
        assert pid is not None
        try:
            agent.ask({"order": "freeze-and-sync"}, DROP_S)
            return self.disks.copy(pid)
        finally:
            agent.ask({"order": "thaw"}, DROP_S)

    @property
    def agent(self) -> Agent:
        """The guest's first process. Raises FleetError."""
        if self._agent is None:
            raise FleetError(f"host {self.host.name}: nobody speaks with its first process")
        return self._agent

    def hang_up(self) -> None:
        """Nobody speaks with the guest any more."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None
