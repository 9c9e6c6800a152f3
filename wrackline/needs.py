"""Needs of the commands beside the core's libraries, as one table: programs, and extras of the package.

The launcher runs this file with the machine's own Python before any library is there: it imports the standard
library alone. A command asks ``require`` before it begins. The answer is one line that names the way out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

MIN_JAVA = 17
JAVA_S = 30.0
"""The deadline of a ``java -version``, which takes a tenth of a second on a quiet machine."""
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where Debian has programs; an ordinary user's PATH lacks half of it."""
_APT = "apt-get install --no-install-recommends"
_LAUNCHER = Path(__file__).resolve().parents[1] / "wrack"


class Missing(Exception):
    """This machine lacks something. One line: what, for what, and the command that installs it."""


@dataclass(frozen=True, slots=True)
class Need:
    """A need of some commands, under a name that ``./wrack setup`` takes."""

    name: str
    purpose: str
    """What asks for it."""
    programs: Mapping[str, str] = field(default_factory=dict)
    """What is looked for -> the Debian package that has it, or several, with | between them: the first that
    there is. A path with * in it is a file."""
    extra: str = ""
    """The extra of the package that brings its libraries."""
    module: str = ""
    """Where this can be found the extra is installed."""
    also: tuple[str, ...] = ()
    """The needs that come with it."""


TABLE = (
    Need(
        "netns",
        "hosts in network namespaces: demo, fleet up, and run where fleet.kind is netns",
        {
            "sshd": "openssh-server",
            "ssh": "openssh-client",
            "ssh-keygen": "openssh-client",
            "ip": "iproute2",
            "iptables": "iptables",
            "mkfs.ext4": "e2fsprogs",
            "unshare": "util-linux",
            "ps": "procps",
        },
    ),
    Need(
        "xfs", "hosts of the fleet netns whose filesystem is xfs", {"mkfs.xfs": "xfsprogs"}, also=("netns",)
    ),
    Need(
        "faults",
        "the fault disk-errors (strace), and system.clock: faketime",
        {"strace": "strace", "/usr/lib/*/faketime/libfaketimeMT.so.1": "libfaketime"},
    ),
    Need(
        "java",
        "Apache Kafka, ZooKeeper, Spark, Knossos and Elle, and clients in Java",
        {"java": "openjdk-17-jre-headless | default-jre-headless"},
    ),
    Need(
        "javac",
        "the workload streams, whose application is compiled",
        {"javac": "openjdk-17-jdk-headless | default-jdk-headless", "setpriv": "util-linux"},
        also=("java", "kafka"),
    ),
    Need(
        "spark",
        "the judge of many or large runs (analyze --engine spark, or a cluster)",
        extra="spark",
        module="pyspark",
        also=("java",),
    ),
    Need(
        "kafka",
        "versions of Apache Kafka and of its clients that are not installed yet",
        {"mvn": "maven"},
        also=("java",),
    ),
    Need(
        "jvm",
        "Knossos and Elle (check --by knossos|elle), and clients in Java",
        extra="jvm",
        module="jpype",
        also=("kafka",),
    ),
    Need("cluster", "results in object storage and on HDFS", extra="cluster", module="s3fs", also=("spark",)),
    Need(
        "qemu",
        "hosts that are virtual machines: fleet.kind qemu, image build",
        {
            "qemu-system-x86_64": "qemu-system-x86",
            "mmdebstrap": "mmdebstrap",
            "busybox": "busybox-static",
            "lz4": "lz4",
        },
        also=("netns",),
    ),
    Need(
        "libvirt",
        "hosts that are domains of a libvirt: fleet.kind libvirt",
        {
            "virsh": "libvirt-clients",
            "libvirtd": "libvirt-daemon",
            "/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so": "libvirt-daemon-driver-qemu",
        },
        also=("qemu",),
    ),
    Need("pages", "whole histories in the pages of wrackline site build", {"npm": "npm"}),
    Need(
        "all",
        "every command",
        also=("xfs", "faults", "cluster", "jvm", "libvirt", "pages"),
    ),
    Need("lint", "the linters, and the documents as a site", extra="dev", module="mypy"),
    Need(
        "dev",
        "every command, the linters and the tests",
        {"kcat": "kcat", "zstd": "zstd", "sudo": "sudo", "chromium": "chromium"},
        also=("all", "lint"),
    ),
)
BY_NAME = {one.name: one for one in TABLE}


