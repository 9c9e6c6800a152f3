"""The proof of a partition by its probes: leaks, rules that stand before ours, and the packets that were
dropped."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.tcp_probe import probe_results, unanswered
from wrackline.nemesis.faults.outputs import carried_out
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import ProbeLog, Shell, StepResult, Target

CLIENTS = "clients"
MOST_LEAKS = 12
"""So many knocks that were answered are told; a cut that leaks for long has one for each second and way."""
_AFTER_PROBES = "--- after knocking"


def good(probes: Sequence[StepResult]) -> list[StepResult]:
    """The listings that hosts gave. (A knock says nothing: what it did shows in the listing after it.)"""
    return carried_out(probes, Shell)


def look(host: Target, fault_id: str, tcp_probes: Sequence[Step]) -> list[Step]:
    """Counters, the knocks, the counters again: three steps, for nobody else's must wait while a knock
    does."""
    listing = iptables.look(fault_id)
    return [Shell(host.host, listing), *tcp_probes, Shell(host.host, f"echo '{_AFTER_PROBES}'; {listing}")]


def leak(probe_log: ProbeLog) -> str | None:
    answers = [
        f"{probed.way} answered {look.when} ({probed.answer})"
        for look in probe_log.looks
        for probed in probe_results(look.done, CLIENTS)
        if probed.answered
    ]
    more = f" and {len(answers) - MOST_LEAKS} more" if len(answers) > MOST_LEAKS else ""
    return f"the cut leaks: {', '.join(answers[:MOST_LEAKS])}{more}" if answers else None


def unseen(probe_log: ProbeLog) -> str | None:
    if probe_log.undo and not probe_log.final:
        return "nobody looked at its end"
    failed = [
        f"{done.step.host}: {done.error}" for done in probe_log.final if done.error and not done.skipped
    ]
    return f"its end could not be looked at: {'; '.join(failed)}" if failed else None


def bypass(fault_id: str, probe_log: ProbeLog) -> str | None:
    """A rule that lets packets pass before they meet ours. A host that has just come back may have none of
    ours."""
    back = rebooted(probe_log)
    for when, probe in probe_log.ends:
        for done in good(probe):
            if done.step.host in back and iptables.chain(fault_id) not in done.output:
                continue
            if obstacle := iptables.obstacle(done.output, fault_id):
                return f"{done.step.host} {when}: {obstacle}"
    return None


def rebooted(probe_log: ProbeLog) -> set[str]:
    """Hosts that had no power between the two probes."""
    boots = {done.step.host: iptables.boot(done.output) for done in good(probe_log.active)}
    return {
        done.step.host
        for done in good(probe_log.final)
        if done.step.host in boots and iptables.boot(done.output) != boots[done.step.host]
    }


def still_silent(probe_log: ProbeLog) -> str:
    """The ways on which no knock was answered after the undo; empty when each was."""
    silent = unanswered(probe_log.control, CLIENTS)
    return f"no knock was answered on {', '.join(silent)} after the undo" if silent else ""


def silence(probe_log: ProbeLog) -> str:
    """Describes what the TCP probes showed: silence is the cut's where the same probe was answered without
    it."""
    probed = {one.way for one in probe_results((*probe_log.active, *probe_log.final), CLIENTS)}
    silent = f"no TCP knock on {len(probed)} {'port' if len(probed) == 1 else 'ports'} was answered"
    if not probe_log.control:
        return silent
    answered = {one.way for one in probe_results(probe_log.control, CLIENTS) if one.answered}
    if dumb := sorted(probed - answered):
        ways = ", ".join(dumb)
        return f"{silent}, and none on {ways} after the undo either: there the packets alone are proof"
    return f"{silent}, each was after the undo"


def dropped(probes: Sequence[StepResult]) -> tuple[Tally[str], Tally[str]]:
    """Packets dropped by direction (both ends added up): before and after the probe's own packets."""
    before: Tally[str] = Tally()
    after: Tally[str] = Tally()
    for done in probes:
        first, _, second = done.output.partition(_AFTER_PROBES)
        for tally, listing in ((before, first), (after, second)):
            for rule in iptables.parse_counters(listing):
                if rule.action == "DROP":
                    tally[rule.comment] += rule.packets
    return before, after
