"""Several topics in one specification: what one does not say is as in ``topic``, names may look alike, and
every mistake is one line."""

from __future__ import annotations

import pytest
import yaml

from wrackline.harness.nights.shrinking import shrunk
from wrackline.harness.run.dry_run import forecast
from wrackline.harness.run.live.setup import plan_of, run_info
from wrackline.harness.specification.build import as_run, build_parts, cluster_topic
from wrackline.harness.specification.check import ask_system
from wrackline.harness.specification.spec import Spec, SpecError, parse
from wrackline.workloads.log import AppendingSpec

TWO = "name: x\ntopics: [{name: log}, {name: log-1, partitions: 3}]"
UNCLEAN = "unclean.leader.election.enable"


def test_what_a_topic_does_not_say_is_as_in_topic() -> None:
    text = (
        "name: x\ntopic: {partitions: 4, replication_factor: 3, configs: {segment.ms: 5000}}\n"
        "topics: [{name: a}, {name: b, partitions: 1, configs: {}}]"
    )
    spec = parse(text, "x.yaml")
    first, second = spec.every_topic
    assert (first.name, first.partitions, first.configs) == ("a", 4, {"segment.ms": 5000})
    assert (second.name, second.partitions, second.configs) == ("b", 1, {})
    assert cluster_topic(spec, first).configs["segment.ms"] == "5000"
    saved = yaml.safe_load(spec.to_yaml())
    assert Spec.model_validate(saved) == spec
    # Nothing is left to `topic` in what is saved.
    assert parse(yaml.safe_dump(saved), "x.yaml", settings=["topic.partitions=9"]).topics == spec.topics


def test_one_topic_stays_the_simple_case() -> None:
    [only] = parse("name: x\ntopic: {name: events}", "x.yaml").every_topic
    assert (only.name, only.partitions) == ("events", 2)


def test_the_clients_are_as_many_as_all_partitions_want() -> None:
    def senders(text: str) -> int:
        workload = parse(text, "x.yaml").workload
        assert isinstance(workload, AppendingSpec)
        return workload.senders

    assert senders(TWO) == senders("name: x\ntopic: {partitions: 5}") == 10
    assert senders("name: x\ntopic: {partitions: 6}\ntopics: [{name: a}, {name: b}]") == 24


def test_the_judge_is_told_of_every_topic() -> None:
    spec = parse(
        "name: x\ntopics: [{name: log, min_insync_replicas: 1, configs: {retention.ms: 9000}}, "
        "{name: log-1, partitions: 3}]",
        "x.yaml",
    )
    info = run_info(spec, "t", build_parts(spec, "t").system, plan_of(spec))
    assert [(one.name, one.partitions, one.min_insync_replicas) for one in info.topics] == [
        ("log", 2, 1),
        ("log-1", 3, 2),
    ]
    assert [one.deletion.get("retention.ms") for one in info.topics] == ["9000", None]
    assert [one.name for one in forecast(spec).workload.topics] == ["log", "log-1"]


