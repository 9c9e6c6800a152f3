"""A libvirtd of a test's own: it sees no folder of another libvirt, its network has no links, and it ends
with the process that started it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BEGIN = """
for folder in /etc/libvirt /var/lib /var/log /var/cache /run; do mount -t tmpfs libvirtd $folder; done
mkdir /run/libvirt /var/log/libvirt /var/cache/libvirt
# It wants the user to be there that QEMU runs as where qemu.conf says nothing.
for file in passwd group; do cp /etc/$file "$1/$file"; done
echo 'libvirt-qemu:x:64055:64055::/:/usr/sbin/nologin' >>"$1/passwd"
echo 'libvirt-qemu:x:64055:' >>"$1/group"
for file in passwd group; do mount --bind "$1/$file" /etc/$file; done
cat >/etc/libvirt/qemu.conf <<'END'
user = "root"
group = "root"
stdio_handler = "file"
namespaces = []
cgroup_controllers = []
END
cat >"$1/libvirtd.conf" <<END
unix_sock_dir = "$1"
unix_sock_rw_perms = "0700"
auth_unix_ro = "none"
auth_unix_rw = "none"
log_outputs = "3:stderr"
END
exec libvirtd --config "$1/libvirtd.conf" --pid-file "$1/pid"
"""
START_S = 30.0


@dataclass(frozen=True, slots=True)
class Libvirtd:
    uri: str
    pid: int

    def answers(self) -> bool:
        try:
            self.domains()
        except subprocess.CalledProcessError:
            return False
        return True

    def domains(self) -> list[str]:
        """Names of all that it knows."""
        return self._printed("virsh", "--quiet", "--connect", self.uri, "list", "--all", "--name").split()

    def links(self) -> set[str]:
        """Of the network that it is in."""
        listing = self._printed("nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", "-o", "link")
        return {line.split()[1].rstrip(":") for line in listing.splitlines()}

    @staticmethod
    def _printed(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


@contextmanager
def libvirtd(folder: Path) -> Iterator[Libvirtd]:
    """Running, with its sockets in ``folder``."""
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "private"]
    log = folder / "log"
    with (
        log.open("w") as said,
        subprocess.Popen(
            [*command, "sh", "-ec", BEGIN, "sh", str(folder)], stdout=said, stderr=said
        ) as daemon,
    ):
        try:
            made = Libvirtd(f"qemu+unix:///system?socket={folder}/libvirt-sock", daemon.pid)
            deadline = time.monotonic() + START_S
            while not made.answers():
                assert daemon.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield made
        finally:
            daemon.terminate()
            try:
                daemon.wait(10)
            finally:
                daemon.kill()
