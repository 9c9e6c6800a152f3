"""Knocking by TCP: does anybody answer on a way that should be cut?

The kernel of a host answers, whatever its processes do: a port that nobody listens at refuses, which is an
answer like a connection. So silence means that a packet was lost, the SYN or its answer; or that the host at
the other end is dead, which is why a knock is only worth something when the same one is answered without the
cut.
"""

from __future__ import annotations

import errno
import inspect
import shlex
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wrackline.nemesis.faults.steps import StepResult, TcpProbe, TcpProbeFrom

ANSWERS = ("connected", "refused", "ECONNRESET")
"""Everything else is no answer: ``silence``, ``EHOSTUNREACH``."""
RTT_AT = 68
"""Where ``tcpi_rtt`` is in what TCP_INFO gives (linux/tcp.h), in microseconds: what the kernel itself has
measured from the SYN to its answer, however slowly the program runs that probes."""


def probe_tcp(address: str, port: int, wait_s: float, rtt_at: int) -> str:
    """Tries a connection: what came of it, and after how many seconds. Its text runs on hosts, too."""
    began, rtt_s = time.monotonic(), 0.0
    try:
        with socket.create_connection((address, port), wait_s) as it:
            answer = "connected"
            info = it.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, rtt_at + 4)
            rtt_s = struct.unpack_from("=I", info, rtt_at)[0] / 1e6
    except socket.timeout:  # noqa: UP041 - the Python of a host may be older than ours
        answer = "silence"
    except ConnectionRefusedError:
        answer = "refused"
    except OSError as error:
        answer = errno.errorcode.get(error.errno or 0, "error")
    return f"{answer} {rtt_s or time.monotonic() - began:.4f}"


_PROGRAM = f"""\
import errno, socket, struct, threading, time
{inspect.getsource(probe_tcp)}
def run(name, address, port):
    print(name + " " + probe_tcp(address, int(port), WAIT_S, {RTT_AT}) + "\\n", end="", flush=True)
for way in WAYS:
    threading.Thread(target=run, args=way.split()).start()
"""


def command(step: TcpProbeFrom, python: str) -> str:
    """The command that probes from a host. It prints a line for each way: ``n1>n2:9092 silence 0.3001``."""
    ways = [f"{way.name} {way.address} {way.port}" for way in step.ways]
    program = _PROGRAM.replace("WAIT_S", f"{step.wait_s:g}").replace("WAYS", repr(ways))
    return f"{shlex.quote(python)} -I -S -c {shlex.quote(program)}"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    way: str
    host: str
    """The host that knocked, or was knocked at from the control node."""
    answer: str
    took_s: float | None = None
    """None: nobody measured."""

    @property
    def answered(self) -> bool:
        return self.answer in ANSWERS


def probe_results(dones: Iterable[StepResult], clients: str) -> list[ProbeResult]:
    """Returns the result of every TCP probe of these steps; ``clients``: the name of those who probe from the
    control node."""
    result = []
    for done in dones:
        if done.error or done.skipped:
            continue
        match done.step:
            case TcpProbe(host=host, port=port):
                result.append(_result(f"{clients}>{host}:{port}", host, done.output.split()))
            case TcpProbeFrom(host=host):
                lines = (line.split() for line in done.output.splitlines())
                result += [_result(line[0], host, line[1:]) for line in lines if len(line) >= 2]
            case _:
                pass
    return result


def unanswered(dones: Iterable[StepResult], clients: str) -> list[str]:
    """The ways of these knocks on which nobody answered, or that could not be tried; none from a host without
    power."""
    tried = [done for done in dones if not done.skipped]
    ways: set[str] = set()
    for done in tried:
        match done.step:
            case TcpProbe(host=host, port=port):
                ways.add(f"{clients}>{host}:{port}")
            case TcpProbeFrom(ways=named):
                ways |= {way.name for way in named}
            case _:
                pass
    return sorted(ways - {one.way for one in probe_results(tried, clients) if one.answered})


def _result(way: str, host: str, said: Sequence[str]) -> ProbeResult:
    return ProbeResult(way, host, said[0] if said else "", float(said[1]) if len(said) > 1 else None)
