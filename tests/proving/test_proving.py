"""The checkers are proved: each anomaly, put alone into a correct history, is found with all that follows
from it and with nothing else; correct histories of every kind give no finding; so too by hand, a case with it
beside one without. All of them go through one analysis, with those of other files."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.checkers.histories import keeps_the_rules
from wrackline.checkers.cases.language import parse
from wrackline.checkers.verdict.anomaly import Family
from wrackline.history.model import UNKNOWN, Event, Type
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.model.knobs import TO_MUTATE, Knobs, drawn
from wrackline.proving.model.looks import PROMISES
from wrackline.proving.model.made import Made, make, write_events
from wrackline.proving.mutations.catalogue import mutate, mutations
from wrackline.proving.mutations.edit import Edit
from wrackline.proving.mutations.edit_groups import acked, highest, operations
from wrackline.proving.mutations.mutation import IMPLIED, Mutation, closure
from wrackline.proving.pairs import PAIRS, anomaly_of
from wrackline.proving.rules import violations
from wrackline.proving.splicing import spliced

pytestmark = pytest.mark.timeout(1_800)
"""All histories are judged at once, in the first test that asks for it."""
MUTATIONS = tuple(mutations())
WITHOUT_A_MODEL = {"register-not-linearizable", "queue-not-linearizable"}
"""Registers and queues have a model of their own (test_proving_objects.py)."""
OF_EACH = 2
"""Histories that each mutation is tried on."""
CORRECT = range(5_000, 5_050)


@cache
def base(number: int, knobs: Knobs) -> Made:
    return make(f"base-{number}", number, knobs)


@cache
def mutants(one: Mutation) -> list[tuple[Made, list[Event]]]:
    """The first histories that have a place for it."""
    found: list[tuple[Made, list[Event]]] = []
    for number in range(200):
        made = base(number, one.suited(TO_MUTATE))
        events = mutate(one, made)
        if events is not None:
            found.append((made, events))
        if len(found) == OF_EACH:
            return found
    raise AssertionError(f"{one.name}: {len(found)} of 200 histories have a place for it")


def write_runs(folder: Path) -> list[Path]:
    """All mutants, cases and correct histories."""
    runs = []
    for one in MUTATIONS:
        for number, (made, events) in enumerate(mutants(one)):
            test_id = f"{one.name}-{number}"
            info = made.info.from_json(
                made.info.to_json().replace(made.info.test_id.encode(), test_id.encode())
            )
            runs.append(write_events(folder / test_id, info, events))
    for anomaly, texts in PAIRS.items():
        for name, text in zip(("bad", "good"), texts, strict=True):
            case = parse(text, f"{name} {anomaly}")
            runs.append(write_events(folder / case.test_id, case.info, case.events))
            info, events = spliced(case, base(len(anomaly), TO_MUTATE), seed=len(text))
            test_id = f"among others, {case.test_id}"
            runs.append(write_events(folder / test_id, replace(info, test_id=test_id), events))
    for seed in CORRECT:
        made = make(f"correct-{seed}", seed, drawn(seed))
        runs.append(made.write(folder / made.info.test_id))
    return runs


@pytest.fixture(scope="module")
def anomalies(judged_runs: Mapping[Path, dict[str, Any]]) -> dict[str, Counter[str]]:
    """Test id -> anomalies found."""
    return {
        run.name: Counter({row["anomaly"]: row["count"] for row in verdict["anomalies"] if row["count"]})
        for run, verdict in judged_runs.items()
    }


@pytest.mark.parametrize("number", range(OF_EACH))
@pytest.mark.parametrize("one", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_is_found_and_nothing_else(
    one: Mutation, number: int, anomalies: dict[str, Counter[str]]
) -> None:
    found = anomalies[f"{one.name}-{number}"]
    assert set(found) - {"unproven-write"} == one.findings


def test_what_one_change_brought_about_is_one_incident(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> None:
    """Of each mutation, and of each case."""
    wrong = {
        run.name: [one["sentence"] for one in verdict["incidents"]]
        for run, verdict in judged_runs.items()
        if not run.name.startswith("correct")
        and sum(verdict["incident_counts"].values()) != (" good " not in f" {run.name} ".replace(",", " "))
    }
    assert not wrong


def test_correct_histories_have_no_findings(anomalies: dict[str, Counter[str]]) -> None:
    alarms = {}
    for seed in CORRECT:
        if found := set(anomalies[f"correct-{seed}"]) - drawn(seed).may_show:
            alarms[seed] = found
    assert not alarms


@pytest.mark.parametrize("anomaly", PAIRS)
def test_the_bad_case_of_an_anomaly_shows_it_and_the_good_case_does_not(
    anomaly: str, anomalies: dict[str, Counter[str]]
) -> None:
    assert set(anomalies[f"bad {anomaly}"]) - {"unproven-write"} == closure({anomaly_of(anomaly)})
    assert set(anomalies[f"good {anomaly}"]) - {"unproven-write"} == set()


@pytest.mark.parametrize("anomaly", PAIRS)
def test_a_case_among_the_events_of_others_shows_what_it_shows_alone(
    anomaly: str, anomalies: dict[str, Counter[str]]
) -> None:
    for case in (f"bad {anomaly}", f"good {anomaly}"):
        alone, among_others = (
            {name: count for name, count in anomalies[run].items() if name != "unproven-write"}
            for run in (case, f"among others, {case}")
        )
        assert alone == among_others


def test_every_check_has_a_pair_of_cases() -> None:
    from wrackline.checkers.checks.registry import anomalies, names

    of_logs = set(names()) - WITHOUT_A_MODEL
    assert {anomaly_of(name) for name in PAIRS} == of_logs
    mutated = {one.anomaly for one in MUTATIONS}
    assert mutated <= of_logs
    lacking = {name for name in of_logs - mutated if anomalies()[name].family is not Family.VISIBILITY}
    assert not lacking, "a pair is a mutation, too, but no change of a whole run"
    assert IMPLIED.keys() <= set(names())


def test_the_rules_in_numpy_agree() -> None:
    """Of mutants and of correct histories: the second witness."""
    for one in MUTATIONS:
        for made, events in mutants(one):
            contiguous = made.info.topics[0].contiguous
            found = violations(events, made.knobs.partitions, idempotence=True, contiguous=contiguous)
            assert any(found) == ("not-linearizable" in one.findings), (one.name, found)
    for seed in range(50):
        made = make("t", seed, drawn(seed))
        found = violations(
            made.events,
            made.knobs.partitions,
            idempotence=made.info.idempotence,
            contiguous=made.info.topics[0].contiguous,
        )
        assert not any(found), seed


def test_expected_findings_include_every_implied_anomaly() -> None:
    assert closure({"session-order"}) == {"session-order", "append-order", "not-linearizable"}
    for one in MUTATIONS:
        assert one.what
        assert one.findings == closure(set(one.findings))


def test_the_same_seed_is_the_same_history() -> None:
    first, second, other = (make("t", seed, drawn(7)) for seed in (7, 7, 8))
    assert first.table.equals(second.table)
    assert not first.table.equals(other.table)
    assert first.table.schema.equals(SCHEMA)


def test_a_made_history_keeps_the_rules_of_histories() -> None:
    for seed in range(40):
        keeps_the_rules(make("t", seed, drawn(seed)).events, seed)


def test_the_looks_are_at_every_promise_of_liveness() -> None:
    from wrackline.checkers.anomalies.liveness import _SHOWS

    assert set(PROMISES) == _SHOWS.keys()


def holes(event: Event) -> bool:
    offsets = [record.offset for record in event.records]
    return bool(offsets) and offsets[-1] - offsets[0] + 1 > len(offsets)


def test_the_histories_are_not_trivial() -> None:
    """All that the knobs promise happens."""
    seen: Counter[str] = Counter()
    for seed in range(90):
        made = make("t", seed, drawn(seed))
        sent = {r.value: r.offset for e in made.events if e.f == "send" for r in e.records}
        completed = {
            r.value for e in made.events if e.f == "send" and e.type is not Type.INVOKE for r in e.records
        }
        landed = [r for e in made.events if e.f == "drain" for r in e.records]
        seen["lands in doubt"] += sum(sent.get(r.value) == UNKNOWN for r in landed)
        seen["lands, never completed"] += sum(r.value not in completed for r in landed)
        seen["twice"] += len(landed) - len({r.value for r in landed})
        seen["epochs"] += max((r.leader_epoch for r in landed if r.leader_epoch >= 0), default=0)
        for event in made.events:
            seen[f"{event.f} {event.type}"] += 1
            if "txn" in (event.extra or {}):
                seen[f"transaction: {event.f} {event.type}"] += 1
            seen["hidden or no record"] += event.f == "drain" and holes(event)
            seen["out of the ISR"] += event.f == "replica" and not (event.extra or {})["in_isr"]
        late = {
            r.value: e.index for e in made.events if e.f == "send" and e.type is Type.INFO for r in e.records
        }
        for event, record in itertools.chain.from_iterable(
            ((e, r) for r in e.records) for e in made.events if e.f == "poll"
        ):
            seen["read after its sender gave up"] += late.get(record.value, event.index) < event.index
        commits = acked(edit := Edit(made))
        for reported in operations(edit, "committed") if made.knobs.groups else ():
            for partition, offset in reported.offsets.items():
                before = highest(commits, reported.group, partition, reported.invoked)
                seen["went back"] += before is not None and before.offsets[partition] > offset
    assert seen.pop("went back") > 0, "no commit of unknown outcome took effect after a larger one"
    wanted = {
        *("commit ok", "commit fail", "commit info", "committed ok", "committed fail", "subscribe ok"),
        *(f"transaction: {f} {outcome}" for f in ("send", "poll") for outcome in ("ok", "fail", "info")),
        "hidden or no record",
        *(
            "send ok",
            "send fail",
            "send info",
            "poll ok",
            "poll fail",
            "end ok",
            "end fail",
            "assign ok",
            "rebalance ok",
        ),
        *(
            "kill info",
            "drain ok",
            "replica ok",
            "lands in doubt",
            "lands, never completed",
            "twice",
            "epochs",
        ),
        *("out of the ISR", "read after its sender gave up"),
    }
    assert {one for one in wanted if seen[one] < 10} == set(), seen
