"""``wrackline doctor``: whether this machine can run fleets and judge runs.

Every ability is tried for real, and every failure says how to mend it.

The last check boots a host and cuts its power, so it covers the whole chain: namespaces, overlay root, loop
device, file system, sshd, and ``FS_IOC_SHUTDOWN`` losing exactly the bytes that were not synced.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import find_tool, run_tool
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.qemu.image.store import Store as ImageStore
from wrackline.harness.cli.options import state_dir_option
from wrackline.needs import TABLE, closure, find_java, is_there, mend
from wrackline.plugins.registry import PluginError
from wrackline.systems.jvm.store import Store
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.libraries import make_library
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.store import ClientStore

MIN_FREE_MB = 2048
MIN_MEMORY_MB = 3072
KERNEL = "needs another kernel, or a container with more rights (docker run --privileged)"
CORE = "core"
"""What every command needs. The other names are those of `wrackline.needs`."""
HOSTS = "netns"
ESSENTIAL = ("umount", "timeout", "tar", "gzip", "python3")
"""Programs of every Debian that hosts need."""
VERSION = {
    "ssh-keygen": (),
    "busybox": (),
    "ps": ("-V",),
    "java": ("-version",),
    "mvn": ("-v",),
    "chromium": (),
} | dict.fromkeys(
    ("sshd", "ssh", "ip", "iptables", "mkfs.ext4", "mkfs.xfs", "unshare", "umount", "kcat"), ("-V",)
)
"""How a program says its version; one that is not here by --version."""
PACKAGES = ("kio", "fabric", "pydantic", "pyarrow", "confluent_kafka", "jinja2", "numba")


@click.command()
@click.argument("what", nargs=-1, type=click.Choice([one.name for one in TABLE]), metavar="[WHAT]...")
@state_dir_option
def doctor(what: tuple[str, ...], state_dir: Path) -> None:
    """Check what this machine can do, and say how to mend what it cannot.

    Something that is absent is a failure only for what needs it. WHAT must be there, or the exit code is 2:
    netns, java, spark, qemu and others, as `./wrack setup` takes them.

    \b
      wrackline doctor                  looks at everything
      sudo wrackline doctor             boots a host, too, and cuts its power
      wrackline doctor netns java       can it run Apache Kafka on hosts in namespaces?
    """
    required = {CORE, *(one.name for one in closure(what))}
    checks = examine(state_dir.resolve())
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "ok     " if check.ok else ("missing" if check.need in required else "absent ")
        click.echo(f"{mark}  {check.name:{width}}  {check.detail}")
        if not check.ok:
            click.echo(f"{'':9}{'':{width}}  -> {check.mend}")
    broken = [check for check in checks if not check.ok and check.need]
    if missing := [check.name for check in broken if check.need in required]:
        click.echo(f"not ready: {', '.join(missing)}")
        raise SystemExit(2)
    absent = [
        one
        for one in TABLE
        if one.name != "all"
        and {check.need for check in broken} & {need.name for need in closure([one.name])}
    ]
    for one in absent:
        click.echo(f"not {one.name}: {one.purpose}")
    click.echo(f"this machine can run everything{' else' if absent else ''}")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str
    mend: str = ""
    need: str = CORE
    """What needs it, by its name; empty for what is made or fetched when it is needed."""


def examine(state_root: Path) -> list[Check]:
    """Every check, in the order a person would mend them."""
    checks = [_packages(), _room(state_root), _root(), _kernel(), *_tools(), _host_python(), *_extras()]
    checks += [_kafka(), _java_clients(), _images(), _memory(), _loopback()]
    checks += [_trial(name, command, mend) for name, command, mend in TRIALS]
    needed = {"root", "sshd", "ssh-keygen", "ip", "mkfs.ext4"}
    broken = [check.name for check in checks if not check.ok and check.name in needed]
    checks.append(_power_cut(state_root, broken))
    return checks


def _root() -> Check:
    ok = os.geteuid() == 0
    return Check(
        "root", ok, "yes" if ok else f"no, uid {os.geteuid()}", "run it with sudo, or as root", HOSTS
    )


def _kernel() -> Check:
    release = platform.release()
    major, minor = (int(part) for part in re.findall(r"\d+", release)[:2])
    ok = platform.system() == "Linux" and (major, minor) >= (5, 8)
    mend = "Linux 5.8 or newer (loop devices in one step)"
    return Check("kernel", ok, f"{platform.system()} {release}", mend, HOSTS)


def _tools() -> list[Check]:
    essential = [_tool(name, HOSTS, "install it: every Debian has it") for name in ESSENTIAL]
    return essential + [_tool(program, one.name, mend(one.name)) for one in TABLE for program in one.programs]


def _tool(name: str, need: str, way_out: str) -> Check:
    shown = name.rpartition("/")[2]
    if not is_there(name):
        detail = "too old, or not found" if name == "java" else "not found"
        return Check(shown, False, detail, way_out, need)
    if "*" in name:
        return Check(shown, True, name, way_out, need)
    arguments = VERSION.get(name, ("--version",))
    program = find_java() if name == "java" else find_tool(name)
    said = _first_line([program, *arguments]) if arguments else ""
    return Check(shown, True, f"{program}  {said}".rstrip(), way_out, need)


def _extras() -> list[Check]:
    """The libraries of the product's own extras."""
    result = []
    for one in TABLE:
        if one.extra and one.extra != "dev":
            there = find_spec(one.module) is not None
            detail = f"{one.module} found" if there else f"no {one.module}"
            result.append(Check(f"extra {one.extra}", there, detail, mend(one.name), one.name))
    return result


