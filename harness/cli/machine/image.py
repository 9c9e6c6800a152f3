"""``wrackline get image``: what the virtual machines of the fleet ``qemu`` boot."""

from __future__ import annotations

import re

import click

from wrackline.fleets.qemu.image.build import build
from wrackline.fleets.qemu.image.recipe import PACKAGES, recipe
from wrackline.fleets.qemu.image.store import Store
from wrackline.fleets.qemu.services import Init, packages_for
from wrackline.harness.cli.options import need_root
from wrackline.needs import require
from wrackline.progress import progress


@click.command("image")
@click.argument("digest", required=False)
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
@click.option("--list", "listing", is_flag=True, help="List the images of this machine, oldest first.")
@click.option(
    "--remove",
    "removing",
    is_flag=True,
    help="Remove the image DIGEST, and the snapshots that were taken of it. Fleets that are up go on, but a "
    "host that is switched off does not come back.",
)
@click.option("--all", "everything", is_flag=True, help="With --remove: every image.")
def image_command(
    digest: str | None,
    packages: tuple[str, ...],
    init: Init,
    listing: bool,
    removing: bool,
    everything: bool,
) -> int:
    """Build an image that virtual machines boot, for runs with `fleet: {kind: qemu}`. A run builds the image
    that it needs; this does it beforehand.

    \b
      wrackline get image
      wrackline get image --package openjdk-17-jre-headless     the one for Apache Kafka
      wrackline get image --list
      wrackline get image --remove DIGEST

    It has the Debian release that this machine runs, from the archive that its apt is set up for. One that is
    there already is not built again: the digest of all that goes in is its name. Takes one to three minutes.
    Needs QEMU, mmdebstrap, busybox and lz4, which `./wrack setup qemu` installs.
    """
    if listing and (digest or removing or everything):
        raise click.UsageError("--list takes no DIGEST, and lists all")
    if not removing and (digest or everything):
        raise click.UsageError("DIGEST and --all are said with --remove")
    if listing:
        _list()
    elif removing:
        _remove(digest, everything)
    else:
        need_root()
        require("qemu", "get image")
        made = build(Store(), recipe(packages_for(init, packages)), progress)
        click.echo(f"{made.digest}  {made.folder}")
    return 0


def _list() -> None:
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
        click.echo(f"no images in {store.root}; `wrackline get image` builds one")


def _remove(digest: str | None, everything: bool) -> None:
    if (digest is None) != everything:
        raise click.UsageError("name one image (`wrackline get image --list` shows them), or say --all")
    if digest is not None and not re.fullmatch("[0-9a-f]{16}", digest):
        raise click.UsageError(f"{digest!r} is no digest of an image; `wrackline get image --list` shows all")
    store = Store()
    expected = [one.digest for one in store.all()] if digest is None else [digest]
    removed = [one for one in expected if store.remove(one, progress)]
    if digest is not None and not removed:
        raise click.UsageError(f"there is no image {digest}; `wrackline get image --list` shows all")
    click.echo(f"removed {', '.join(removed)}" if removed else "there was none")
