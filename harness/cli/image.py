"""``wrackline image``: what the virtual machines of the fleet ``qemu`` boot."""

from __future__ import annotations

import re

import click

from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.recipe import PACKAGES, recipe
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.services import Init, packages_for
from wrackline.harness.cli.fleet import fleet_errors, need_root
from wrackline.needs import require


def _say(line: str) -> None:
    click.echo(line, err=True)


@click.group()
def image() -> None:
    """What virtual machines boot, for runs with `fleet: {kind: qemu}`.

    \b
    A run builds the image that it needs; these commands do it beforehand.
      wrackline image build
      wrackline image build --package openjdk-17-jre-headless     the one for Apache Kafka
    """


@image.command("build")
@click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="A Debian package besides those that every image has; may be given again.",
)
@click.option(
    "--init",
    type=click.Choice(["minimal", "systemd"]),
    default="minimal",
    show_default=True,
    help="Who runs the services of a host, as `fleet.init`.",
)
def build_command(packages: tuple[str, ...], init: Init) -> None:
    """Build an image of the Debian release that this machine runs, from the archive that its apt is set up
    for. One that is there already is not built again: the digest of all that goes in is its name.

    Takes one to three minutes. Needs QEMU, mmdebstrap, busybox and lz4, which `./wrack setup qemu` installs.
    """
    need_root()
    require("qemu", "image build")
    with fleet_errors():
        made = build(Store(), recipe(packages_for(init, packages)), _say)
    click.echo(f"{made.digest}  {made.folder}")


@image.command("list")
def list_command() -> None:
    """Images of this machine, oldest first."""
    store = Store()
    images = store.all()
    for one in images:
        size_mb = one.size_bytes // 2**20
        more = [name for name in one.packages if name not in PACKAGES]
        with_more = f"  with {' '.join(more)}" if more else ""
        click.echo(
            f"{one.digest}  Debian {one.release}, Linux {one.kernel}, Python {one.python}"
            f"  {size_mb} MB  {one.built}{with_more}"
        )
    if not images:
        click.echo(f"no images in {store.root}; `wrackline image build` makes one")


@image.command("remove")
@click.argument("digest", required=False)
@click.option("--all", "everything", is_flag=True, help="Every image.")
def remove_command(digest: str | None, everything: bool) -> None:
    """Remove the image DIGEST, and the snapshots that were taken of it. Fleets that are up go on, but none of
    their hosts that is switched off comes back."""
    if (digest is None) != everything:
        raise click.UsageError("name one image (`wrackline image list` shows them), or say --all")
    if digest is not None and not re.fullmatch("[0-9a-f]{16}", digest):
        raise click.UsageError(f"{digest!r} is no digest of an image; `wrackline image list` shows all")
    store = Store()
    wanted = [one.digest for one in store.all()] if digest is None else [digest]
    with fleet_errors():
        removed = [one for one in wanted if store.remove(one, _say)]
    if digest is not None and not removed:
        raise click.UsageError(f"there is no image {digest}; `wrackline image list` shows all")
    click.echo(f"removed {', '.join(removed)}" if removed else "there was none")
