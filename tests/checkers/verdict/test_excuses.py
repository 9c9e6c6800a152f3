"""What excuses a finding: every promise, and every reason that a history can have, present, absent, at
another time, and where nobody wrote down who led."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkers.histories import NODES, TOPIC, info
from wrackline.checkers.cases.language import parse
from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs import phases
from wrackline.checkers.inputs.cited import LATE_NS, read_cited
from wrackline.checkers.inputs.runs import Fault, Run, Sample, Stall
from wrackline.checkers.verdict.anomaly import Promise
from wrackline.checkers.verdict.contracts import Contract, Ruling, contract_for
from wrackline.checkers.verdict.excuses import EFFECT_NS, Excuse, Excuses
from wrackline.checkers.verdict.incidents.incidents import Incidents
from wrackline.checkers.verdict.verdict import Found, rulings
from wrackline.history.model import CONTROL, PARTITION, Event, TopicInfo, Type
from wrackline.proving.model.made import write_events

PLACE = (TOPIC, 0)
SECOND = 1_000_000_000
SINCE, UNTIL, END = 40, 50, 200
"""Seconds: what a finding rests on is between them."""
BEFORE, AROUND, AFTER = 5, 45, 120


def state(at_s: float, leader: int, epoch: int, isr: Sequence[int], **more: bool) -> Event:
    """What the system wrote down of the partition."""
    extra = {"at_ns": int(at_s * SECOND), "leader": leader, "isr": list(isr), "replicas": [1, 2, 3], **more}
    return Event(CONTROL, Type.INFO, PARTITION, topic=TOPIC, partition=0, leader_epoch=epoch, extra=extra)


def run(**changes: Any) -> Run:
    """n1 leads all the time, and the system wrote that down."""
    made = Run(Path("r"), info(**({"idempotence": False} | changes)), [])
    made.nodes, made.assignment, made.end_ns = dict(NODES), {PLACE: (1, 2, 3)}, END * SECOND
    made.changes = [state(0, 1, 0, (1, 2, 3))]
    return made


def struck(of: Run, at_s: float, kind: str, *hosts: str) -> None:
    begin, end = int(at_s * SECOND), int((at_s + 1) * SECOND)
    of.faults.append(Fault(f"f{len(of.faults) + 1}", kind, hosts, "", begin, begin, end, end, True))


def lost(of: Run, at_s: float, *hosts: str) -> None:
    """Power cuts that lost unsynced bytes; the ISR was full again four seconds later."""
    struck(of, at_s, "power-cut", *hosts)
    of.faults[-1].lossy = hosts
    of.faults[-1].lost = {host: {"log-0/0.log": 9} for host in hosts}
    sample_isr(of, at_s + 2, (3,))
    sample_isr(of, at_s + 4, (1, 2, 3))


def sample_isr(of: Run, at_s: float, isr: tuple[int, ...]) -> None:
    of.cluster.setdefault(PLACE, []).append(Sample(int(at_s * SECOND), 1, 0, isr, (1, 2, 3)))


def damaged(of: Run, at_s: float) -> None:
    struck(of, at_s, "bit-flip", "n2")
    of.faults[-1].damaged = {"n2": {"log-0/0.log": 1}}


def moved(of: Run, at_s: float) -> None:
    """A node was killed while it moved replicas to another log directory."""
    struck(of, at_s, "move-replica", "n2")
    struck(of, at_s, "kill", "n2")


def absent(of: Run, at_s: float) -> None:
    """A look found a replica out of the ISR, and its node down."""
    at_ns = int(at_s * SECOND)
    of.stalls.append(Stall(at_ns, "under-replicated", 1, "log-0 on n3", 20.0, "n3 does not run", PLACE))


REASONS: dict[str, Callable[[Run, float], None]] = {
    "another leader": lambda of, at_s: of.changes.append(state(at_s, 2, 1, (2, 3))),
    "unclean election": lambda of, at_s: of.changes.extend(
        [state(at_s - 1, 1, 0, (1,)), state(at_s, 3, 1, (3,), recovering=True)]
    ),
    "smaller ISR": lambda of, at_s: of.changes.append(state(at_s, 1, 0, (1, 2))),
    "kill": lambda of, at_s: struck(of, at_s, "kill", "n3"),
    "kill of all": lambda of, at_s: struck(of, at_s, "kill", "n1", "n2", "n3"),
    "the leader lost bytes": lambda of, at_s: lost(of, at_s, "n1"),
    "a follower lost bytes": lambda of, at_s: lost(of, at_s, "n2"),
    "two lost bytes": lambda of, at_s: lost(of, at_s, "n2", "n3"),
    "changed files": damaged,
    "a kill during a move": moved,
    "a node was down": absent,
}
FAULTS = {
    *("kill", "kill of all", "the leader lost bytes", "a follower lost bytes"),
    *("two lost bytes", "changed files", "a kill during a move"),
}
ELECTIONS = {"another leader", "unclean election"}
WITHIN = {"two lost bytes", "changed files"}


@dataclass(frozen=True)
class Allowance:
    """``by``: the reasons that excuse it, and no others. ``open``: the finding lasts to the end of the
    run."""

    anomaly: str
    changes: dict[str, Any]
    by: set[str]
    open: bool = False
    needs_leader: bool = True
    """Where nobody wrote down who led, faults excuse it."""


FLUSHED = {"flush_mode": "every-write"}
UNCLEAN = {"unclean_election": True}
ALLOWANCES = [
    Allowance("stale-read", {}, ELECTIONS | FAULTS),
    Allowance("double-final", {}, ELECTIONS | FAULTS),
    Allowance("stale-end", {}, ELECTIONS | FAULTS),
    Allowance("watermark-regression", {"acks": "1"}, ELECTIONS | FAULTS),
    Allowance("not-linearizable", {}, ELECTIONS | FAULTS),
    Allowance("register-not-linearizable", {"reads": "end"}, ELECTIONS | FAULTS),
    Allowance("register-not-linearizable", {}, WITHIN, needs_leader=False),
    Allowance("lost-write", {}, WITHIN, open=True, needs_leader=False),
    Allowance("lost-write", FLUSHED, {"changed files"}, open=True, needs_leader=False),
    Allowance("lost-write", UNCLEAN, WITHIN | {"unclean election"}, open=True),
    Allowance("lost-write", {"acks": "1"}, ELECTIONS | {"the leader lost bytes", "changed files"}, open=True),
    Allowance("inconsistent-offset", {}, WITHIN, needs_leader=False),
    Allowance("inconsistent-offset", {"acks": "0"}, ELECTIONS | {"the leader lost bytes", "changed files"}),
    Allowance("poll-skip", {}, WITHIN, needs_leader=False),
    Allowance("poll-skip", {"acks": "1"}, WITHIN, needs_leader=False),
    Allowance("poll-skip", {"acks": "0"}, WITHIN, needs_leader=False),
    Allowance("poll-skip", UNCLEAN, WITHIN | {"unclean election"}),
    Allowance("poll-skip", {"acks": "1", **UNCLEAN}, WITHIN | {"unclean election"}),
    Allowance("unprocessed-input", {"rewinds": True}, WITHIN, needs_leader=False),
    Allowance("torn-transaction", {"isolation": "read_committed"}, WITHIN, needs_leader=False),
    Allowance("duplicate", {}, ELECTIONS | FAULTS | {"smaller ISR"}),
    Allowance("duplicate", {"idempotence": True}, set(), needs_leader=False),
    Allowance("precommitted-read", {"isolation": "read_committed"}, set(), needs_leader=False),
    Allowance("lost-on-replica", {}, {"changed files"}, open=True, needs_leader=False),
    Allowance("duplicate-log", {}, {"changed files", "a kill during a move"}, open=True, needs_leader=False),
    Allowance("lost-deletion", {}, {"kill of all", "changed files"}, open=True, needs_leader=False),
    Allowance("lost-deletion", UNCLEAN, {"kill of all", "unclean election", "changed files"}, open=True),
    Allowance("phantom", {}, set(), needs_leader=False),
    Allowance("aborted-read", {}, set(), needs_leader=False),
    Allowance("under-replicated", {}, {"a node was down"}, needs_leader=False),
    Allowance("offline-partition", {}, set(), needs_leader=False),
    Allowance("failed-start", {}, {"changed files"}, open=True, needs_leader=False),
    Allowance("crash", {}, {"changed files"}, open=True, needs_leader=False),
]
EACH = pytest.mark.parametrize(
    "one", ALLOWANCES, ids=lambda one: f"{one.anomaly} {','.join(map(str, one.changes.values()))}"
)
V, A = Meaning.VIOLATION, Meaning.ALLOWED


def contract_of(of: Run) -> Contract:
    return contract_for(of, anomalies())


def ruled(of: Run, one: Allowance, *, unsure: bool = False) -> Ruling:
    """What a finding means whose operations are between SINCE and UNTIL."""
    rule = contract_of(of).rule(one.anomaly, PLACE)
    until = np.iinfo(np.int64).max if one.open else UNTIL * SECOND
    since_ns, until_ns = np.array([SINCE * SECOND]), np.array([until])
    [number] = rule.rulings(since_ns, until_ns, np.array([unsure])).tolist()
    return rule.numbered(number)


def test_every_promise_is_walked() -> None:
    walked = {anomalies()[one.anomaly].breaks for one in ALLOWANCES}
    without_excuses = {Promise.ISOLATED_WRITES, Promise.CURRENT_COORDINATOR}
    assert set(Promise) - walked == without_excuses, "nobody promises them; a finding names the replacement"


@EACH
def test_nothing_excuses_what_happens_while_one_node_leads_and_nothing_fails(one: Allowance) -> None:
    assert ruled(run(**one.changes), one).meaning is V


@EACH
@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_excuses_what_it_explains_and_nothing_else(one: Allowance, reason: str) -> None:
    of = run(**one.changes)
    REASONS[reason](of, AROUND)
    found = ruled(of, one)
    assert found.meaning is (A if reason in one.by else V)
    assert bool(found.because) == (found.meaning is A), "what is allowed names its reason"


@EACH
@pytest.mark.parametrize("reason", REASONS)
def test_what_was_over_before_excuses_nothing(one: Allowance, reason: str) -> None:
    of = run(**one.changes)
    REASONS[reason](of, BEFORE)
    lasts = reason == "changed files" or one.anomaly == "duplicate-log"
    stays = lasts and reason in one.by and one.anomaly != "duplicate"
    found = ruled(of, one)
    assert found.meaning is (A if stays else V), "changed bytes stay changed"
    assert reason not in one.by or stays or found.because.startswith("at another time ")


@EACH
@pytest.mark.parametrize("reason", REASONS)
def test_what_happens_later_excuses_only_what_is_gone_at_the_end(one: Allowance, reason: str) -> None:
    of = run(**one.changes)
    REASONS[reason](of, AFTER)
    assert ruled(of, one).meaning is (A if one.open and reason in one.by else V)


@EACH
def test_where_nobody_wrote_down_who_led_only_a_fault_is_a_reason(one: Allowance) -> None:
    of = run(**one.changes)
    of.changes = []
    assert ruled(of, one).meaning is V
    struck(of, AROUND, "kill", "n3")
    assert ruled(of, one).meaning is (A if one.needs_leader else V)
    of.faults = []
    struck(of, BEFORE, "kill", "n3")
    assert ruled(of, one).meaning is V


@EACH
def test_where_nobody_wrote_down_who_led_records_of_two_leaders_are_a_reason(
    one: Allowance, tmp_path: Path
) -> None:
    for epochs, meaning in (("0", V), ("1", A if one.needs_leader else V)):
        case = parse(f"p: a@0 b@1 | final a@0^0 b@1^{epochs}")
        folder = write_events(tmp_path / epochs, case.info, case.events)
        of = run(**one.changes)
        of.changes, of.files = [], [str(file) for file in folder.glob("history*.parquet")]
        assert of.files
        found = ruled(of, one)
        assert found.meaning is meaning
        assert ("leader epochs 0 to 1" in found.because) is (meaning is A)
        of = run(**one.changes)
        of.files = [str(file) for file in folder.glob("history*.parquet")]
        assert ruled(of, one).meaning is V, "where it is known who led, that counts"


def test_polled_metadata_do_not_show_whether_an_election_was_clean() -> None:
    unclean = Allowance("lost-write", UNCLEAN, set(), open=True)
    of = run(**UNCLEAN)
    of.changes = []
    states = ((30, 1, 0), (40, 1, 0), (45, 2, 1))
    of.cluster = {PLACE: [Sample(at * SECOND, n, epoch, (1, 2, 3), (1, 2, 3)) for at, n, epoch in states]}
    assert ruled(of, unclean).meaning is A
    of.cluster, of.changes = {}, [state(at, n, epoch, (1, 2, 3)) for at, n, epoch in states]
    assert ruled(of, unclean).meaning is V


def test_a_deposed_leader_that_is_cut_off_has_until_then_to_learn_of_it() -> None:
    """The leader changed at 10 s, and a partition lasts from 8 to 38 s."""
    one = Allowance("stale-read", {}, set())
    of = run()
    of.changes.append(state(10, 2, 1, (2, 3)))
    assert ruled(of, one).meaning is V
    struck(of, 8, "partition", "n1")
    of.faults[0].ended_ns = 38 * SECOND
    found = contract_of(of).rule("stale-read", PLACE)
    of.faults[0].name = "kill"
    numbers = found.rulings(*(np.array([at]) * SECOND for at in (47, 48)), np.zeros(1, dtype=bool))
    assert found.numbered(int(numbers[0])).meaning is A
    numbers = found.rulings(*(np.array([at]) * SECOND for at in (49, 50)), np.zeros(1, dtype=bool))
    assert found.numbered(int(numbers[0])).meaning is V


def test_a_client_may_have_sent_again_what_it_got_no_answer_for() -> None:
    one = Allowance("duplicate", {}, set())
    assert ruled(run(), one, unsure=True).meaning is A
    assert ruled(run(idempotence=True), one, unsure=True).meaning is V
    assert ruled(run(), Allowance("stale-read", {}, set()), unsure=True).meaning is V


@pytest.mark.parametrize(("replicas", "stale"), [(1, V), (3, A)])
def test_with_acks_1_a_record_is_acknowledged_before_its_end_is_shown(replicas: int, stale: Meaning) -> None:
    of = run(acks="1", topics=(TopicInfo(TOPIC, 1, replicas, 1),))
    for name in ("stale-read", "not-linearizable"):
        assert ruled(of, Allowance(name, {}, set())).meaning is stale
    for name in ("watermark-regression", "stale-end"):
        assert ruled(of, Allowance(name, {}, set())).meaning is V, "reads contradict each other"


def test_a_violation_says_who_led() -> None:
    one = Allowance("stale-end", {}, set())
    of = run()
    assert ruled(of, one).text.startswith("n1 led log-0 all the time, and no fault was in force")
    of.changes = []
    assert ruled(of, one).text.startswith("nobody wrote down who led log-0, and no fault was in force")
    of.changes = [state(0, 1, 0, (1, 2)), state(BEFORE, 2, 1, (2,))]
    assert ruled(of, one).text.endswith(
        " (at another time the leader of log-0 changed from n1 to n2 at 5.0 s)"
    )


def test_an_allowance_says_what_happened() -> None:
    of = run()
    REASONS["another leader"](of, AROUND)
    assert ruled(of, Allowance("stale-end", {}, set())).text == (
        "leaders hold no read lease, so a replaced leader may still answer: "
        "the leader of log-0 changed from n1 to n2 at 45.0 s"
    )
    of = run()
    REASONS["two lost bytes"](of, AROUND)
    assert ruled(of, Allowance("lost-write", {}, set(), open=True)).because == (
        "n2 at 45.0 s (f1) and n3 at 45.0 s (f1) lost bytes"
    )


def test_findings_of_one_anomaly_are_counted_by_what_each_means() -> None:
    """Two are excused by one change, one by another, one by none."""
    of = run()
    REASONS["another leader"](of, AROUND)
    contract = contract_of(of)
    lease = "leaders hold no read lease"
    each = {
        Ruling(A, lease, "a change at 5 s"): 2,
        Ruling(A, lease, "a change at 7 s"): 1,
        Ruling(V, "n1 led"): 1,
    }
    found = Found({"stale-read": {PLACE: 4}})
    incidents = Incidents(rulings={"stale-read": each})
    rows = {one.meaning: (one.count, one.why) for one in rulings(contract, found, incidents) if one.count}
    assert rows == {V: (1, "n1 led"), A: (3, f"{lease}: a change at 5 s; a change at 7 s")}


def test_the_excuse_that_lasts_longest_counts_where_several_have_begun() -> None:
    excuses = Excuses.of({"why": [Excuse(10, 90, "long"), Excuse(20, 30, "short"), Excuse(95, 99, "late")]})
    since = np.array([0, 50, 91, 96, 100])
    until = np.array([9, 60, 94, 97, 120])
    found = [None if at < 0 else excuses.found[at].text for at in excuses.around(since, until).tolist()]
    assert found == [None, "long", None, "late", None]


def test_an_effect_lasts_as_long_as_clients_may_take_to_recover() -> None:
    assert EFFECT_NS == phases.RECOVERY_NS


def test_a_consumer_finds_what_was_lost_when_it_finds_the_leader_again() -> None:
    """Two replicas lost bytes at 32 s, and the ISR was full again at 36 s."""
    of = run()
    lost(of, 32, "n2", "n3")
    assert ruled(of, Allowance("poll-skip", {}, set())).meaning is A
    assert ruled(of, Allowance("lost-write", {}, set(), open=True)).meaning is V


def test_who_was_in_neither_isr_nor_elr_was_elected_uncleanly() -> None:
    unclean = Allowance("lost-write", UNCLEAN, set(), open=True)
    for leader, meaning in ((3, A), (2, V), (1, V)):
        of = run(**UNCLEAN)
        of.changes = [state(0, 1, 0, (1, 2)), state(44, -1, 1, (1, 2)), state(AROUND, leader, 2, (leader,))]
        assert ruled(of, unclean).meaning is meaning


def test_what_a_leader_acknowledged_that_was_cut_off_may_be_lost_with_acks_1() -> None:
    """The leader changed at 10 s, and the record was acknowledged at 40 s."""
    one = Allowance("lost-write", {"acks": "1"}, set(), open=True)
    of = run(acks="1")
    of.changes.append(state(10, 2, 1, (2, 3)))
    assert ruled(of, one).meaning is V
    struck(of, 8, "partition", "n1")
    of.faults[0].ended_ns = 38 * SECOND
    assert ruled(of, one).meaning is A


@pytest.mark.parametrize(("ended_s", "meaning"), [(29, V), (31, A)])
def test_a_fault_excuses_reads_for_ten_seconds_after_its_end(ended_s: int, meaning: Meaning) -> None:
    of = run()
    struck(of, ended_s - 1, "kill", "n3")
    assert ruled(of, Allowance("stale-read", {}, set())).meaning is meaning


def test_a_send_is_unsure_that_was_answered_late_or_never(tmp_path: Path) -> None:
    case = parse("p: a@0 | p: b@1 | p: c? | e: end 2 | final a@0 b@1")
    slow = [replace(one, latency_ns=LATE_NS - (one.index not in (3, 7))) for one in case.events]
    folder = write_events(tmp_path, case.info, slow)
    files = [str(file) for file in folder.glob("history*.parquet")]
    cited = read_cited(files, np.arange(len(slow)))
    assert [slow[at].index for at in np.flatnonzero(cited.is_unsure)] == [3, 5]
