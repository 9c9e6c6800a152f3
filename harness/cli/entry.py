"""Where the command begins: Ctrl-C is one line from the first moment on."""

from __future__ import annotations

import signal

from wrackline.harness.cli.stopped import end, ending_at_once


def main() -> None:
    """Entry point of ``wrackline``."""
    with ending_at_once():
        # Only now: what is imported here takes the time that the handler is for.
        from wrackline.harness.cli.main import main as command

    try:
        command()
    except KeyboardInterrupt:  # beside the guard of the command itself
        end(signal.SIGINT, None)


if __name__ == "__main__":
    main()
