"""A watcher of packets from outside: numbered datagrams from one host to another, which sends them back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as count_from

from wrackline.fleets.base import Fleet, Host

PORTS = count_from(9999)
"""A port of its own for each watch: packets that a fault holds back arrive when the next has begun."""
_ECHO = """
import json, socket, time
it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
it.bind(("", PORT))
it.settimeout(10)
came = []
print("up", flush=True)
try:
    while True:
        data, who = it.recvfrom(65536)
        it.settimeout(2)
        if data == b"end":
            raise TimeoutError
        came.append([int(data[:8]), time.monotonic()])
        it.sendto(data[:8], who)
except TimeoutError:
    print(json.dumps(came))
"""
_SEND = """
import json, socket, time
it = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
it.connect(("ADDRESS", PORT))
it.setblocking(False)
left, back = {}, {}
def listen(until):
    while (rest := until - time.monotonic()) > 0:
        it.settimeout(rest)
        try:
            number = int(it.recv(100))
        except (TimeoutError, BlockingIOError, ConnectionRefusedError):
            continue
        back.setdefault(number, time.monotonic() - left[number])
listen(time.monotonic() + 0.3)
for number in range(COUNT):
    left[number] = time.monotonic()
    it.settimeout(5)
    it.send(b"%08d" % number + b"x" * (SIZE - 8))
    listen(time.monotonic() + PAUSE)
listen(time.monotonic() + 0.5)
try:
    for _ in range(5):
        it.send(b"end")
except ConnectionRefusedError:
    pass  # it has heard the first
print(json.dumps(list(back.values())))
"""


@dataclass(frozen=True)
class Watched:
    numbers: Sequence[int]
    """As they came."""
    spread_s: float
    """Between the first that came and the last."""
    round_trips_s: Sequence[float]

    @property
    def overtaken(self) -> int:
        return sum(one > other for one, other in zip(self.numbers, self.numbers[1:], strict=False))

    @property
    def repeated(self) -> int:
        return len(self.numbers) - len(set(self.numbers))


def watch(
    fleet: Fleet, source: Host, target: Host, *, count: int, size: int = 100, pause_s: float = 0.002
) -> Watched:
    sender = _SEND.replace("ADDRESS", target.address).replace("COUNT", str(count)).replace("SIZE", str(size))
    sender = sender.replace("PAUSE", str(pause_s))
    port = str(next(PORTS))

    def run(host: Host, program: str) -> str:
        text = shlex.quote(program.replace("PORT", port))
        return fleet.remote(host).run(f"python3 -c {text}", timeout_s=40).stdout

    with ThreadPoolExecutor(1) as pool:
        echo = pool.submit(run, target, _ECHO)
        fleet.remote(target).run(f"until ss -Huln 'sport = :{port}' | grep -q .; do sleep 0.05; done")
        back = json.loads(run(source, sender))
        came = json.loads(echo.result().splitlines()[-1])
    times = [at for _, at in came]
    spread_s = times[-1] - times[0] if times else 0.0
    return Watched([number for number, _ in came], spread_s, back)
