"""One host of a ``qemu`` fleet as a machine: a QEMU of its own, from a snapshot or from cold."""

from __future__ import annotations

import contextlib
import logging
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.links import plug_in
from wrackline.fleets.local.network.namespaces import entered_netns, find_tool
from wrackline.fleets.qemu import qmp
from wrackline.fleets.qemu.settings import PROGRAM, channels, command, own
from wrackline.fleets.qemu.snapshots import Snapshot
from wrackline.fleets.qemu.virtual.host import VirtualHost

log = logging.getLogger(__name__)

RESUME_SHARE = 0.25
"""Of the time to boot: so long a guest may take to go on from its snapshot before it is booted from cold."""
DEATH_S = 10.0


@dataclass(frozen=True, slots=True)
class Model:
    """The properties that all hosts of a fleet have in common."""

    computer: tuple[str, ...]
    """Arguments of QEMU: what the guest sees from its first instruction on."""
    snapshot: Snapshot | None
    """None: every power-on is a cold boot."""


@dataclass(slots=True)
class Machine(VirtualHost):
    """A host as a QEMU guest; not thread-safe, since its power switch keeps one caller at a time."""

    model: Model | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def is_on(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def qmp(self) -> Path:
        return self.folder.system / f"{self.host.name}.qmp"

    @property
    def _port(self) -> Path:
        return self.folder.system / f"{self.host.name}.agent"

    # -- power-on --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Starts the guest and waits until it asks who it is: from the snapshot where there is one, else from
        cold. The first guest of its kind becomes the snapshot."""
        assert self.model is not None
        plug_in(self.state.control, self.link, up=True)
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
                    except FleetError as error:
                        log.warning("host %s: %s", self.host.name, error)
                    return
        try:
            self._start(snapshot.arguments, self.boot_s * RESUME_SHARE)
        except FleetError as error:
            log.warning(
                "%s did not go on from its snapshot, so it boots from cold: %s", self.host.name, error
            )
            self.kill()
            snapshot.remove()
            self._cold()

    def _cold(self) -> None:
        self._start((), self.boot_s)

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
            self._listen(self._port, timeout_s)

    # -- while it is on --------------------------------------------------------------------------------------

    def hold_back(self, bytes_per_s: int | None) -> None:
        """The data disk reads and writes so many bytes a second each at most. Raises FleetError."""
        each = bytes_per_s or 0
        none = {"bps": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0}
        self.ask_qemu("block_set_io_throttle", device="d2", bps_rd=each, bps_wr=each, **none)

    def set_link(self, *, up: bool) -> None:
        """Pull the network cable, or plug it in: the guest sees its carrier go. Raises FleetError."""
        self.ask_qemu("set_link", name="n0", up=up)

    def pause(self) -> None:
        """Stop all processors. Raises FleetError."""
        self.ask_qemu("stop")
        self.paused = True

    def resume(self) -> None:
        """Raises FleetError."""
        self.ask_qemu("cont")
        self.paused = False

    def ask_qemu(self, order: str, **arguments: str | int | bool) -> None:
        """Raises FleetError, also when the host is off."""
        if not self.is_on:
            raise FleetError(f"host {self.host.name} is off: switch it on first")
        qmp.ask(self.qmp, order, arguments)

    # -- power-off -------------------------------------------------------------------------------------------

    def switch_off(self) -> None:
        """Ends the guest: from here on nothing reaches the data disk, and what was not flushed is gone from
        it."""
        if self._process is not None:
            with self.disks.cache_of(self._process.pid) as lose_cache:
                self._process.kill()
                with contextlib.suppress(FleetError):  # shut down already: nothing can reach it any more
                    lose_cache()

    def kill(self) -> None:
        """End its QEMU, and wait until it is gone. Idempotent. Raises FleetError."""
        self.hang_up()
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
        self.switch_off()  # spares this machine from writing back what nobody will read
        self.kill()
        self.disks.release()
