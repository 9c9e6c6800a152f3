"""The first process of a ``qemu`` host. It runs inside the guest, beside `hostinit.py` and `look.py`.

It begins, loads what faults need of the kernel, and *waits for its plan* on the second serial port: nothing
of the guest is a certain host's until then, and none of its own disks is open. So a snapshot of a waiting
guest is good for every host and every power-on, and each of them is given its name, keys, time and chance
anew. Then it mounts the disks, makes the root an overlay of the shared system disk, starts sshd, reaps
orphans, and answers on the serial port what nobody else can: which files the data disk has. Where the plan
wants systemd, that becomes the first process now and starts sshd; a child of this one answers on the port.

A message is one line: JSON, deflated, in base64. While it waits it says ``waiting`` ten times a second.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import fcntl
import importlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
import zlib
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # in the guest, where both lie beside this file
    sys.path.insert(0, str(Path(__file__).parent))
    hostinit: Any = importlib.import_module("hostinit")
    look: Any = importlib.import_module("look")
else:
    from wrackline.fleets.local import look
    from wrackline.fleets.netns import hostinit

PORT = "/dev/ttyS1"
SYSTEM_DISK, DATA_DISK = "/dev/vdb", "/dev/vdc"
SYSTEM = "/run/wrackline-system"
DATA = "/data"
SYSTEMD = "/usr/lib/systemd/systemd"
WAITING = b"waiting\n"
WAITING_EVERY_S = 0.1
SSHD_PAUSE_S = 0.2
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
MNT_DETACH = 2
MODULES = (
    "overlay",
    "virtio_rng",
    "nf_tables",
    "nft_compat",
    "nft_chain_nat",
    "x_tables",
    "xt_comment",
    "xt_mark",
    "xt_statistic",
    "xt_tcpudp",
    "xt_NFQUEUE",
    "nfnetlink_queue",
    "sch_netem",
    "sch_tbf",
    "sch_prio",
    "sch_htb",
    "cls_u32",
)
"""Loading one takes a guest under emulation tenths of a second, which a fault would wait for."""


def encode(message: object) -> bytes:
    """One line."""
    return base64.b64encode(zlib.compress(json.dumps(message).encode())) + b"\n"


def decode(line: bytes) -> Any:
    """Raises ValueError."""
    try:
        return json.loads(zlib.decompress(base64.b64decode(line, validate=True)))
    except zlib.error as wrong:
        raise ValueError(str(wrong)) from wrong


class Port:
    """The serial port to the machine."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        tty.setraw(self.descriptor)
        attributes = termios.tcgetattr(self.descriptor)
        attributes[2] |= termios.CLOCAL | termios.CREAD
        attributes[4] = attributes[5] = termios.B115200
        termios.tcsetattr(self.descriptor, termios.TCSANOW, attributes)
        self._received = b""

    def lines(self) -> list[bytes]:
        """Whole lines that have come since."""
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self.descriptor, 65536)
        *whole, self._received = self._received.split(b"\n")
        return whole

    def say(self, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(self.descriptor, line) :]
            except BlockingIOError:
                select.select([], [self.descriptor], [], 1.0)


def await_plan(port: Port) -> dict[str, Any]:
    """Waits for the plan of the host that this guest is to be. Returns when somebody says so, in this life or
    in one that goes on from a snapshot of it."""
    while True:
        port.say(WAITING)
        if select.select([port.descriptor], [], [], WAITING_EVERY_S)[0]:
            for line in port.lines():
                with contextlib.suppress(ValueError):
                    plan = decode(line)
                    if isinstance(plan, dict):
                        return plan


def renew(plan: dict[str, Any]) -> None:
    """Renews what two guests from one snapshot must not share: time and random numbers."""
    time.clock_settime(time.CLOCK_REALTIME, plan["time"])
    chance = bytes.fromhex(plan["entropy"])
    with open("/dev/urandom", "wb", buffering=0) as random:  # noqa: PTH123 - it is a device
        fcntl.ioctl(random, RNDADDENTROPY, struct.pack("ii", len(chance) * 8, len(chance)) + chance)
        fcntl.ioctl(random, RNDRESEEDCRNG)
    name = plan["hostname"].encode()
    hostinit.call("sethostname", ctypes.CDLL(None, use_errno=True).sethostname(name, len(name)))


