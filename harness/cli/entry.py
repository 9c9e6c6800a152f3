"""Where the command begins: Ctrl-C is one line from the first moment on.

What the command line needs takes a second to import. A Ctrl-C in that second finds nothing begun, so the
process can end where it stands; Python's own answer would be a traceback of whatever module was being read.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import NoReturn

STOPPED = 130


def _end(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    os.write(2, b"wrackline: stopped before anything was begun\n")
    os._exit(STOPPED)


def main() -> None:
    """Entry point of ``wrackline``."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where a shell has told us to ignore it
        signal.signal(signal.SIGINT, _end)
    # Only now: what is imported here takes the second that the handler is for.
    from wrackline.harness.cli.main import main as command

    try:
        signal.signal(signal.SIGINT, before)
        command()
    except KeyboardInterrupt:  # beside the guard of the command itself
        _end(signal.SIGINT, None)


if __name__ == "__main__":
    main()
