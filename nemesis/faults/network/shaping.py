"""Shaping of the packets on their way out of a host: netem where the kernel has it, else a program of ours.

Text in, text out. On a device the kernel's own queueing discipline is replaced by bands; packets that a
filter knows go to the last of them, which is netem (tc-netem(8)), all others pass as before. Where the kernel
has no netem, a rule of iptables hands the packets to `packet_program` by NFQUEUE; it is ready before the rule
is there, and when it is killed packets pass.
"""

from __future__ import annotations

import json
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.iptables import LEAVING, Rule
from wrackline.nemesis.faults.shapes import Flow
from wrackline.nemesis.faults.steps import Target

NAME = "packets"
"""Of the program, and of its folder."""
BANDS, NETEM = "57ac", "57ad"
"""Handles of the disciplines that are ours."""
MARK = 0x57AC
"""Of packets that the program sends itself: they do not come to it again."""
_PROGRAM = Path(__file__).with_name("packet_program.py")
_QDISC = re.compile(
    rf"qdisc netem {NETEM}:.*?\n\s*Sent (\d+) bytes (\d+) pkt \(dropped (\d+), overlimits (\d+)", re.DOTALL
)
_MTU = 1500


@dataclass(frozen=True, slots=True)
class Shaping:
    """Shares are of all packets that are meant, 0 to 1."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Each packet is held back for ``delay_s`` and up to so much more or less, alike likely."""
    loss: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    """One bit is another."""
    reorder: float = 0.0
    """Not held back: these overtake the others."""
    rate_kbit: int = 0
    """So much passes in a second; 0: whatever comes."""

    def netem(self) -> str:
        """Returns the parameters as tc(8) wants them."""
        words = []
        if self.delay_s:
            words.append(f"delay {self.delay_s * 1000:g}ms")
            words += [f"{self.jitter_s * 1000:g}ms"] if self.jitter_s else []
        for word in ("loss", "duplicate", "corrupt", "reorder"):
            if share := getattr(self, word):
                words.append(f"{word} {share * 100:g}%")
        if self.rate_kbit:
            words.append(f"rate {self.rate_kbit}kbit")
        return f"limit {self._limit()} {' '.join(words)}"

    def _limit(self) -> int:
        """Packets that netem may hold: with a rate those of about a second, as our program does."""
        if not self.rate_kbit:
            return 100_000
        return max(50, round(self.rate_kbit * 125 / _MTU * (1 + self.delay_s + self.jitter_s)))

    def settings(self, fault_id: str, host: str) -> str:
        """Returns the settings of the program."""
        own = asdict(self)
        rate_kbit = own.pop("rate_kbit")
        ours = {"queue": queue_number(fault_id), "mark": MARK, "seed": f"{fault_id} {host}"}
        return json.dumps({**ours, **own, "rate_bytes_s": rate_kbit * 125})


def queue_number(fault_id: str) -> int:
    return 1000 + zlib.crc32(fault_id.encode()) % 60000


@dataclass(frozen=True, slots=True)
class Leaving:
    """The packets that match, of those that a host sends."""

    host: Target
    flows: tuple[Flow, ...]
    inside: tuple[Target, ...] = ()
    """All hosts of the system, where what the broker sends to clients is meant too: to everybody else."""

    def rules(self, fault_id: str) -> list[Rule]:
        queue = f"NFQUEUE --queue-num {queue_number(fault_id)} --queue-bypass"
        rules = [
            Rule("-o lo", "inside", "RETURN"),
            *([Rule(f"! -s {self.host.address}/32", "others", "RETURN")] if self.host.hands_on else []),
            Rule(f"-m mark --mark {MARK:#x}", "copies", "RETURN"),
        ]
        rules += [
            Rule(f"-d {flow.receiver.address}/32{match}", flow.way, queue)
            for flow in self.flows
            for match in flow.matches()
        ]
        if self.inside:
            others = [one for one in self.inside if one != self.host]
            rules += [Rule(f"-d {one.address}/32", "inside", "RETURN") for one in others]
            rules.append(Rule(f"-p tcp --sport {self.host.port}", f"{self.host.host}>clients", queue))
        return rules

    def filters(self) -> list[str]:
        """Returns the filters of tc, in their order: what matches goes to the last band, hosts of the system
        else to the usual one."""
        filters = []
        for flow in self.flows:
            to = f"match ip dst {flow.receiver.address}/32"
            if flow.asked is None:
                filters.append(f"pref 1 u32 {to} flowid {BANDS}:4")
                continue
            tcp = f"{to} match ip protocol 6 0xff"
            sides = [("dport", port) for port in flow.asked] + [("sport", port) for port in flow.answered]
            filters += [
                f"pref 1 u32 {tcp} match ip {side} {port} 0xffff flowid {BANDS}:4" for side, port in sides
            ]
        if self.inside:
            filters += [
                f"pref 2 u32 match ip dst {one.address}/32 flowid {BANDS}:2"
                for one in self.inside
                if one != self.host
            ]
            broker = f"match ip protocol 6 0xff match ip sport {self.host.port} 0xffff"
            filters.append(f"pref 3 u32 {broker} flowid {BANDS}:4")
        return filters


