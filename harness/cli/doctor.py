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
from wrackline.fleets.local.namespaces import find_tool, run_tool
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.qemu.image.store import Store as ImageStore
from wrackline.harness.cli.options import state_dir_option
from wrackline.systems.jvm.store import Store
from wrackline.workloads.clients.base import Unavailable
from wrackline.workloads.clients.java.jvm import look
from wrackline.workloads.clients.java.store import ClientStore

MIN_FREE_MB = 2048
MIN_MEMORY_MB = 3072
MIN_JAVA = 17
SETUP = "`./wrack setup` installs it"
KERNEL = "needs another kernel, or a container with more rights (docker run --privileged)"
TOOLS = {
    "sshd": ("-V",),
    "ssh": ("-V",),
    "ssh-keygen": (),
    "ip": ("-V",),
    "iptables": ("-V",),
    "mkfs.ext4": ("-V",),
    "unshare": ("-V",),
    "umount": ("-V",),
    "timeout": ("--version",),
    "tar": ("--version",),
    "gzip": ("--version",),
    "python3": ("--version",),
}
OPTIONAL_TOOLS = {
    "mkfs.xfs": ("-V",),
    "kcat": ("-V",),
    "mvn": ("-v",),
    "qemu-system-x86_64": ("--version",),
    "mmdebstrap": ("--version",),
    "busybox": (),
    "lz4": ("--version",),
    "virsh": ("--version",),
    "libvirtd": ("--version",),
    "npm": ("--version",),
}
BY_HAND = {"npm": "apt-get install npm; only the page of whole histories needs it (docs/results-site.md)"}
PACKAGES = ("kio", "fabric", "pydantic", "pyarrow", "confluent_kafka", "pyspark", "jinja2")


@click.command()
@state_dir_option
def doctor(state_dir: Path) -> None:
    """Check what this machine can do, and say how to mend what it cannot.

    \b
      wrackline doctor
      sudo wrackline doctor            boots a host, too, and cuts its power

    Exit code: 0, or 2 when something is missing that most runs need.
    """
    checks = examine(state_dir.resolve())
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "ok     " if check.ok else ("missing" if check.required else "absent ")
        click.echo(f"{mark}  {check.name:{width}}  {check.detail}")
        if not check.ok:
            click.echo(f"{'':9}{'':{width}}  -> {check.mend}")
    missing = [check.name for check in checks if check.required and not check.ok]
    if missing:
        click.echo(f"not ready: {', '.join(missing)}")
        raise SystemExit(2)
    click.echo("this machine can run everything")


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str
    mend: str = ""
    required: bool = True


def examine(state_root: Path) -> list[Check]:
    """Every check, in the order a person would mend them."""
    checks = [_root(), _kernel(), *_tools(), _host_python(), _java(), _kafka(), _java_clients(), _packages()]
    checks += [_images()]
    checks += [_memory(), _room(state_root), _loopback()]
    checks += [_trial(name, command, mend) for name, command, mend in TRIALS]
    needed = {"root", "sshd", "ssh-keygen", "ip", "mkfs.ext4"}
    broken = [check.name for check in checks if not check.ok and check.name in needed]
    checks.append(_power_cut(state_root, broken))
    return checks


def _root() -> Check:
    ok = os.geteuid() == 0
    return Check("root", ok, "yes" if ok else f"no, uid {os.geteuid()}", "run it with sudo, or as root")


def _kernel() -> Check:
    release = platform.release()
    major, minor = (int(part) for part in re.findall(r"\d+", release)[:2])
    ok = platform.system() == "Linux" and (major, minor) >= (5, 8)
    return Check(
        "kernel", ok, f"{platform.system()} {release}", "Linux 5.8 or newer (loop devices in one step)"
    )


def _tools() -> list[Check]:
    return [
        *(_tool(name, arguments, required=True) for name, arguments in TOOLS.items()),
        *(_tool(name, arguments, required=False) for name, arguments in OPTIONAL_TOOLS.items()),
    ]