def make_root(plan: dict[str, Any]) -> None:
    """An overlay: the system disk that all guests share below, the host's own above."""
    Path(SYSTEM).mkdir(parents=True, exist_ok=True)
    # What was installed, and what nodes logged, outlives a power cut but for its last second.
    hostinit.mount(SYSTEM_DISK, SYSTEM, "ext4", 0, "data=journal,commit=1")
    root = hostinit.build_root({"system": SYSTEM, "layers": []})
    for folder in ("dev", "proc", "sys", "run", "tmp", "var/tmp"):
        Path(root, folder).mkdir(parents=True, exist_ok=True)
    for folder in ("dev", "proc", "sys"):
        hostinit.mount(f"/{folder}", f"{root}/{folder}", flags=hostinit.MS_BIND | hostinit.MS_REC)
    hostinit.mount("run", f"{root}/run", "tmpfs", hostinit.MS_NOSUID, "mode=755")
    for folder in ("tmp", "var/tmp"):
        hostinit.mount("tmp", f"{root}/{folder}", "tmpfs", hostinit.MS_NOSUID, "mode=1777")
    hostinit.change_root(root)
    for folder, kind, options in (("pts", "devpts", "ptmxmode=0666,mode=620"), ("shm", "tmpfs", "")):
        Path("/dev", folder).mkdir(exist_ok=True)
        hostinit.mount(kind, f"/dev/{folder}", kind, 0, options)
    # The kernel's own is that of the snapshot: one number for all hosts, and all their lives.
    Path("/run/boot_id").write_text(plan["boot_id"] + "\n")
    hostinit.bind("/run/boot_id", "/proc/sys/kernel/random/boot_id")


def mount_data(plan: dict[str, Any]) -> None:
    Path(DATA).mkdir(exist_ok=True)
    # By the program: it has the kernel load the file system.
    options = ["-o", plan["mount_options"]] if plan["mount_options"] else []
    run(["mount", "-t", plan["filesystem"], *options, DATA_DISK, DATA])


def join_network(plan: dict[str, Any]) -> None:
    lines = (
        "link set lo up",
        f"link set eth0 address {plan['mac']}",
        f"addr add {plan['address']} brd + dev eth0",
        "link set eth0 up",
    )
    run(["ip", "-batch", "-"], "\n".join(lines) + "\n")


def run(command: list[str], given: str = "") -> None:
    """Raises OSError with the program's own last words."""
    done = subprocess.run(
        command, input=given, text=True, capture_output=True, env=hostinit.ENVIRONMENT, check=False
    )
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().replace("\n", "; ")
        raise OSError(errno.EIO, f"`{' '.join(command)}`: {words or done.returncode}")


def begin(plan: dict[str, Any]) -> dict[str, Any]:
    """Become the host of the plan; what its files lost since the machine looked at them last."""
    renew(plan)
    make_root(plan)
    mount_data(plan)
    lost = look.losses(seen_of(plan["before"]), Path(DATA))
    hostinit.write_files(plan["files"])
    join_network(plan)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    if plan["init"] == "systemd" and not os.access(SYSTEMD, os.X_OK):
        raise OSError(errno.ENOENT, f"the image has no {SYSTEMD}")
    return {"lost": lost}


def seen_of(message: dict[str, Any]) -> dict[str, look.FileSeen]:
    return {path: look.FileSeen(*seen) for path, seen in message.items()}


# -- what the machine asks of a running host -----------------------------------------------------------------


def freeze_and_look(port: Port) -> None:
    """Stop every other process, then list the files of the data disk, and keep them open until the power
    goes: ext4 starts to write a truncated file back as soon as anybody closes it. Never returns."""
    os.kill(-1, signal.SIGSTOP)
    with look.files_seen(Path(DATA)) as seen:
        port.say(encode({"files": seen}))
        while True:
            signal.pause()


def freeze_and_sync() -> dict[str, Any]:
    """Stop every other process and sync the data disk, for a copy of it; `thaw` ends it."""
    os.kill(-1, signal.SIGSTOP)
    run(["sync", "-f", DATA])
    return {}


