"""Our own tagged iptables chains: text in, text out.

Each fault has one chain per host, ``WRACK-<fault id>``, entered from INPUT and OUTPUT. Undoing a fault
removes its chain and nothing else: no rule of anybody else is ever touched, and nothing is ever flushed but
our chain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PREFIX = "WRACK-"
_FAULT_ID = re.compile(r"[A-Za-z0-9_.]{1,20}")
_COUNTER = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\S+)\s.*?/\*\s(.*?)\s\*/")


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


def install(fault_id: str, rules: Sequence[Rule]) -> str:
    """Makes the chain and puts it in force in one transaction."""
    name = chain(fault_id)
    lines = "\n".join(
        f'-A {name} {rule.match} -m comment --comment "{rule.comment}" -j {rule.action}' for rule in rules
    )
    return (
        "iptables-restore --noflush --wait 5 <<'WRACK'\n"
        f"*filter\n:{name} - [0:0]\n{lines}\n-I INPUT 1 -j {name}\n-I OUTPUT 1 -j {name}\nCOMMIT\nWRACK"
    )


def remove(fault_id: str) -> str:
    """Takes the chain away, whatever state it is in; fails when something of it is left."""
    name = chain(fault_id)
    return (
        "for c in INPUT OUTPUT; do "
        f"while iptables -w 5 -D $c -j {name} 2>/dev/null; do :; done; done; "
        f"iptables -w 5 -F {name} 2>/dev/null; iptables -w 5 -X {name} 2>/dev/null; "
        f"! iptables -w 5 -S | grep -qw -e {name}"
    )


def list_counters(fault_id: str) -> str:
    return f"iptables -w 5 -L {chain(fault_id)} -v -n -x"


def look(fault_id: str) -> str:
    """Which life of the host this is, what stands in the chains that ours is entered from, and our counters.
    A chain that is not there is no error: the host may have lost it with its power."""
    return (
        "echo \"-- boot $(cat /proc/sys/kernel/random/boot_id) $(cut -d ' ' -f 22 /proc/1/stat)\"; "
        f"iptables -w 5 -S INPUT && iptables -w 5 -S OUTPUT && {{ {list_counters(fault_id)} 2>/dev/null || "
        f"true; }}"
    )


def boot(listing: str) -> str:
    """The life of the host in which `look` looked: another one after each power-on."""
    found = re.search(r"^-- boot (.+)$", listing, re.MULTILINE)
    return found[1] if found else ""


def obstacle(listing: str, fault_id: str) -> str | None:
    """What keeps packets from our rules, by what `look` printed: a rule that they meet before ours; None when
    they meet ours first. (Other chains of ours may come before: they drop, or give back, and accept
    nothing.)"""
    for entry in ("INPUT", "OUTPUT"):
        rules = [line for line in listing.splitlines() if line.startswith(f"-A {entry} ")]
        jump = f"-A {entry} -j {chain(fault_id)}"
        ahead = rules[: rules.index(jump)] if jump in rules else rules
        if strange := [rule for rule in ahead if not rule.startswith(f"-A {entry} -j {PREFIX}")]:
            return f"`{strange[0]}` stands before its rules"
        if jump not in rules:
            return f"nothing leads from {entry} to its rules any more"
    return None


LIST_CHAINS = (
    f"command -v iptables >/dev/null || exit 0; iptables -w 5 -S | sed -n 's/^-N \\({PREFIX}.*\\)$/\\1/p'"
)
"""Prints the names of our chains on a host, one a line."""


def parse_counters(listing: str) -> list[Counter]:
    """The commented rules of a listing, in order; lines that are no such rule are passed over."""
    found = (_COUNTER.match(line) for line in listing.splitlines())
    return [Counter(int(one[1]), int(one[2]), one[3], one[4]) for one in found if one]


def parse_chains(listing: str) -> list[str]:
    """Fault ids of the chains that `LIST_CHAINS` printed."""
    return [line.removeprefix(PREFIX) for line in listing.split() if line.startswith(PREFIX)]
