"""A controller and a broker that are sent wrong frames, one connection each: which of them ended a node, or
held it up?"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import NewTopic

from tests.broker.clients.loopback import Cluster, Node
from tests.broker.wire.samples import AnyNode
from wrackline.broker.model.types import NodeId
from wrackline.broker.wire.api import Listener
from wrackline.broker.wire.codec import Caller, Codec, Incoming
from wrackline.broker.wire.schema import WireError

_AT_ONCE = 64
"""Connections open at a time: answers come meanwhile, and the oldest goes. Every so many the nodes are looked
at."""
_TOPICS = (
    "of-aiokafka",
    "of-franz-go",
    "of-java",
    "of-kafka-python",
    "of-kcat",
    "of-librdkafka",
    "some",
    "upset",
)
"""What recorded frames and examples speak of: they are to get past the question whether there is such a
topic."""
_ANSWER_S = 30.0
_ALONE_S = 1.0
"""Given to each frame when they are sent again one by one."""
_RAISED = re.compile(r"[A-Za-z_.]+(Error|Exception)\b")
_SIZE = struct.Struct(">i")
_READER = Codec(names=lambda _: "topic")
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)


@dataclass(frozen=True, slots=True)
class Shot:
    listener: Listener
    number: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class Hit:
    """What a frame did, or, when no single one does it again, what the last of several did together."""

    number: int
    what: str


class UnderFire:
    """``start`` gives a new cluster, on an empty disk; ``fire`` sends, ``hits`` tells what came of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = 0
        self._cluster: Cluster | None = None
        self._open: deque[socket.socket] = deque()
        self._since: list[Shot] = []
        self.longest_silence_s = 0.0

    def start(self) -> None:
        self.close()
        self._started += 1
        folder = self._folder / f"{self._started}"
        self._cluster = Cluster(folder, brokers=1, controller_keys={"min_insync_replicas": 1})
        self._cluster.__enter__()
        made = self._cluster.admin().create_topics([NewTopic(topic, 3, 1) for topic in _TOPICS])
        for future in made.values():
            future.result(_ANSWER_S)
        self.longest_silence_s = 0.0

    def close(self) -> None:
        while self._open:
            self._open.popleft().close()
        self._since.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def node(self, kind: str) -> Node:
        assert self._cluster is not None, "started"
        return self._cluster.controller if kind == "controller" else self._cluster.brokers[1]

    @property
    def largest_mib(self) -> int:
        """The most memory a node has ever had."""
        found = 0
        for kind in ("broker", "controller"):
            process = self.node(kind).process
            assert process is not None
            status = Path(f"/proc/{process.pid}/status")
            lines = status.read_text().splitlines() if status.exists() else []
            found = max([found, *(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))])
        return found

    def fire(self, shot: Shot) -> None:
        self._since.append(shot)
        try:
            sock = self._shoot(shot)
        except OSError:
            return  # ``hits`` will see whether the node is there
        self._open.append(sock)
        if len(self._open) > _AT_ONCE:
            self._open.popleft().close()

    def _shoot(self, shot: Shot) -> socket.socket:
        """Where nodes ask, as the node that the frame speaks for."""
        node = self.node("controller" if shot.listener is Listener.CONTROLLER else "broker")
        port = node.replication_port if shot.listener is Listener.REPLICATION else node.port
        greeting = b"" if shot.listener is Listener.CLIENT else node.secret.greeting(speaker(shot))
        sock = socket.create_connection(("127.0.0.1", port), _ANSWER_S)
        sock.sendall(greeting + _SIZE.pack(len(shot.frame)) + shot.frame)
        return sock

    def hits(self, *, at_last: bool = False) -> list[Hit]:
        """Looks at the nodes after every so many frames, and in any case with ``at_last``."""
        if len(self._since) < _AT_ONCE and not at_last:
            return []
        if at_last:
            time.sleep(_ALONE_S)  # what a frame has set off may take its time
        trouble = self._trouble()
        if trouble is None:
            self._since.clear()
            return []
        suspects = list(self._since)
        found = self._one_by_one(suspects)
        self.start()
        return found or [
            Hit(suspects[-1].number, f"{trouble}, after the {len(suspects)} up to this, not after one alone")
        ]

    def _one_by_one(self, suspects: list[Shot]) -> list[Hit]:
        found = []
        self.start()
        for shot in suspects:
            with self._shoot(shot) as sock:
                sock.settimeout(_ALONE_S)
                with suppress(OSError):
                    sock.recv(1)
            trouble = self._trouble()
            if trouble is not None:
                found.append(Hit(shot.number, f"{trouble} ({shot.listener.value}): {shot.frame.hex()}"))
                self.start()
        return found

    def _trouble(self) -> str | None:
        for kind in ("broker", "controller"):
            node = self.node(kind)
            begun = time.monotonic()
            try:
                self._ask(node)
            except OSError as failure:
                time.sleep(_ALONE_S)  # who is about to end has closed its port before
                if node.running:
                    try:
                        self._ask(node)
                    except OSError as again:
                        last = _last_line(node)
                        return f"the {kind} does not answer: {failure}, {again}; it said last: {last}"
            self.longest_silence_s = max(self.longest_silence_s, time.monotonic() - begun)
            if not node.running:
                return f"the {kind} ended with {node.wait()}: {_last_line(node)}"
        return None

    @staticmethod
    def _ask(node: Node) -> None:
        with socket.create_connection(("127.0.0.1", node.port), _ANSWER_S) as sock:
            sock.sendall(_API_VERSIONS)
            sock.settimeout(_ANSWER_S)
            if len(sock.recv(4, socket.MSG_WAITALL)) < 4:
                raise OSError("the connection was closed")


def speaker(shot: Shot) -> NodeId:
    """1 where the frame says nothing of it, or cannot be read."""
    with suppress(WireError):
        decoded = _READER.decode_request(shot.frame, Caller(shot.listener, AnyNode()))
        if isinstance(decoded, Incoming):
            return max(1, decoded.api.speaks_for(decoded.request))
    return 1


def _last_line(node: Node) -> str:
    """Of its log, or of the last traceback in it: other connections go on to be told of behind that."""
    said = [line for line in node.log.read_text().splitlines() if line.strip()]
    raised = [line for line in said if _RAISED.match(line)]
    return (raised or said or [""])[-1]
