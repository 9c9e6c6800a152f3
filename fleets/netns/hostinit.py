"""The first process of a ``netns`` host: makes the host's private world, runs sshd in it, reaps orphans.

Started by path (``python -I -S hostinit.py NETNS``, the plan as JSON on standard input) and therefore on the
standard library alone. Two processes:

* the *chassis* joins the host's network namespace, makes mount, PID, UTS and IPC namespaces and waits for
* the *init* (PID 1 of the host), whose death is the death of every process of the host.

The root is an overlay: the machine's own ``/`` below, a folder on a tmpfs above, so that programs are all
there and nothing the host writes reaches the machine. It keeps only what the plan mounts: the machine's other
mounts go away with the old root. On the ready pipe go JSON lines: ``{"pid": N}``, then ``{"ready": true}`` or
``{"error": "..."}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# The machine's people are no business of a host, and neither are its ssh keys.
HIDDEN = ("root", "home", "srv", "media", "mnt")
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}

_libc = ctypes.CDLL(None, use_errno=True)


def call(what: str, result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    arguments = (source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None)
    call(
        f"mount {source} at {target}",
        _libc.mount(*arguments[:3], ctypes.c_ulong(arguments[3]), arguments[4]),
    )


def bind(source: str, target: str) -> None:
    mount(source, target, flags=MS_BIND)


def join_network(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    call(f"join {path}", _libc.setns(descriptor, CLONE_NEWNET))
    os.close(descriptor)


def build_root(plan: dict[str, Any]) -> str:
    """Overlay of the machine's root, and of file systems of its own below it that programs need (a separate
    ``/usr`` or ``/var``); returns the new root's path."""
    system = plan["system"]
    root = f"{system}/root"
    for index, layer in enumerate(["/", *plan["layers"]]):
        upper, work = f"{system}/upper{index}", f"{system}/work{index}"
        for folder in (root, upper, work):
            Path(folder).mkdir(parents=True, exist_ok=True)
        if index == 0:
            hide(upper)
        target = root if index == 0 else root + layer
        mount("wrackline", target, "overlay", 0, f"lowerdir={layer},upperdir={upper},workdir={work}")
    return root


def hide(upper: str) -> None:
    for name in HIDDEN:
        folder = Path(upper, name)
        if not folder.is_dir():
            folder.mkdir(mode=0o700 if name == "root" else 0o755)
            # Without this attribute (a tmpfs without xattrs) the machine's folder shows through, read-only in
            # effect.
            with contextlib.suppress(OSError):
                os.setxattr(folder, "trusted.overlay.opaque", b"y")


def mount_disks(plan: dict[str, Any], root: str) -> None:
    for loop, point in plan["disks"]:
        Path(root + point).mkdir(parents=True, exist_ok=True)
        mount(loop, root + point, plan["filesystem"], 0, plan["mount_options"])


def mount_shared(plan: dict[str, Any], root: str) -> None:
    source, point = plan["shared"]
    Path(root + point).mkdir(parents=True, exist_ok=True)
    bind(source, root + point)


def mount_kernel_views(root: str) -> None:
    """Private /dev, /proc, /sys, /run and temporary folders."""
    for folder in ("dev", "proc", "sys", "run", "tmp", "var/tmp"):
        Path(root, folder).mkdir(parents=True, exist_ok=True)
    mount("dev", f"{root}/dev", "tmpfs", MS_NOSUID, "mode=755,size=64k")
    for name in DEVICES:
        os.close(os.open(f"{root}/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        bind(f"/dev/{name}", f"{root}/dev/{name}")
    Path(root, "dev/pts").mkdir()
    mount("devpts", f"{root}/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    Path(root, "dev/ptmx").symlink_to("pts/ptmx")
    Path(root, "dev/shm").mkdir()
    mount("shm", f"{root}/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        Path(root, "dev", name).symlink_to(f"/proc/self/fd{target}")
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    # A host may crash itself as it likes, but this switch would take the whole machine.
    with contextlib.suppress(OSError):
        bind("/dev/null", f"{root}/proc/sysrq-trigger")
    mount("sysfs", f"{root}/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY)
    mount("run", f"{root}/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    for folder in ("tmp", "var/tmp"):
        mount("tmp", f"{root}/{folder}", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def change_root(root: str) -> None:
    """Make ``root`` the root and let go of the machine's mounts (pivot_root(2), "pivot_root(".", ".")")."""
    os.chdir(root)
    call("pivot_root", _libc.syscall(SYS_PIVOT_ROOT[os.uname().machine], b".", b"."))
    call("detach the old root", _libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def write_files(files: dict[str, list[Any]]) -> None:
    for name, (content, mode) in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # A link (Debian's /etc/resolv.conf may be one) would point out of what we made: replace, do not
        # follow.
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode), "w") as file:
            file.write(content)
        path.chmod(mode)


def unlock_root() -> None:
    """Unlocks root's account: without PAM, sshd takes a ``!`` in front of the password for a locked account
    and refuses the key too."""
    shadow = Path("/etc/shadow")
    lines = shadow.read_text().splitlines()
    if any(line.startswith("root:!") for line in lines):
        lines = ["root:*:" + line.split(":", 2)[2] if line.startswith("root:!") else line for line in lines]
        # Written in place: mode and owner stay as they are.
        shadow.write_text("\n".join(lines) + "\n")


def start(command: list[str]) -> int:
    return os.posix_spawn(command[0], command, ENVIRONMENT, setsid=True)


def init(plan: dict[str, Any], ready: int) -> None:
    """PID 1 of the host. Never returns."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _libc.prctl(PR_SET_NAME, f"wl-{plan['hostname']}".encode()[:15])
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    name = plan["hostname"].encode()
    call("sethostname", _libc.sethostname(name, len(name)))
    root = build_root(plan)
    mount_disks(plan, root)
    mount_shared(plan, root)
    mount_kernel_views(root)
    change_root(root)
    write_files(plan["files"])
    unlock_root()
    Path("/run/sshd").mkdir(mode=0o755)
    sshd = start(plan["sshd"])
    os.write(ready, b'{"ready": true}\n')
    for descriptor in (ready, *plan["lock_fds"]):
        os.close(descriptor)
    while True:
        pid, status = os.wait()
        if pid == sshd:
            # What systemd would do on a machine. The pause keeps a broken configuration from spinning.
            print(f"sshd ended with status {status}; starting it again", file=sys.stderr, flush=True)
            time.sleep(0.2)
            sshd = start(plan["sshd"])


def main() -> int:
    plan: dict[str, Any] = json.load(sys.stdin)
    with Path("/dev/null").open() as nothing:
        os.dup2(nothing.fileno(), 0)
    ready: int = plan["ready_fd"]
    # Whoever clears up after a killed owner waits for these: until the host is up, or has failed, it is not
    # all there.
    locks: list[int] = plan["lock_fds"]
    for descriptor in (ready, *locks):
        os.set_inheritable(descriptor, False)
    try:
        join_network(plan["netns"])
        call("unshare", _libc.unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC))
        child = os.fork()
        if child == 0:
            init(plan, ready)
    except (OSError, KeyError) as error:
        os.write(ready, json.dumps({"error": str(error)}).encode() + b"\n")
        return 1
    os.write(ready, b'{"pid": %d}\n' % child)
    for descriptor in (ready, *locks):
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
