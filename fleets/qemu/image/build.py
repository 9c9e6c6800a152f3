"""Building an image: a Debian root by mmdebstrap, its kernel unpacked, all on one read-only disk."""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import find_tool, run_tool
from wrackline.fleets.qemu.image.kernel import unpacked
from wrackline.fleets.qemu.image.recipe import FETCH_KERNEL, OPTIONS, TIDY, Recipe, check_machine, sources
from wrackline.fleets.qemu.image.store import Image, Say, Store

BUILD_TIMEOUT_S = 1800.0
_COMPLAINT = re.compile(r"\b(error|E|W|Err)\b:", re.IGNORECASE)
ROOM_MB = 96
"""Free on the system disk of an image: what ext4 needs for itself, for nobody writes there."""
FIRST_MODULES = (
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_blk",
    "failover",
    "net_failover",
    "virtio_net",
)
"""What a guest needs to see its disks and its network."""


def build(store: Store, recipe: Recipe, say: Say) -> Image:
    """The image of a recipe, built now if it is not there; another process that builds it is waited for.
    ``say`` is given a line for each step, for they take minutes. Raises FleetError."""
    if (result := store.find(recipe.digest)) is not None:
        return result
    check_machine()
    with store.locked(recipe.digest, say):
        if (result := store.find(recipe.digest)) is not None:
            return result
        began = time.monotonic()
        scratch = store.scratch(recipe.digest)
        try:
            image = _built(store, recipe, scratch, say)
        except OSError as error:
            store.clear(scratch)
            raise FleetError(
                f"image {recipe.digest}: {error.filename or scratch}: {error.strerror or error}"
            ) from error
        except BaseException:
            store.clear(scratch)
            raise
        image = store.finish(scratch, image)
    size_mb = image.size_bytes // 2**20
    say(f"image {image.digest}: built in {time.monotonic() - began:.0f} s, {size_mb} MB in {image.folder}")
    return image


def _built(store: Store, recipe: Recipe, scratch: Path, say: Say) -> Image:
    root = scratch / "root"
    say(f"image {recipe.digest}: Debian {recipe.release} by mmdebstrap; this takes a minute or more")
    _bootstrap(recipe, root, scratch, say)
    say(f"image {recipe.digest}: its kernel")
    kernel = _take_kernel(root, scratch)
    version = "import sys; print('%d.%d' % sys.version_info[:2])"
    python = run_tool(["chroot", str(root), "python3", "-c", version]).strip()
    say(f"image {recipe.digest}: its disk")
    _make_disk(root, scratch / "root.img")
    shutil.rmtree(root)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    folder = store.root / recipe.digest
    return Image(folder, recipe.digest, recipe.release, recipe.packages, python, kernel, now)


def _bootstrap(recipe: Recipe, root: Path, scratch: Path, say: Say) -> None:
    listed = scratch / "sources.list"
    listed.write_text(sources())
    command = [
        # Killed, it leaves what it has mounted: that must end with it.
        *("unshare", "--mount", "--propagation", "private"),
        "mmdebstrap",
        *OPTIONS,
        f"--include={','.join(recipe.packages)}",
        f"--customize-hook={FETCH_KERNEL}",
        f"--customize-hook={TIDY}",
        recipe.release,
        str(root),
        str(listed),
    ]
    # Beside the scratch folder: it outlives a failure.
    log = scratch.with_name(f"build-{recipe.digest}.log")
    _run_aloud(command, log, lambda words: say(f"image {recipe.digest}: {words}"))
    log.unlink()
    listed.unlink()


def _run_aloud(command: Sequence[str], log: Path, say: Say) -> None:
    """Run a program that says ``I: what it is doing`` now and then; all it says is in the log. Raises
    FleetError with what it complained of last."""
    complaint = "it said nothing"
    with (
        log.open("w") as written,
        subprocess.Popen(
            [find_tool(command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as program,
    ):
        assert program.stdout is not None
        deadline = time.monotonic() + BUILD_TIMEOUT_S
        try:
            for line in program.stdout:
                written.write(line)
                if line.startswith("I: ") and line.endswith("...\n"):
                    say(line.removeprefix("I: ").rstrip(".\n"))
                elif _COMPLAINT.search(line) and len(line) < 300:
                    complaint = line.strip()
                if time.monotonic() > deadline:
                    raise FleetError(f"mmdebstrap did not end within {BUILD_TIMEOUT_S:g} s; see {log}")
        except BaseException:
            program.terminate()
            raise
    if program.returncode != 0:
        raise FleetError(
            f"mmdebstrap failed: {complaint}; everything it said is in {log}; "
            "see that `apt-get update` works on this machine"
        )


def _take_kernel(root: Path, scratch: Path) -> str:
    """``vmlinux`` and ``modules`` beside the root, all modules in it; the kernel's release."""
    tree = scratch / "kernel"
    for package in sorted((root / "wl-kernel").glob("*.deb")):
        run_tool(["dpkg-deb", "-x", str(package), str(tree)])
    [bzimage] = tree.glob("boot/vmlinuz-*")
    release = bzimage.name.removeprefix("vmlinuz-")
    (scratch / "vmlinux").write_bytes(unpacked(bzimage.read_bytes()))
    shutil.copytree(tree / "lib/modules" / release, root / "usr/lib/modules" / release, symlinks=True)
    run_tool(["chroot", str(root), "depmod", release], timeout_s=60.0)
    (scratch / "modules").mkdir()
    for name in FIRST_MODULES:
        result = [*tree.rglob(f"{name}.ko"), *tree.rglob(f"{name.replace('_', '-')}.ko")]
        if not result:
            raise FleetError(f"the kernel {release} has no module {name}")
        shutil.copyfile(result[0], scratch / "modules" / f"{name}.ko")
    shutil.rmtree(root / "wl-kernel")
    shutil.rmtree(tree)
    return release


def _make_disk(root: Path, disk: Path) -> None:
    used = int(run_tool(["du", "-s", "--block-size=1M", str(root)], timeout_s=60.0).split()[0])
    with disk.open("wb") as file:
        file.truncate((used + used // 5 + ROOM_MB) * 2**20)
    options = ["-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "nodiscard"]
    run_tool(["mkfs.ext4", *options, "-d", str(root), str(disk)], timeout_s=300.0)
    disk.chmod(0o444)
