"""What each promise of liveness takes for a stall, what it takes for an excuse, and what it lets pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from wrackline.checkers.checks.registry import checks
from wrackline.checkers.verdict.anomaly import Family
from wrackline.fleets.base import Host
from wrackline.harness.run.liveness import promises
from wrackline.harness.run.liveness.look import START_EVERY_S, Look, NoReport, Starts, Subjects
from wrackline.harness.run.liveness.promises import CRASH, PROMISES, Stall
from wrackline.harness.specification.sections import LivenessSpec
from wrackline.history.model import NODE_DIED
from wrackline.kafka_client.coordination import OpenProducer, TransactionState
from wrackline.kafka_client.model import ClusterState, PartitionState, Reassignment
from wrackline.kafka_client.transport import ProtocolError, Rejected, Unreadable
from wrackline.systems.base import DeployError, Node, NodeDied
from wrackline.workloads.log.tally import Tries

PLACE = ("log", 0)
SEND = ("send", "log", 0)


@dataclass
class Answers:
    """The answers of a cluster, and of whoever is asked who runs."""

    partition: PartitionState | None = field(default_factory=lambda: led())
    brokers: tuple[int, ...] = (1, 2, 3)
    down: tuple[int, ...] = ()
    deaf: tuple[int, ...] = ()
    """Nodes that refuse connections."""
    silent: bool = False
    """Nobody can be started."""
    reassignments: Sequence[Reassignment] = ()
    coordinator: int | ErrorCode = 2
    group: ErrorCode | None = None
    """What OffsetFetch is answered with."""
    transaction: TransactionState | None = None
    ends: tuple[int, int] = (9, 9)
    """Last stable offset and high watermark."""
    producers: Sequence[OpenProducer] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    unreadable: str = ""
    """The question whose answer we cannot read."""
    unread: int = 0
    """How often it was asked."""

    def question(self, name: str) -> None:
        """Every question comes here before its answer."""
        if name == self.unreadable:
            self.unread += 1
            raise Unreadable(f"{name}: malformed answer")


class Asked:
    """A connection."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def api_versions(self) -> dict[int, tuple[int, int]]:
        self._answers.question("api_versions")
        return dict.fromkeys(range(80), (0, 9))

    def list_reassignments(self, *, timeout_s: float) -> Sequence[Reassignment]:
        del timeout_s
        self._answers.question("list_reassignments")
        return self._answers.reassignments

    def find_coordinator(self, kind: str, name: str) -> int:
        del kind, name
        self._answers.question("find_coordinator")
        if isinstance(self._answers.coordinator, ErrorCode):
            raise Rejected("FindCoordinator", self._answers.coordinator)
        return self._answers.coordinator


class Cluster:
    name = "paper"

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.controller = 1
        self.nodes = tuple(Node(n, Host(f"n{n}", ""), frozenset({"broker"}), 9092) for n in (1, 2, 3))

    def describe(self, *, timeout_s: float) -> ClusterState:
        del timeout_s
        one = self._answers.partition
        return ClusterState(self.controller, self._answers.brokers, () if one is None else (one,))

    def is_running(self, node: Node) -> bool:
        return node.node_id not in self._answers.down

    def last_words(self, _: Node) -> str:
        return "out of memory"

    def start(self, node: Node) -> None:
        if self._answers.silent:
            raise DeployError(f"{node.host.name}: no answer")
        if node.node_id in self._answers.down:
            raise NodeDied(f"{node.host.name}: {NODE_DIED}KeyError")

    def connect(self, node: Node, *, timeout_s: float) -> Any:
        del timeout_s
        if node.node_id in (*self._answers.down, *self._answers.deaf):
            raise ProtocolError("refused") from ConnectionRefusedError()
        return Asked(self._answers)


TALLY = {SEND: Tries(begun=9, ended=9, ok=9)}


@pytest.fixture
def stalls(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Stall]]:
    def ask(
        name: str,
        answers: Answers,
        *,
        unclean: bool = False,
        by_hand: bool = False,
        since_s: float = 0.0,
        tries: Mapping[Any, Tries] = TALLY,
    ) -> list[Stall]:
        def patch(question: str, answer: Callable[..., Any]) -> None:
            def asked(*args: Any, **options: Any) -> Any:
                answers.question(question)
                return answer(*args, **options)

            monkeypatch.setattr(promises.coordination, question, asked)

        def fetch(_: object, group: str, __: object) -> int:
            if answers.group is not None:
                raise Rejected(f"OffsetFetch({group})", answers.group)
            return 5

        patch("fetch_committed", fetch)
        patch("transaction", lambda *_: answers.transaction)
        patch("open_producers", lambda *_: {PLACE: answers.producers})
        patch("transactions_of", lambda *_: answers.names)
        patch("end_offsets", lambda *_, committed: {PLACE: answers.ends[not committed]})
        subjects = Subjects([PLACE], ["g"], ["x"], unclean, by_hand, lambda: tries)
        # long ago, unless a test says otherwise: no time-out excuses anything
        look = Look(
            Cluster(answers),  # type: ignore[arg-type]
            subjects,
            TALLY,
            since_s,
            {"n1": "read-only"},
            ["n1"],
        )
        [promise] = [one for one in PROMISES if one.name == name]
        return list(promise.stalls(look))

    return ask


