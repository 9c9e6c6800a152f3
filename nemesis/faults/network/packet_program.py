"""The program on a host whose kernel has no netem: it holds, loses, repeats, damages and overtakes packets.

Started with ``python -I -S -c``, this text and its settings as JSON, and therefore on the standard library
alone. A rule of iptables hands it packets by NFQUEUE, over a raw netlink socket (linux/nfnetlink_queue.h); it
gives each back with a verdict. It says ``ready`` when it is bound to its queue, and then, at most once a
second and when it ends, a line ``counts {...}``. When it is told to end, what it holds goes on its way.

`wrackline.nemesis.faults.network.packets` starts it and reads what it says.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import random
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

AF_NETLINK, NETLINK_NETFILTER, SOL_NETLINK, NETLINK_NO_ENOBUFS = 16, 12, 270, 5
SO_MARK, SO_RCVBUFFORCE = 36, 33
REQUEST, ACK, ERROR = 1, 4, 2
QUEUE = 3 << 8
PACKET, VERDICT, CONFIG = QUEUE, QUEUE | 1, QUEUE | 2
COMMAND, PARAMETERS, MAXLEN, MASK, FLAGS = 1, 2, 3, 4, 5
BIND, COPY_PACKET, FAIL_OPEN = 1, 2, 1
PACKET_HEADER, VERDICT_HEADER, PAYLOAD = 1, 2, 10
DROP, ACCEPT = 0, 1
HELD = 16384
"""Packets that the kernel keeps for us at most; those beyond pass unharmed."""
BACKLOG_S = 1.0
"""With a rate: what would have to wait longer than this is dropped, as the full queue of a router does."""
SAY_S = 1.0
COUNTED = (
    *("seen", "bytes", "delayed", "delay_s", "lost", "corrupted", "duplicated", "overtook"),
    "overflowed",
)


class Queue:
    """One queue of the kernel."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.socket = socket.socket(AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.socket.bind((0, 0))
        self.socket.setsockopt(SOL_NETLINK, NETLINK_NO_ENOBUFS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        self.configure(COMMAND, struct.pack("!BxH", BIND, 0))
        self.configure(PARAMETERS, struct.pack("!IB", 0xFFFF, COPY_PACKET))
        self.configure(MAXLEN, struct.pack("!I", HELD))
        self.configure(FLAGS, struct.pack("!I", FAIL_OPEN), attribute(MASK, struct.pack("!I", FAIL_OPEN)))
        self.socket.setblocking(False)

    def configure(self, kind: int, value: bytes, more: bytes = b"") -> None:
        self.send(CONFIG, attribute(kind, value) + more, REQUEST | ACK)
        answer = self.socket.recv(65536)
        [code] = struct.unpack_from("=i", answer, 16)
        if struct.unpack_from("=H", answer, 4)[0] == ERROR and code:
            raise OSError(-code, f"queue {self.number}: the kernel refused setting {kind}")

    def send(self, kind: int, body: bytes, flags: int = REQUEST) -> None:
        head = struct.pack("=BBH", 0, 0, socket.htons(self.number))
        self.socket.send(struct.pack("=IHHII", 16 + len(head) + len(body), kind, flags, 0, 0) + head + body)

    def verdict(self, packet: int, what: int, payload: bytes | None = None) -> None:
        body = attribute(VERDICT_HEADER, struct.pack("!II", what, packet))
        if payload is not None:
            body += attribute(PAYLOAD, payload)
        with contextlib.suppress(OSError):  # the device of the packet may be gone
            self.send(VERDICT, body)

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """(id, bytes) of what has come."""
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if length < 16:
                return
            if kind == PACKET:
                fields = attributes(data[at + 20 : at + length])
                if PACKET_HEADER in fields:
                    yield struct.unpack_from("!I", fields[PACKET_HEADER])[0], fields.get(PAYLOAD, b"")
            at += (length + 3) & ~3


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    result: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        result[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return result


class Road:
    """The path of packets through the program."""

    def __init__(self, settings: dict[str, Any], queue: Queue) -> None:
        self.settings = settings
        self.queue = queue
        self.chance = random.Random(settings["seed"])
        # (when, number, packet, payload that goes instead or None, copy to send or None)
        self.held: list[tuple[float, float, int, bytes | None, bytes | None]] = []
        self.free_at = 0.0
        self.counts: dict[str, float] = dict.fromkeys(COUNTED, 0)
        self.copies = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.copies.setsockopt(socket.SOL_SOCKET, SO_MARK, settings["mark"])

    def hit(self, setting: str) -> bool:
        share: float = self.settings[setting]
        return share > 0 and self.chance.random() < share

    def take(self, packet: int, data: bytes, now: float) -> None:
        counts = self.counts
        counts["seen"] += 1
        counts["bytes"] += len(data)
        if self.hit("loss"):
            counts["lost"] += 1
            self.queue.verdict(packet, DROP)
            return
        leaves = now
        if self.settings["rate_bytes_s"]:
            leaves = max(now, self.free_at)
            if leaves - now > BACKLOG_S:
                counts["overflowed"] += 1
                self.queue.verdict(packet, DROP)
                return
            leaves = self.free_at = leaves + len(data) / self.settings["rate_bytes_s"]
        if self.settings["delay_s"] and self.hit("reorder"):
            counts["overtook"] += 1
        else:
            jitter = self.chance.uniform(-1, 1) * self.settings["jitter_s"]
            leaves += max(0.0, self.settings["delay_s"] + jitter)
        damaged = None
        if self.hit("corrupt"):
            damaged = self.damaged(data)
            counts["corrupted"] += 1
        copy = None
        if self.hit("duplicate"):
            copy = data if damaged is None else damaged
            counts["duplicated"] += 1
        if leaves > now:
            counts["delayed"] += 1
            counts["delay_s"] += leaves - now
            heapq.heappush(self.held, (leaves, counts["seen"], packet, damaged, copy))
        else:
            self.go(packet, damaged, copy)

    def damaged(self, data: bytes) -> bytes:
        """One bit behind the header of IP is another: what is covered by the checksum of TCP."""
        spoilt = bytearray(data)
        first = min((data[0] & 15) * 4, len(data) - 1)
        spoilt[self.chance.randrange(first, len(data))] ^= 1 << self.chance.randrange(8)
        return bytes(spoilt)

    def go(self, packet: int, damaged: bytes | None, copy: bytes | None) -> None:
        self.queue.verdict(packet, ACCEPT, damaged)
        if copy is not None:
            with contextlib.suppress(OSError):  # a firewall of others, or no route
                self.copies.sendto(copy, (socket.inet_ntoa(copy[16:20]), 0))

    def release(self, until: float) -> None:
        while self.held and self.held[0][0] <= until:
            _, _, packet, damaged, copy = heapq.heappop(self.held)
            self.go(packet, damaged, copy)

    def wait_s(self, now: float) -> float:
        return min(max(0.0, self.held[0][0] - now), SAY_S) if self.held else SAY_S


def main(settings: dict[str, Any]) -> None:
    over: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.append(True))
    waker, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    queue = Queue(settings["queue"])
    road = Road(settings, queue)
    print("ready", flush=True)
    said, said_at = 0.0, time.monotonic()
    while not over:
        select.select([queue.socket, waker], [], [], road.wait_s(time.monotonic()))
        now = time.monotonic()
        for packet, data in queue.packets():
            road.take(packet, data, now)
        road.release(time.monotonic())
        if now - said_at >= SAY_S and road.counts["seen"] != said:
            said, said_at = road.counts["seen"], now
            print("counts", json.dumps(road.counts), flush=True)
    road.release(float("inf"))
    for packet, _ in queue.packets():
        queue.verdict(packet, ACCEPT)
    print("counts", json.dumps(road.counts), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
