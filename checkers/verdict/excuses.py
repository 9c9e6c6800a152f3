"""An excuse of a finding is something that happened in this history, and around the time of the finding. A
contract that allows an anomaly names it; what nothing in the history excuses is a violation
(docs/anomalies.md, section 8).

An excuse is in force for a time. It excuses findings whose own time (from the first to the last of the
operations that it rests on) overlaps that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import pairwise
from typing import Concatenate, Final, ParamSpec

import numpy as np

from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.cited import epochs_of_final_reads
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.inputs.table import NEVER, NONE, Ints
from wrackline.checkers.verdict.leadership import EFFECT_NS, ENDING, Change, Leaders, Leadership
from wrackline.checkers.verdict.lossy_shutdowns import (
    TIER,
    LossyShutdown,
    changed_in_place,
    lossy_shutdowns,
    opened_losses,
    replicas_among,
)
from wrackline.checkers.verdict.wording import listed, partition_name, seconds
from wrackline.history.model import NODE_DIED

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Excuse:
    """``text``: what happened, as it stands in a sentence after a colon."""

    begin_ns: int
    end_ns: int
    text: str
    why: str = ""
    """Why a contract then allows what was found."""


@dataclass(frozen=True)
class Excuses:
    """Excuses of one kind of finding in one partition, in the order in which they begin."""

    found: Sequence[Excuse] = ()

    @classmethod
    def of(cls, by_why: Mapping[str, Iterable[Excuse]]) -> Excuses:
        """``by_why``: why a contract allows what was found -> what happened."""
        each = {replace(one, why=why) for why, many in by_why.items() for one in many}
        return cls(sorted(each, key=lambda one: (one.begin_ns, one.end_ns, one.text)))

    def __bool__(self) -> bool:
        return bool(self.found)

    def longer(self, by_ns: int) -> Excuses:
        """The same, each in force for longer: until who was cut off has noticed what happened."""
        return Excuses([replace(one, end_ns=min(one.end_ns, NEVER - by_ns) + by_ns) for one in self.found])

    @cached_property
    def _begins(self) -> Ints:
        return np.array([one.begin_ns for one in self.found], dtype=np.int64)

    @cached_property
    def _lasting(self) -> Ints:
        """The number of the excuse in force longest, among each excuse and those before it."""
        best, result = 0, []
        for number, one in enumerate(self.found):
            best = number if one.end_ns > self.found[best].end_ns else best
            result.append(best)
        return np.array(result, dtype=np.int64)

    def around(self, since_ns: Ints, until_ns: Ints) -> Ints:
        """Returns the number of the excuse of each of the times; NONE where it has none."""
        if not self.found:
            return np.full(len(since_ns), NONE, dtype=np.int64)
        ends = np.array([one.end_ns for one in self.found], dtype=np.int64)
        begun = np.searchsorted(self._begins, until_ns, side="right") - 1
        lasting = self._lasting[np.maximum(begun, 0)]
        in_force = (begun >= 0) & (ends[lasting] >= since_ns)
        return np.where(in_force, lasting, NONE)


NOTHING: Final = Excuses()
MOVE: Final = "move-replica"
"""The fault that moves replicas between log directories of their node."""


def _in_each(
    of: Callable[Concatenate[Grounds, Place, P], list[Excuse]],
) -> Callable[Concatenate[Grounds, Place | None, P], list[Excuse]]:
    """Makes a method that knows the excuses of one partition give those of any (None), too."""

    @wraps(of)
    def each(self: Grounds, place: Place | None, /, *args: P.args, **more: P.kwargs) -> list[Excuse]:
        places = self.run.places if place is None else [place]
        return [excuse for one in places for excuse in of(self, one, *args, **more)]

    return each


@dataclass
class Grounds:
    """The events of a run that can excuse findings, by partition; None: in any of them."""

    run: Run
    _leadership: Leadership = field(init=False)

    def __post_init__(self) -> None:
        self._leadership = Leadership(self.run)

    def leaders(self, place: Place | None) -> Leaders:
        return self._leadership.of(place)

    @_in_each
    def changes(self, place: Place) -> list[Excuse]:
        """Changes of leader, from when they happened until who led before must know of it."""
        return [self._change(place, one) for one in self.leaders(place).changes]

    @_in_each
    def elections_that_may_be_unclean(self, place: Place) -> list[Excuse]:
        return [self._change(place, one) for one in self.leaders(place).changes if one.may_be_unclean]

    @_in_each
    def changes_of_isr(self, place: Place) -> list[Excuse]:
        """A write may be refused after it was appended, and be sent again, when the ISR becomes too small."""
        result = []
        for before, after in pairwise(self.leaders(place).spans):
            gone = [node for node in before.isr if node not in after.isr]
            if gone:
                at = after.begin_ns
                text = f"{listed(gone)} left the ISR of {partition_name(place)} at {seconds(at)}"
                result.append(Excuse(at - EFFECT_NS, at + EFFECT_NS, text))
        return result

    def faults(self) -> list[Excuse]:
        """Returns the faults as excuses, each from the time it struck until its effects must be over."""
        result = []
        for fault in self.run.faults:
            begin, end = phases.in_force(self.run, fault)
            result.append(
                Excuse(
                    begin,
                    end + EFFECT_NS,
                    f"fault {fault.id} ({fault.title}) was in force from {seconds(fault.struck_ns)} on",
                )
            )
        return result

    def interrupted_moves(self) -> list[Excuse]:
        """Returns the faults that struck a host while it moved replicas to another log directory: Kafka
        renames the new log before it puts the old one aside."""
        moves = [one for one in self.run.faults if one.name == MOVE]
        return [
            Excuse(
                fault.struck_ns,
                NEVER,
                f"fault {fault.id} ({fault.title}) struck during fault {move.id} ({move.title})",
            )
            for move in moves
            for fault in self.run.faults
            if fault is not move
            and not set(fault.targets).isdisjoint(move.targets)
            and move.struck_ns <= fault.struck_ns <= (move.ended_ns or NEVER)
        ]

    def lasting_faults(self, but_deaths: bool = False) -> list[Excuse]:
        """Returns the faults that were not undone as they should be, from their undo on. One that failed, and
        of which nothing was seen to be left, is none of them. ``but_deaths``: nor are those whose undo failed
        because a node died when it was started again."""
        return [
            Excuse(
                fault.undo_ns or fault.struck_ns,
                NEVER,
                f"fault {fault.id} ({fault.title}): {fault.error or fault.restoration or 'it did not end'}",
            )
            for fault in self.run.faults
            if fault.asked_for and fault.restored is not True
            if fault.error or fault.restored is False or fault.ended_ns is None
            if not (but_deaths and NODE_DIED in (fault.error or ""))
        ]

    def excused_stalls(self, promise: str, place: Place | None) -> list[Excuse]:
        """Returns what a look at a promise of liveness excused, at the time of the look."""
        return [
            Excuse(one.time_ns, one.time_ns, f"{one.subject}: {one.excuse}")
            for one in self.run.stalls
            if one.excuse and one.promise == promise and one.place == place
        ]

    def faults_without_known_leader(self, place: Place | None) -> list[Excuse]:
        """Returns the faults as excuses where nobody wrote down who led: a fault may have changed the
        leader."""
        places = self.run.places if place is None else [place]
        if all(self.leaders(one).first is not None for one in places):
            return []
        return [replace(one, text=f"{one.text}, and nobody wrote down who led") for one in self.faults()]

    @_in_each
    def records_of_several_leaders(self, place: Place) -> list[Excuse]:
        """Returns the records of the final read that may show several leaders, where nobody wrote down who
        led."""
        epochs = self._epochs.get(place, ()) if self.leaders(place).first is None else ()
        if len(epochs) < 2:
            return []
        name, of = partition_name(place), f"leader epochs {epochs[0]} to {epochs[-1]}"
        text = f"{name} has records of {of}, and nobody wrote down who led when"
        return [Excuse(0, NEVER, text)]

    @_in_each
    def losses(self, place: Place, tolerated: int, *, synced: bool = False) -> list[Excuse]:
        """Times at which more replicas than ``tolerated`` had lost bytes of the partition since its ISR was
        full. ``synced``: bytes that had been synced alone count."""
        result = []
        for begin, end, lost in opened_losses(self.run, place):
            counted = [each for each in lost if each.synced or not synced]
            if replicas_among(counted) > tolerated:
                result.append(Excuse(begin, end, _lost(counted)))
        return result

    @_in_each
    def losses_of_leader(self, place: Place) -> list[Excuse]:
        """Times at which the leader, or whoever may have been that, lost bytes of the partition."""
        leaders = self.leaders(place)
        return [
            Excuse(lost.time_ns, lost.time_ns + EFFECT_NS, _lost([lost]))
            for lost in lossy_shutdowns(self.run, place)
            if leaders.at(lost.time_ns) in (None, lost.host)
        ]

    @_in_each
    def kills_of_all(self, place: Place) -> list[Excuse]:
        """The last time after which the process of every replica was killed, or lost its power."""
        replicas = {self.run.host(node) for node in self.run.assignment.get(place, ())}
        kills = [one for one in self.run.faults if one.name.startswith(ENDING)]
        last = {
            host: one.struck_ns
            for one in sorted(kills, key=lambda one: one.struck_ns)
            for host in one.targets
        }
        if not replicas or not replicas <= last.keys():
            return []
        at = min(last[host] for host in replicas)
        text = (
            f"the processes of {listed(sorted(replicas))} were killed, all of them at {seconds(at)} or later"
        )
        return [Excuse(at, at, text)]

    def damages(self, place: Place | None) -> list[Excuse]:
        """Faults that changed bytes of the partition's files where they lay."""
        result = []
        for fault in self.run.faults:
            hosts = changed_in_place(self.run, place, [fault])
            if hosts and fault.name != TIER:
                at = fault.struck_ns
                result.append(
                    Excuse(
                        at,
                        NEVER,
                        f"fault {fault.id} ({fault.title}) did so at {seconds(at)} on {listed(hosts)}",
                    )
                )
        return result

    def losses_of_tier(self, place: Place | None) -> list[Excuse]:
        """Faults by which the remote tier lost segments of the partition."""
        return [
            Excuse(
                fault.struck_ns,
                NEVER,
                f"fault {fault.id} ({fault.title}) at {seconds(fault.struck_ns)}: {fault.proof}",
            )
            for fault in self.run.faults
            if fault.name == TIER and changed_in_place(self.run, place, [fault])
        ]

    def _change(self, place: Place, one: Change) -> Excuse:
        text = f"{_change(place, one)} at {seconds(one.at_ns)}"
        return Excuse(one.since_ns, self._leadership.known_by(one), text)

    @cached_property
    def _epochs(self) -> dict[Place, list[int]]:
        return epochs_of_final_reads(self.run.files)


def _lost(lost: Sequence[LossyShutdown]) -> str:
    return f"{listed([str(one) for one in lost])} lost bytes"


def _change(place: Place, one: Change) -> str:
    name, before, after = partition_name(place), one.before, one.after
    if before.leader == after.leader:
        return f"{after.leader} was elected leader of {name} again"
    return f"the leader of {name} changed from {before.leader} to {after.leader}"
