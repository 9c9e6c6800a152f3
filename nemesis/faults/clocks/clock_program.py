"""Moves a clock until it is told to end, then sets it right. Runs on a host, started with
``python -I -S -c``, this text and its arguments, and therefore on the standard library alone.

Arguments: ``kernel`` (the host's own clock is set) or a file that libfaketime reads; ``jump`` (ahead by an
offset), ``strobe`` (ahead and right in turn) or ``drift`` (ahead by the offset more with every second); the
offset in seconds; how long the clock stays before it is moved again, in seconds.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path


def mover(where: str) -> Callable[[float], None]:
    """Sets the clock that many seconds ahead of what it would be without us."""
    right = time.time() - time.monotonic()

    def move(ahead_s: float) -> None:
        if where == "kernel":
            time.clock_settime(time.CLOCK_REALTIME, right + time.monotonic() + ahead_s)
            return
        new = Path(where + ".new")
        new.write_text(f"{ahead_s:+.6f}\n", encoding="ascii")
        new.replace(where)

    return move


def main(where: str, mode: str, offset_s: float, stays_s: float) -> None:
    move = mover(where)

    def end(*_: object) -> None:
        move(0)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    began = time.monotonic()
    for number in count():
        if mode == "drift":
            move(offset_s * (time.monotonic() - began))
        elif mode == "strobe":
            move(offset_s if number % 2 == 0 else 0)
        elif number == 0:
            move(offset_s)
        if number == 0:
            print("moved", flush=True)
        time.sleep(stays_s)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
