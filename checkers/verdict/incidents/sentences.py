"""What an incident is, in sentences: what happened, and how it came about as far as the cluster's history
says so. Unknown parts are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from wrackline.checkers.findings import Meaning, sentence_of
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.parts import Part
from wrackline.checkers.verdict.leadership import Change, Leaders
from wrackline.history.wording import plural

MOST_CHANGES: Final = 3


def headline(incident: Joined, meaning: Meaning, change: Change | None) -> str:
    """One sentence without a full stop, e.g. ``log-0 was cut from 3,309 to 3,316 at 15.8 s when n3 became
    leader: 8 acknowledged records are gone``."""
    parts = [part for part in incident.parts if part.meaning is meaning]
    if lost := [part for part in parts if part.anomaly.is_loss]:
        return _loss([part for part in lost if part.place == incident.place] or lost, change)
    if on_replicas := [part for part in parts if part.anomaly.rests_on_replicas]:
        return _on_replicas(on_replicas)
    return _as_found(parts)


def _loss(parts: Sequence[Part], change: Change | None) -> str:
    if not gone(parts):
        return _as_found(parts)
    lost = [part for part in parts if part.anomaly.name != "lost-committed"]
    where, name = bounds(lost), _name(lost)
    if not where:
        return f"{name} lost records whose offsets are not known: {gone(parts)}"
    if change is not None:
        when = f"at {change.at_ns / 1e9:,.1f} s when {came(change)}"
        return f"{name} was cut {_from_to(lost)} {when}: {gone(parts)}"
    seen = max((part.last_ns for part in lost if part.last_ns is not None), default=None)
    since = "" if seen is None else f" after {seen / 1e9:,.1f} s, when they were last seen"
    return f"{name} lost records at {where}{since}: {gone(parts)}"


def gone(parts: Sequence[Part]) -> str:
    """``8 acknowledged records are gone; consumers had read 3 of the lost records``; empty where neither an
    acknowledged record nor one that was read is gone."""
    acked, read = (_count(parts, name) for name in ("lost-write", "vanished-read"))
    if acked:
        also = f"; consumers had read {read:,} of the lost records" if read else ""
        return f"{plural(acked, 'acknowledged record')} {'is' if acked == 1 else 'are'} gone{also}"
    if read:
        return f"{plural(read, 'record')} that consumers had read {'is' if read == 1 else 'are'} gone"
    return ""


def _on_replicas(parts: Sequence[Part]) -> str:
    name = _name(parts)
    lacking = [part for part in parts if part.anomaly.name == "lost-on-replica"]
    if lacking:
        named = (part.where.replace(" and ", ", ") for part in lacking if part.where)
        hosts = sorted({host for names in named for host in names.split(", ")})
        logs = f"the log of {hosts[0]} lacks" if len(hosts) == 1 else f"the logs of {listed(hosts)} lack"
        count = plural(sum(part.count for part in lacking), "record")
        return f"{logs} {count} of {name} at {bounds(lacking)} that consumers are given"
    return f"replicas of {name} hold different records at {bounds(parts)}, below their high watermarks"


def _as_found(parts: Sequence[Part]) -> str:
    """The sentence of the first finding, without its faults, and how many more findings there are."""
    first = min(parts, key=lambda part: part.found_at)
    sentence = sentence_of(first.explanation)
    more = sum(part.count for part in parts) - 1
    if not more:
        return sentence
    others = "another finding has" if more == 1 else f"{more:,} more findings have"
    return f"{sentence}; {others} the same cause"


def mechanism(
    incident: Joined, change: Change | None, leaders: Leaders, between: tuple[int, int]
) -> list[str]:
    """How it came about, one sentence each. ``between``: the changes of leader that it lies between."""
    place = incident.place
    if place is None:
        return []
    name = f"{place[0]}-{place[1]}"
    if change is not None:
        return _told(name, change)
    changes = leaders.changes[between[0] : between[1]]
    if incident.may_be_deposed and len(changes) == 1:
        return [_unknown(name, changes[0])]
    if changes:
        shown = [f"to {one.after.leader} at {one.at_ns / 1e9:,.1f} s{_epoch(one.after)}" for one in changes]
        if len(shown) > MOST_CHANGES:
            shown[MOST_CHANGES:] = [f"{len(shown) - MOST_CHANGES} times more"]
        return [f"The leader of {name} changed meanwhile: {listed(shown)}."]
    leading = leaders.after(between[0])
    return [] if leading is None else [f"{leading.leader} led {name} all the time{_epoch(leading)}."]


def _unknown(name: str, change: Change) -> str:
    """What is known where who had been replaced may have acknowledged or answered it, and the new leader
    may have."""
    before, after = change.before, change.after
    return (
        f"{after.leader} led {name} since {change.at_ns / 1e9:,.3f} s{_epoch(after)}, and {before.leader} "
        "before; which of them answered is not on record."
    )


def _told(name: str, change: Change) -> list[str]:
    before, vacant, after = change.before, change.vacant, change.after
    at = f"{change.at_ns / 1e9:,.3f} s"
    until = f"until {vacant[0].begin_ns / 1e9:,.3f} s" if vacant else "until then"
    said = [f"{before.leader} led {name} {until}{_state(before)}."]
    if vacant:
        said.append(f"Nobody led it until {at}{_in_sets(vacant[0])}.")
        if left := _left(vacant):
            said.append(f"{listed(left)}.")
    again = "led again" if before.leader == after.leader else "became its leader"
    unclean = ", elected uncleanly" if after.recovering else ""
    return [*said, f"{after.leader} {again} at {at}{unclean}{_state(after)}."]


def _left(vacant: Sequence[LeaderSpan]) -> list[str]:
    """Who could have led, and could no more: ``n1 left the ELR at 33.887 s``."""
    found = []
    for before, after in pairwise(vacant):
        for name, had, has in (("ISR", before.isr, after.isr), ("ELR", before.elr, after.elr)):
            nodes = [node for node in had if node not in has]
            found += [f"{listed(nodes)} left the {name} at {after.begin_ns / 1e9:,.3f} s"] if nodes else []
    return found


def in_full(incident: Mapping[str, Any]) -> str:
    """An incident, in its form of ``verdict.json``, in a few sentences: what happened, how it came about, and
    what the evidence is."""
    return " ".join((f"{capital(incident['sentence'])}.", *incident["mechanism"], *_evidence(incident)))


def _evidence(incident: Mapping[str, Any]) -> Iterator[str]:
    """Nothing where one finding is all there is: the incident has its sentence."""
    by_meaning: dict[str, list[str]] = {incident["meaning"]: []}
    for one in incident["anomalies"]:
        by_meaning.setdefault(one["meaning"], []).append(f"{one['count']:,} {one['anomaly']}")
    if sum(one["count"] for one in incident["anomalies"]) > 1:
        own, *others = (
            listed(found) if at == 0 else f"what is {meaning} by itself: {listed(found)}"
            for at, (meaning, found) in enumerate(by_meaning.items())
        )
        yield f"The evidence is {', and '.join((own, *others))}."


def came(change: Change) -> str:
    again = change.before.leader == change.after.leader
    return f"{change.after.leader} became leader{' again' if again else ''}"


def _state(span: LeaderSpan) -> str:
    """``, in leader epoch 2, with n2 and n3 in the ISR and n1 in the ELR``."""
    epoch = span.leader_epoch
    return (f", in leader epoch {epoch}" if epoch is not None and epoch >= 0 else "") + _in_sets(span)


def _in_sets(span: LeaderSpan) -> str:
    """``, with nobody in the ISR, n1 in the ELR and n1 in LastKnownELR``; empty sets but the ISR are left
    out, and it where all are empty."""
    sets = (("the ISR", span.isr), ("the ELR", span.elr), ("LastKnownELR", span.last_known_elr))
    if not any(nodes for _, nodes in sets):
        return ""
    said = [f"{listed(nodes) or 'nobody'} in {name}" for name, nodes in sets if nodes or name == "the ISR"]
    return f", with {listed(said)}"


def _epoch(span: LeaderSpan) -> str:
    return (
        "" if span.leader_epoch is None or span.leader_epoch < 0 else f" (leader epoch {span.leader_epoch})"
    )


def bounds(parts: Sequence[Part]) -> str:
    """``offset 7``, ``offsets 3,309 to 3,316``; empty where no offset is known."""
    found = _offsets(parts)
    if found is None:
        return ""
    first, last = found
    return f"offset {first:,}" if first == last else f"offsets {first:,} to {last:,}"


def _from_to(parts: Sequence[Part]) -> str:
    found = _offsets(parts)
    if found is None:
        return ""
    return f"at {found[0]:,}" if found[0] == found[1] else f"from {found[0]:,} to {found[1]:,}"


def _offsets(parts: Sequence[Part]) -> tuple[int, int] | None:
    firsts = [part.first for part in parts if part.first is not None]
    lasts = [part.last for part in parts if part.last is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def _name(parts: Sequence[Part]) -> str:
    place = next((part.place for part in parts if part.place is not None), None)
    return "the log" if place is None else f"{place[0]}-{place[1]}"


def _count(parts: Sequence[Part], anomaly: str) -> int:
    return sum(part.count for part in parts if part.anomaly.name == anomaly)


def listed(names: Sequence[str]) -> str:
    """``n1``, ``n1 and n2``, ``n1, n2 and n3``; empty for none."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_NAMED: Final = re.compile(r"[\w.]+-\d+\b")


def capital(sentence: str) -> str:
    """With a capital letter at its beginning, unless it begins with the name of a partition."""
    return sentence if _NAMED.match(sentence) else sentence[:1].upper() + sentence[1:]