def put_on(fault_id: str, leaving: Leaving, shaping: Shaping) -> str:
    """Returns the command that shapes packets, whatever the host's kernel has. Fails when another fault has
    the host's packets already."""
    host, where = leaving.host, leaving.host.programs
    here = programs.folder(fault_id, NAME, where)
    run = f"exec {programs.python_command(host.python, _PROGRAM, shaping.settings(fault_id, host.host))}"
    filters = " &&\n  ".join(
        f"tc filter add dev $dev parent {BANDS}: protocol ip {one}" for one in leaving.filters()
    )
    return "\n".join(
        (
            f"for other in $(ls -d {where}/*/{NAME} 2>/dev/null | grep -v -e /{fault_id}/); do",
            '  echo "$other: another fault has the packets of this host; one must end before the next" >&2',
            "  exit 1",
            "done",
            f"dev=$(ip -o -4 addr show to {host.address}/32 | awk '{{print $2; exit}}')",
            f"[ -n \"$dev\" ] || {{ echo 'no device of this host has {host.address}' >&2; exit 1; }}",
            "modprobe -qa sch_netem sch_prio cls_u32 2>/dev/null",
            # The kernel's own map of priorities to bands, and a fourth band that only filters choose.
            f"if tc qdisc add dev $dev root handle {BANDS}: prio bands 4 "
            "priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 2>/dev/null &&",
            f"  tc qdisc add dev $dev parent {BANDS}:4 handle {NETEM}: netem {shaping.netem()} 2>/dev/null",
            f'then mkdir -p {here} && echo "ready netem $dev" >{here}/log && {filters}',
            "else",
            f"  {_take_bands('$dev')}",
            f"  {{ {programs.start(fault_id, NAME, run, ready='^ready', where=where)}; }} &&",
            iptables.install(fault_id, leaving.rules(fault_id), LEAVING),
            "fi",
        )
    )


def take_off(fault_id: str, host: Target) -> str:
    """Idempotent. Prints what the program counted."""
    here = programs.folder(fault_id, NAME, host.programs)
    return (
        f"{iptables.remove(fault_id, LEAVING)} || exit 1; "
        f"dev=$(sed -n 's/^ready netem //p' {here}/log 2>/dev/null); "
        f'[ -z "$dev" ] || {{ tc -s qdisc show dev $dev; {_take_bands("$dev")}; }}; '
        f"{programs.end(fault_id, NAME, where=host.programs)}"
    )


def _take_bands(device: str) -> str:
    return (
        f"if tc qdisc show dev {device} 2>/dev/null | grep -q 'qdisc prio {BANDS}: root'; "
        f"then tc qdisc del dev {device} root; fi"
    )


LIST_BANDS = (
    "command -v tc >/dev/null || exit 0; "
    f"tc qdisc show | sed -n 's/^qdisc prio {BANDS}: dev \\([^ ]*\\) root .*/\\1/p'"
)
"""Prints the devices of a host that have our bands, one a line."""


def remove_bands(device: str) -> str:
    return _take_bands(shlex.quote(device))


def look(fault_id: str, host: Target) -> str:
    """Returns the command that shows what stands in the way of our rules, what was counted, and what this
    host's TCP has seen."""
    here = programs.folder(fault_id, NAME, host.programs)
    return (
        f"{iptables.look(fault_id, LEAVING)}; echo; {programs.log(fault_id, NAME, host.programs)}; "
        f"dev=$(sed -n 's/^ready netem //p' {here}/log 2>/dev/null); "
        f'[ -z "$dev" ] || tc -s qdisc show dev $dev; {TCP_COUNTERS}'
    )


TCP_COUNTERS = "grep -h -e ^Tcp: -e ^TcpExt: /proc/net/snmp /proc/net/netstat"


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of one host's netem, or program, so far."""

    seen: int
    lost: int
    by_netem: bool
    more: Mapping[str, float]
    """What the program counts besides; netem does not tell."""


def counted(outputs: Sequence[str]) -> Counted | None:
    """The last and greatest count of these outputs of a host; None when there is none."""
    best: Counted | None = None
    for output in outputs:
        for line in output.splitlines():
            if line.startswith("counts {"):
                said = json.loads(line.removeprefix("counts "))
                result = Counted(int(said["seen"]), int(said["lost"]), False, said)
                best = result if best is None or result.seen >= best.seen else best
        for sent in _QDISC.finditer(output):
            passed, lost = int(sent[2]), int(sent[3])
            netem = Counted(passed + lost, lost, True, {"bytes": float(sent[1])})
            best = netem if best is None or netem.seen >= best.seen else best
    return best


def tcp_counter(output: str, name: str) -> int | None:
    """``InCsumErrors`` and the like, by what `TCP_COUNTERS` printed."""
    names: list[str] = []
    for line in output.splitlines():
        if not line.startswith(("Tcp:", "TcpExt:")):
            continue
        words = line.split()
        if names and len(words) == len(names) and name in names and words[1].lstrip("-").isdigit():
            return int(words[names.index(name)])
        names = words
    return None
