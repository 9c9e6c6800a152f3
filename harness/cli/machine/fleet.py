"""``wrackline fleet ...``: fleets for a person's own hands.

Exit codes: 2 for a wrong call (also: not root), 4 when a host or the fleet fails.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from wrackline.errors import InfrastructureError, InputError
from wrackline.fleets.base import FleetError
from wrackline.fleets.become import COMMANDS, sudo_rule
from wrackline.fleets.libvirt.fleet import LibvirtFleet
from wrackline.fleets.libvirt.virsh import URI
from wrackline.fleets.local.fleet import Options
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.qemu.accelerators import Accelerator
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.services import Init
from wrackline.fleets.qemu.settings import Hardware
from wrackline.fleets.qemu.virtual.fleet import VirtualFleet
from wrackline.harness.cli.machine.fleet_list import FleetEntry, clean, inventory_command, list_fleets
from wrackline.harness.cli.options import need_root, output_option, print_json, state_dir_option
from wrackline.needs import require
from wrackline.progress import progress


@click.group()
def fleet() -> None:
    """Make, enter, list and remove hosts on this machine: namespaces or virtual machines.

    \b
      sudo wrackline fleet up
      sudo wrackline fleet ssh n1
      sudo wrackline fleet down
    """


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
    type=click.Choice(["netns", "qemu", "libvirt"]),
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
@click.option(
    "--init",
    type=click.Choice(["minimal", "systemd"]),
    default="minimal",
    show_default=True,
    help="Who runs the services of a host of the kind qemu: nobody but for sshd, or systemd.",
)
@click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="A further Debian package in the image of virtual machines; may be given again.",
)
@click.option("--uri", default=URI, show_default=True, help="The hypervisor, for the kind libvirt.")
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
    init: Init,
    packages: tuple[str, ...],
    uri: str,
    state_dir: Path,
) -> None:
    """Make the fleet NAME (default: hands). It stays until `wrackline fleet down` or the machine's next boot.

    \b
      sudo wrackline fleet up
      sudo wrackline fleet up mine --hosts a,b --kind qemu
    """
    need_root()
    require("xfs" if (kind, filesystem) == ("netns", "xfs") else kind, f"a fleet of the kind {kind}")
    if init == "systemd" and kind != "qemu":
        raise click.UsageError(f"--init systemd is for --kind qemu; hosts of the kind {kind} run no services")
    names = [host.strip() for host in hosts.split(",") if host.strip()]
    hardware = Hardware(memory_mb=memory_mb, disk_mb=disk_mb)
    usual = Options(subnet=subnet, state_dir=state_dir, filesystem=filesystem, detached=True)
    made: NetnsFleet | QemuFleet | LibvirtFleet
    try:
        match kind:
            case "netns":
                made = NetnsFleet(name, names, disk_mb=disk_mb, **usual)
            case "qemu":
                made = QemuFleet(
                    name, names, hardware=hardware, accel=accel, packages=packages, init=init, **usual
                )
            case _:
                made = LibvirtFleet(
                    name, names, uri=uri, hardware=hardware, accel=accel, packages=packages, **usual
                )
    except FleetError as error:  # there is no host yet
        raise InputError(str(error)) from error
    if isinstance(made, VirtualFleet):
        made.prepare(progress)
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
    """Remove the fleet NAME (may be left out when there is one). The fleet of a run ends with its run.

    \b
      sudo wrackline fleet down
    """
    chosen = _choose(name, [entry for entry in list_fleets(state_dir) if entry.life != "dead"])
    chosen.end()
    click.echo(f"fleet {chosen.name} is gone")


@fleet.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--fleet", "name", help="The fleet; may be left out when there is one.")
@state_dir_option
def ssh(host: str, command: tuple[str, ...], name: str | None, state_dir: Path) -> None:
    """Open a shell on HOST, or run COMMAND there.

    \b
      sudo wrackline fleet ssh n1
      sudo wrackline fleet ssh n1 ps aux
    """
    chosen = _choose(name, list_fleets(state_dir))
    if host not in chosen.hosts:
        raise click.UsageError(f"no host {host} in fleet {chosen.name}; it has {', '.join(chosen.hosts)}")
    chosen.enter(host, command)


@fleet.command(name="list")
@output_option("with how to get in, as Ansible calls it.")
@state_dir_option
def list_(state_dir: Path, output: str) -> None:
    """List the fleets of this machine, and who owns them. Those of namespaces only root sees.

    \b
      sudo wrackline fleet list
      sudo wrackline fleet list --output json
    """
    fleets = list_fleets(state_dir)
    if output == "json":
        print_json([entry.as_json() for entry in fleets])
        return
    for entry in fleets:
        hosts = " ".join(f"{host}={address}" for host, address in entry.addresses.items())
        click.echo(f"{entry.name}  {entry.kind}  {entry.life}  {hosts}")
    if not fleets:
        click.echo(f"no fleets in {state_dir}")


@fleet.command(name="clean")
@state_dir_option
def clean_(state_dir: Path) -> None:
    """Remove what killed runs left. It never touches a living fleet.

    \b
      sudo wrackline fleet clean
    """
    removed = clean(state_dir)
    click.echo(f"removed {', '.join(removed)}" if removed else "nothing to remove")


@fleet.command(name="sudo-rule")
@click.argument("user")
def sudo_rule_(user: str) -> None:
    """Print what USER may do on hosts of the fleet `inventory` with `become: named`, as a line for
    /etc/sudoers.d.

    \b
      wrackline fleet sudo-rule tester > /etc/sudoers.d/wrackline
    """
    for path, why in COMMANDS.items():
        click.echo(f"# {path}: {why}")
    click.echo(sudo_rule(user))


fleet.add_command(inventory_command)


def _choose(name: str | None, fleets: list[FleetEntry]) -> FleetEntry:
    result = [entry for entry in fleets if name in (None, entry.name)]
    if len(result) == 1:
        return result[0]
    names = ", ".join(entry.name for entry in fleets) or "none"
    if not result:
        what = f"no fleet {name} is up" if name else "no fleet is up"
        sudo = "" if os.geteuid() == 0 else "; those of namespaces only root sees: run it with sudo"
        trouble = InputError if name and fleets else InfrastructureError
        raise trouble(f"{what} (up: {names}); `wrackline fleet up` makes one{sudo}")
    raise click.UsageError(f"several fleets are up ({names}): name one")
