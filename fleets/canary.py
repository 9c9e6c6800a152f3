"""The canary: on each host a process that appends numbers to files it never syncs, and reports each over SSH.

It is the positive control of every power cut and page-cache drop: what it had reported well before must be
gone from its disk afterwards. It needs SSH and Python on the host and nothing else, so it works alike on a
namespace, a VM and a machine.

How it writes. Sixteen bytes ten times a second; a new file every second; a file is removed when it is seven
seconds old. The kernel writes the dirty pages of a file back when it has been dirty for
``dirty_expire_centisecs`` (30 s): a file that never gets so old is never written back, so a real cut takes
*all* that the canary keeps, whenever it comes. (One file that grew would be written back every 30 s, and a
cut just after that would find little to lose.) An fsync of other files does not write it either: with delayed
allocation (ext4, XFS, btrfs) its data has no place on the disk yet. What does write it: a sync of the whole
file system, memory or the disk running short, ext4 mounted ``nodelalloc``.

What counts. A number that was reported `REACH_S` or longer before the cut was decided must be gone. A real
cut reaches as far back as the canary's files do, five seconds when it is old enough (100 cuts of canaries two
seconds old: 2.00 s and more). One ``sync -f`` before the cut leaves only what was appended between the two to
be lost (100 such cuts: 0.07 s and less), which is why "something is gone" proves nothing. That the disk is
the same one is shown by a token which was synced.
"""

from __future__ import annotations

import re
import secrets
import shlex
import threading
import time
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from wrackline.fleets.base import Fleet, FleetError, Host, Stream

