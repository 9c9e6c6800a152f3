"""Takes processor time or memory until it is ended. Runs on a host, started with ``python -I -S -c``, this
text and its arguments, and therefore on the standard library alone.

Arguments: ``cpu``, the number of processes and how much of its time each works, in percent; or ``memory`` and
the number of MiB, which are written again and again so that they stay in memory.
"""

import os
import sys
import time

SLICE_S = 0.02
PAGE_BYTES = 4096


def burn(percent: int) -> None:
    while True:
        until = time.monotonic() + SLICE_S * percent / 100
        while time.monotonic() < until:
            pass
        time.sleep(SLICE_S * (100 - percent) / 100)


def hold(size_mb: int) -> None:
    held = bytearray(size_mb * 2**20)
    told = False
    while True:
        for at in range(0, len(held), PAGE_BYTES):
            held[at] = (held[at] + 1) % 256
        if not told:
            print("held", flush=True)
        told = True
        time.sleep(1)


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        hold(int(sys.argv[2]))
    for _ in range(int(sys.argv[2]) - 1):
        if os.fork() == 0:
            break
    else:
        print("burning", flush=True)
    burn(int(sys.argv[3]))
