"""What a night's file wants; what is refused, `tests/harness/cli/refusals` has."""

from __future__ import annotations

from pathlib import Path

from wrackline.harness.nights.spec import cases, load_night
from wrackline.systems.kafka.releases import NEWEST

LAPTOP = """
name: lap
seed: 5
fleet: {kind: process, brokers: 3}
workload: {duration_s: 2, rate: 20}
nemesis: {schedule: [{at_s: 0.5, duration_s: 0.3, fault: kill, target: one}]}
"""


def night(folder: Path, text: str) -> Path:
    (folder / "lap.yaml").write_text(LAPTOP)
    path = folder / "night.yaml"
    path.write_text(text)
    return path


def test_every_combination_but_those_that_are_left_out(tmp_path: Path) -> None:
    path = night(
        tmp_path,
        """
name: n
budget: 1h30m
runs:
  - spec: lap.yaml
    seeds: [1, 2]
    matrix: {workload.acks: [all, 1], topic.partitions: [1, 3]}
    exclude: [{workload.acks: 1, topic.partitions: 3}, {workload.acks: all, seed: 2}]
    set: {workload.rate: 30}
  - spec: lap.yaml
""",
    )
    one = load_night(path)
    assert (one.budget, one.slots, one.repeat, one.shrink.tries) == (5400.0, 1, 3, 2)
    made = cases(one, path)
    assert [case.name for case in made] == [
        "lap.all.1.s1",
        "lap.all.3.s1",
        "lap.1.1.s1",
        "lap.1.1.s2",
        "lap",
    ]
    first, last = made[0].spec, made[-1].spec
    assert (first.seed, first.workload.rate, first.topic.partitions) == (1, 30, 1)
    assert (last.seed, last.workload.rate) == (5, 20)
    assert made[0].twin is not None
    assert made[0].twin.seed == 1
    assert not made[0].twin.nemesis.schedule, "the same without its faults"
    assert made[0].spec.nemesis.schedule


def test_a_twin_has_the_settings_that_the_file_names(tmp_path: Path) -> None:
    path = night(tmp_path, "name: n\nruns: [{spec: lap.yaml, twin: {system.profile: kip101}}]\n")
    [case] = cases(load_night(path), path)
    assert case.twin is not None
    assert case.twin.system.configured().profile == "kip101"
    assert case.twin.nemesis == case.spec.nemesis


def test_what_has_no_faults_has_no_twin(tmp_path: Path) -> None:
    path = night(tmp_path, "name: n\nruns: [{spec: lap.yaml, set: {nemesis: {}}}]\n")
    [case] = cases(load_night(path), path)
    assert case.twin is None


def test_the_hunt_has_every_workload_of_the_newest_kafka_and_nothing_that_must_fail() -> None:
    path = Path(__file__).parents[3] / "docs" / "examples" / "hunt.yaml"
    made = [case.spec for case in cases(load_night(path), path)]
    assert {spec.system.configured().version for spec in made} == {NEWEST}
    every = {"log", "idempotent", "compact", "txn", "group", "streams", "register"}
    assert {spec.workload.name for spec in made} >= every
    for spec in made:
        assert spec.contract.verdict is None
        assert spec.nemesis.random is not None
        assert (spec.nemesis.schedule, spec.nemesis.guided) == ((), None)
    of_clients = {(spec.workload.name, spec.workload.client.library) for spec in made}
    assert {("log", "java"), ("log", "librdkafka"), ("group", "java"), ("group", "librdkafka")} <= of_clients


def test_the_night_of_mutants_has_seven_that_exist_and_expects_each_to_be_noticed() -> None:
    path = Path(__file__).parents[3] / "docs" / "examples" / "mutant-night.yaml"
    made = [case.spec.system.configured() for case in cases(load_night(path), path)]
    assert len(made) == 21
    assert len({one.defects for one in made}) == 7
    assert all(len(one.defects) == 1 for one in made)
