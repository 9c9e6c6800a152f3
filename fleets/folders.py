"""The folders and files of a system on a host."""

from __future__ import annotations

from dataclasses import dataclass

from wrackline.fleets.base import Host


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths on one host, as texts for commands; none needs quoting."""

    home: str
    """What is installed."""
    configs: str
    """The node's configuration is a file here, and its path one of the arguments of the process: by it the
    script knows its process."""
    logs: str
    run: str
    """What lasts as long as the host is on."""

    @property
    def script(self) -> str:
        return f"{self.home}/node.sh"

    @property
    def program(self) -> str:
        """Returns the path of the program that the script starts."""
        return f"{self.home}/program"

    @property
    def log(self) -> str:
        """Returns the path of the node's output."""
        return f"{self.logs}/broker.log"

    @property
    def running(self) -> str:
        """The command that says ``pid 77`` when a node runs, also on a host without the script."""
        return f"[ -x {self.script} ] && {self.script} pid | sed 's/^/pid /'; true"


def folders_of(host: Host) -> Folders:
    root = str(host.root).rstrip("/")
    return Folders(
        home=f"{root}/opt/wrackline",
        configs=f"{root}/etc/wrackline",
        logs=f"{root}/var/log/wrackline",
        run=f"{root}/run/wrackline",
    )


def data_dir(host: Host) -> str:
    """Returns the folder of the node's own data on its host; of several the first."""
    return data_dirs(host)[0]


def data_dirs(host: Host) -> tuple[str, ...]:
    """Returns the folders of the node's own data, one on each disk of its host."""
    return tuple(str(disk / "broker") for disk in host.disks)
