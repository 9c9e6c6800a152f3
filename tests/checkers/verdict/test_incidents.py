"""Incidents: one cause is one incident, two causes are two, and what is said of a cause is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from wrackline.checkers.cases.language import TOPIC, parse
from wrackline.checkers.explain.step import explained
from wrackline.history.model import CONTROL, NEMESIS, PARTITION, Event, Type
from wrackline.proving.model.made import write_events

pytestmark = pytest.mark.timeout(1_800)

SECOND = 1_000_000_000
BEFORE = (0.5, 1, 0)
"""(when, who led from then on, leader epoch)"""


@dataclass(frozen=True)
class Case:
    """Steps take a second each: the first event of a case is at 1 s, the second at 2 s."""

    text: str
    leaders: Sequence[tuple[float, int, int]] = ()
    polled: bool = False
    """Nobody wrote the changes down: metadata were asked for."""
    faults: Sequence[tuple[float, float]] = ()
    partitions: int = 1
    """They have the same leaders."""


LOST = "p: a@0 | p: b@1 | p: c@2 | r: d@1 | final a@0 d@1^1"
HOLES = "p: a@0 | p: b@1 | q: c? | p: d@3 | r: e@1 | final a@0 e@1^1"
DEPOSED = "p: a@0 | p: b@1 | p: c@2 | p: d@3 | r: e@1 | final a@0 e@1^1"
"""b is acknowledged at 4 s, c and d at 6 and 8 s."""
LATE = "p: a@0 | p: b@1 | c: got b@1^%s | final a@0"
"""b is acknowledged at 4 s, and nothing is at its offset afterwards."""
SKIPPED = 20
WORDS = " | ".join(f"q: w{number}@{number + 1}" for number in range(8))
STALE = f"p: a@0 | e: end 0 | {WORDS} | e: end 8 | final a@0 {WORDS.replace('q: ', '').replace('| ', '')}"
"""The end is stale from 4 s on, and again from 22 s on."""


def leaving_out() -> str:
    """Consumer c passes over a record in each of its polls, and consumer d in one."""
    words = [f"w{number}" for number in range(2 * SKIPPED + 6)]
    placed = [f"{word}@{number}" for number, word in enumerate(words)]
    polls = [f"c: got {one}" for one in placed[: 2 * SKIPPED + 1 : 2]]
    return " | ".join(
        [
            f"p: {' '.join(placed)}",
            "c: from 0",
            *polls,
            f"d: got {placed[-3]} {placed[-1]}",
            f"final {' '.join(placed)}",
        ]
    )


ONE_GONE = "1 acknowledged record of log-0 (offset 1) is gone"
GONE = "2 acknowledged records of log-0"
DEPOSED_TOLD = "3 acknowledged records of log-0 (offsets 1 to 3) are gone since n2 became leader at 4.5 s"
CASES = {
    "deposed": Case(DEPOSED, (BEFORE, (4.5, 2, 1))),
    "deposed, and another leader later": Case(DEPOSED, (BEFORE, (4.5, 2, 1), (11.5, 3, 2))),
    "deposed, and stale": Case(
        "p: a@0 | p: b@1 | r: e@1 | r: f@2 | r: g@3 | s: end 3 | final a@0 e@1^1 f@2^1 g@3^1",
        (BEFORE, (4.5, 2, 1)),
    ),
    "deposed, perhaps": Case("p: a@0 | p: b@1 | final a@0", (BEFORE, (2.5, 2, 1))),
    "deposed, by the record's epoch": Case(LATE % 0, (BEFORE, (2.5, 2, 1))),
    "not deposed, by the record's epoch": Case(LATE % 1, (BEFORE, (2.5, 2, 1))),
    "not deposed, since it was dead": Case(
        "p: a@0 | p: b@1 | final a@0", (BEFORE, (2.5, 2, 1)), faults=((2.2, 9.0),)
    ),
    "lost later, by the final read's epoch": Case(
        "p: a@0 | p: b@1 | r: c@1 | final a@0 c@1^2", (BEFORE, (2.5, 2, 1), (4.5, 3, 2))
    ),
    "lost before, by the final read's epoch": Case(
        "p: a@0 | p: b@1 | r: c@1 | final a@0 c@1^1", (BEFORE, (2.5, 2, 1), (6.9, 3, 2))
    ),
    "left out": Case(leaving_out()),
    "stale, and one node leads": Case(STALE, (BEFORE,)),
    "stale, and nobody knows who leads": Case(STALE),
    "stale, and another leads later": Case(STALE, (BEFORE, (20.5, 2, 1))),
    "stale, and a fault is in force": Case(STALE, (BEFORE,), faults=((2.5, 3.0),)),
    "one leader": Case(LOST, (BEFORE, (6.5, 2, 1)), faults=((0.2, 0.4), (6.2, 9.0))),
    "polled": Case(LOST, (BEFORE, (6.9, 2, 1)), polled=True),
    "nobody knows": Case(LOST),
    "two leaders": Case(
        "p: a@0 | p: b@1 | p: c@2 | r: d@1 | r: e@2 | r: f@3 | s: g@3 | final a@0 d@1^1 e@2^1 g@3^2",
        (BEFORE, (6.5, 2, 1), (12.5, 1, 2)),
    ),
    "two epochs": Case(
        "p: a@0 | p: b@1 | q: c@2 | r: d@1 | final a@0 d@1^2", (BEFORE, (4.5, 2, 1), (6.5, 1, 2))
    ),
    "the final read knows": Case(
        "p: a@0 | p: b@1 | q: (c | final a@0 c@1^1", (BEFORE, (6.5, 2, 1), (7.5, 3, 2))
    ),
    "stale before": Case("p: a@0 | p: b@1 | e: end 1 | r: d@1 | final a@0 d@1^1", (BEFORE, (6.5, 2, 1))),
    "holes": Case(HOLES, (BEFORE, (8.5, 2, 1))),
    "holes, and nobody knows": Case(HOLES),
    "two log directories": Case("p: a@0 | final a@0 | n1 holds a@0 twice"),
    "two partitions": Case("p: a@0 | p: b@1/0 | final | final 1/"),
    "two partitions at once": Case(
        "p: a@0 | p: b@1/0 | final | final 1/", (BEFORE, (4.5, 2, 1)), partitions=2
    ),
}


def events_of(case: Case, events: Sequence[Event]) -> list[Event]:
    """A second for each step, with the rows of who led."""
    found = [replace(one, time_ns=one.time_ns * 1_000) for one in events]
    end_s = found[-1].time_ns / SECOND
    leaders = {at_s: (node, epoch) for at_s, node, epoch in case.leaders}
    for number, (begin_s, end_s_) in enumerate(case.faults, 1):
        for phase, at_s in (("begin", begin_s), ("active", begin_s), ("undo", end_s_), ("ended", end_s_)):
            extra = {"id": f"f{number}", "phase": phase, "targets": ["n1"], "proved": True, "proof": "seen"}
            found.append(Event(NEMESIS, Type.INFO, "kill", extra=extra, time_ns=int(at_s * SECOND)))
    if case.polled:
        polls = [0.9 + second for second in range(int(end_s))]
        for at_s in polls:
            node, epoch = next(leaders[since] for since in sorted(leaders, reverse=True) if since <= at_s)
            row = {"topic": TOPIC, "partition": 0, "leader": node, "leader_epoch": epoch}
            row |= {"isr": [node, 3], "replicas": [1, 2, 3]}
            extra = {"partitions": [row]}
            found.append(Event(CONTROL, Type.INFO, "cluster", extra=extra, time_ns=int(at_s * SECOND)))
    found.sort(key=lambda one: one.time_ns)
    if not case.polled:
        for at_s, (node, epoch) in sorted(leaders.items()):
            extra = {"at_ns": int(at_s * SECOND), "leader": node, "partition_epoch": epoch}
            extra |= {"isr": [node, 3], "elr": [2] if node != 2 else [], "replicas": [1, 2, 3]}
            for partition in range(case.partitions):
                said = Event(CONTROL, Type.INFO, PARTITION, topic=TOPIC, partition=partition, extra=extra)
                found.append(replace(said, leader_epoch=epoch, time_ns=found[-1].time_ns))
    return [replace(one, index=number) for number, one in enumerate(found)]


def write_runs(folder: Path) -> list[Path]:
    runs = []
    for name, case in CASES.items():
        made = parse(case.text, name)
        runs.append(write_events(folder / name, made.info, events_of(case, made.events)))
    return runs


@pytest.fixture(scope="module")
def verdicts(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    return {run.name: verdict for run, verdict in judged_runs.items()}


def sentences(verdict: Mapping[str, Any]) -> list[str]:
    return [one["sentence"] for one in verdict["incidents"]]


TOLD = {
    # The replica's own log is whole, so nothing differs.
    "two log directories": ["n1 has log-0 in 2 of its log directories: /data/broker and /data2/broker"],
    "polled": [f"{GONE} (offsets 1 to 2) are gone since n2 became leader at 6.9 s"],
    # What one change took is one incident, though two leaders had appended it, and whatever lies between.
    "two epochs": [f"{GONE} (offsets 1 to 2) are gone since n1 became leader at 6.5 s"],
    "holes": [f"{GONE} (between offsets 1 and 3) are gone since n2 became leader at 8.5 s"],
    # Of two leaders the final read tells who gave the offset away.
    "the final read knows": [f"{ONE_GONE} since n2 became leader at 6.5 s"],
    "lost later, by the final read's epoch": [f"{ONE_GONE} since n3 became leader at 4.5 s"],
    "lost before, by the final read's epoch": [f"{ONE_GONE} since n2 became leader at 2.5 s"],
    # What a deposed leader acknowledged is of the change that deposed it.
    "deposed": [DEPOSED_TOLD],
    "deposed, and another leader later": [DEPOSED_TOLD],
    "deposed, by the record's epoch": [
        f"{ONE_GONE} since n2 became leader at 2.5 s; consumers had read 1 of the lost records"
    ],
}
"""What is said of the incidents of a case."""


@pytest.mark.parametrize("name", TOLD)
def test_each_incident_is_of_its_change(name: str, verdicts: dict[str, dict[str, Any]]) -> None:
    assert sentences(verdicts[name]) == TOLD[name]


@pytest.mark.parametrize("name", ["not deposed, by the record's epoch", "not deposed, since it was dead"])
def test_a_leader_that_was_there_all_the_time(name: str, verdicts: dict[str, dict[str, Any]]) -> None:
    [one] = verdicts[name]["incidents"]
    assert one["mechanism"] == ("n2 led log-0 all the time (leader epoch 1).",)


def test_one_change_of_leader_is_one_incident(verdicts: dict[str, dict[str, Any]]) -> None:
    verdict = verdicts["one leader"]
    told = "2 acknowledged records of log-0 (offsets 1 to 2) are gone since n2 became leader at 6.5 s"
    assert sentences(verdict) == [told]
    assert verdict["headline"].startswith(f"{told}. ")
    assert verdict["incident_counts"] == {"violation": 1, "expected": 0, "allowed": 0, "n/a": 0}
    [one] = verdict["incidents"]
    assert {seen["anomaly"] for seen in one["anomalies"]} >= {"lost-write", "inconsistent-offset"}
    assert one["mechanism"] == (
        "n1 led log-0 until 6.5 s, in leader epoch 0, with n1 and n3 in the ISR and n2 in the ELR.",
        "n2 led it from then on, in leader epoch 1, with n2 and n3 in the ISR.",
    )
    assert (one["first_offset"], one["last_offset"], one["at_ns"]) == (1, 2, 6_500_000_000)


def test_partitions_that_lost_records_at_one_change_name_each_other(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    verdict = verdicts["two partitions at once"]
    one, other = verdict["incidents"]
    assert verdict["incident_counts"]["violation"] == 2
    assert (one["same_change"], other["same_change"]) == ((other["id"],), (one["id"],))
    told = "n2 became leader of log-1 within the same second, and that partition lost records too."
    assert one["mechanism"][-1] == told
    assert verdict["headline"].startswith(
        "2 incidents: 2 acknowledged records of log-0 and log-1 are gone since n2 became their leader at "
        "4.5 s. "
    )
    apart = verdicts["two partitions"]
    assert [one["same_change"] for one in apart["incidents"]] == [(), ()]
    assert apart["headline"].startswith(
        "2 incidents, the first: 1 acknowledged record of log-0 (offset 0) is gone"
    )


def test_what_is_allowed_by_itself_is_evidence_of_the_violation(verdicts: dict[str, dict[str, Any]]) -> None:
    rows = {row["anomaly"]: row for row in verdicts["one leader"]["anomalies"]}
    allowed = rows["not-linearizable"]
    assert (allowed["meaning"], allowed["count"], allowed["in_violations"]) == ("allowed", 1, 1)


def test_an_incident_names_the_rows_of_its_findings(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> None:
    for run, verdict in judged_runs.items():
        rows = pq.read_table(run / "findings.parquet", columns=["anomaly", "topic", "partition"]).to_pylist()
        named: list[int] = []
        for incident in verdict["incidents"]:
            for seen in incident["anomalies"]:
                own = [row for first, last in seen["rows"] for row in range(first, last + 1)]
                assert len(own) == seen["count"]
                assert {rows[row]["anomaly"] for row in own} == {seen["anomaly"]}
                named += own
        assert sorted(named) == list(range(len(rows))), "each finding is of one incident"


def test_what_is_explained_is_evidence_of_an_incident(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> None:
    for run, verdict in judged_runs.items():
        told = {
            (one["id"], seen["anomaly"]): seen["count"]
            for one in verdict["incidents"]
            for seen in one["anomalies"]
        }
        shown: Counter[tuple[str | None, str]] = Counter()
        for group in explained(run).groups:
            shown[group.incident, group.anomaly] += group.count
        assert shown == told


def test_faults_reach_from_before_the_cause_to_the_last_operation(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    [one] = verdicts["one leader"]["incidents"]
    assert one["faults"] == ("f2",)


def test_nothing_is_said_of_a_leader_that_nobody_knows(verdicts: dict[str, dict[str, Any]]) -> None:
    [one] = verdicts["nobody knows"]["incidents"]
    assert one["sentence"] == (
        "2 acknowledged records of log-0 (offsets 1 to 2) are gone, last seen at 6.0 s"
    )
    assert not one["mechanism"]
    assert one["at_ns"] is None is one["leader_after"]


def test_two_changes_of_leader_are_two_incidents_though_the_offsets_border_on_each_other(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    assert sentences(verdicts["two leaders"]) == [
        "2 acknowledged records of log-0 (offsets 1 to 2) are gone since n2 became leader at 6.5 s",
        "1 acknowledged record of log-0 (offset 3) is gone since n1 became leader at 12.5 s",
    ]
    assert verdicts["two leaders"]["headline"].startswith(
        "2 incidents, the first: 2 acknowledged records of log-0 (offsets 1 to 2) are gone "
    )


def test_a_stale_read_before_the_loss_does_not_date_the_loss(verdicts: dict[str, dict[str, Any]]) -> None:
    """It cites the lost record, and was wrong before the leader changed."""
    [one] = verdicts["stale before"]["incidents"]
    told = "1 acknowledged record of log-0 (offset 1) is gone since n2 became leader at 6.5 s"
    assert one["sentence"] == told
    assert "stale-read" in {seen["anomaly"] for seen in one["anomalies"]}


def test_holes_part_incidents_where_nobody_knows_of_a_change(verdicts: dict[str, dict[str, Any]]) -> None:
    assert len(sentences(verdicts["holes, and nobody knows"])) == 2


def test_partitions_are_apart(verdicts: dict[str, dict[str, Any]]) -> None:
    places = [(one["topic"], one["partition"]) for one in verdicts["two partitions"]["incidents"]]
    assert places == [(TOPIC, 0), (TOPIC, 1)]


def test_what_a_deposed_leader_answered_is_of_the_change_that_deposed_it(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    [one] = verdicts["deposed, and stale"]["incidents"]
    assert {"lost-write", "stale-read"} <= {seen["anomaly"] for seen in one["anomalies"]}
    assert one["at_ns"] == 4_500_000_000


def test_where_nobody_knows_whether_a_deposed_leader_answered_no_cause_is_told(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    [one] = verdicts["deposed, perhaps"]["incidents"]
    assert one["sentence"] == ("1 acknowledged record of log-0 (offset 1) is gone, last seen at 4.0 s")
    [told] = one["mechanism"]
    assert told == (
        "n1 led log-0 until 2.5 s, and n2 from then on (leader epoch 1). Which of them answered is not on "
        "record."
    )


def test_a_consumer_that_leaves_records_out_again_and_again_is_one_incident(
    verdicts: dict[str, dict[str, Any]],
) -> None:
    one, other = verdicts["left out"]["incidents"]
    counts = sorted(seen["count"] for each in (one, other) for seen in each["anomalies"])
    assert counts == [1, SKIPPED]


def meanings(verdict: Mapping[str, Any], anomaly: str) -> dict[str, tuple[int, str]]:
    rows = [one for one in verdict["anomalies"] if one["anomaly"] == anomaly]
    return {one["meaning"]: (one["count"], one["why"]) for one in rows}


@pytest.mark.parametrize("name", ["one node leads", "nobody knows who leads"])
def test_a_stale_read_is_a_violation_where_nothing_excuses_it(
    name: str, verdicts: dict[str, dict[str, Any]]
) -> None:
    verdict = verdicts[f"stale, and {name}"]
    assert verdict["verdict"] == "violation"
    [(meaning, (count, _))] = meanings(verdict, "stale-read").items()
    assert (meaning, count) == ("violation", 2)


@pytest.mark.parametrize(
    ("name", "excused", "why"),
    [
        ("another leads later", 1, "the leader of log-0 changed from n1 to n2 at 20.5 s"),
        ("a fault is in force", 1, "fault f1 (kill of n1) was in force from 2.5 s on"),
    ],
)
def test_findings_of_one_anomaly_may_be_allowed_in_part(
    name: str, excused: int, why: str, verdicts: dict[str, dict[str, Any]]
) -> None:
    verdict = verdicts[f"stale, and {name}"]
    found = meanings(verdict, "stale-read")
    assert verdict["verdict"] == "violation"
    assert found["violation"][0] == 2 - excused
    count, said = found["allowed"]
    assert (count, said) == (
        excused,
        f"leaders hold no read lease, so a replaced leader may still answer: {why}",
    )
    assert any("1 finding of stale-read is forbidden" in reason for reason in verdict["reasons"])
