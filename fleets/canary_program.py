"""The canary's program on a host: it appends numbers to files that nobody syncs, and prints each.

Started with ``python -I -S -c``, this text and its arguments, and therefore on the standard library alone;
nothing of it is left on the host's system disk. `wrackline.fleets.canary` reads what it says, and tells why
it writes like this.
"""

import os
import sys
import time
from pathlib import Path


def make_folder(folder: Path, token: str) -> None:
    """The token is synced, and so is the way to it: it must survive what the numbers must not."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(token + "\n", encoding="ascii")
    for path in (folder / "token", folder, folder.parent, folder.parent.parent):
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def main(folder: Path, token: str, pace_s: float, per_file: int, kept_files: int) -> None:
    make_folder(folder, token)
    print(f"pid {os.getpid()}", flush=True)
    number, descriptor = 1, -1
    while True:
        time.sleep(pace_s)
        try:
            if number % per_file == 1:
                file = number // per_file
                new = os.open(folder / str(file), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
                if descriptor >= 0:
                    os.close(descriptor)
                descriptor = new
                (folder / str(file - kept_files)).unlink(missing_ok=True)
            os.write(descriptor, b"%015d\n" % number)
        except OSError as error:  # a disk that is full, or has become read-only: it may pass
            print(f"! {error.strerror}", flush=True)
            continue
        print(number, flush=True)
        number += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