def led(**changes: Any) -> PartitionState:
    base: dict[str, Any] = {"leader": 1, "leader_epoch": 4, "replicas": (1, 2, 3), "isr": (1, 2, 3)}
    return PartitionState("log", 0, **{**base, **changes})


NOBODY = led(leader=-1, isr=(2,))
ONGOING = TransactionState("x", 12, 3, "Ongoing", 900.0)
PREPARED = TransactionState("x", 12, 3, "PrepareCommit", 900.0)
HUNG = OpenProducer(12, 3, 5)

BROKEN: list[tuple[str, dict[str, Any], str]] = [
    (
        "failed-start",
        {"down": (2,)},
        "it has died after 1 start since healing: n2: the node died: KeyError",
    ),
    ("offline-partition", {"partition": NOBODY}, "n2 may lead, runs, and is registered"),
    ("offline-partition", {"partition": NOBODY, "brokers": (1,)}, "and is not registered"),
    ("offline-partition", {"partition": led(leader=-1, isr=(), elr=(3,))}, "n3 may lead"),
    ("offline-partition", {"partition": led(leader=-1, isr=(), last_known_elr=(3,))}, "n3 may lead"),
    ("offline-partition", {"partition": None}, "no broker knows it"),
    ("under-replicated", {"partition": led(isr=(1, 2))}, "n3 runs, and is registered"),
    ("under-replicated", {"partition": led(isr=(1, 2)), "brokers": (1, 2)}, "and is not registered"),
    (
        "endless-reassignment",
        {"reassignments": [Reassignment(PLACE, (1, 2, 3), (3,), (1,))]},
        "adding n3, removing n1",
    ),
    (
        "unavailable-coordinator",
        {"coordinator": ErrorCode.coordinator_not_available},
        "FindCoordinator is answered with COORDINATOR_NOT_AVAILABLE",
    ),
    (
        "unavailable-coordinator",
        {"group": ErrorCode.coordinator_load_in_progress},
        "its coordinator n2 answers OffsetFetch with COORDINATOR_LOAD_IN_PROGRESS",
    ),
    ("unavailable-coordinator", {"group": ErrorCode.not_coordinator}, "NOT_COORDINATOR"),
    ("hanging-transaction", {"transaction": PREPARED}, "n2 has it in PrepareCommit (producer 12, epoch 3)"),
    ("hanging-transaction", {"transaction": ONGOING}, "has it in Ongoing"),
    (
        "stuck-lso",
        {"ends": (5, 9), "producers": [HUNG]},
        "the last stable offset is 5, the high watermark 9; producer 12 has had a transaction open since "
        "offset 5, and no coordinator knows of it",
    ),
    (
        "stuck-lso",
        {"ends": (5, 9), "producers": [HUNG], "names": {12: "x"}, "transaction": PREPARED},
        "its coordinator has transaction x in PrepareCommit",
    ),
    (
        "stuck-lso",
        {"ends": (5, 9), "producers": [HUNG], "names": {12: "x"}},
        "for its coordinator transaction x is over",
    ),
]
EXCUSED: list[tuple[str, dict[str, Any], str]] = [
    ("offline-partition", {"partition": NOBODY, "down": (2,)}, "n2 does not run: out of memory"),
    ("offline-partition", {"partition": NOBODY, "deaf": (2,)}, "n2 does not listen: refused"),
    ("offline-partition", {"partition": led(leader=-1, isr=())}, "nobody is left in its ISR and ELR"),
    ("under-replicated", {"partition": led(isr=(1, 2)), "down": (3,)}, "n3 does not run"),
    (
        "endless-reassignment",
        {"reassignments": [Reassignment(PLACE, (1, 2, 3), (3,), (1,))], "down": (3,)},
        "n3 does not run",
    ),
    (
        "unavailable-coordinator",
        {"coordinator": ErrorCode.coordinator_not_available, "down": (3,)},
        "n3 does not run",
    ),
    ("hanging-transaction", {"transaction": PREPARED, "down": (3,)}, "n3 does not run"),
    ("stuck-lso", {"ends": (5, 9), "producers": [HUNG], "down": (3,)}, "n3 does not run"),
]
KEPT: list[tuple[str, dict[str, Any]]] = [
    ("failed-start", {"down": (2,), "silent": True}),
    *((one.name, {}) for one in PROMISES if one.name != "refused-operation"),
    (
        "under-replicated",
        {
            "partition": led(replicas=(1, 2, 3), isr=(1, 2)),
            "reassignments": [Reassignment(PLACE, (1, 2, 3), (3,), ())],
        },
    ),
    ("under-replicated", {"partition": NOBODY}),
    ("endless-reassignment", {"reassignments": [Reassignment(("other", 0), (1, 2, 3), (3,), (1,))]}),
    ("unavailable-coordinator", {"group": ErrorCode.group_id_not_found}),
    ("hanging-transaction", {"transaction": TransactionState("x", 12, 3, "CompleteAbort", 9.0)}),
]


