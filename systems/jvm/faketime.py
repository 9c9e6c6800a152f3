"""A clock of its own for a node that is a JVM: libfaketime answers for the kernel when the node asks for the
time.

It reads an offset whenever it is asked, so a running node's clock can be moved: what is in `CLOCK_FILE` is
added to the host's clock. What the JVM measures intervals with (CLOCK_MONOTONIC) is left alone. Where hosts
have a kernel of their own nothing of this is needed. Our own broker does not run with libfaketime 0.9.10:
under it an asyncio program of Python's stops answering.
"""

from __future__ import annotations

CLOCK_FILE = "/run/wrackline/clock"
NOTICED_S = 1.2
"""So long after a change of the file every node has noticed it."""
LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"
VARIABLES = (
    f"FAKETIME_TIMESTAMP_FILE={CLOCK_FILE} FAKETIME_CACHE_DURATION=0 FAKETIME_DONT_FAKE_MONOTONIC=1 "
    "FAKETIME_FORCE_MONOTONIC_FIX=0"
)
"""The file is read when a second has begun: without a cache it would be at every question for the time, and a
JVM asks without end. With another value of the last variable waits of the JVM go wrong, and a node takes
minutes to start."""
_LIBRARY = f"$(ls {LIBRARIES} 2>/dev/null | head -n 1)"
NOW = f"LD_PRELOAD={_LIBRARY} {VARIABLES} date +%s%N"
"""Prints what a node of this host takes for the time, in nanoseconds."""


def under(command: str) -> str:
    """The shell script that executes ``command`` with a clock of its own; it fails on a host without
    libfaketime, and says what to install."""
    return (
        f'library={_LIBRARY}; [ -n "$library" ] || {{ echo "ERROR there is no libfaketime on this host '
        f'({LIBRARIES}): install it, or leave out clock: faketime"; exit 1; }}\n'
        f"mkdir -p {CLOCK_FILE.rpartition('/')[0]}; [ -s {CLOCK_FILE} ] || echo +0 >{CLOCK_FILE}\n"
        f'exec env LD_PRELOAD="$library" {VARIABLES} {command}\n'
    )