def _tool(name: str, arguments: tuple[str, ...], *, required: bool) -> Check:
    try:
        path = find_tool(name)
    except FleetError:
        return Check(name, False, "not found", BY_HAND.get(name, SETUP), required)
    return Check(
        name, True, f"{path}  {_first_line([name, *arguments]) if arguments else ''}".rstrip(), "", required
    )


def _first_line(command: list[str]) -> str:
    """What a program says of its version, on whichever stream, with whichever exit code (sshd has no -V
    before 9.2)."""
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
        return Check("hosts' python", False, str(error), SETUP)
    return Check(
        "hosts' python", ours == theirs, f"/usr/bin/python3 is {theirs}, the harness runs on {ours}", mend
    )


def _java() -> Check:
    mend = f"Java {MIN_JAVA} or newer: `apt-get install openjdk-17-jre-headless`, or set JAVA_HOME"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin/java")) if home else "java"
    if shutil.which(java) is None:
        return Check("java", False, f"{java} not found", mend)
    output = _first_line([java, "-version"])
    found = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if found is None:
        return Check("java", False, f"{java} -version printed {output or 'nothing'}", mend)
    major = int(found[2]) if found[1] == "1" and found[2] else int(found[1])
    return Check("java", major >= MIN_JAVA, output, mend)


def _kafka() -> Check:
    """None need be there: a run installs what it needs."""
    store = Store()
    there = ", ".join(release.version for release in store.releases())
    mend = "a run that needs a version installs it; `wrackline get kafka` does it beforehand"
    return Check("apache-kafka", bool(there), f"{there or 'none'} in {store.root}", mend, required=False)


def _java_clients() -> Check:
    """For runs with ``workload.client.library: java``; other runs need none."""
    name = "clients in Java"
    try:
        jvm = look()
    except Unavailable as missing:
        return Check(name, False, "no JVM for this process", str(missing), required=False)
    versions = ", ".join(one.version for one in ClientStore().all())
    return Check(name, True, f"{jvm}; kafka-clients: {versions or 'none yet, a run installs it'}")


def _images() -> Check:
    """For the fleet qemu. None need be there: a run builds the one that it needs."""
    store = ImageStore()
    there = ", ".join(f"{image.digest} (Debian {image.release})" for image in store.all())
    mend = "a run on the fleet qemu builds the one that it needs; `wrackline get image` does it beforehand"
    return Check("images", bool(there), f"{there or 'none'} in {store.root}", mend, required=False)


def _packages() -> Check:
    missing = [name for name in PACKAGES if find_spec(name) is None]
    detail = f"missing: {', '.join(missing)}" if missing else f"{len(PACKAGES)} found, {sys.prefix}"
    return Check("python packages", not missing, detail, "`./wrack setup` installs them")


def _memory() -> Check:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free_mb = int(lines["MemAvailable"].split()[0]) // 1024
    return Check(
        "memory",
        free_mb >= MIN_MEMORY_MB,
        f"{free_mb} MB available",
        f"{MIN_MEMORY_MB} MB for hosts and Spark",
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
            "loopback port", False, str(error), "Spark needs a free port on 127.0.0.1: `ip link set lo up`"
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
        return Check(name, False, str(error).rpartition("`: ")[2], mend)
    return Check(name, True, "tried")


def _power_cut(state_root: Path, broken: list[str]) -> Check:
    name = "host, power cut"
    if broken:
        return Check(name, False, f"not tried: {', '.join(broken)}", "mend those first")
    return _attempt(name, lambda: _lose_bytes(state_root))


def _attempt(name: str, trial: Callable[[], str]) -> Check:
    try:
        return Check(name, True, trial())
    except (FleetError, OSError) as error:
        return Check(name, False, str(error), f"loop devices, overlayfs, ext4 with FS_IOC_SHUTDOWN: {KERNEL}")


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
