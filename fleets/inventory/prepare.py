"""Commands of ``sh`` that prepare a host before a run and restore it afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wrackline.fleets.base import Become, Host
from wrackline.fleets.become import COMMANDS, make_scripts, remove_scripts
from wrackline.fleets.canary import FOLDER as CANARY
from wrackline.fleets.folders import data_dir, folders_of

DataDisk = Literal["own", "make", "shared"]
CHAINS = "WRACK-"
"""How the iptables chains of faults begin (`wrackline.nemesis.faults.network.iptables`)."""
PROGRAMS = "/run/wrackline/faults"
"""Where faults keep the programs they have started (`wrackline.nemesis.faults.programs`)."""
TOOLS = ("setsid", "timeout", "awk", "tar", "gzip", "find")
LIFE = "cat /proc/sys/kernel/random/boot_id; cut -d ' ' -f 22 /proc/1/stat"
"""Another text after each boot."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The preparation of hosts that the specification asks for."""

    data_disk: DataDisk
    disk_mb: int
    keep_installed: bool


def mine(host: Host) -> str:
    """The file that says: the data beside it is of a run."""
    return f"{host.data_dir}/.wrackline"


def image(host: Host) -> str:
    """The file that a made data disk is in."""
    return f"{str(host.root).rstrip('/')}/var/lib/wrackline/data.img"


def check(host: Host) -> str:
    """Fails with a line on standard error when the host cannot carry a run: its tools, its user's rights."""
    lines = [
        f'for tool in {" ".join(TOOLS)}; do command -v "$tool" >/dev/null || lack "there is no $tool"; done'
    ]
    if host.become is Become.NAMED:
        lines += [
            f'sudo -n -l {path} >/dev/null 2>&1 || lack "sudo does not let {host.user} run {path} without a '
            'password: wrackline fleet sudo-rule prints the rule"'
            for path in COMMANDS
        ]
    return "; ".join(['lack() { echo "$1" >&2; exit 9; }', *lines])


def end_leftovers(host: Host) -> str:
    """Ends what a killed run left: its node, what its faults started, their chains."""
    script = folders_of(host).script
    steps = [f"[ ! -x {script} ] || {script} kill >/dev/null 2>&1"]
    if host.user == "root" or host.become is not Become.NOBODY:
        steps += [
            f'for pid in $(cat {PROGRAMS}/*/*/pid 2>/dev/null); do kill -KILL -"$pid" 2>/dev/null; done',
            f"rm -rf {PROGRAMS} 2>/dev/null",
            "command -v iptables >/dev/null || exit 0",
            f"for c in $(iptables -w 5 -S | sed -n 's/^-N \\({CHAINS}.*\\)$/\\1/p'); do "
            "for from in INPUT OUTPUT; do "
            'while iptables -w 5 -D $from -j "$c" 2>/dev/null; do :; done; done; '
            'iptables -w 5 -F "$c"; iptables -w 5 -X "$c"; done',
        ]
    return "; ".join([*steps, "true"])


def provide_disk(host: Host, wishes: Wishes) -> str:
    """The data disk as it is wished; fails with a line when it is not there."""
    folder, file = host.data_dir, image(host)
    lack = 'lack() { echo "$1" >&2; exit 9; }'
    if wishes.data_disk == "make":
        return (
            f"{lack}; {_unmake(host)}; mountpoint -q {folder} && "
            f"lack '{folder} is a file system already: say data_disk: own'; "
            f"mkdir -p {folder} {file.rpartition('/')[0]} && "
            f"truncate -s {wishes.disk_mb}M {file} && mkfs.ext4 -q -F {file} && mount -o loop {file} {folder}"
        )
    writable = f"[ -w {folder} ] || lack '{host.user} cannot write to {folder}'"
    if wishes.data_disk == "shared":
        return f"{lack}; mkdir -p {folder} 2>/dev/null; {writable}"
    own = (
        f'[ -d {folder} ] && [ "$(stat -c %d {folder})" != "$(stat -c %d {folder}/..)" ] || '
        f'lack "{folder} is no file system of its own: mount one there, or say data_disk: make (one in a '
        'file of the system disk), or data_disk: shared (then no host can lose its power)"'
    )
    return f"{lack}; {own}; {writable}"


def mount_again(host: Host) -> str:
    """Returns the command that mounts a made disk after a power cut, since it is not in the host's fstab."""
    return f"mountpoint -q {host.data_dir} || mount -o loop {image(host)} {host.data_dir}"


def clear(host: Host) -> str:
    """An empty place for the node's data. Data of somebody else's is refused."""
    data = data_dir(host)
    return (
        f'if [ -n "$(ls -A {data} 2>/dev/null)" ] && [ ! -e {mine(host)} ]; then '
        f'echo "{data} holds data that no run of Wrackline left: give another data_dir" >&2; exit 9; fi; '
        f": >{mine(host)} && rm -rf {data} {host.data_dir}/{CANARY} {_logs(host)}"
    )


def make_ready(host: Host) -> str:
    return make_scripts() if host.become is Become.NAMED else "true"


def restore(host: Host, wishes: Wishes) -> str:
    """The host as it was found; with ``keep_installed`` the programs stay, so that the next run need not
    bring them."""
    folders = folders_of(host)
    gone = [
        data_dir(host),
        f"{host.data_dir}/{CANARY}",
        mine(host),
        folders.configs,
        _logs(host),
        folders.run,
    ]
    gone += [folders.program, folders.script] if wishes.keep_installed else [folders.home]
    steps = [end_leftovers(host).removesuffix("; true"), f"rm -rf {' '.join(gone)}"]
    if wishes.data_disk == "make":
        steps.append(_unmake(host))
    if wishes.data_disk == "shared":
        steps.append(f"rmdir {host.data_dir} 2>/dev/null")
    root = str(host.root).rstrip("/")
    if root:
        steps.append(f"find {root} -depth -type d -empty -delete 2>/dev/null")
    if host.become is Become.NAMED:
        steps.append(remove_scripts())
    # In braces: what is not there any more to be ended is no reason to leave the rest.
    return "; ".join(f"{{ {step}; }}" for step in steps)


def _logs(host: Host) -> str:
    return folders_of(host).logs


def _unmake(host: Host) -> str:
    """Takes away the disk that a run made, with its file."""
    file = image(host)
    return (
        f"if [ -e {file} ]; then umount {host.data_dir} 2>/dev/null; rm -f {file}; "
        f"rmdir {file.rpartition('/')[0]} {host.data_dir} 2>/dev/null; fi; true"
    )
