"""What the probes of a cut say: leaks, rules that stand before ours, and the packets that were dropped."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.tcp_probe import knock_results, unanswered
from wrackline.nemesis.faults.steps import Done, Shell, Step, Target, Trail

CLIENTS = "clients"
MOST_LEAKS = 12
"""So many knocks that were answered are told; a cut that leaks for long has one for each second and way."""
_AFTER_KNOCK = "--- after knocking"


def good(probes: Sequence[Done]) -> list[Done]:
    """The listings that hosts gave. (A knock says nothing: what it did shows in the listing after it.)"""
    return [done for done in probes if isinstance(done.step, Shell) and not done.error and not done.skipped]


def look(host: Target, fault_id: str, knocks: Sequence[Step]) -> list[Step]:
    """Counters, the knocks, the counters again: three steps, for nobody else's must wait while a knock
    does."""
    listing = iptables.look(fault_id)
    return [Shell(host.host, listing), *knocks, Shell(host.host, f"echo '{_AFTER_KNOCK}'; {listing}")]


def leak(trail: Trail) -> str | None:
    answers = [
        f"{knock.way} answered {look.when} ({knock.answer})"
        for look in trail.looks
        for knock in knock_results(look.done, CLIENTS)
        if knock.answered
    ]
    more = f" and {len(answers) - MOST_LEAKS} more" if len(answers) > MOST_LEAKS else ""
    return f"the cut leaks: {', '.join(answers[:MOST_LEAKS])}{more}" if answers else None


def unseen(trail: Trail) -> str | None:
    if trail.undo and not trail.final:
        return "nobody looked at its end"
    failed = [f"{done.step.host}: {done.error}" for done in trail.final if done.error and not done.skipped]
    return f"its end could not be looked at: {'; '.join(failed)}" if failed else None


def bypass(fault_id: str, trail: Trail) -> str | None:
    """A rule that lets packets pass before they meet ours. A host that has just come back may have none of
    ours."""
    back = rebooted(trail)
    for when, probe in (("at the beginning", trail.active), ("at the end", trail.final)):
        for done in good(probe):
            if done.step.host in back and iptables.chain(fault_id) not in done.output:
                continue
            if obstacle := iptables.obstacle(done.output, fault_id):
                return f"{done.step.host} {when}: {obstacle}"
    return None


def rebooted(trail: Trail) -> set[str]:
    """Hosts that had no power between the two probes."""
    boots = {done.step.host: iptables.boot(done.output) for done in good(trail.active)}
    return {
        done.step.host
        for done in good(trail.final)
        if done.step.host in boots and iptables.boot(done.output) != boots[done.step.host]
    }


def still_silent(trail: Trail) -> str:
    """The ways on which no knock was answered after the undo; empty when each was."""
    silent = unanswered(trail.control, CLIENTS)
    return f"no knock was answered on {', '.join(silent)} after the undo" if silent else ""


def silence(trail: Trail) -> str:
    """What the knocks showed: silence is the cut's where the same knock was answered without it."""
    knocked = {knock.way for knock in knock_results((*trail.active, *trail.final), CLIENTS)}
    silent = f"no TCP knock on {len(knocked)} {'port' if len(knocked) == 1 else 'ports'} was answered"
    if not trail.control:
        return silent
    answered = {knock.way for knock in knock_results(trail.control, CLIENTS) if knock.answered}
    if dumb := sorted(knocked - answered):
        ways = ", ".join(dumb)
        return f"{silent}, and none on {ways} after the undo either: there the packets alone are proof"
    return f"{silent}, each was after the undo"


def dropped(probes: Sequence[Done]) -> tuple[Tally[str], Tally[str]]:
    """Packets dropped by direction (both ends added up): before and after the probe's own packets."""
    before: Tally[str] = Tally()
    after: Tally[str] = Tally()
    for done in probes:
        first, _, second = done.output.partition(_AFTER_KNOCK)
        for tally, listing in ((before, first), (after, second)):
            for rule in iptables.parse_counters(listing):
                if rule.action == "DROP":
                    tally[rule.comment] += rule.packets
    return before, after
