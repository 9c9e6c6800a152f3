"""Describes incidents in sentences: what happened, and how it came about as far as the cluster's history
says so. Unknown parts are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wrackline.checkers.findings import Meaning, sentence_of
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.checkers.verdict.incidents.joining import Joined
from wrackline.checkers.verdict.incidents.parts import Part
from wrackline.checkers.verdict.leadership import Change, Leaders, left_sets
from wrackline.checkers.verdict.wording import listed, partition_name, seconds
from wrackline.history.wording import plural

MOST_CHANGES: Final = 3


DIFFERENT: Final = ("lost-on-replica", "replica-divergence")
"""What replicas hold differs, though it must not."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Records that are gone. ``what``: the main clause, ``8 acknowledged records of log-0 (offsets 3,309 to
    3,316) are gone``. ``also``: what else is known of them, empty where nothing is."""

    what: str
    also: str = ""

    def sentence(self, how: str = "") -> str:
        """Returns the sentence without a full stop. ``how``: with what joins it, such as ``: n3 cut them
        at 11.1 s``."""
        return f"{self.what}{how}{'; ' if self.also else ''}{self.also}"


def gone_of(incident: Joined, meaning: Meaning) -> Gone | None:
    """The records that an incident lost; None where it lost none, or none that mean this."""
    lost = incident.lost(meaning)
    return gone(lost, _name(lost), bounds(lost))


def headline(incident: Joined, meaning: Meaning, change: Change | None) -> str:
    """One sentence without a full stop, e.g. ``8 acknowledged records of log-0 (offsets 3,309 to 3,316) are
    gone since n3 became leader at 14.7 s``."""
    if (lost := gone_of(incident, meaning)) is not None:
        return lost.sentence(_since(incident.lost(meaning), change))
    parts = [part for part in incident.parts if part.meaning is meaning]
    if any(part.anomaly.is_loss for part in parts):
        return _as_found([part for part in parts if part.anomaly.is_loss])
    if differing := [part for part in parts if part.anomaly.name in DIFFERENT]:
        return _on_replicas(differing)
    return _as_found(parts)


def _since(parts: Sequence[Part], change: Change | None) -> str:
    if change is not None:
        return f" since {came(change)} at {seconds(change.at_ns)}"
    seen = max((part.last_ns for part in parts if part.last_ns is not None), default=None)
    return "" if seen is None else f", last seen at {seconds(seen)}"


def gone(parts: Sequence[Part], names: str, where: str = "") -> Gone | None:
    """``names``: of the partitions. ``where``: offsets. None where neither an acknowledged record nor one
    that was read is gone."""
    acked, read = (_count(parts, name) for name in ("lost-write", "vanished-read"))
    of = f"of {names}{f' ({where})' if where else ''}"
    if acked:
        also = f"consumers had read {read:,} of the lost records" if read else ""
        return Gone(f"{plural(acked, 'acknowledged record')} {of} {_are(acked)} gone", also)
    if read:
        return Gone(f"{plural(read, 'record')} {of} that consumers had read {_are(read)} gone")
    return None


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _on_replicas(parts: Sequence[Part]) -> str:
    name = _name(parts)
    lacking = [part for part in parts if part.anomaly.name == "lost-on-replica"]
    if lacking:
        named = (part.where.replace(" and ", ", ") for part in lacking if part.where)
        hosts = sorted({host for names in named for host in names.split(", ")})
        logs = f"the log of {hosts[0]} lacks" if len(hosts) == 1 else f"the logs of {listed(hosts)} lack"
        count = plural(sum(part.count for part in lacking), "record")
        return f"{logs} {count} of {name} ({bounds(lacking)}) that consumers can read"
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
    """Returns the sentences that say how the incident came about. ``between``: the changes of leader that
    it lies between."""
    place = incident.place
    if place is None:
        return []
    name = partition_name(place)
    if change is not None:
        return _told(name, change)
    changes = leaders.changes[between[0] : between[1]]
    if incident.may_be_deposed and len(changes) == 1:
        return [_unknown(name, changes[0])]
    if changes:
        shown = [f"to {one.after.leader} at {seconds(one.at_ns)}{_epoch(one.after)}" for one in changes]
        if len(shown) > MOST_CHANGES:
            shown[MOST_CHANGES:] = [f"{len(shown) - MOST_CHANGES} times more"]
        return [f"The leader of {name} changed in this time: {listed(shown)}."]
    leading = leaders.after(between[0])
    return [] if leading is None else [f"{leading.leader} led {name} all the time{_epoch(leading)}."]


def _unknown(name: str, change: Change) -> str:
    """Returns a sentence for the case that either the replaced or the new leader may have acknowledged or
    answered it."""
    before, after = change.before, change.after
    return (
        f"{before.leader} led {name} until {seconds(change.at_ns)}, and {after.leader} from then on"
        f"{_epoch(after)}. Which of them answered is not on record."
    )


def _told(name: str, change: Change) -> list[str]:
    before, vacant, after = change.before, change.vacant, change.after
    until = vacant[0].begin_ns if vacant else change.at_ns
    said = [f"{before.leader} led {name} until {seconds(until)}{_state(before)}."]
    if vacant:
        said.append(f"Nobody led it until {seconds(change.at_ns)}{_in_sets(vacant[0])}.")
        if left := [f"{node} left the {which} at {seconds(when)}" for node, which, when in left_sets(vacant)]:
            said.append(f"{listed(left)}.")
    again = " again" if before.leader == after.leader else ""
    since = f"from {seconds(change.at_ns)} on" if vacant else "from then on"
    unclean = ", elected uncleanly" if after.recovering else ""
    return [*said, f"{after.leader} led it{again} {since}{unclean}{_state(after)}."]


def in_full(incident: Mapping[str, Any]) -> str:
    """An incident, in its form of ``verdict.json``, in a few sentences: what happened, how it came about, and
    what the evidence is."""
    return " ".join((f"{capital(incident['sentence'])}.", *incident["mechanism"], *_evidence(incident)))


def _evidence(incident: Mapping[str, Any]) -> Iterator[str]:
    """Yields the findings as evidence; nothing where there is one finding alone, which the incident's
    sentence already tells."""
    if sum(one["count"] for one in incident["anomalies"]) > 1:
        own = incident["meaning"]
        told = []
        for one in sorted(incident["anomalies"], key=lambda one: one["meaning"] != own):
            aside = "" if one["meaning"] == own else f" ({one['meaning']})"
            told.append(f"{one['count']:,} {one['anomaly']}{aside}")
        yield f"Evidence: {listed(told)}."


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
    """``offset 7``, ``offsets 3,309 to 3,316``; ``between offsets 3,309 and 3,316`` where some of these are
    not among them; empty where no offset is known."""
    result = _offsets(parts)
    if result is None:
        return ""
    first, last = result
    if first == last:
        return f"offset {first:,}"
    holes = _holes(parts)
    return f"between offsets {first:,} and {last:,}" if holes else f"offsets {first:,} to {last:,}"


def _holes(parts: Sequence[Part]) -> bool:
    """Tells whether an offset between the first and the last is in none of the parts."""
    end: int | None = None
    spans = [(one.first, one.last) for one in parts if one.first is not None and one.last is not None]
    for first, last in sorted(spans):
        if end is not None and first > end + 1:
            return True
        end = last if end is None else max(end, last)
    return False


def _offsets(parts: Sequence[Part]) -> tuple[int, int] | None:
    firsts = [part.first for part in parts if part.first is not None]
    lasts = [part.last for part in parts if part.last is not None]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def _name(parts: Sequence[Part]) -> str:
    place = next((part.place for part in parts if part.place is not None), None)
    return "the log" if place is None else partition_name(place)


def _count(parts: Sequence[Part], anomaly: str) -> int:
    return sum(part.count for part in parts if part.anomaly.name == anomaly)


_NAMED: Final = re.compile(r"[\w.-]+-\d+\b")


def capital(sentence: str) -> str:
    """Capitalizes the sentence, unless it begins with the name of a partition."""
    return sentence if _NAMED.match(sentence) else sentence[:1].upper() + sentence[1:]