def test_the_table_is_the_anomalies_and_the_keys_of_a_specification() -> None:
    anomalies = {one.name for one in checks() if one.family == Family.LIVENESS}
    assert sorted([CRASH, *(one.name for one in PROMISES)]) == sorted(anomalies)
    assert {one.bound for one in PROMISES} == set(LivenessSpec.model_fields)
    tried = {name for name, *_ in BROKEN} | {"refused-operation", "leader-on-failed-disk", "late-fencing"}
    tried |= {CRASH}  # nobody looks for it (tests/harness/run/test_unexpected_exits.py)
    assert tried == anomalies


@pytest.mark.parametrize(("name", "answers", "state"), BROKEN)
def test_it_stands_still(
    stalls: Callable[..., list[Stall]], name: str, answers: dict[str, Any], state: str
) -> None:
    said = stalls(name, Answers(**answers))
    assert any(state in one.state for one in said), said
    assert not any(one.excuse for one in said), said


@pytest.mark.parametrize(("name", "answers", "excuse"), EXCUSED)
def test_the_cluster_cannot_help_it(
    stalls: Callable[..., list[Stall]], name: str, answers: dict[str, Any], excuse: str
) -> None:
    said = stalls(name, Answers(**answers))
    assert said
    assert all(excuse in one.excuse for one in said), said


@pytest.mark.parametrize(("name", "answers"), KEPT)
def test_it_moves(stalls: Callable[..., list[Stall]], name: str, answers: dict[str, Any]) -> None:
    assert stalls(name, Answers(**answers)) == []


QUESTIONS: dict[str, set[str]] = {
    "endless-reassignment": {"api_versions", "list_reassignments"},
    "unavailable-coordinator": {"api_versions", "find_coordinator", "fetch_committed", "transaction"},
    "hanging-transaction": {"api_versions", "transaction"},
    "stuck-lso": {"api_versions", "end_offsets", "open_producers", "transactions_of", "transaction"},
    "leader-on-failed-disk": {"end_offsets"},
}
"""Promise -> the questions to single brokers by whose answers it is decided."""


@pytest.mark.parametrize("name", [one.name for one in PROMISES if one.by_broker])
def test_an_answer_that_we_cannot_read_shows_nothing_of_the_cluster(
    stalls: Callable[..., list[Stall]], name: str
) -> None:
    """Whatever stands still, and whichever answer it is: also where silence would be a stall."""
    sent = {SEND: Tries(begun=10, ended=9, ok=9)}
    broken: list[dict[str, Any]] = [answers for of, answers, _ in BROKEN if of == name] or [{}]
    asked = set()
    for question in sorted(QUESTIONS[name]):
        for each in ({}, *broken):
            answers = Answers(**each, unreadable=question)
            with suppress(NoReport):
                stalls(name, answers, tries=sent)
                assert not answers.unread, (question, each)
            if answers.unread:
                asked.add(question)
    assert asked == QUESTIONS[name]


def test_who_may_lead_depends_on_the_elections(stalls: Callable[..., list[Stall]]) -> None:
    nobody = Answers(partition=led(leader=-1, isr=(2,)), down=(2,))
    assert stalls("offline-partition", nobody)[0].excuse
    assert not stalls("offline-partition", nobody, unclean=True)[0].excuse
    last_known = Answers(partition=led(leader=-1, isr=(), last_known_elr=(3,)))
    assert not stalls("offline-partition", last_known)[0].excuse
    assert stalls("offline-partition", last_known, by_hand=True)[0].excuse


def test_a_transaction_may_be_open_until_its_own_time_out(stalls: Callable[..., list[Stall]]) -> None:
    now = time.monotonic()
    open_now = Answers(transaction=ONGOING, ends=(5, 9), producers=[HUNG], names={12: "x"})
    for name in ("hanging-transaction", "stuck-lso"):
        assert "900 s has not passed" in stalls(name, open_now, since_s=now)[0].excuse
        assert not stalls(name, open_now, since_s=now - 911)[0].excuse
    assert not stalls("hanging-transaction", Answers(transaction=PREPARED), since_s=now)[0].excuse


