"""A configuration makes a contract, and the contract gives each anomaly its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkers.histories import NODES, TOPIC, info
from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Fault, Run, Sample, Stall
from wrackline.checkers.inputs.table import NEVER
from wrackline.checkers.verdict.anomaly import Anomaly, Family, Promise
from wrackline.checkers.verdict.contracts import (
    Contract,
    UnknownContract,
    contract_for,
    named,
)
from wrackline.checkers.verdict.lossy_shutdowns import lossy_shutdowns, worst_losses
from wrackline.history.model import NODE_DIED, TopicInfo

PLACE = (TOPIC, 0)
V, A, NA = Meaning.VIOLATION, Meaning.ALLOWED, Meaning.NOT_APPLICABLE


def run(**changes: Any) -> Run:
    made = Run(Path("r"), info(**({"idempotence": False} | changes)), [])
    made.nodes = dict(NODES)
    made.assignment = {PLACE: (1, 2, 3)}
    return made


def cut(host: str, at_s: float, name: str = "f1", lost: dict[str, int] | None = None) -> Fault:
    files = {"log-0/00.log": 100} if lost is None else lost
    ns = int(at_s * 1e9)
    return Fault(name, "power-cut", (host,), "", ns, ns, ns, ns, True, "", "", (host,), {host: files})


def damaged(host: str, at_s: float, files: dict[str, int] | None = None, name: str = "f9") -> Fault:
    ns = int(at_s * 1e9)
    fault = Fault(name, "bit-flip", (host,), "", ns, ns, ns, ns, True, "", "", (host,))
    fault.damaged = {host: files or {}}
    return fault


def killed(*hosts: str) -> Run:
    """Each of these hosts had its node killed, a second after the other."""
    made = run()
    for number, host in enumerate(hosts):
        ns = (10 + number) * 1_000_000_000
        made.faults.append(Fault(f"k{number}", "kill", (host,), "", ns, ns, ns, ns, True))
    return made


@pytest.mark.parametrize(
    ("hosts", "at_s", "meaning"),
    [((), 5, V), (("n1", "n2"), 5, V), (("n1", "n2", "n3"), 5, A), (("n1", "n2", "n3"), 11, V)],
)
def test_a_deletion_lasts_until_every_replica_was_killed_after_it(
    hosts: tuple[str, ...], at_s: int, meaning: Meaning
) -> None:
    rule = contract_for(killed(*hosts), anomalies()).rule("lost-deletion", PLACE)
    since = np.array([at_s * 1_000_000_000])
    [number] = rule.rulings(since, np.array([NEVER]), np.zeros(1, dtype=bool)).tolist()
    assert rule.numbered(number).meaning is meaning


def busy(**changes: Any) -> Run:
    """A node was killed, and so another became leader."""
    of = run(**changes)
    of.cluster = {
        PLACE: [
            sample(1, 1, 2, 3),
            sample(11, 2, 3, leader=2, epoch=1),
            sample(20, 1, 2, 3, leader=2, epoch=1),
        ]
    }
    ns = 10 * 1_000_000_000
    of.faults = [Fault("f0", "kill", ("n1",), "", ns, ns, ns, ns, True)]
    return of


def with_faults(of: Run, *faults: Fault) -> Run:
    of.faults += faults
    return of


def sample(
    at_s: float, *isr: int, leader: int = 1, epoch: int = 0, replicas: tuple[int, ...] = (1, 2, 3)
) -> Sample:
    return Sample(int(at_s * 1e9), leader, epoch, isr, replicas)


def contract_of(of: Run, forced: str | None = None) -> Contract:
    return contract_for(of, anomalies(), forced)


def meaning(contract: Contract, anomaly: str) -> Meaning:
    return contract.ruling(anomaly, PLACE).meaning


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"acks": "all"}, "acks-all"),
        ({"acks": "all", "idempotence": True}, "acks-all+idempotence"),
        ({"acks": "all", "flush_mode": "every-write"}, "acks-all-flushed"),
        ({"acks": "all", "unclean_election": True}, "acks-all-unclean"),
        ({"acks": "all", "recovery_strategy": "proactive"}, "acks-all-unclean"),
        ({"acks": "1"}, "acks-1"),
        ({"acks": "1", "flush_mode": "every-write"}, "acks-1"),
        ({"acks": "0"}, "acks-0"),
    ],
)
def test_a_configuration_makes_its_contract(changes: dict[str, Any], name: str) -> None:
    assert contract_of(run(**changes)).name == name


def with_absent_node(of: Run) -> Run:
    """Something of each promise of liveness stood still while a node was down."""
    of.stalls = [
        Stall(30, one.name, 1, "log-0", 20.0, "n3 does not run", PLACE)
        for one in anomalies().values()
        if one.family == Family.LIVENESS
    ]
    return of


def left_behind(host: str) -> Fault:
    """A fault that its undo did not mend."""
    return Fault("f8", "partition", (host,), "", 10, 10, 20, 30, True, restored=False, restoration="a rule")


HEALED = ("under-replicated", "failed-start")
INTACT_FILES = ("replica-divergence", "lost-on-replica", "corrupt", "crash")
ONE_LOG_DIR = ("duplicate-log",)
ALWAYS = (
    *INTACT_FILES,
    *ONE_LOG_DIR,
    "phantom",
    "misrouted",
    "aborted-read",
    "future-read",
    "append-order",
    "epoch-order",
    "commit-regression",
    "zombie-commit",
    "zombie-transaction",
    "phantom-commit",
    "double-owner",
)
LOSS = ("lost-write", "vanished-read", "lost-committed")
OBJECTS = ("register-not-linearizable", "queue-not-linearizable")
OFFSETS = ("inconsistent-offset", "wrong-offset")
CONSUMERS = ("poll-skip", "poll-rewind", "commit-beyond-end", "group-skip", "forgotten-commit")
DELETIONS = ("lost-deletion",)
IDEMPOTENCE = ("duplicate", "session-order", "batch-order")
READS = ("stale-read", "watermark-regression", "not-linearizable")
MEMORY = ("double-final",)
ISOLATION = ("write-cycle", "write-read-cycle")
COMMITTED = ("precommitted-read", "unstable-read", "read-cycle")


def these(names: Sequence[str], of: Meaning) -> dict[str, Meaning]:
    return dict.fromkeys(names, of)


USUAL = these((*ALWAYS, *LOSS, *OBJECTS, *OFFSETS, *CONSUMERS, *DELETIONS, *HEALED), V) | these(
    (
        *(*IDEMPOTENCE, *READS, *MEMORY, *ISOLATION, *COMMITTED),
        *("torn-transaction", "unprocessed-input", "deposed-answer"),
    ),
    A,
)
"""What each anomaly of ours means under acks-all, where a node was killed and another became leader."""
ALONE = info(topics=(TopicInfo(TOPIC, 1, 1, 1),)).topics

TABLE: dict[str, tuple[Run, str | None, dict[str, Meaning]]] = {
    "acks-all": (busy(), None, {}),
    "acks-all, nothing happened": (run(), None, these((*IDEMPOTENCE, *READS, *MEMORY), V)),
    "acks-all, reads ask for the end": (busy(reads="end"), None, these(OBJECTS, A)),
    "acks-all with idempotence": (busy(idempotence=True), None, these(IDEMPOTENCE, V)),
    "acks-all with linearizable reads": (
        busy(),
        "acks-all+linearizable-reads",
        these((*READS, "deposed-answer"), V),
    ),
    "acks-all-unclean": (
        busy(unclean_election=True),
        None,
        these((*LOSS, *OBJECTS, *OFFSETS, *CONSUMERS, *DELETIONS), A),
    ),
    "acks-0": (busy(acks="0"), None, these((*LOSS, *OBJECTS), NA) | these(OFFSETS, A)),
    "acks-1": (busy(acks="1"), None, these((*LOSS, *OBJECTS, *OFFSETS), A)),
    "acks-1, nothing happened": (
        run(acks="1", topics=ALONE),
        None,
        these((*IDEMPOTENCE, *READS, *MEMORY), V),
    ),
    "read_committed": (
        busy(isolation="read_committed"),
        None,
        these((*COMMITTED, "torn-transaction"), V),
    ),
    "read_uncommitted": (busy(isolation="read_uncommitted"), None, {}),
    "read_committed, and more was lost than is tolerated": (
        with_faults(busy(isolation="read_committed"), cut("n1", 10), cut("n2", 10, "f2")),
        None,
        these((*LOSS, *OBJECTS, *OFFSETS, *CONSUMERS), A) | these(COMMITTED, V),
    ),
    "consumers go back after an abort": (busy(rewinds=True), None, these(("unprocessed-input",), V)),
    "a node was down when everything should have moved": (
        with_absent_node(busy()),
        None,
        these(HEALED, A),
    ),
    "a fault was not undone": (
        with_faults(busy(), left_behind("n3")),
        None,
        these(HEALED, A),
    ),
    "a fault was never in force": (
        with_faults(busy(), replace(left_behind("n3"), error="n3 does not run", restored=True)),
        None,
        {},
    ),
    "a node died when a fault had ended": (
        with_faults(busy(), replace(left_behind("n3"), error=f"n3: start: {NODE_DIED}KeyError")),
        None,
        these(("under-replicated",), A),
    ),
    "a fault changed files": (
        with_faults(busy(), damaged("n1", 10, {"broker/log-0/00.log": 1})),
        None,
        these((*LOSS, *OBJECTS, *OFFSETS, *CONSUMERS, *INTACT_FILES, *ONE_LOG_DIR, *DELETIONS), A)
        | these(("failed-start",), A),
    ),
    "a node was killed while it moved a replica to another log directory": (
        with_faults(busy(), Fault("f7", "move-replica", ("n1",), "", 5, 5, 20 * 10**9, 20 * 10**9, True)),
        None,
        these(ONE_LOG_DIR, A),
    ),
    "another node was killed meanwhile": (
        with_faults(busy(), Fault("f7", "move-replica", ("n2",), "", 5, 5, 20 * 10**9, 20 * 10**9, True)),
        None,
        {},
    ),
}
"""A configuration, the contract that is asked for with it, and what is not as usual."""


def test_what_the_remote_tier_has_lost_no_replica_has_and_none_differs_for_it() -> None:
    of = run()
    lost = damaged("n1", 10, {"tier/log-0/00.log": 90})
    lost.damaged |= {"n2": lost.damaged["n1"], "n3": lost.damaged["n1"]}
    lost.name, lost.proof = "tier", "the tier, not Kafka, has lost log-0 0 to 9"
    lost.lossy = ("n1", "n2", "n3")
    of.faults = [lost]
    assert not lossy_shutdowns(of, PLACE), "no host lost anything"
    contract = contract_of(of)
    ruling = contract.ruling("lost-write", PLACE)
    assert ruling.meaning is A
    assert "the remote tier has lost" in ruling.text
    assert ruling.text.endswith("the tier, not Kafka, has lost log-0 0 to 9")
    assert meaning(contract, "replica-divergence") is V
    assert contract.ruling("lost-write", (TOPIC, 1)).meaning is V


@pytest.mark.parametrize("name", TABLE)
def test_meaning_of_every_anomaly(name: str) -> None:
    """An anomaly that is not in the table means what the others mean that break the same promise."""
    of, forced, unusual = TABLE[name]
    expected = USUAL | unusual
    known = anomalies()
    of_promise = {known[anomaly].breaks: meant for anomaly, meant in expected.items()}
    promised = [one for one in known.values() if one.breaks is not None and one.name not in expected]
    expected |= {one.name: of_promise[one.breaks] for one in promised}
    contract = contract_of(of, forced)
    assert {anomaly: meaning(contract, anomaly) for anomaly in expected} == expected
    assert all(contract.ruling(anomaly, PLACE).why for anomaly in expected)


def test_an_anomaly_that_breaks_another_promise_would_be_noticed() -> None:
    """No two promises are the same in the whole table, but for those that are always kept."""
    columns: dict[tuple[Meaning, ...], set[Promise | None]] = {}
    for anomaly in USUAL:
        column = tuple((USUAL | unusual)[anomaly] for _, _, unusual in TABLE.values())
        columns.setdefault(column, set()).add(anomalies()[anomaly].breaks)
    always = {Promise.ALWAYS, Promise.NO_ABORTED_READS}
    assert sorted(map(len, columns.values())) == [1] * (len(Promise) - 2) + [2]
    assert always in columns.values()
    assert set().union(*columns.values()) == set(Promise)


def test_of_an_anomaly_that_says_no_promise_no_contract_speaks() -> None:
    silent = Anomaly(name="odd", family="odd", jepsen="–", meaning="odd")
    ruling = contract_for(run(), {"odd": silent}).ruling("odd", PLACE)
    assert (ruling.meaning, ruling.why) == (NA, "no contract speaks of it")


def test_one_lossy_shutdown_is_tolerated_and_two_are_not() -> None:
    of = run()
    of.faults = [cut("n1", 10)]
    assert meaning(contract_of(of), "lost-write") is V
    of.faults.append(cut("n2", 12, "f2"))
    contract = contract_of(of)
    assert meaning(contract, "lost-write") is A
    assert "n1 at 10.0 s (f1), n2 at 12.0 s (f2)" in " ".join(contract.because)


def test_what_one_replica_loses_twice_the_others_still_have() -> None:
    of = run()
    of.faults = [cut("n1", 10), cut("n1", 12, "f2")]
    contract = contract_of(of)
    assert meaning(contract, "lost-write") is V
    assert len(worst_losses(of, PLACE)) == 2, "both are named"
    of.faults.append(cut("n2", 14, "f3"))
    assert meaning(contract_of(of), "lost-write") is A


def test_another_disk_counts_also_where_records_are_flushed_before_they_count() -> None:
    of = run(flush_mode="every-write")
    of.faults = [damaged("n2", 10, name="f8"), damaged("n3", 10)]
    assert meaning(contract_of(of), "lost-write") is A
    of.faults = [cut("n1", 10), cut("n2", 10), damaged("n3", 10)]
    contract = contract_of(of)
    assert meaning(contract, "lost-write") is V, "one is tolerated"
    assert meaning(contract, "lost-on-replica") is V, "it gets back what it lacks"
    assert "n3 at 10.0 s (f9, synced ones too)" in " ".join(contract.because)


def test_changed_files_of_one_partition_excuse_nothing_in_another() -> None:
    of = run()
    of.faults = [damaged("n1", 10, {"broker/log-1/00.log": 1})]
    contract = contract_of(of)
    for anomaly in ("corrupt", "lost-on-replica", "replica-divergence", "lost-write", "poll-skip"):
        assert meaning(contract, anomaly) is V


def test_a_full_isr_in_between_starts_the_count_again() -> None:
    of = run()
    of.faults = [cut("n1", 10), cut("n2", 30, "f2")]
    of.cluster = {PLACE: [sample(5, 1, 2, 3), sample(12, 2, 3), sample(20, 1, 2, 3), sample(31, 1, 3)]}
    assert len(worst_losses(of, PLACE)) == 1
    assert meaning(contract_of(of), "lost-write") is V


def test_stale_metadata_after_a_power_cut_does_not_count_as_a_full_isr() -> None:
    of = run()
    of.faults = [cut("n1", 10), cut("n2", 10.5, "f2")]
    of.cluster = {PLACE: [sample(5, 1, 2, 3), sample(10.2, 1, 2, 3), sample(11, 3), sample(20, 1, 2, 3)]}
    assert len(worst_losses(of, PLACE)) == 2
    assert meaning(contract_of(of), "lost-write") is A


def test_only_hosts_with_a_replica_count_and_only_bytes_that_concern_it() -> None:
    of = run()
    of.assignment = {PLACE: (1, 2)}
    of.faults = [
        cut("n3", 1),
        cut("n1", 2, "f2", {"log-1/00.log": 50}),
        cut("n2", 3, "f3", {"log-0/00.log": 0}),
    ]
    assert [one.host for one in lossy_shutdowns(of, PLACE)] == [
        "n2"
    ]  # its list names no file with bytes at all
    of.faults = [cut("n1", 2, "f2", {"log-1/00.log": 50, "replication-offset-checkpoint": 9})]
    assert [one.host for one in lossy_shutdowns(of, PLACE)] == ["n1"]
    of.faults = [cut("n1", 2, "f2", {"log-1/00.log": 50})]
    assert not lossy_shutdowns(of, PLACE)


def test_a_power_cut_whose_end_nobody_saw_may_have_been_lossy() -> None:
    of = run()
    of.faults = [Fault("f1", "power-cut", ("n1", "n2"), begin_ns=5)]
    assert [one.known for one in lossy_shutdowns(of, PLACE)] == [False, False]
    assert meaning(contract_of(of), "lost-write") is A
    of.faults = [Fault("f1", "kill", ("n1", "n2"), begin_ns=5)]
    assert meaning(contract_of(of), "lost-write") is V


def test_a_contract_can_be_forced() -> None:
    of = run(acks="1")
    of.faults = [cut("n1", 10)]
    assert meaning(contract_of(of), "lost-write") is A
    forced = contract_of(of, "acks-all")
    assert meaning(forced, "lost-write") is V
    assert forced.because[0] == "it was asked for with --contract"
    strict = contract_of(of, "acks-all+linearizable-reads+idempotence")
    assert {meaning(strict, one) for one in ("stale-read", "not-linearizable", "duplicate")} == {V}


@pytest.mark.parametrize("name", ["", "acks-2", "acks-all+hope"])
def test_an_unknown_contract_is_one_clear_line(name: str) -> None:
    with pytest.raises(
        UnknownContract, match=r"no contract is called .*[;?] there are acks-all, acks-all-flushed"
    ):
        named(name)


def test_a_lossy_shutdown_counts_by_the_replicas_of_its_time() -> None:
    """Broker 4 takes the place of broker 1 at 10 s: n1's loss counts before, n4's after, neither the other
    way."""
    of = run()
    of.nodes |= {4: "n4"}
    of.assignment = {PLACE: (4, 2, 3)}  # as written down at the end
    of.cluster[PLACE] = [
        sample(1, 1, 2, 3),
        sample(9, 1, 2, 3, replicas=(4, 2, 3, 1)),
        sample(10, 4, 2, 3, replicas=(4, 2, 3)),
        sample(11, 4, 2, 3, replicas=(4, 2, 3)),
    ]

    def hosts(*faults: Fault) -> list[str]:
        of.faults = list(faults)
        return [one.host for one in lossy_shutdowns(of, PLACE)]

    assert hosts(cut("n1", 5)) == ["n1"]
    assert hosts(cut("n4", 5)) == ["n4"], "metadata was asked next when it was one already"
    assert hosts(cut("n4", 0.5)) == []
    assert hosts(cut("n1", 10.5)) == []
    assert hosts(cut("n4", 20), cut("n1", 20, "f2")) == ["n4"]


def test_a_replica_that_lost_bytes_and_was_moved_away_is_out_when_the_isr_is_full_without_it() -> None:
    of = run()
    of.nodes |= {4: "n4"}
    of.cluster[PLACE] = [
        sample(1, 1, 2, 3),
        sample(6, 2, 3, replicas=(4, 1, 2, 3)),
        sample(8, 4, 2, 3, replicas=(4, 2, 3)),
        sample(12, 4, 2, 3, replicas=(4, 2, 3)),
    ]
    of.faults = [cut("n1", 5), cut("n2", 10, "f2")]
    assert len(worst_losses(of, PLACE)) == 1
    of.faults = [cut("n1", 5), cut("n2", 7, "f2")]
    assert len(worst_losses(of, PLACE)) == 2