def _first_line(command: list[str]) -> str:
    """Returns the first line that a program prints of its version, on whichever stream, with whichever
    exit code (sshd has no -V before 9.2)."""
    shell = [
        "sh",
        "-c",
        '"$@" 2>&1 | grep -m1 -iE "[0-9]+[.][0-9]+" || true',
        "sh",
        find_tool(command[0]),
        *command[1:],
    ]
    try:
        return run_tool(shell).strip()[:70]
    except FleetError as error:
        return str(error)


def _host_python() -> Check:
    """Hosts see this machine's /usr; the broker's libraries are built for the Python that runs the
    harness."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    mend = f"make the virtual environment with /usr/bin/python3, or install python{ours}"
    try:
        theirs = run_tool(
            ["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        ).strip()
    except FleetError as error:
        return Check("hosts' python", False, str(error), mend, HOSTS)
    return Check(
        "hosts' python",
        ours == theirs,
        f"/usr/bin/python3 is {theirs}, the harness runs on {ours}",
        mend,
        HOSTS,
    )


def _kafka() -> Check:
    """Checks which versions of Kafka are installed; none need be there: a run installs what it needs."""
    store = Store()
    there = ", ".join(release.version for release in store.releases())
    mend = "a run that needs a version installs it; `wrackline get kafka` does it beforehand"
    return Check("apache-kafka", bool(there), f"{there or 'none'} in {store.root}", mend, need="")


def _java_clients() -> Check:
    """Checks the Java clients, which only runs with ``workload.client.library: java`` need."""
    name = "clients in Java"
    try:
        jvm = make_library(ClientSettings(library="java")).locate()
    except (PluginError, Unavailable) as missing:
        return Check(name, False, "no JVM for this process", str(missing), need="")
    versions = ", ".join(one.version for one in ClientStore().all())
    return Check(name, True, f"{jvm}; kafka-clients: {versions or 'none yet, a run installs it'}")


def _images() -> Check:
    """Checks which images of the fleet qemu are there. None need be there: a run builds the one that it
    needs."""
    store = ImageStore()
    there = ", ".join(f"{image.digest} (Debian {image.release})" for image in store.all())
    mend = "a run on the fleet qemu builds the one that it needs; `wrackline get image` does it beforehand"
    return Check("images", bool(there), f"{there or 'none'} in {store.root}", mend, need="")


def _packages() -> Check:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    detail = f"missing: {', '.join(missing)}" if missing else f"{len(PACKAGES)} found, {sys.prefix}"
    return Check("python packages", not missing, detail, "`pip install wrackline`, or `./wrack setup`")


def _memory() -> Check:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free_mb = int(lines["MemAvailable"].split()[0]) // 1024
    return Check(
        "memory",
        free_mb >= MIN_MEMORY_MB,
        f"{free_mb} MB available",
        f"{MIN_MEMORY_MB} MB for hosts and Spark",
        "spark",
    )


def _room(state_root: Path) -> Check:
    folder = state_root
    while not folder.exists():
        folder = folder.parent
    free_mb = shutil.disk_usage(folder).free // 2**20
    mend = f"{MIN_FREE_MB} MB for disks and histories: make room, or choose another folder with --state-dir"
    return Check("free disk", free_mb >= MIN_FREE_MB, f"{free_mb} MB in {folder}", mend)


def _loopback() -> Check:
    """The only ports of the machine's own network that we use: Spark's, free ones on loopback."""
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            listener.listen()
    except OSError as error:
        return Check(
            "loopback port",
            False,
            str(error),
            "Spark needs a free port on 127.0.0.1: `ip link set lo up`",
            "spark",
        )
    return Check("loopback port", True, f"127.0.0.1:{port} could be taken; hosts use a network of their own")


_OVERLAY = (
    "mount -t tmpfs t /tmp && mkdir /tmp/u /tmp/w /tmp/r &&"
    " mount -t overlay o -o lowerdir=/,upperdir=/tmp/u,workdir=/tmp/w /tmp/r && ls /tmp/r/usr >/dev/null"
)
_LINKS = "ip link add br0 type bridge && ip link add v0 type veth peer name v1 && ip link set v0 master br0"
_RULE = (
    "iptables -w 5 -N wl-doctor &&"
    " iptables -w 5 -A wl-doctor -m comment --comment wl -m statistic --mode random"
)
TRIALS: list[tuple[str, list[str], str]] = [
    ("namespaces", ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "true"], KERNEL),
    (
        "overlay root",
        ["unshare", "--mount", "sh", "-c", _OVERLAY],
        f"overlayfs: `modprobe overlay`; or {KERNEL}",
    ),
    ("bridge, veth", ["unshare", "--net", "sh", "-c", _LINKS], f"`modprobe bridge veth`; or {KERNEL}"),
    (
        "iptables rules",
        ["unshare", "--net", "sh", "-c", f"{_RULE} --probability 0.5 -j DROP"],
        f"`modprobe xt_statistic xt_comment nf_tables`; or {KERNEL}",
    ),
    (
        "ext4",
        ["sh", "-c", "grep -qw ext4 /proc/filesystems || modprobe ext4"],
        f"`modprobe ext4`; or {KERNEL}",
    ),
    (
        "loop devices",
        ["sh", "-c", "test -e /dev/loop-control || modprobe loop"],
        f"`modprobe loop`; or {KERNEL}",
    ),
]


def _trial(name: str, command: list[str], mend: str) -> Check:
    try:
        run_tool(command)
    except FleetError as error:
        return Check(name, False, str(error).rpartition("`: ")[2], mend, HOSTS)
    return Check(name, True, "tried", "", HOSTS)


def _power_cut(state_root: Path, broken: list[str]) -> Check:
    name = "host, power cut"
    if broken:
        return Check(name, False, f"not tried: {', '.join(broken)}", "mend those first", HOSTS)
    return _attempt(name, lambda: _lose_bytes(state_root))


def _attempt(name: str, trial: Callable[[], str]) -> Check:
    try:
        return Check(name, True, trial(), "", HOSTS)
    except (FleetError, OSError) as error:
        way_out = f"loop devices, overlayfs, ext4 with FS_IOC_SHUTDOWN: {KERNEL}"
        return Check(name, False, str(error), way_out, HOSTS)


def _lose_bytes(state_root: Path) -> str:
    """Boot a host, write 1000 synced and 500 unsynced bytes, cut its power: 1000 must be left. Raises
    FleetError."""
    began = time.monotonic()
    with NetnsFleet(f"doctor-{os.getpid()}", ["n1"], state_dir=state_root, disk_mb=32) as fleet:
        (host,) = fleet.hosts
        boot_s = time.monotonic() - began
        fleet.remote(host).run(
            "head -c 1000 /dev/zero > /data/f && sync /data/f /data && head -c 500 /dev/zero >> /data/f"
        )
        fleet.power.cut(host)
        cut = fleet.power.on(host)
        loss = cut.files.get("f") if cut else None
        if cut is None or loss is None or (loss.before_bytes, loss.after_bytes) != (1500, 1000):
            raise FleetError(
                f"a power cut lost {cut.lost_bytes if cut else 0} bytes instead of the 500 not synced: {loss}"
            )
        return (
            f"booted in {boot_s:.2f} s; lost the 500 unsynced bytes and no others"
            f" {(cut.lost_ns - cut.decided_ns) / 1e6:.0f} ms after the decision"
        )
