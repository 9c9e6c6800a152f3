"""Conditions about the faults of a run: each was proved, undone by its own undo, and hit who had its role."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from wrackline.checkers.inputs.runs import Fault, Place, Run, Sample
from wrackline.checkers.verdict.conditions.condition import NOT_ON_RECORD, Met, unknown, unless
from wrackline.checkers.verdict.measures.metrics import Figures
from wrackline.checkers.verdict.wording import partition_name

_OF_PARTITION = re.compile(r"(leader|follower|isr-last|elr|replicas)(?:\((.+)-(\d+)\))?")
_SOME_OF = re.compile(r"[1-9] of (.+)")
_CLIENTS_OF = re.compile(r"clients of (.+)")
LOOK_NS = 1_500_000_000
"""Metadata are written down once a second at least while somebody answers: two looks farther apart from a
fault's beginning may have missed an ISR."""


def faults_proved(run: Run, _: Figures) -> Met:
    injected = [fault for fault in run.faults if fault.asked_for]
    missing = [
        f"{fault.id} ({fault.title}): {_why_unproved(fault)}" for fault in injected if not fault.proved
    ]
    if missing:
        return False, "not proved: " + "; ".join(missing)
    return True, f"{len(injected)} of {len(injected)}" if injected else "no fault was injected"


def _why_unproved(fault: Fault) -> str:
    if fault.ended_ns is None:
        return "the history has no row of its end"
    return fault.error or fault.proof or "no proof given"


# --- undone -------------------------------------------------------------------------------------------------


def faults_restored(run: Run, _: Figures) -> Met:
    """Checks that each fault was undone, by the state observed after its undo and by the repairs that were
    left to healing."""
    begun = [fault for fault in run.faults if fault.asked_for and fault.undo_ns is not None]
    short = [f"{fault.id} ({fault.title}): {why}" for fault in begun if (why := _not_restored(fault))]
    short += [f"healing had to repair: {repair}" for repair in run.course.repairs or ()]
    if run.course.repairs is None and not short:
        return unknown(run, "the run ended before it was healed")
    return unless(short, f"{len(begun)} of {len(begun)}" if begun else "no fault was injected")


def _not_restored(fault: Fault) -> str:
    if fault.error:
        return fault.error
    if fault.restored is True:
        return ""
    if fault.restored is False:
        return f"not restored: {fault.restoration or 'nobody says what was left'}"
    return f"nobody could tell: {fault.restoration}" if fault.restoration else NOT_ON_RECORD


# --- aimed --------------------------------------------------------------------------------------------------


def targets_had_their_role(run: Run, _: Figures) -> Met:
    """Checks that each fault hit the node of its role, by the cluster state reported before and after the
    fault was aimed. Where it had changed more than once between the two, or nobody answered, the target's
    word stands."""
    timed = run.info.plan.faults if run.info.plan is not None else {}
    aimed = [fault for fault in run.faults if fault.id in timed and fault.begin_ns is not None]
    error = [f"{fault.id} ({fault.title}): {why}" for fault in aimed if (why := _mistaken(run, fault))]
    return unless(error, f"{len(aimed)} of {len(aimed)}" if aimed else "no fault was aimed at a role")


def _mistaken(run: Run, fault: Fault) -> str:
    """Returns the reason why the fault's targets cannot have had its role; empty when they may."""
    role = _plain(fault.role)
    if not fault.targets or fault.begin_ns is None:
        return ""
    if set(role.split(",")) <= set(run.nodes.values()):
        strangers = sorted(set(fault.targets) - set(role.split(",")))
        return f"it was aimed at {role} and hit {', '.join(strangers)}" if strangers else ""
    nodes = {node for node in (run.node_id(host) for host in fault.targets) if node is not None}
    if role == "controller":
        said = set(_around(run.controllers, fault.begin_ns))
        if len(said) == 1 and not said & nodes:
            return f"it was aimed at the controller, which was {run.host(said.pop())} before and after"
        return ""
    match = _OF_PARTITION.fullmatch(role)
    if match is None:
        return ""
    kind, topic, partition = match.groups()
    places = run.places if topic is None else [(topic, int(partition))]
    reasons = [_no_member(run, kind, place, nodes, fault.begin_ns) for place in places]
    return reasons[0] if reasons and all(reasons) else ""


def _plain(role: str) -> str:
    """The role that ``clients of ROLE`` and ``2 of ROLE`` are about."""
    for pattern in (_CLIENTS_OF, _SOME_OF):
        if match := pattern.fullmatch(role):
            role = match[1]
    return role


def _around(said: Sequence[tuple[int, int]], at_ns: int) -> list[int]:
    """Returns the last value reported before a moment and the first one after it."""
    return next(([one[1], other[1]] for one, other in pairwise(said) if one[0] <= at_ns < other[0]), [])


def _no_member(run: Run, kind: str, place: Place, nodes: set[int], at_ns: int) -> str:
    """Returns the reason why these nodes cannot have had the role in this partition; empty when they may."""
    pairs = pairwise(run.cluster.get(place, ()))
    pair = next(((one, other) for one, other in pairs if one.time_ns <= at_ns < other.time_ns), None)
    if pair is None:
        return ""
    before, after = pair
    held, stable = _ROLES[kind]
    if not stable(before, after, at_ns) or any(nodes <= held(sample) for sample in pair):
        return ""
    name = partition_name(place)
    seen = ", ".join(sorted(run.host(node) for node in held(before))) or "nobody"
    return f"it was aimed at {kind}({name}), which was {seen} before and after"


def _one_change(before: Sample, after: Sample, at_ns: int) -> bool:
    """The leader changed once at most: each change has a leader epoch of its own."""
    del at_ns
    return after.leader_epoch - before.leader_epoch <= 1


def _no_change(before: Sample, after: Sample, at_ns: int) -> bool:
    """Tells whether nothing changed, and somebody looked shortly before and after."""
    near = max(at_ns - before.time_ns, after.time_ns - at_ns) <= LOOK_NS
    same = (before.leader_epoch, before.isr, before.elr) == (after.leader_epoch, after.isr, after.elr)
    return near and same


_ROLES: dict[str, tuple[Callable[[Sample], set[int]], Callable[[Sample, Sample, int], bool]]] = {
    "leader": (lambda one: {one.leader}, _one_change),
    "replicas": (lambda one: set(one.replicas), _no_change),
    "follower": (lambda one: set(one.isr) - {one.leader}, _no_change),
    "isr-last": (lambda one: set(one.isr[-1:]), _no_change),
    "elr": (lambda one: set(one.elr), _no_change),
}
"""Who has a role, by one look at the metadata; and whether two looks tell who had it between them."""