@pytest.mark.parametrize(
    ("tries", "state"),
    [
        (
            Tries(begun=12, ended=12, ok=9, error="NOT_ENOUGH_REPLICAS"),
            "the last error was NOT_ENOUGH_REPLICAS",
        ),
        (Tries(begun=10, ended=9, ok=9), "1 operation begun since healing, 1 under way"),
        (Tries(begun=12, ended=12, ok=10), None),
        (Tries(begun=10, ended=10, ok=9), None),
        (Tries(begun=9, ended=9, ok=9), None),
    ],
)
def test_a_kind_of_operation_is_refused_where_it_was_tried_and_none_succeeded(
    stalls: Callable[..., list[Stall]], tries: Tries, state: str | None
) -> None:
    said = stalls("refused-operation", Answers(), tries={SEND: tries})
    assert [one.subject for one in said] == (["send of log-0"] if state else [])
    assert all(state in one.state for one in said if state)


def test_a_leader_may_not_stay_on_a_failed_disk_while_clients_send(
    stalls: Callable[..., list[Stall]],
) -> None:
    sent = {SEND: Tries(begun=10, ended=9, ok=9)}
    name = "leader-on-failed-disk"
    [one] = stalls(name, Answers(), tries=sent)
    assert one.state == (
        "n1, under read-only, leads (leader epoch 4) with the high watermark 9; n2, n3 of the ISR could lead"
    )
    assert one.still == "1/4/9"
    assert stalls(name, Answers(), tries=TALLY) == []
    assert stalls(name, Answers(partition=led(leader=2)), tries=sent) == []
    assert stalls(name, Answers(partition=led(isr=(1,))), tries=sent) == []


@pytest.mark.parametrize(
    ("down", "partition", "controller", "subjects"),
    [
        ((), led(), 3, []),
        ((1,), led(), 3, ["n1 of log-0"]),
        ((2,), led(), 3, ["n2 of log-0"]),
        ((1, 2), led(), 3, ["n1 of log-0", "n2 of log-0"]),
        ((1,), led(leader=2, isr=(2, 3)), 3, []),
        ((1,), led(isr=(1,)), 3, []),
        ((1, 2), led(isr=(1, 2)), 3, []),
        ((1,), led(), 1, []),
        ((1,), led(), -1, []),
    ],
    ids=[
        "nobody down",
        "leader",
        "follower",
        "both",
        "out",
        "alone",
        "all",
        "its controller",
        "no controller",
    ],
)
def test_a_node_that_is_down_leaves_isrs(
    down: tuple[int, ...], partition: PartitionState, controller: int, subjects: list[str]
) -> None:
    cluster = Cluster(Answers(partition=partition))
    cluster.controller = controller
    [promise] = [one for one in PROMISES if one.name == "late-fencing"]
    hosts = {f"n{node}": "pause" for node in down}
    look = Look(cluster, Subjects([PLACE]), TALLY, 0.0, down=hosts, hit=hosts)  # type: ignore[arg-type]
    assert [one.subject for one in promise.stalls(look)] == subjects


@pytest.mark.parametrize("name", ["late-fencing", "leader-on-failed-disk"])
def test_where_no_fault_is_in_force_nobody_is_asked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look at a fault comes when it is over, and nodes may still be on their way."""
    cluster = Cluster(Answers())
    monkeypatch.setattr(cluster, "describe", None)
    [promise] = [one for one in PROMISES if one.name == name]
    assert list(promise.stalls(Look(cluster, Subjects([PLACE]), TALLY, 0.0))) == []  # type: ignore[arg-type]


def test_a_node_that_dies_is_started_again_after_a_while() -> None:
    answers, starts, now = Answers(down=(2,)), dict[int, Starts](), [0.0]
    [promise] = [one for one in PROMISES if one.name == "failed-start"]

    def ask(at_s: float) -> list[str]:
        now[0] = at_s
        look = Look(
            Cluster(answers),  # type: ignore[arg-type]
            Subjects([PLACE]),
            TALLY,
            0.0,
            starts=starts,
            clock=lambda: now[0],
        )
        return [one.state for one in promise.stalls(look)]

    assert "after 1 start " in ask(0)[0]
    assert "after 1 start " in ask(START_EVERY_S - 1)[0]
    assert "after 2 starts " in ask(START_EVERY_S)[0]
    answers.down = ()
    assert "after 2 starts " in ask(2 * START_EVERY_S - 1)[0], "it may die yet"
    answers.down = (2,)
    assert "after 3 starts " in ask(2 * START_EVERY_S)[0]
    answers.down = ()
    assert ask(3 * START_EVERY_S) == []
    assert not starts
