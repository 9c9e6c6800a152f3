"""The program on a host while messages are held, dropped or repeated there: a proxy that knows frames of
Kafka.

Started with ``python -I -S -c``, this text and its settings as JSON, and therefore on the standard library
alone. New connections to the ports of the node come to it by a rule of iptables; it makes one to the node for
each, from the address `settings["own"]`, and hands frames on in their order. Of a frame it reads the length,
and of a request the key, the version, the correlation id and the name of the client. A request that is held
holds those behind it, and so does an answer: so does TCP.

It says ``ready`` when it listens, then, at most once a second and when it ends, a line ``counts {...}``. When
it is told to end, what it holds goes on its way, and then its connections are closed.

`wrackline.nemesis.faults.network.messages` starts it and reads what it says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import struct
import sys
import time
from collections import deque
from typing import Any

LONGEST = 1 << 28
"""A frame that says it is longer is none of Kafka: its connection is handed on as it comes."""
LAST_S = 0.5
"""What was held goes on its way at the end; so long after that its answers may come."""
PROOF = (17, 36)
"""SaslHandshake and SaslAuthenticate."""
SAY_S = 1.0
SHOWN = 20
"""So many acts are told one by one."""


class Frame:
    """A request as it went, until its answer has."""

    __slots__ = ("api", "client", "correlation", "dropped")

    def __init__(self, data: bytes) -> None:
        self.api, _, self.correlation = struct.unpack_from("!hhi", data)
        self.client = ""
        self.dropped = False
        if len(data) >= 10:
            [length] = struct.unpack_from("!h", data, 8)
            self.client = data[10 : 10 + max(0, length)].decode("utf-8", "replace")


class Counts:
    """Counts of all messages of the program."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.connections = 0
        self.passed = 0
        self.such = 0
        self.did = 0
        self.delivered = 0
        self.unread = 0
        self.holding = 0
        self.held_s = 0.0
        self.longest_s = 0.0
        self.acts: list[str] = []
        self.said = ""

    def say(self) -> None:
        counted = {name: value for name, value in vars(self).items() if name not in ("began", "said")}
        text = json.dumps(counted)
        if text != self.said:
            self.said = text
            print("counts", text, flush=True)


class Rule:
    """A rule: which messages match, and what is done to them."""

    def __init__(self, settings: dict[str, Any], counts: Counts) -> None:
        self.apis: dict[int, str] = {int(key): name for key, name in settings["apis"].items()}
        self.what: str = settings["what"]
        self.act: str = settings["act"]
        self.delay_s: float = settings["delay_s"]
        self.times: int = settings["times"]
        self.share: float = settings["share"]
        self.peers: dict[str, str] = settings["peers"]
        self.chance = random.Random(settings["seed"])
        self.counts = counts
        self.over = asyncio.Event()

    def of(self, what: str, frame: Frame | None, peer: str) -> str | None:
        """Returns what is to be done to a message; None: it passes."""
        if self.over.is_set() or what != self.what or frame is None or frame.api not in self.apis:
            return None
        self.counts.such += 1
        if (self.times and self.counts.did >= self.times) or self.chance.random() >= self.share:
            return None
        self.counts.did += 1
        if len(self.counts.acts) < SHOWN:
            at_s = time.monotonic() - self.counts.began
            who = self.peers.get(peer.rpartition(":")[0], peer)
            name = f"{self.apis[frame.api]} {what} {frame.correlation}"
            self.counts.acts.append(f"{at_s:.3f} s: {name} of {who} ({frame.client})")
        return self.act

    async def hold(self) -> None:
        began = time.monotonic()
        self.counts.holding += 1
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.over.wait(), self.delay_s or None)
        took_s = time.monotonic() - began
        self.counts.holding -= 1
        self.counts.held_s += took_s
        self.counts.longest_s = max(self.counts.longest_s, took_s)


async def frame_of(reader: asyncio.StreamReader) -> bytes | None:
    """One frame, without its length; None at the end of the connection. Raises ValueError for what is no
    frame."""
    try:
        head = await reader.readexactly(4)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ValueError from error
        return None
    [length] = struct.unpack("!i", head)
    if not 4 <= length <= LONGEST:
        raise ValueError(head)
    return await reader.readexactly(length)


