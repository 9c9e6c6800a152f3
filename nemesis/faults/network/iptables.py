"""Our own tagged iptables chains: text in, text out.

Each fault has one chain per host, ``WRACK-<fault id>``, entered from INPUT and OUTPUT (or from the chains of
another table, see `Place`). Undoing a fault removes its chain and nothing else: no rule of anybody else is
ever touched, and nothing is ever flushed but our chain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PREFIX = "WRACK-"
_FAULT_ID = re.compile(r"[A-Za-z0-9_.]{1,20}")
_COUNTER = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\S+)\s.*?/\*\s(.*?)\s\*/")


@dataclass(frozen=True, slots=True)
class Place:
    """The built-in chain from which a chain of ours is entered."""

    table: str = "filter"
    entries: tuple[str, ...] = ("INPUT", "OUTPUT")

    @property
    def iptables(self) -> str:
        """The command, up to what is to be done."""
        return "iptables -w 5" if self.table == "filter" else f"iptables -w 5 -t {self.table}"


FILTER = Place()
LEAVING = Place("mangle", ("POSTROUTING",))
"""Behind all that may drop a packet which leaves the host."""
ARRIVING = Place("nat", ("PREROUTING", "OUTPUT"))
"""Where it is settled whom a connection is for, that comes from another host or from this one."""
PLACES = (FILTER, LEAVING, ARRIVING)


@dataclass(frozen=True, slots=True)
class Rule:
    match: str
    """``-s 198.18.0.12/32``."""
    comment: str
    """``n2>n1``: what it drops, in which direction. Read back by the probe."""
    action: str = "DROP"


@dataclass(frozen=True, slots=True)
class Counter:
    """One rule as ``iptables -L CHAIN -v -n -x`` shows it."""

    packets: int
    bytes: int
    action: str
    comment: str


def chain(fault_id: str) -> str:
    """The chain's name. Raises ValueError for an id that is no plain word (iptables allows 28 characters)."""
    if not _FAULT_ID.fullmatch(fault_id):
        raise ValueError(f"fault id {fault_id!r}: use up to 20 letters, digits, dots or underscores")
    return PREFIX + fault_id


def install(fault_id: str, rules: Sequence[Rule], place: Place = FILTER) -> str:
    """Makes the chain and puts it in force in one transaction."""
    name = chain(fault_id)
    lines = "\n".join(
        f'-A {name} {rule.match} -m comment --comment "{rule.comment}" -j {rule.action}' for rule in rules
    )
    jumps = "\n".join(f"-I {entry} 1 -j {name}" for entry in place.entries)
    return (
        "iptables-restore --noflush --wait 5 <<'WRACK'\n"
        f"*{place.table}\n:{name} - [0:0]\n{lines}\n{jumps}\nCOMMIT\nWRACK"
    )


def bypass(fault_id: str, place: Place = FILTER) -> str:
    """Returns the command by which nothing enters the chain any more, and it is still there."""
    return (
        f"for c in {' '.join(place.entries)}; do "
        f"while {place.iptables} -D $c -j {chain(fault_id)} 2>/dev/null; do :; done; done"
    )


def remove(fault_id: str, place: Place = FILTER) -> str:
    """Takes the chain away, whatever state it is in; fails when something of it is left."""
    name, iptables = chain(fault_id), place.iptables
    return (
        f"{bypass(fault_id, place)}; "
        f"{iptables} -F {name} 2>/dev/null; {iptables} -X {name} 2>/dev/null; "
        f"! {iptables} -S | grep -qw -e {name}"
    )


def remove_everywhere(fault_id: str) -> str:
    """The same in every table that has one."""
    name = chain(fault_id)
    return "; ".join(
        f"if {place.iptables} -S {name} >/dev/null 2>&1; then {remove(fault_id, place)} || exit 1; fi"
        for place in PLACES
    )


def list_counters(fault_id: str, place: Place = FILTER) -> str:
    return f"{place.iptables} -L {chain(fault_id)} -v -n -x"


def look(fault_id: str, place: Place = FILTER) -> str:
    """Returns the command that shows which life of the host this is, what stands in the chains that ours is
    entered from, and our counters. A chain that is not there is no error: the host may have lost it with its
    power."""
    entered = " && ".join(f"{place.iptables} -S {entry}" for entry in place.entries)
    return (
        "echo \"-- boot $(cat /proc/sys/kernel/random/boot_id) $(cut -d ' ' -f 22 /proc/1/stat)\"; "
        f"{entered} && {{ {list_counters(fault_id, place)} 2>/dev/null || true; }}"
    )


def boot(listing: str) -> str:
    """The life of the host in which `look` looked: another one after each power-on."""
    match = re.search(r"^-- boot (.+)$", listing, re.MULTILINE)
    return match[1] if match else ""


def obstacle(listing: str, fault_id: str, place: Place = FILTER) -> str | None:
    """Returns what keeps packets from our rules, by what `look` printed: a rule that they meet before ours;
    None when they meet ours first. (Other chains of ours may come before: they drop, or give back, and accept
    nothing.)"""
    for entry in place.entries:
        rules = [line for line in listing.splitlines() if line.startswith(f"-A {entry} ")]
        jump = f"-A {entry} -j {chain(fault_id)}"
        ahead = rules[: rules.index(jump)] if jump in rules else rules
        if strange := [rule for rule in ahead if not rule.startswith(f"-A {entry} -j {PREFIX}")]:
            return f"`{strange[0]}` stands before its rules"
        if jump not in rules:
            return f"nothing leads from {entry} to its rules any more"
    return None


LIST_CHAINS = (
    "command -v iptables >/dev/null || exit 0; for t in "
    f"{' '.join(place.table for place in PLACES)}; do iptables -w 5 -t $t -S 2>/dev/null; done | "
    f"sed -n 's/^-N \\({PREFIX}.*\\)$/\\1/p' | sort -u"
)
"""Prints the names of our chains on a host, in whatever table they are, one a line."""


def parse_counters(listing: str) -> list[Counter]:
    """The commented rules of a listing, in order; lines that are no such rule are passed over."""
    result = (_COUNTER.match(line) for line in listing.splitlines())
    return [Counter(int(one[1]), int(one[2]), one[3], one[4]) for one in result if one]


def parse_chains(listing: str) -> list[str]:
    """Fault ids of the chains that `LIST_CHAINS` printed."""
    return [line.removeprefix(PREFIX) for line in listing.split() if line.startswith(PREFIX)]
