"""``wrackline fleet ...``: fleets for a person's own hands.

Exit codes: 2 for a wrong call (also: not root), 4 when a host or the fleet fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import orjson

from wrackline.fleets.base import FleetError
from wrackline.fleets.become import COMMANDS, sudo_rule
from wrackline.fleets.libvirt.fleet import LibvirtFleet
from wrackline.fleets.libvirt.virsh import URI
from wrackline.fleets.local.fleet import LocalFleet
from wrackline.fleets.netns.fleet import NetnsFleet
from wrackline.fleets.qemu.accelerators import Accelerator
from wrackline.fleets.qemu.fleet import QemuFleet
from wrackline.fleets.qemu.services import Init
from wrackline.fleets.qemu.settings import Hardware
from wrackline.harness.cli.crash import EXIT_HOSTS
from wrackline.harness.cli.fleet_inventory import inventory_command
from wrackline.harness.cli.fleets_seen import Seen, clean, see
from wrackline.harness.cli.options import state_dir_option
from wrackline.harness.specification.spec import Spec
from wrackline.needs import require


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


def need_machine(*wanted: Spec) -> None:
    """Before anything is begun, whether this machine has what runs need of it: root, and programs. Raises
    UsageError, Missing."""
    if any(spec.fleet.needs_root for spec in wanted):
        need_root()
    for spec in wanted:
        for need in spec.fleet.needs:
            require(need, f"the fleet {spec.fleet.kind}")
        for need in spec.system.needs:
            require(need, f"the system {spec.system.kind}")


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
    """Make the fleet NAME (default: hands); it stays until `wrackline fleet down` or the machine's next
    boot."""
    need_root()
    require("xfs" if (kind, filesystem) == ("netns", "xfs") else kind, f"a fleet of the kind {kind}")
    if init == "systemd" and kind != "qemu":
        raise click.UsageError(f"--init systemd is for --kind qemu; hosts of the kind {kind} run no services")
    with fleet_errors():
        names = [host.strip() for host in hosts.split(",") if host.strip()]
        hardware = Hardware(memory_mb=memory_mb, disk_mb=disk_mb)
        made: LocalFleet
        match kind:
            case "netns":
                made = NetnsFleet(
                    name,
                    names,
                    subnet=subnet,
                    state_dir=state_dir,
                    disk_mb=disk_mb,
                    filesystem=filesystem,
                    detached=True,
                )
            case "qemu":
                made = virtual = QemuFleet(
                    name,
                    names,
                    subnet=subnet,
                    state_dir=state_dir,
                    hardware=hardware,
                    filesystem=filesystem,
                    accel=accel,
                    packages=packages,
                    init=init,
                    detached=True,
                )
                virtual.prepare(lambda line: click.echo(line, err=True))
            case _:
                made = domains = LibvirtFleet(
                    name,
                    names,
                    uri=uri,
                    subnet=subnet,
                    state_dir=state_dir,
                    hardware=hardware,
                    filesystem=filesystem,
                    accel=accel,
                    packages=packages,
                    detached=True,
                )
                domains.prepare(lambda line: click.echo(line, err=True))
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
    with fleet_errors():
        chosen = _choose(name, [seen for seen in see(state_dir) if seen.life != "dead"])
        chosen.end()
    click.echo(f"fleet {chosen.name} is gone")


@fleet.command(context_settings={"ignore_unknown_options": True})
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--fleet", "name", help="The fleet; may be left out when there is one.")
@state_dir_option
def ssh(host: str, command: tuple[str, ...], name: str | None, state_dir: Path) -> None:
    """Open a shell on HOST, or run COMMAND there."""
    with fleet_errors():
        chosen = _choose(name, see(state_dir))
        if host not in chosen.hosts:
            raise click.UsageError(f"no host {host} in fleet {chosen.name}; it has {', '.join(chosen.hosts)}")
        chosen.enter(host, command)


@fleet.command(name="list")
@click.option(
    "--json", "as_json", is_flag=True, help="For machines; with how to get in, as Ansible calls it."
)
@state_dir_option
def list_(state_dir: Path, as_json: bool) -> None:
    """Fleets of this machine and who owns them. Those of namespaces only root sees."""
    with fleet_errors():
        fleets = see(state_dir)
    if as_json:
        click.echo(orjson.dumps([seen.as_json() for seen in fleets], option=orjson.OPT_INDENT_2).decode())
        return
    for seen in fleets:
        hosts = " ".join(f"{host}={address}" for host, address in seen.addresses.items())
        click.echo(f"{seen.name}  {seen.kind}  {seen.life}  {hosts}")
    if not fleets:
        click.echo(f"no fleets in {state_dir}")


@fleet.command(name="clean")
@state_dir_option
def clean_(state_dir: Path) -> None:
    """Remove what killed runs left. Never touches a living fleet."""
    with fleet_errors():
        removed = clean(state_dir)
    click.echo(f"removed {', '.join(removed)}" if removed else "nothing to remove")


@fleet.command(name="sudo-rule")
@click.argument("user")
def sudo_rule_(user: str) -> None:
    """Print what USER may do on hosts of the fleet `inventory` with `become: named`, as a line for
    /etc/sudoers.d."""
    for path, why in COMMANDS.items():
        click.echo(f"# {path}: {why}")
    click.echo(sudo_rule(user))


fleet.add_command(inventory_command)


def _choose(name: str | None, fleets: list[Seen]) -> Seen:
    found = [seen for seen in fleets if name in (None, seen.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(seen.name for seen in fleets) or "none"
    if not found:
        what = f"no fleet {name} is up" if name else "no fleet is up"
        sudo = "" if os.geteuid() == 0 else "; those of namespaces only root sees: run it with sudo"
        raise HostTrouble(f"{what} (up: {names}); `wrackline fleet up` makes one{sudo}")
    raise click.UsageError(f"several fleets are up ({names}): name one")