FOLDER = ".wrack-canary"
"""On the data disk, at its top. Its files are not the system's: their loss makes no cut lossy."""
PACE_S = 0.1
RECORD_BYTES = 16
PER_FILE = 10
KEPT_FILES = 5
"""So many files are sure to be there when the last number reported is of the newest of them."""
SPARE_FILES = 2
"""The canary keeps more, for it goes on, unreported, between the decision and the cut."""
REACH_S = 1.0
"""So long before the decision a number must have been reported whose loss proves the cut."""
SILENT_S = 5.0
"""A canary that reported nothing for so long before the decision is no witness of it."""
WITNESS_S = 10.0
"""So long a cut waits for a canary that could not prove it yet: one just started, or one whose numbers arrive
late."""
START_S = 20.0
LISTEN_S = 1.0
"""How long the thread of a canary that says nothing may take to notice that it is over."""
_PROGRAM = Path(__file__).with_name("canary_program.py")
_RECORD = re.compile(r"^\d{15}$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reported:
    """A number of a canary that has reached the harness."""

    number: int
    at_ns: int
    """Monotonic clock of this machine."""


@dataclass(frozen=True, slots=True)
class CanaryLoss:
    """Bytes that a host's canary lost. ``problem`` says why it proves nothing."""

    host: str
    before_bytes: int = 0
    """What it had reported and kept on the disk before the cut was decided."""
    after_bytes: int = 0
    """As much of that as is there afterwards, up to the first byte that is gone for good."""
    last_reported: int | None = None
    last_there: int | None = None
    """None: not one number is left."""
    reach_s: float = 0.0
    """How long before the decision the first number was reported that is gone; 0 when none is."""
    problem: str | None = None

    @property
    def lost_bytes(self) -> int:
        return self.before_bytes - self.after_bytes

    @property
    def proved(self) -> bool:
        """Unsynced bytes of the host are gone, and not only those of the last moment."""
        return self.problem is None

    def __str__(self) -> str:
        if self.last_reported is None:
            return f"canary: {self.problem}"
        there = "none is there" if self.last_there is None else f"last there {self.last_there}"
        counted = (
            f"canary: {self.lost_bytes:,} of {self.before_bytes:,} bytes lost,"
            f" last number reported {self.last_reported}, {there}"
        )
        return counted if self.problem is None else f"{counted}: {self.problem}"


def judge(
    host: str, reported: Sequence[Reported], decided_ns: int, there: Collection[int], complaint: str = ""
) -> CanaryLoss:
    """Compares the numbers that were reported before ``decided_ns``, in order, with those found ``there``
    afterwards. ``complaint``: what the canary reported of its own troubles."""
    before = [one for one in reported if one.at_ns <= decided_ns]
    why = f" ({complaint})" if complaint else ""
    if not before:
        return CanaryLoss(host, problem=f"it had reported nothing before the cut{why}")
    last = before[-1]
    first_kept = max(0, (last.number - 1) // PER_FILE - KEPT_FILES + 1) * PER_FILE + 1
    kept = [one for one in before if one.number >= first_kept]
    last_there = max((number for number in there if number >= first_kept), default=None)
    gone = [one for one in kept if last_there is None or one.number > last_there]
    reach_s = (decided_ns - gone[0].at_ns) / 1e9 if gone else 0.0
    loss = CanaryLoss(
        host,
        before_bytes=len(kept) * RECORD_BYTES,
        after_bytes=(len(kept) - len(gone)) * RECORD_BYTES,
        last_reported=last.number,
        last_there=None if last_there is None else min(last_there, last.number),
        reach_s=reach_s,
    )
    problem = None
    if (silent_s := (decided_ns - last.at_ns) / 1e9) > SILENT_S:
        problem = f"it had been silent for {silent_s:.1f} s before the cut{why}"
    elif reach_s < REACH_S and (kept_s := (decided_ns - kept[0].at_ns) / 1e9) < REACH_S:
        problem = f"it had reported numbers for {kept_s:.2f} s only before the cut{why}"
    elif reach_s < REACH_S:
        what = f"only what it reported in the last {reach_s:.2f} s is gone" if gone else "nothing is gone"
        problem = f"{what}, so something synced the disk, or nothing cut it"
    return replace(loss, problem=problem)


def numbers(listing: str) -> set[int]:
    """The numbers that are whole in what was read back; what a file system puts in place of lost bytes is
    none."""
    return {int(record) for record in _RECORD.findall(listing)}


@dataclass
class _Life:
    """One canary from its start to its end."""

    base: str
    """The folder of all canaries of its disk."""
    folder: str
    token: str
    pid: int | None = None
    reported: deque[Reported] = field(default_factory=lambda: deque(maxlen=2 * KEPT_FILES * PER_FILE))
    complaint: str = ""
    over: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def hear(self, line: str) -> None:
        with self.changed:
            if line.isdigit():
                self.reported.append(Reported(int(line), time.monotonic_ns()))
                self.complaint = ""
            elif line.startswith("pid "):
                self.pid = int(line.removeprefix("pid "))
            elif line:
                self.complaint = line.removeprefix("! ")
            self.changed.notify_all()

    def sings(self, deadline: float) -> bool:
        """Waits until it has reported a number, or is over."""
        with self.changed:
            self.changed.wait_for(lambda: self.reported or self.over, max(0.0, deadline - time.monotonic()))
            return bool(self.reported)

    def wait_witness(self, host: str, deadline: float) -> None:
        """Waits until it could prove a cut that is decided now, or is over."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.over or judge(host, self.reported, time.monotonic_ns(), ()).proved,
                max(0.0, deadline - time.monotonic()),
            )

    def end(self, why: str) -> None:
        with self.changed:
            self.over = True
            self.complaint = self.complaint or why
            self.changed.notify_all()


class Canaries:
    """A canary on each data disk of each host, from ``start`` to ``stop``. Safe to use from several threads
    for different hosts."""

    def __init__(self, fleet: Fleet, hosts: Sequence[Host]) -> None:
        self._fleet = fleet
        self._hosts = tuple(hosts)
        self._lives: dict[tuple[str, int], _Life] = {}
        """By host and disk."""

    def start(self, host: Host, disk: int = 1) -> None:
        """Begin on a host that is on, also again after a cut and `after`; what an earlier canary left is
        removed. Returns at once: `wait` tells whether it came to anything, and so does the next `after`."""
        if (old := self._lives.get((host.name, disk))) is not None:
            old.over = True
        token = secrets.token_hex(8)
        base = _base(host, disk)
        life = self._lives[host.name, disk] = _Life(base, f"{base}/{token}", token)
        threading.Thread(
            target=self._listen, args=(host, life), name=f"canary-{host.name}", daemon=True
        ).start()

    def start_all(self) -> None:
        for host in self._hosts:
            for disk in _disks(host):
                self.start(host, disk)

    def wait(self, timeout_s: float = START_S) -> list[str]:
        """Waits until each canary has reported a number. Returns what is wrong with those that did not in
        time."""
        deadline = time.monotonic() + timeout_s
        problems = []
        for (name, disk), life in self._lives.items():
            if not life.sings(deadline):
                why = life.complaint or f"it reported nothing within {timeout_s:g} s"
                where = _place(name, disk)
                problems.append(f"{where}: no canary, so no power cut of it can be proved: {why}")
        return problems

    def latest(self, host: Host) -> Reported | None:
        """The last number that reached us from the first disk, and when."""
        life = self._lives.get((host.name, 1))
        if life is None:
            return None
        with life.changed:
            return life.reported[-1] if life.reported else None

    def wait_witness(self, host: Host, timeout_s: float = WITNESS_S, *, disk: int | None = None) -> None:
        """Wait until the canary of every disk, or of one, could prove a cut that is decided now and takes all
        that it kept. Returns at once where no canary runs, and after ``timeout_s`` in any case: `after` then
        says what was missing."""
        deadline = time.monotonic() + timeout_s
        for number in _disks(host) if disk is None else (disk,):
            if (life := self._lives.get((host.name, number))) is not None:
                life.wait_witness(host.name, deadline)

    def after(self, host: Host, decided_ns: int | None = None, *, disk: int | None = None) -> CanaryLoss:
        """Returns what the canary of a disk lost, once the disk is there again and before the canary is
        started again. Without ``disk``: of all disks of the host the first one whose canary proves nothing,
        else disk 1. Raises nothing: a canary that shows nothing says why.

        ``decided_ns``: monotonic clock when the cut was asked for; None when nobody asked for it: then what
        was reported last is taken for it."""
        losses = [
            self._after(host, number, decided_ns) for number in (_disks(host) if disk is None else (disk,))
        ]
        return next((loss for loss in losses if not loss.proved), losses[0])

    def _after(self, host: Host, disk: int, decided_ns: int | None) -> CanaryLoss:
        life = self._lives.get((host.name, disk))
        if life is None:
            return CanaryLoss(host.name, problem="none ran on this host")
        with life.changed:
            reported, complaint = list(life.reported), life.complaint
            life.over = True
        if decided_ns is None:
            decided_ns = reported[-1].at_ns if reported else time.monotonic_ns()
        read = f"cd {shlex.quote(life.folder)} && cat token && cat [0-9]*; true"
        try:
            listing = self._fleet.remote(host).run(read).stdout
        except FleetError as error:
            return CanaryLoss(host.name, problem=f"what it left cannot be read: {error}")
        if listing.partition("\n")[0] != life.token:
            why = "what it had synced is not there: another disk, or somebody removed it"
            return CanaryLoss(host.name, problem=why)
        return judge(host.name, reported, decided_ns, numbers(listing), complaint)

    def stop(self) -> list[str]:
        """End them and remove what they wrote, from all hosts that have power. Returns what could not be
        removed."""
        with ThreadPoolExecutor(len(self._hosts) or 1) as pool:
            return [problem for problem in pool.map(self._stop, self._hosts) if problem]

    def _stop(self, host: Host) -> str | None:
        lives = [life for disk in _disks(host) if (life := self._lives.pop((host.name, disk), None))]
        for life in lives:
            life.over = True
        if not lives or not self._fleet.power.is_on(host):
            return None
        bases = " ".join(shlex.quote(life.base) for life in lives)
        pids = " ".join(str(life.pid) for life in lives if life.pid is not None)
        kill = f"kill {pids} 2>/dev/null; " if pids else ""
        try:
            # Killed, it may still be about to make a file.
            self._fleet.remote(host).run(f"{kill}rm -rf {bases} || {{ sleep 0.5; rm -rf {bases}; }}")
        except FleetError as error:
            return f"{host.name}: the canary's files could not be removed: {error}"
        return None

    # -- the thread of one canary ----------------------------------------------------------------------------

    def _listen(self, host: Host, life: _Life) -> None:
        program = shlex.quote(_PROGRAM.read_text(encoding="ascii"))
        numbers = f"{PACE_S:g} {PER_FILE} {KEPT_FILES + SPARE_FILES}"
        command = (
            f"rm -rf {shlex.quote(life.base)}; exec {shlex.quote(host.python)} -I -S -c {program}"
            f" {shlex.quote(life.folder)} {life.token} {numbers}"
        )
        try:
            stream = self._fleet.remote(host).follow(command, timeout_s=START_S)
        except FleetError as error:
            life.end(str(error))
            return
        try:
            _hear_all(stream, life)
        finally:
            stream.close()


def _hear_all(stream: Stream, life: _Life) -> None:
    pending = b""
    while not life.over:
        try:
            chunk = stream.read(LISTEN_S)
        except TimeoutError:
            continue
        if not chunk:
            life.end("its program ended, or its connection")
            return
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            life.hear(line.decode(errors="replace").strip())


def _base(host: Host, disk: int) -> str:
    return f"{host.disks[disk - 1]}/{FOLDER}"


def _disks(host: Host) -> range:
    return range(1, len(host.disks) + 1)


def _place(host: str, disk: int) -> str:
    return host if disk == 1 else f"{host}, disk {disk}"
