"""A connection into a fleet's network for a program that is outside of it: what OpenSSH's ProxyCommand wants.

    ip netns exec wl-NAME python3 relay.py ADDRESS PORT

Carries standard input there and what comes back to standard output. It stands on the standard library alone.
"""

import os
import select
import socket
import sys


def main(address: str, port: int) -> None:
    with socket.create_connection((address, port), timeout=10) as there:
        there.settimeout(None)
        sources = [0, there.fileno()]
        while there.fileno() in sources:
            for ready in select.select(sources, [], [])[0]:
                chunk = os.read(ready, 1 << 16)
                if not chunk:
                    sources.remove(ready)
                    if ready == 0:
                        there.shutdown(socket.SHUT_WR)
                elif ready == 0:
                    there.sendall(chunk)
                else:
                    os.write(1, chunk)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
