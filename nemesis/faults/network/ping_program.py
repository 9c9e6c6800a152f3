"""Asks hosts for an echo (ICMP), with a small packet and with a large one. Runs on a host, started with
``python -I -S -c``, this text and its arguments, and therefore on the standard library alone.

Arguments: seconds to wait; the sizes of both packets in bytes, IP header included; ``NAME ADDRESS`` for each
host that is asked. Prints a line for each: its name, then ``echo`` or ``silence`` for the small and for the
large.
"""

import os
import select
import socket
import struct
import sys
import time

HEADERS = 20 + 8


def checksum(data: bytes) -> int:
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    words = (words >> 16) + (words & 0xFFFF)
    return int(~(words + (words >> 16)) & 0xFFFF)


def echo(number: int, size: int) -> bytes:
    """A request with its number, in a packet of so many bytes (an even number)."""
    body = bytes(size - HEADERS)
    head = struct.pack("!BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, number)
    return struct.pack("!BBHHH", 8, 0, checksum(head + body), os.getpid() & 0xFFFF, number) + body


def answered(asked: dict[int, bytes], addresses: list[str], wait_s: float) -> set[int]:
    """The numbers of the requests that were answered in time; requests are in turn for each address."""
    result: set[int] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        for number, packet in asked.items():
            try:
                raw.sendto(packet, (addresses[number // 2], 0))
            except OSError:  # rules of the host itself drop it
                continue
        deadline = time.monotonic() + wait_s
        while len(result) < len(asked) and (left := deadline - time.monotonic()) > 0:
            if not select.select([raw], [], [], left)[0]:
                break
            got = raw.recv(65535)
            kind, _, _, who, number = struct.unpack_from("!BBHHH", got, (got[0] & 15) * 4)
            if kind == 0 and who == os.getpid() & 0xFFFF:
                result.add(number)
    return result


if __name__ == "__main__":
    wait, sizes, named = float(sys.argv[1]), [int(sys.argv[2]), int(sys.argv[3])], sys.argv[4:]
    names, to = named[::2], named[1::2]
    asked_all = {}
    for place in range(len(to)):
        for large in (0, 1):
            asked_all[place * 2 + large] = echo(place * 2 + large, sizes[large])
    back = answered(asked_all, to, wait)
    for at, name in enumerate(names):
        print(name, *("echo" if at * 2 + large in back else "silence" for large in (0, 1)))
