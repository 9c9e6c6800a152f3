"""Commands as root on a host for a user who is not root.

With `Become.NAMED` a command is carried out as the user. The programs in `COMMANDS` are found in a folder of
small scripts that comes first in PATH, and each of these is ``sudo -n`` and the program. So the rule that an
administrator writes has these programs, and nothing that could start a shell.
"""

from __future__ import annotations

import shlex

from wrackline.fleets.base import Become, Host

COMMANDS = {
    "/usr/sbin/iptables": "partition, stall-connections: rules are counted, listed and removed",
    "/usr/sbin/iptables-restore": "partition, stall-connections: a fault's chain is put in force at once",
}
"""Path of each program -> what it is needed for."""
SCRIPTS = "$HOME/.wrackline-become"
"""The folder of the scripts, to a shell of the host."""


def carried(host: Host, command: str, deadline: str = "") -> str:
    """Returns the command line that a login shell of the host gets for a command of ``sh``. ``deadline``: the
    beginning of a command line that ends the rest in time; it must have the rights of what it ends."""
    if host.become is Become.NAMED:
        command = f"PATH={SCRIPTS}:/usr/sbin:/sbin:$PATH; {command}"
    sudo = "sudo -n" if host.become is Become.ROOT else ""
    return " ".join(filter(None, ("exec", sudo, deadline, "sh -c", shlex.quote(command))))


def make_scripts() -> str:
    """The command that makes the scripts."""
    lines = [f"mkdir -p {SCRIPTS}"]
    for path in COMMANDS:
        script = shlex.quote(f'#!/bin/sh\nexec sudo -n {path} "$@"\n')
        file = f"{SCRIPTS}/{path.rpartition('/')[2]}"
        lines.append(f"printf {script} >{file} && chmod 700 {file}")
    return " && ".join(lines)


def remove_scripts() -> str:
    return f"rm -rf {SCRIPTS}"


def sudo_rule(user: str) -> str:
    """The line for /etc/sudoers.d."""
    return f"{user} ALL=(root) NOPASSWD: {', '.join(COMMANDS)}"
