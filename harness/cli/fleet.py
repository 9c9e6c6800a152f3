"""``wrackline fleet ...``: fleets for a person's own hands.

Exit codes: 2 for a wrong call (also: not root), 4 when a host or the fleet fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.clean import FleetSeen, clean, end_detached, survey
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.local.namespaces import find_tool
from wrackline.fleets.local.state import FleetFolder
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.qemu.accelerators import Accelerator
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.settings import Hardware
from wrackline.harness.cli.crash import EXIT_HOSTS
from wrackline.harness.cli.options import state_dir_option


class HostTrouble(click.ClickException):
    """One clear line on standard error, exit code 4."""

    exit_code = EXIT_HOSTS


@contextmanager
def fleet_errors() -> Iterator[None]:
    """A FleetError becomes one line and exit code 4."""
    try:
        yield
    except FleetError as error:
        raise HostTrouble(str(error)) from error


def need_root() -> None:
    if os.geteuid() != 0:
        raise click.UsageError(
            "fleets need root (network namespaces, mounts, loop devices): run it with sudo"
        )


@click.group()
def fleet() -> None:
    """Hosts on this machine, namespaces or virtual machines: make, enter, list, remove."""


@fleet.command()
@click.argument("name", default="hands")
@click.option(
    "--hosts", default="n1,n2,n3", show_default=True, help="Names of the hosts, separated by commas."
)
@click.option("--subnet", default="198.18.0.0/24", show_default=True)
@click.option(
    "--disk-mb", type=click.IntRange(8), default=256, show_default=True, help="Size of each data disk."
)
@click.option("--filesystem", type=click.Choice(["ext4", "xfs"]), default="ext4", show_default=True)
@click.option(
    "--kind",
    type=click.Choice(["netns", "qemu"]),
    default="netns",
    show_default=True,
    help="Namespaces of this machine, or virtual machines.",
)
@click.option(
    "--memory-mb", type=click.IntRange(192), default=256, show_default=True, help="Of each virtual machine."
)
@click.option(
    "--accel",
    type=click.Choice(["auto", "tcg", "kvm"]),
    default="auto",
    show_default=True,
    help="For virtual machines: KVM, or emulation.",
)
@state_dir_option
def up(
    name: str,
    hosts: str,
    subnet: str,
    disk_mb: int,
    filesystem: str,
    kind: str,
    memory_mb: int,
    accel: Accelerator,
    state_dir: Path,
) -> None:
    """Make the fleet NAME (default: hands); it stays until `wrackline fleet down` or the machine's next
    boot."""
    need_root()
    with fleet_errors():
        names = [host.strip() for host in hosts.split(",") if host.strip()]
        made: LocalFleet
        if kind == "qemu":
            made = virtual = QemuFleet(
                name,
                names,
                subnet=subnet,
                state_dir=state_dir,
                hardware=Hardware(memory_mb=memory_mb, disk_mb=disk_mb),
                filesystem=filesystem,
                accel=accel,
                detached=True,
            )
            virtual.prepare(lambda line: click.echo(line, err=True))
        else:
            made = NetnsFleet(
                name,
                names,
                subnet=subnet,
                state_dir=state_dir,
                disk_mb=disk_mb,
                filesystem=filesystem,
                detached=True,
            )
        made.up()
        made.detach()
    for host in made.hosts:
        click.echo(f"{host.name}  {host.address}")
    click.echo(
        f"`wrackline fleet ssh {names[0]} --fleet {name}` opens a shell, "
        f"`wrackline fleet down {name}` ends it"
    )


@fleet.command()
@click.argument("name", required=False)
@state_dir_option
def down(name: str | None, state_dir: Path) -> None:
    """Remove the fleet NAME (may be left out when there is one). The fleet of a run ends with its run."""
    need_root()
    with fleet_errors():
        chosen = _choose(name, [seen for seen in survey(state_dir) if seen.life != "dead"])
        end_detached(FleetFolder(state_dir.resolve(), chosen.state.name))
    click.echo(f"fleet {chosen.state.name} is gone")


@fleet.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--fleet", "name", help="The fleet; may be left out when there is one.")
@state_dir_option
def ssh(host: str, command: tuple[str, ...], name: str | None, state_dir: Path) -> None:
    """Open a shell on HOST, or run COMMAND there."""
    need_root()
    with fleet_errors():
        chosen = _choose(name, survey(state_dir))
        state, folder = chosen.state, FleetFolder(state_dir.resolve(), chosen.state.name)
        if host not in state.hosts:
            raise click.UsageError(f"no host {host} in fleet {state.name}; it has {', '.join(state.hosts)}")
        address = state.addresses[state.hosts.index(host)]
        program = find_tool("ip")
        find_tool("ssh")
    options = {
        "UserKnownHostsFile": str(folder.known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "IdentitiesOnly": "yes",
        "ConnectTimeout": "10",
        "LogLevel": "ERROR",
    }
    arguments = [program, "netns", "exec", state.control, "ssh", "-F", "none", "-i", str(folder.key)]
    for option, value in options.items():
        arguments += ["-o", f"{option}={value}"]
    os.execv(program, [*arguments, f"root@{address}", *command])


@fleet.command(name="list")
@state_dir_option
def list_(state_dir: Path) -> None:
    """Fleets of this machine and who owns them."""
    need_root()
    with fleet_errors():
        fleets = survey(state_dir)
    for seen in fleets:
        hosts = " ".join(
            f"{host}={ip}" for host, ip in zip(seen.state.hosts, seen.state.addresses, strict=True)
        )
        click.echo(f"{seen.state.name}  {seen.state.kind}  {seen.life}  {hosts}")
    if not fleets:
        click.echo(f"no fleets in {state_dir}")


@fleet.command(name="clean")
@state_dir_option
def clean_(state_dir: Path) -> None:
    """Remove what killed runs left. Never touches a living fleet."""
    need_root()
    with fleet_errors():
        removed = clean(state_dir.resolve())
    click.echo(f"removed {', '.join(removed)}" if removed else "nothing to remove")


def _choose(name: str | None, fleets: list[FleetSeen]) -> FleetSeen:
    found = [seen for seen in fleets if name in (None, seen.state.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(seen.state.name for seen in fleets) or "none"
    if not found:
        what = f"no fleet {name} is up" if name else "no fleet is up"
        raise HostTrouble(f"{what} (up: {names}); `wrackline fleet up` makes one")
    raise click.UsageError(f"several fleets are up ({names}): name one")