def test_a_fault_that_changes_settings_loosens_the_promise_of_the_first_topic_alone() -> None:
    def least(entity: str) -> list[int]:
        fault = f"fault: change-config, entity: {entity}, configs: {{min.insync.replicas: 1}}"
        spec = parse(f"{TWO}\nnemesis: {{schedule: [{{at_s: 1, duration_s: 1, {fault}}}]}}", "x.yaml")
        info = run_info(spec, "t", build_parts(spec, "t").system, plan_of(spec))
        return [one.min_insync_replicas for one in info.topics]

    assert least("topic") == [1, 2]
    assert least("brokers") == [1, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: [{name: a}, {name: a}]", "topics[1].name: there is a topic 'a' already: give each one of"),
        ("topics: [{}, {}]", "topics[1].name: there is a topic 'log' already"),
        (
            "topics: [{name: log.a}, {name: log_a}]",
            "topics[1].name: no broker takes 'log_a' beside 'log.a': '.' and '_' are one in the names of",
        ),
        (
            f"topics: [{{name: a}}, {{name: b, configs: {{{UNCLEAN}: true}}}}]",
            f"topics[1].configs.{UNCLEAN}: it must be the same for all topics, since the run's one contract",
        ),
        (
            "topics: [{name: a}]\nsystem: {kind: apache-kafka}\nworkload: {name: group}",
            "topics: the workload group uses one topic: give it as topic",
        ),
        ("topics: [{name: a, replication_factor: 4}]", "topics[0].replication_factor 4 needs as many"),
        (
            "topics: [{name: a, min_insync_replicas: 4}]",
            "topics[0].min_insync_replicas 4 can never be met: topics[0].replication_factor is 3",
        ),
        (
            "topics: [{name: a, partitions: 150}, {name: b, partitions: 51}]",
            "topics: partitions: 201 is more",
        ),
        ("topics: [{name: a, partitons: 4}]", "topics[0].partitons: unknown key; did you mean 'partitions'?"),
        ("topics: {name: a}", "topics: "),
        (
            "topics: [{name: log}, {name: log-1}]\n"
            "nemesis: {schedule: [{at_s: 1, duration_s: 1, fault: kill, target: leader(log-1-2)}]}",
            "nemesis.schedule[0].target leader(log-1-2): log-1 has no partition 2",
        ),
        (
            "topics: [{name: log}, {name: log-1}]\n"
            "nemesis: {schedule: [{at_s: 1, duration_s: 1, fault: kill, target: leader(lag-1)}]}",
            "nemesis.schedule[0].target leader(lag-1): there is no topic 'lag': the run's are 'log' and "
            "'log-1', so leader(log-0) or leader(log-1-0)",
        ),
        (
            "topics: [{name: log}, {name: log-1}]\nnemesis: {guided: {name: power-cut-lossy, topic: lag}}",
            "nemesis.guided power-cut-lossy: there is no topic 'lag', the run's are 'log' and 'log-1'",
        ),
    ],
)
def test_a_mistake_is_one_line(text: str, said: str) -> None:
    with pytest.raises(SpecError) as wrong:
        parse(f"name: x\n{text}", "x.yaml")
    assert str(wrong.value).startswith(f"x.yaml: {said}")
    assert "\n" not in str(wrong.value)


def test_what_the_broker_refuses_is_told_with_its_topic() -> None:
    spec = parse("name: x\ntopics: [{name: a}, {name: b, configs: {retention.msec: 4}}]", "x.yaml")
    with pytest.raises(SpecError, match=r"x\.yaml: topics\[1\]\.configs\.retention\.msec: "):
        ask_system(spec, "x.yaml")


def test_on_a_cluster_of_others_each_topic_and_each_target_has_its_own_name() -> None:
    text = (
        "name: x\nsystem: {kind: external, bootstrap: ['b:9092'], hosts: {n1: {node: 1}}}\n"
        "topic: {replication_factor: 1, min_insync_replicas: 1}\n"
        "topics: [{name: log}, {name: log-1}, {name: my-log}]\n"
        "nemesis: {lanes: {a: {faults: [{fault: elect-preferred, target: 'leader(log-1-0)'}]}}, schedule: ["
        "{at_s: 1, duration_s: 1, fault: elect-preferred, target: leader(log-1)}, "
        "{at_s: 5, duration_s: 1, fault: elect-preferred, target: leader(log-1-1)}, "
        "{at_s: 9, duration_s: 1, fault: elect-preferred, target: leader(my-log-0)}]}"
    )
    spec = as_run(parse(text, "x.yaml"), "T")
    assert [one.name for one in spec.every_topic] == [f"wrackline-T-{n}" for n in ("log", "log-1", "my-log")]
    assert [one.inject.target for one in spec.nemesis.schedule] == [
        "leader(wrackline-T-log-1)",
        "leader(wrackline-T-log-1-1)",
        "leader(wrackline-T-my-log-0)",
    ]
    assert [one.target for one in spec.nemesis.lanes["a"].faults] == ["leader(wrackline-T-log-1-0)"]


def test_a_violation_is_shown_by_as_few_topics_as_can_be() -> None:
    raw = {"topics": [{"name": name} for name in ("a", "b", "c")], "workload": {"duration_s": 5}}
    assert shrunk(raw, lambda tried: len(tried["topics"]) >= 2)["topics"] == [{"name": "a"}, {"name": "b"}]
