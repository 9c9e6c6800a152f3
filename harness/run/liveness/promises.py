"""The promises of liveness: what is asked of the cluster, when, and how long it may take. Each is a function
that yields what does not move; its name is that of the anomaly (docs/anomalies.md section 6).

``PROMISES`` is the table. A stall that has an excuse is one that the cluster cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from kio.schema.errors import ErrorCode

from wrackline.harness.run.liveness.look import NO_ANSWER, Look
from wrackline.history.model import CONTROL, LIVENESS, Event, Type
from wrackline.history.wording import number, partition_label, plural
from wrackline.kafka_client import coordination
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.coordination import OpenProducer, TransactionState, knows
from wrackline.kafka_client.transport import Rejected
from wrackline.systems.base import Node, PartitionState, Place

ABORT_CHECK_S = 10.0
"""So often a coordinator looks for transactions that have timed out, unless it is told otherwise."""
_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_UNAVAILABLE = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.request_timed_out,
    }
)


class When(Enum):
    """When a promise is asked for."""

    FAULT = auto()
    """While certain faults are in force."""
    HEALED = auto()
    """From healing on."""
    DRIVEN = auto()
    """From healing on, while clients are at work."""
    STOPPED = auto()
    """Once the clients have stopped."""


@dataclass(frozen=True, slots=True)
class Stall:
    """Something that does not move."""

    subject: str
    """Names it among those of its promise: ``log-0 on n3``."""
    state: str
    """The state that shows it, as it stands in a sentence after a colon."""
    still: str = ""
    """The part of the state by whose change it would have moved."""
    place: Place | None = None
    node: str | None = None
    """The host that it is about."""
    excuse: str = ""
    """Why the cluster cannot help it."""


@dataclass(frozen=True, slots=True)
class Promise:
    name: str
    bound: str
    """The key of its bound below ``contract.liveness``."""
    when: When
    stalls: Callable[[Look], Iterator[Stall]]
    by_broker: bool = False
    """It asks brokers one by one, which not every system allows."""


# --- nodes --------------------------------------------------------------------------------------------------


def _failed_start(look: Look) -> Iterator[Stall]:
    """Nodes that ran in this run, and that end by themselves soon after each start."""
    for node in look.system.nodes:
        if starts := look.start_again(node):
            state = f"it has died after {plural(starts.count, 'start')} since healing: {starts.words}"
            yield Stall(f"node {node.node_id} on {node.host.name}", state, node=node.host.name)


# --- leaders and replicas -----------------------------------------------------------------------------------


def _offline(look: Look) -> Iterator[Stall]:
    """Partitions without a leader."""
    for place in sorted(look.subjects.places):
        one = look.partitions.get(place)
        if one is None:
            yield Stall(_name(place), "no broker knows it", place=place, excuse=look.all_absent())
        elif one.leader < 0:
            yield _leaderless(look, one)


def _leaderless(look: Look, one: PartitionState) -> Stall:
    others = () if look.subjects.by_hand else one.last_known_elr
    others = one.replicas if look.subjects.unclean else others
    may_lead = dict.fromkeys((*one.isr, *one.elr, *others))
    there = [node for node in may_lead if node not in look.absent]
    state = f"it has no leader (leader epoch {one.leader_epoch}), {_sets(look, one)}"
    if there:
        state += "; " + "; ".join(
            f"{look.host(node)} may lead, runs, and {look.registered(node)}" for node in there
        )
    gone = "; ".join(look.absent[node] for node in may_lead if node in look.absent)
    excuse = "" if there else gone or "nobody is left in its ISR and ELR"
    return Stall(_name(one.place), state, str(one.leader_epoch), one.place, excuse=excuse)


def _under_replicated(look: Look) -> Iterator[Stall]:
    """Replicas outside of the ISR; those that a reassignment adds are a matter of that."""
    for one in look.partitions.values():
        short = [node for node in one.replicas if node not in one.isr] if one.leader >= 0 else []
        if not short:
            continue
        moving = look.reassignments.get(one.place)
        for node in short:
            if moving is not None and node in moving.adding:
                continue
            host, excuse = look.host(node), look.absent.get(node, "")
            state = f"{look.host(one.leader)} leads (leader epoch {one.leader_epoch}), {_sets(look, one)}"
            if not excuse:
                state += f"; {host} runs, and {look.registered(node)}"
            yield Stall(f"{_name(one.place)} on {host}", state, "", one.place, host, excuse)


def _endless_reassignment(look: Look) -> Iterator[Stall]:
    for one in look.reassignments.values():
        what = f"adding {look.hosts(one.adding)}, removing {look.hosts(one.removing)}"
        excuse = "; ".join(look.absent[node] for node in one.replicas if node in look.absent)
        yield Stall(_name(one.place), what, what, one.place, excuse=excuse)


def _sets(look: Look, one: PartitionState) -> str:
    elr = f", {look.hosts(one.elr)} in the ELR" if one.elr else ""
    return f"with {look.hosts(one.isr)} in the ISR{elr}"


# --- coordinators -------------------------------------------------------------------------------------------


def _coordinators(look: Look) -> Iterator[Stall]:
    """Coordinators of groups and transactions that do not answer what they coordinate."""
    first = min(look.subjects.places, default=("", 0))

    def fetch(connection: Connection, group: str) -> int:
        return coordination.fetch_committed(connection, group, first)

    for group in look.subjects.groups:
        yield from _coordinated(look, "group", group, "OffsetFetch", fetch)
    for name in look.subjects.transactional_ids:
        yield from _coordinated(look, "transaction", name, "DescribeTransactions", _transaction)


def _coordinated(
    look: Look, kind: str, name: str, request: str, ask: Callable[[Connection, str], object]
) -> Iterator[Stall]:
    subject = f"{kind} {name}"
    node, state = _coordinator(look, kind, name)
    if node is None:
        yield Stall(subject, state, excuse=look.all_absent())
        return
    try:
        look.ask(node, lambda connection: ask(connection, name))
    except NO_ANSWER as error:
        if isinstance(error, Rejected) and error.error not in _UNAVAILABLE:
            return  # it is an answer
        state = f"its coordinator {node.host.name} answers {request} with {_words(error)}"
        yield Stall(subject, state, node=node.host.name, excuse=look.all_absent())


def _coordinator(look: Look, kind: str, name: str) -> tuple[Node | None, str]:
    """Returns the node that coordinates it; None, and why, where nobody names one."""
    try:
        node = look.ask_any(lambda one: one.find_coordinator(kind, name))
    except NO_ANSWER as error:
        return None, f"FindCoordinator is answered with {_words(error)}"
    return look.nodes.get(node), f"FindCoordinator names node {node}, which there is not"


def _words(error: Exception) -> str:
    return error.error.name.upper() if isinstance(error, Rejected) else f"nothing ({error})"


def _transaction(connection: Connection, name: str) -> TransactionState | None:
    if not knows(connection, coordination.DESCRIBE_TRANSACTIONS):
        return None
    return coordination.transaction(connection, name)


# --- transactions -------------------------------------------------------------------------------------------


def _hanging_transaction(look: Look) -> Iterator[Stall]:
    """Transactions of producers that have ended, and that are neither committed nor aborted."""
    for one, node in _open_transactions(look, look.subjects.transactional_ids):
        what = f"producer {one.producer_id}, epoch {one.epoch}"
        yield Stall(
            f"transaction {one.transactional_id}",
            f"its coordinator {node.host.name} has it in {one.state} ({what})",
            f"{what}, {one.state}",
            node=node.host.name,
            excuse=_within_timeout(look, one) or look.all_absent(),
        )


def _open_transactions(look: Look, names: Sequence[str]) -> Iterator[tuple[TransactionState, Node]]:
    """Those of these transactions that are open, each with its coordinator."""
    for name in names:
        node, _ = _coordinator(look, "transaction", name)
        if node is None:  # another promise tells of it
            continue
        try:
            one = look.ask(node, lambda connection, of=name: _transaction(connection, of))  # type: ignore[misc]
        except NO_ANSWER:
            continue
        if one is not None and one.state in _OPEN:
            yield one, node


def _within_timeout(look: Look, one: TransactionState) -> str:
    """Returns why its coordinator does not have to abort it yet; empty when it has to."""
    if one.state != "Ongoing" or look.elapsed_s >= one.timeout_s + ABORT_CHECK_S:
        return ""
    return f"its producer has ended, and its own time-out of {one.timeout_s:g} s has not passed since"


def _stuck_lso(look: Look) -> Iterator[Stall]:
    """Partitions whose last stable offset is below the high watermark."""
    for leader, places in look.by_leader(look.subjects.places).items():
        node = look.nodes[leader]

        def ask(connection: Connection, of: Sequence[Place] = places) -> list[tuple[Place, int, int]]:
            if not knows(connection, coordination.LIST_OFFSETS, 2):
                return []
            ends = coordination.end_offsets(connection, of, committed=False)
            stable = coordination.end_offsets(connection, of, committed=True)
            pairs = [(place, stable.get(place), ends.get(place)) for place in of]
            return [
                (place, lso, end)
                for place, lso, end in pairs
                if isinstance(lso, int) and isinstance(end, int) and lso < end
            ]

        behind = look.ask(node, ask)
        if not behind:
            continue
        producers = look.ask(node, lambda connection, of=behind: _producers(connection, of))  # type: ignore[misc]
        for place, lso, end in behind:
            culprits = [one for one in producers.get(place, ()) if one.first_offset <= lso]
            cause, excuse = _cause(look, culprits)
            state = f"the last stable offset is {number(lso)}, the high watermark {number(end)}{cause}"
            yield Stall(_name(place), state, str(lso), place, node.host.name, excuse or look.all_absent())


def _producers(
    connection: Connection, behind: Sequence[tuple[Place, int, int]]
) -> Mapping[Place, Sequence[OpenProducer]]:
    if not knows(connection, coordination.DESCRIBE_PRODUCERS):
        return {}
    return coordination.open_producers(connection, [place for place, *_ in behind])


def _cause(look: Look, culprits: Sequence[OpenProducer]) -> tuple[str, str]:
    """Returns whose transactions hold the last stable offset back, as a clause, and what excuses them."""
    names: dict[int, str] = {}
    ids = [one.producer_id for one in culprits]

    def ask(connection: Connection) -> Mapping[int, str]:
        if not knows(connection, coordination.LIST_TRANSACTIONS):
            return {}
        return coordination.transactions_of(connection, ids)

    for node in look.brokers if culprits else ():
        try:
            names |= look.ask(node, ask)
        except NO_ANSWER:
            continue
    of_name = {one.transactional_id: one for one, _ in _open_transactions(look, sorted(names.values()))}
    clauses, excuses = [], []
    for culprit in culprits:
        name = names.get(culprit.producer_id, "")
        entry = of_name.get(name)
        if entry is not None and entry.producer_id == culprit.producer_id:
            of = f"its coordinator has transaction {name} in {entry.state}"
        else:
            of = f"for its coordinator transaction {name} is over" if name else "no coordinator knows of it"
        clauses.append(
            f"; producer {culprit.producer_id} has had a transaction open since offset "
            f"{number(culprit.first_offset)}, and {of}"
        )
        excuses.append(_within_timeout(look, entry) if entry is not None else "")
    return "".join(clauses), excuses[0] if excuses and all(excuses) else ""


# --- clients ------------------------------------------------------------------------------------------------


def _refused_operation(look: Look) -> Iterator[Stall]:
    """Kinds of operations of which clients tried several, or still wait for one, and none succeeded. That a
    single one fails, and is not tried again, says nothing."""
    for kind, now in look.subjects.tries().items():
        before = look.tries_before.get(kind)
        begun = now.begun - (before.begun if before else 0)
        waited_for = now.begun - now.ended
        if now.ok > (before.ok if before else 0) or not (begun > 1 or waited_for):
            continue
        f, topic, partition = kind
        where = f" of {partition_label(topic, partition)}" if partition is not None else ""
        error = f"; the last error was {now.error}" if now.error else ""
        state = (
            f"{plural(begun, 'operation')} begun since healing, {waited_for} under way, none succeeded{error}"
        )
        place = (topic, partition) if topic is not None and partition is not None else None
        yield Stall(f"{f}{where}", state, "", place, excuse=look.all_absent())


# --- disks --------------------------------------------------------------------------------------------------


def _leader_on_failed_disk(look: Look) -> Iterator[Stall]:
    """Leaders whose disk takes no writes, though others of the ISR could lead, while clients send and the
    high watermark stands still."""
    leaders = look.by_leader(look.subjects.places) if look.faults else {}
    for leader, places in leaders.items():
        fault, host = look.faults.get(look.host(leader)), look.host(leader)
        if fault is None:
            continue
        ends = _ends(look, look.nodes[leader], places)
        for place in places:
            one = look.partitions[place]
            others = [node for node in one.isr if node != leader and look.host(node) not in look.hit]
            if not others or not _is_sent_to(look, place):
                continue
            end = ends.get(place)
            high = number(end) if isinstance(end, int) else "not told"
            state = (
                f"{host}, under {fault}, leads (leader epoch {one.leader_epoch}) with the high watermark "
                f"{high}; {look.hosts(others)} of the ISR could lead"
            )
            yield Stall(_name(place), state, f"{leader}/{one.leader_epoch}/{high}", place, host)


def _late_fencing(look: Look) -> Iterator[Stall]:
    """Nodes that are down and lead, or are in an ISR, though another member of it is well and so is every
    controller."""
    if not look.down:  # nobody need be asked, and perhaps nobody answers yet
        return
    deciding = [node for node in look.system.nodes if node.is_controller or node.is_zookeeper]
    if look.state.controller < 0 or {look.host(look.state.controller), *_names(deciding)} & set(look.down):
        return
    for place, one in sorted(look.partitions.items()):
        well = [node for node in one.isr if look.host(node) not in look.down]
        for node in one.isr if well else ():
            if fault := look.down.get(look.host(node)):
                role = "leads" if node == one.leader else "is in the ISR of"
                state = f"under {fault} it {role} {_name(place)} (leader epoch {one.leader_epoch})"
                subject = f"{look.host(node)} of {_name(place)}"
                yield Stall(subject, f"{state}; {look.hosts(well)} of the ISR is well", "", place)


def _names(nodes: Iterable[Node]) -> set[str]:
    return {node.host.name for node in nodes}


def _ends(look: Look, node: Node, places: Sequence[Place]) -> Mapping[Place, int | ErrorCode]:
    try:
        return look.ask(node, lambda one: coordination.end_offsets(one, places, committed=False))
    except NO_ANSWER:
        return {}


def _is_sent_to(look: Look, place: Place) -> bool:
    """Tells whether clients have begun to send there since the fault was in force, or cannot be told
    apart by partition."""
    begun = {
        partition: tries.begun - (before.begun if (before := look.tries_before.get(kind)) else 0)
        for kind, tries in look.subjects.tries().items()
        for f, topic, partition in [kind]
        if f == "send" and topic in (None, place[0])
    }
    return bool(begun.get(place[1]) or begun.get(None))


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


CRASH = "crash"
"""Has no bound, and nobody looks for it: whoever sees that a node is gone writes it down."""


def crash_of(subject: str, name: str, state: str) -> Event:
    """Returns the row of a node that ended by a bug of its own. ``name``: of this end, in the run."""
    extra = {
        "promise": CRASH,
        "look": 1,
        "kept": False,
        "subject": subject,
        "state": state,
        "still": name,
        "bound_s": 0.0,
        "excuse": "",
    }
    return Event(CONTROL, Type.INFO, LIVENESS, extra=extra)


PROMISES: tuple[Promise, ...] = (
    Promise("failed-start", "rejoin_s", When.HEALED, _failed_start),
    Promise("offline-partition", "leader_s", When.HEALED, _offline),
    Promise("under-replicated", "rejoin_s", When.HEALED, _under_replicated),
    Promise("endless-reassignment", "reassignment_s", When.HEALED, _endless_reassignment, by_broker=True),
    Promise("unavailable-coordinator", "coordinator_s", When.HEALED, _coordinators, by_broker=True),
    Promise("refused-operation", "operation_s", When.DRIVEN, _refused_operation),
    Promise("hanging-transaction", "transaction_s", When.STOPPED, _hanging_transaction, by_broker=True),
    Promise("stuck-lso", "transaction_s", When.STOPPED, _stuck_lso, by_broker=True),
    Promise("late-fencing", "fence_s", When.FAULT, _late_fencing),
    Promise("leader-on-failed-disk", "disk_s", When.FAULT, _leader_on_failed_disk, by_broker=True),
)
