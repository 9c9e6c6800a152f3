"""The entry point of the command: Ctrl-C is reported in one line from the first moment on."""

from __future__ import annotations

import gc
import signal

from wrackline.harness.cli.signals import exit_now, exit_on_signal

OBJECTS_A_LOOK = 50_000
"""So many new objects, and not Python's 700, before it looks for cycles among them: imports make 300,000, of
which hardly one is ever released."""


def main() -> None:
    """Entry point of ``wrackline``."""
    gc.set_threshold(OBJECTS_A_LOOK)
    with exit_on_signal():
        # Only now: what is imported here takes the time that the handler is for.
        from wrackline.harness.cli.main import main as command

    try:
        command()
    except KeyboardInterrupt:  # beside the guard of the command itself
        exit_now(signal.SIGINT, None)
    finally:
        gc.freeze()  # else Python looks through all there is, for half a second, to release it at its end


if __name__ == "__main__":
    main()
