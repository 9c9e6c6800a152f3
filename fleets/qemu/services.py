"""The service managers of a guest: none (the guest's small first process starts sshd, and that is all), or
systemd, which takes the place of the first process once the guest knows who it is.

With systemd a power-on takes tens of seconds under emulation, which a fault would wait for. It is for hosts
that somebody provisions with units, as `ansible/` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from wrackline.fleets.local.keys import ETC

Init = Literal["minimal", "systemd"]
SSHD = ("/usr/sbin/sshd", "-D", "-e", "-f", f"{ETC}/sshd_config")
PACKAGES: Mapping[Init, tuple[str, ...]] = {
    "minimal": (),
    # Without udev no unit of a device, and so of fstab, ever comes up.
    "systemd": ("systemd-sysv", "udev"),
}
_SSH = f"""\
[Service]
ExecStartPre=
ExecStart=
ExecStart={" ".join(SSHD)}
Restart=always
RestartPreventExitStatus=
# What is started over SSH lives in the control group of this service.
TasksMax=infinity
OOMPolicy=continue
"""
_MASKED = (
    # Nobody logs in on a console.
    "getty@.service",
    "getty-static.service",
    "serial-getty@.service",
    "systemd-logind.service",
    # What begins by itself would take an emulated processor's time from whatever is measured.
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_reap.service",
)
_UNITS: Mapping[str, str] = {
    "ssh.service.d/wrackline.conf": _SSH,
    **dict.fromkeys(_MASKED, ""),
}
"""A unit that is an empty file is masked."""


def packages_for(init: Init, more: Sequence[str]) -> tuple[str, ...]:
    """Debian packages of an image in which this first process has what it needs, besides ``more``."""
    return (*more, *PACKAGES[init])


def files_for(init: Init) -> dict[str, tuple[str, int]]:
    """Files of a host's /etc: path → content, mode."""
    if init == "minimal":
        return {}
    return {f"/etc/systemd/system/{name}": (content, 0o644) for name, content in _UNITS.items()}