async def give(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.writelines((struct.pack("!i", len(data)), data))
    await writer.drain()


class Connection:
    """One of a peer, and ours to the node."""

    def __init__(self, proxy: Proxy, node: tuple[str, int], reader: Any, writer: Any) -> None:
        self.proxy = proxy
        self.rule = proxy.rule
        self.counts = proxy.counts
        self.node = node
        self.reader: asyncio.StreamReader = reader
        self.writer: asyncio.StreamWriter = writer
        address, port = writer.get_extra_info("peername")[:2]
        self.peer = f"{address}:{port}"
        self.sent: deque[Frame] = deque(maxlen=10_000)
        self.proof: list[bytes] = []
        """By what the peer has proved who it is (SASL): without it the node takes none of its requests."""
        self.silent = False
        """The node was not asked something: no later answer may go out, for they come in order."""

    async def run(self) -> None:
        try:
            node_reader, node_writer = await self.proxy.connected(self.node)
        except OSError:
            self.writer.transport.abort()
            return
        ways = (self.requests(node_writer), self.answers(node_reader))
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0].done() and not tasks[0].exception() and not tasks[1].done():
                with contextlib.suppress(OSError, RuntimeError):
                    node_writer.write_eof()
                await asyncio.wait(tasks, timeout=LAST_S)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in (self.writer, node_writer):
                writer.close()

    async def requests(self, writer: asyncio.StreamWriter) -> None:
        try:
            while (data := await frame_of(self.reader)) is not None:
                frame = Frame(data) if len(data) >= 8 else None
                if frame is not None and frame.api in PROOF:
                    self.proof.append(data)
                act = self.rule.of("request", frame, self.peer)
                if act == "close":
                    raise ConnectionResetError
                if act == "hold":
                    await self.rule.hold()
                    self.counts.delivered += 1
                if frame is not None:
                    frame.dropped = act == "drop"
                    self.sent.append(frame)
                if act == "drop":
                    continue
                if act == "repeat":
                    self.proxy.later(self.again(data))
                self.counts.passed += act is None
                await give(writer, data)
        except ValueError as strange:
            await self.hand_on(strange, self.reader, writer)

    async def hand_on(self, strange: ValueError, reader: Any, writer: Any) -> None:
        """What is no frame, and all that follows it, goes on as it comes."""
        self.counts.unread += 1
        writer.write(strange.args[0] if strange.args else b"")
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()

    async def again(self, data: bytes) -> None:
        """The same request once more, on a connection of its own, as of a client that asks again; nobody is
        given the answer."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.rule.over.wait(), self.rule.delay_s or 0.001)
        lost = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.TimeoutError)
        with contextlib.suppress(*lost):
            reader, writer = await self.proxy.connected(self.node)
            for said in self.proof:
                await give(writer, said)
                await asyncio.wait_for(frame_of(reader), 10)
            await give(writer, data)
            self.counts.delivered += 1
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(frame_of(reader), 10)
            writer.close()

    async def answers(self, reader: asyncio.StreamReader) -> None:
        try:
            while (data := await frame_of(reader)) is not None:
                act = self.rule.of("answer", self.asked(data), self.peer)
                if act == "close":
                    raise ConnectionResetError
                if act == "hold":
                    await self.rule.hold()
                    self.counts.delivered += 1
                self.silent |= act == "drop"
                if self.silent:
                    continue
                self.counts.passed += act is None
                await give(self.writer, data)
        except ValueError as strange:
            await self.hand_on(strange, reader, self.writer)

    def asked(self, data: bytes) -> Frame | None:
        """Returns the request that this is the answer to. Requests before it have none (records with acks=0),
        or were dropped."""
        [correlation] = struct.unpack_from("!i", data)
        if not any(frame.correlation == correlation for frame in self.sent):
            return None
        while True:
            frame = self.sent.popleft()
            if frame.correlation == correlation and not frame.dropped:
                return frame
            self.silent |= frame.dropped


class Proxy:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.counts = Counts()
        self.rule = Rule(settings, self.counts)
        self.own: str = settings["own"]
        self.address: str = settings["address"]
        self.tasks: set[asyncio.Future[None]] = set()

    async def connected(self, node: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*node, local_addr=(self.own, 0))

    def later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def serve(self, port: int, local_port: int) -> asyncio.AbstractServer:
        async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.counts.connections += 1
            self.later(Connection(self, (self.address, port), reader, writer).run())

        return await asyncio.start_server(come, "0.0.0.0", local_port, backlog=512)


async def main(settings: dict[str, Any]) -> None:
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    proxy = Proxy(settings)
    servers = [await proxy.serve(int(port), ours) for port, ours in settings["ports"].items()]
    print("ready", flush=True)
    while not over.is_set():
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over.wait(), SAY_S)
        proxy.counts.say()
    proxy.rule.over.set()
    for server in servers:
        server.close()
    await asyncio.sleep(LAST_S)
    for task in list(proxy.tasks):
        task.cancel()
    await asyncio.gather(*proxy.tasks, return_exceptions=True)
    proxy.counts.say()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