def closure(names: Iterable[str]) -> tuple[Need, ...]:
    """Returns these needs and all that come with them, each once, in the order of the table."""
    expected: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in expected:
            expected.add(name)
            left += BY_NAME[name].also
    return tuple(one for one in TABLE if one.name in expected)


def missing_programs(names: Iterable[str]) -> dict[str, str]:
    """Returns the programs of the needs (with all that come with them) that this machine lacks -> their
    packages."""
    return {
        program: package
        for need in closure(names)
        for program, package in need.programs.items()
        if not is_there(program)
    }


def missing_extras(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the extras of the needs (with all that come with them) that this Python lacks."""
    return tuple(
        one.extra for one in closure(names) if one.extra and one.module and find_spec(one.module) is None
    )


def is_there(program: str) -> bool:
    """Tells whether this machine has a program, or a file of this pattern; a Java only if it is new
    enough."""
    if "*" in program:
        return any(Path("/").glob(program.lstrip("/")))
    if program == "java":
        return _major(find_java()) >= MIN_JAVA
    return shutil.which(program) is not None or shutil.which(program, path=SEARCH_PATH) is not None


def find_java() -> str:
    """The one of JAVA_HOME, else of the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _major(java: str) -> int:
    """0 for one that does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else 0


def require(name: str, asks: str) -> None:
    """``asks``: what cannot be done without it. Raises Missing, in one line, where the machine or this Python
    lacks any of it."""
    programs, extras = missing_programs([name]), missing_extras([name])
    if programs or extras:
        lacks = ", ".join([*programs, *(f"the libraries of the extra {one}" for one in extras)])
        raise Missing(f"{asks} needs {lacks}: {_installed_by(name, programs.values(), extras)}")


def mend(name: str) -> str:
    """The command that installs a need: the launcher's in a checkout, else pip's and apt's."""
    expected = closure([name])
    packages = [package for need in expected for package in need.programs.values()]
    return _installed_by(name, packages, [need.extra for need in expected if need.extra])


def _installed_by(name: str, packages: Iterable[str], extras: Iterable[str]) -> str:
    packages = sorted({one.partition(" | ")[0] for one in packages})
    if _LAUNCHER.is_file():
        return f"`{'sudo ' if packages else ''}./wrack setup {name}` installs it"
    extra = ",".join(extras)
    pip = [f"`pip install 'wrackline[{extra}]'`"] if extra else []
    apt = [f"`{_APT} {' '.join(packages)}`"] if packages else []
    return f"{' and '.join([*pip, *apt])} installs it"


def main() -> None:
    """Prints for the launcher what is missing of some needs, one a line, or the table for a person."""
    parser = argparse.ArgumentParser(prog="needs")
    parser.add_argument("what", choices=["packages", "debian", "extras", "table"])
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if asked.what == "table":
        print("\n".join(f"  {one.name:9} {one.purpose}" for one in TABLE))
        return
    unknown = [name for name in asked.names if name not in BY_NAME]
    if unknown:
        sys.exit(f"there is no {unknown[0]!r} to set up; there are {', '.join(BY_NAME)}")
    if asked.what == "debian":
        # All of them, whatever is there: for the role control, which knows Java itself.
        needed = [package for one in closure(asked.names) for package in one.programs.values()]
        lines = sorted({one for one in needed if "|" not in one})
    elif asked.what == "packages":
        packages = dict.fromkeys(missing_programs(asked.names).values())
        # Ubuntu has Chromium as a snap only: there the tests of pages are skipped, and say so.
        is_debian = "ID=debian" in Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
        lines = [one.replace(" ", "") for one in packages if is_debian or one != "chromium"]
    else:
        lines = list(dict.fromkeys(one.extra for one in closure(asked.names) if one.extra))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
