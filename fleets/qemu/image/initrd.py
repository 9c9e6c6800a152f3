"""The initial RAM disk of guests: mounts the system disk and hands over to the guest's first process."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wrackline.fleets.local import look
from wrackline.fleets.local.network.namespaces import find_tool, run_tool
from wrackline.fleets.netns import hostinit
from wrackline.fleets.qemu.guest import init as guest_init
from wrackline.fleets.qemu.image.build import FIRST_MODULES
from wrackline.fleets.qemu.image.store import Image, write_atomically

INIT = """\
#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for pass in 1 2 3; do  # in whatever order they need one another
    for module in /modules/*.ko; do busybox insmod $module 2>/dev/null; done
done
tries=0
until [ -b /dev/vda ] || [ $tries -ge 500 ]; do tries=$((tries + 1)); busybox usleep 10000; done
busybox mount -t ext4 -o ro,noload /dev/vda /new || busybox poweroff -f
busybox mount -t tmpfs -o mode=755 run /new/run
busybox mkdir /new/run/wrackline-guest
busybox cp /guest/*.py /new/run/wrackline-guest
for folder in dev proc sys; do busybox mount --move /$folder /new/$folder; done
exec busybox switch_root /new /usr/bin/python3 -I -S -B /run/wrackline-guest/init.py
"""


def _programs() -> Mapping[str, bytes]:
    """The guest's programs, by the names under which they find one another there."""
    modules = {"init.py": guest_init, "hostinit.py": hostinit, "look.py": look}
    return {name: Path(str(module.__file__)).read_bytes() for name, module in modules.items()}


def initrd(image: Image) -> Path:
    """The RAM disk for this image, with the guest's programs as they are now; made when it is not there."""
    programs = _programs()
    digest = hashlib.sha256(INIT.encode())
    for name, content in sorted(programs.items()):
        digest.update(name.encode() + content)
    path = image.folder / f"initrd-{digest.hexdigest()[:16]}.cpio"
    if not path.exists():
        with tempfile.TemporaryDirectory(prefix="wrackline-initrd-") as folder:
            write_atomically(path, _packed(Path(folder), image, programs))
    return path


def _packed(tree: Path, image: Image, programs: Mapping[str, bytes]) -> bytes:
    for folder in ("bin", "dev", "proc", "sys", "new", "modules", "guest"):
        (tree / folder).mkdir()
    shutil.copyfile(find_tool("busybox"), tree / "bin/busybox")
    (tree / "bin/busybox").chmod(0o755)
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    for name in FIRST_MODULES:
        shutil.copyfile(image.modules / f"{name}.ko", tree / "modules" / f"{name}.ko")
    for name, content in programs.items():
        (tree / "guest" / name).write_bytes(content)
    packed = tree.with_name(f"{tree.name}.cpio")
    try:
        # Owned by root, whoever packs it, and in the order of names.
        script = 'cd "$1" && find . | sort | "$2" cpio -o -H newc -R 0:0 >"$3"'
        busybox = find_tool("busybox")
        run_tool(["sh", "-ec", script, "sh", str(tree), busybox, str(packed)])
        return packed.read_bytes()
    finally:
        packed.unlink(missing_ok=True)
