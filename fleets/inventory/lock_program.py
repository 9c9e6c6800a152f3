"""The program that locks a host for one run: a lock on a file, which the kernel drops when this process ends.

Started with ``python -I -S -c``: this text, the file, what is to be said of the owner, and a patience in
seconds. The owner says a word on standard input now and then; this ends when the connection does, and when
nothing was said for so long: then the owner's machine is gone without a farewell.
"""

import fcntl
import os
import select
import sys
from pathlib import Path


def opened(path: str) -> int:
    """The file, whose name may have been taken away between its being opened and locked."""
    while True:
        try:  # one that is there is not created: in a folder of everybody's the kernel would refuse
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(descriptor, 0o666)
            except FileExistsError:
                continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("held", os.read(descriptor, 4096).decode(errors="replace"), flush=True)
            sys.exit(1)
        try:
            if Path(path).stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)


def main(path: str, owner: str, patience_s: float) -> None:
    descriptor = opened(path)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, owner.encode())
    print("taken", flush=True)
    while True:
        ready, _, _ = select.select([0], [], [], patience_s)
        if not ready or not os.read(0, 4096):
            break
    Path(path).unlink()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
