"""SSH keys and the few files of /etc that make a host of a fleet; new keys for every fleet, gone with it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from wrackline.fleets.base import Host
from wrackline.fleets.local.network.namespaces import find_tool, run_tool
from wrackline.fleets.local.state import FleetFolder

ETC = "/etc/wrackline-fleet"
"""Where a host has them."""

SSHD_CONFIG = f"""\
AddressFamily inet
HostKey {ETC}/host_key
AuthorizedKeysFile {ETC}/authorized_keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
PrintMotd no
PrintLastLog no
MaxSessions 200
MaxStartups 200
ClientAliveInterval 15
Subsystem sftp internal-sftp
"""


def make_keys(folder: FleetFolder, hosts: Sequence[Host]) -> tuple[str, str]:
    """Make the fleet's keys and its known_hosts; the public key that opens hosts, and the hosts' private
    key."""
    for path in (folder.key, folder.host_key):
        run_tool(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"wrackline {folder.name}", "-f", str(path)]
        )
    public_host_key = " ".join(public(folder.host_key).split()[:2])
    folder.known_hosts.write_text(
        "".join(f"{host.name},{host.address} {public_host_key}\n" for host in hosts)
    )
    return public(folder.key), folder.host_key.read_text()


def sshd_config() -> str:
    """The hosts' sshd configuration, for the OpenSSH of this machine."""
    result = subprocess.run(
        [find_tool("sshd"), "-V"], capture_output=True, text=True, timeout=10, check=False
    )
    version = re.search(r"OpenSSH_(\d+)\.(\d+)", result.stderr + result.stdout)
    if version and (int(version[1]), int(version[2])) >= (9, 8):
        # It would lock us out for looking whether it is there already.
        return SSHD_CONFIG + "PerSourcePenalties no\n"
    return SSHD_CONFIG


def public(key: Path) -> str:
    return key.with_name(key.name + ".pub").read_text()


def host_files(
    host: Host, hosts: Sequence[Host], *, public_key: str, host_key: str, sshd: str
) -> dict[str, tuple[str, int]]:
    """Files of a host's /etc: path → content, mode."""
    names = "".join(f"{other.address} {other.name}\n" for other in hosts)
    return {
        "/etc/hostname": (f"{host.name}\n", 0o644),
        "/etc/hosts": (f"127.0.0.1 localhost\n{names}", 0o644),
        # No name server: a look-up that hosts does not answer fails at once instead of waiting for nobody.
        "/etc/resolv.conf": ("", 0o644),
        "/etc/nsswitch.conf": ("passwd: files\ngroup: files\nshadow: files\nhosts: files\n", 0o644),
        f"{ETC}/sshd_config": (sshd, 0o644),
        f"{ETC}/host_key": (host_key, 0o600),
        f"{ETC}/authorized_keys": (public_key, 0o600),
    }
