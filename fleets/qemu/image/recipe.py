"""The content of an image, and the one number that follows from it.

The guest is the Debian release that this machine runs, from the archive this machine is set up for: so its
Python has the minor version of ours, which the broker's libraries are built for, and no address of an archive
is written down anywhere.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import run_tool
from wrackline.needs import Missing, require

PACKAGES = (
    "e2fsprogs",
    "iproute2",
    "iptables",
    "kmod",
    "openssh-server",
    "procps",
    "python3",
    "strace",
    "util-linux",
    "xfsprogs",
)
KERNEL = "linux-image-cloud-amd64"
OPTIONS = (
    "--mode=root",
    "--variant=minbase",
    "--format=directory",
    "--skip=cleanup/apt/lists",  # the kernel is fetched by them
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=force-unsafe-io",
    # Where packages leave links, whether there are pages or not (Java does).
    '--essential-hook=mkdir -p "$1/usr/share/man/man1"',
    *(f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "locale", "man")),
)
FETCH_KERNEL = f"""\
set -e
cd "$1" && mkdir wl-kernel
chroot "$1" sh -ec '
    cd /wl-kernel
    apt-get -q download {KERNEL}
    apt-get -q download "$(dpkg-deb -f {KERNEL}_*.deb Depends | grep -o "linux-image-[0-9][^ ,]*")"
'"""
"""The package as a file: installed, it would want a generator of initial RAM disks, and we make our own."""
TIDY = """\
set -e
cd "$1"
rm -rf var/lib/apt/lists/* var/cache/apt/* var/log/* etc/apt/sources.list* etc/apt/apt.conf.d/99mmdebstrap
rm -f etc/ssh/ssh_host_* etc/resolv.conf etc/hostname
: >etc/machine-id
mkdir -p data run/sshd
sed -i 's/^root:[^:]*:/root:*:/' etc/shadow"""
"""No host key, no address of the archive, no name. Without PAM, sshd takes a ``!`` for a locked account."""
LAYOUT = 1
"""Raised when what is made of all this changes."""

_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def check_machine() -> None:
    """Raises FleetError when this machine lacks a program, in one line that says how to install them all."""
    if platform.machine() != "x86_64":
        raise FleetError(f"the fleet qemu knows x86_64 only, this machine is {platform.machine()}")
    try:
        require("qemu", "the fleet qemu")
    except Missing as missing:
        raise FleetError(str(missing)) from missing


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parts that decide what is in an image."""

    release: str
    """Debian's name of it: ``bookworm``."""
    packages: tuple[str, ...]
    """All of them, sorted."""

    @property
    def digest(self) -> str:
        """16 hexadecimal digits: another recipe, another image."""
        parts = (self.release, *self.packages, KERNEL, *OPTIONS, FETCH_KERNEL, TIDY, LAYOUT)
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


def recipe(extra: Iterable[str] = ()) -> Recipe:
    """The recipe for this machine, with further Debian packages. Raises FleetError."""
    extra = tuple(extra)
    for name in extra:
        if not _PACKAGE.fullmatch(name):
            raise FleetError(f"{name!r} is no name of a Debian package")
    said = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    system, release = (said.get(key, "").strip('"') for key in ("ID", "VERSION_CODENAME"))
    if system != "debian" or not release:
        raise FleetError(
            f"images are made of the Debian release that this machine runs, and it runs "
            f"{system or 'another system'}: use the fleet netns here, or a Debian 12 machine"
        )
    return Recipe(release, tuple(sorted({*PACKAGES, *extra})))


def sources() -> str:
    """The archives of Debian itself that this machine's apt is set up for, in the words of sources.list.
    Raises FleetError when there is none."""
    form = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    lines = run_tool(["apt-get", "indextargets", "--format", form, "Created-By: Packages", "Origin: Debian"])
    if not lines.strip():
        raise FleetError(
            "apt knows no packages of Debian: `apt-get update` reads the lists of what is in "
            "/etc/apt/sources.list"
        )
    return "".join(f"{line}\n" for line in sorted(set(lines.splitlines())))
