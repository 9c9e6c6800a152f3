"""The kernel of an image, unpacked: a guest under emulation would take seconds for that, at every boot."""

from __future__ import annotations

import gzip
import lzma
import struct
import subprocess
from collections.abc import Callable, Mapping

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import find_tool

MAGIC_AT, MAGIC = 0x202, b"HdrS"
SETUP_SECTORS_AT = 0x1F1
PAYLOAD_AT = 0x248
"""Offset and length of the payload, behind the set-up sectors (Linux: Documentation/x86/boot.rst)."""


def _lz4(packed: bytes) -> bytes:
    # The length of what comes out stands behind it, which lz4 takes for a broken block at its end.
    done = subprocess.run([find_tool("lz4"), "-dc"], input=packed[:-4], capture_output=True, check=False)
    if done.returncode != 0:
        raise FleetError(f"`lz4 -dc` of the kernel: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


_UNPACK: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\x02\x21\x4c\x18": _lz4,
    b"\x1f\x8b": lambda packed: gzip.decompress(packed[:-4]),
    b"\xfd7zXZ": lambda packed: lzma.LZMADecompressor().decompress(packed),
}


def unpacked(bzimage: bytes) -> bytes:
    """The ELF file in a ``vmlinuz``. Raises FleetError."""
    if bzimage[MAGIC_AT : MAGIC_AT + 4] != MAGIC:
        raise FleetError("the kernel of the image is no bzImage")
    offset, length = struct.unpack_from("<II", bzimage, PAYLOAD_AT)
    begin = ((bzimage[SETUP_SECTORS_AT] or 4) + 1) * 512 + offset
    payload = bzimage[begin : begin + length]
    for magic, unpack in _UNPACK.items():
        if payload.startswith(magic):
            elf = unpack(payload)
            if not elf.startswith(b"\x7fELF"):
                raise FleetError("what is packed in the kernel of the image is no ELF file")
            return elf
    raise FleetError(f"the kernel is packed in a way that is not known here ({payload[:6].hex()})")