def thaw() -> dict[str, Any]:
    os.kill(-1, signal.SIGCONT)
    return {}


def drop_page_cache(message: dict[str, Any]) -> dict[str, Any]:
    """Lose what is not synced of the data disk, and the programs that use it."""
    device = Path(DATA).stat().st_dev
    # Stopped one and all before the first dies: none may write, or learn, of another's end.
    users = look.stop_all(lambda: look.holders(others(), device))
    with look.files_seen(Path(DATA)) as seen:
        descriptor = os.open(DATA, os.O_RDONLY | os.O_CLOEXEC)
        try:
            look.shut_down(descriptor)
        finally:
            os.close(descriptor)
        lost_at = time.monotonic()
    look.signal_all(users, signal.SIGKILL)
    deadline = time.monotonic() + 10.0
    while any(map(look.is_alive, users)) and time.monotonic() < deadline:
        reap()
        time.sleep(0.005)
    run(["umount", DATA])
    mount_data(message)
    return {"lost": look.losses(seen, Path(DATA)), "ago_s": time.monotonic() - lost_at}


def others() -> list[int]:
    every = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    return [pid for pid in every if pid not in (1, os.getpid())]


def obey(port: Port, line: bytes) -> None:
    try:
        message = decode(line)
        match message["order"]:
            case "freeze-and-look":
                freeze_and_look(port)
            case "drop-page-cache":
                answer = drop_page_cache(message)
            case "freeze-and-sync":
                answer = freeze_and_sync()
            case "thaw":
                answer = thaw()
            case unknown:
                answer = {"error": f"unknown order {unknown!r}"}
    except (OSError, ValueError, KeyError, TypeError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    port.say(encode(answer))


# -- the life of the first process ---------------------------------------------------------------------------


def reap() -> set[int]:
    """Processes that have ended."""
    ended = set()
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            ended.add(pid)
    return ended


def give_way(port: Port) -> None:
    """Become systemd, which starts sshd; a child goes on obeying. Never returns."""
    if os.fork() == 0:
        os.setsid()
        Path("/proc/self/oom_score_adj").write_text("-1000")  # the first process has no need of that
        serve(port, [])
    os.execve(SYSTEMD, [SYSTEMD], hostinit.ENVIRONMENT)


def serve(port: Port, sshd: list[str]) -> None:
    """Keep sshd running (none: somebody else does), reap, obey. Never returns."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    daemon = hostinit.start(sshd) if sshd else None
    while True:
        select.select([reader, port.descriptor], [], [])
        with contextlib.suppress(BlockingIOError):
            os.read(reader, 4096)
        if daemon in reap():
            # The pause keeps a broken configuration from spinning.
            print("sshd ended; starting it again", file=sys.stderr, flush=True)
            time.sleep(SSHD_PAUSE_S)
            daemon = hostinit.start(sshd)
        for line in port.lines():
            obey(port, line)


def prepare() -> None:
    """All that takes long and belongs to no host: it is in the snapshot."""
    os.environ.update(hostinit.ENVIRONMENT)
    subprocess.run(["modprobe", "-a", "-q", *MODULES], check=False)
    subprocess.run(["modprobe", "-q", "ifb", "numifbs=0"], check=False)  # else it makes two links
    # Read now, run after the snapshot: what a power-on needs is in memory then.
    for warm in (["/usr/sbin/sshd", "-T"], ["ip", "link"], ["mount", "--version"], ["sh", "-c", "true"]):
        subprocess.run(warm, capture_output=True, check=False)
    os.sync()


def main() -> None:
    prepare()
    port = Port(PORT)
    plan = await_plan(port)
    try:
        report = begin(plan)
    except (OSError, KeyError, ValueError) as error:
        port.say(encode({"error": str(error)}))
        os.sync()
        time.sleep(5.0)  # for the line to be read; the end of the first process is a panic
        raise
    port.say(encode(report))
    if plan["init"] == "systemd":
        give_way(port)
    serve(port, plan["sshd"])


if __name__ == "__main__":
    main()
