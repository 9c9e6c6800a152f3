"""Specifications: what is written is what is run, and every mistake is one line that says how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from wrackline.checkers.verdict.conditions.thresholds import LEFT_OUT, THRESHOLDS
from wrackline.fleets.inventory.spec import InventorySpec
from wrackline.harness.specification.spec import Spec, SpecError, load, parse
from wrackline.workloads.log import LogSpec

SUITES = Path(__file__).parents[3] / "suites"
LOG_KEYS = (
    "name, duration_s, rate, spacing, acks, idempotence, record_bytes, client, mix, senders, in_flight, "
    "pollers, "
    "enders, records_per_op, reassign_every"
)
TOP_KEYS = "name, seed, fleet, system, topic, topics, workload, nemesis, contract"

MISTAKES = [
    (
        "name: x\nworkload: {ratee: 4}",
        f"x.yaml: workload.ratee: unknown key; did you mean 'rate'? known here: {LOG_KEYS}",
    ),
    (
        "name: x\nworklod: {}",
        f"x.yaml: worklod: unknown key; did you mean 'workload'? known here: {TOP_KEYS}",
    ),
    ("name: x\nzzz: {}", f"x.yaml: zzz: unknown key; known here: {TOP_KEYS}"),
    ("seed: 4", "x.yaml: name: missing"),
    ("name: x\nseed: -1", "x.yaml: seed: input should be greater than or equal to 0, not -1"),
    (
        "name: X Y",
        "x.yaml: name: 'X Y' cannot be used: use a-z, 0-9 and -, up to 40 characters, such as my-run",
    ),
    (
        "name: x\nfleet: {kind: ec3}",
        "x.yaml: fleet.kind: there is no 'ec3'; known here: inventory, libvirt, netns, none, process, qemu; "
        "`wrackline list parts` lists all",
    ),
    (
        "name: x\nfleet: {subnet: 10.0.0.0/30}",
        "x.yaml: fleet.subnet: 10.0.0.0/30 has no room for the hosts: /26 is the smallest",
    ),
    (
        "name: x\nfleet: {kind: process}\nsystem: {kind: apache-kafka, clock: faketime}",
        "x.yaml: system.clock: faketime needs commands on its hosts as root: hosts of the fleet process are "
        "folders of this machine, without root; those of the fleet netns are not",
    ),
    ("name: x\nworkload: {acks: 2}", "x.yaml: workload.acks: input should be 0, 1 or 'all', not 2"),
    (
        "name: x\nworkload: {client: {poll_mss: 2}}",
        "x.yaml: workload.client.poll_mss: unknown key; did you mean 'poll_ms'? known here: "
        "library, version, message_timeout_ms, "
        "request_timeout_ms, socket_timeout_ms, linger_ms, retries, poll_ms, poll_records, "
        "fetch_wait_max_ms, "
        "end_timeout_ms, librdkafka",
    ),
    ("name: x\nworkload: {idempotence: true, acks: 1}", "x.yaml: workload: idempotence needs acks: all"),
    (
        "name: x\nworkload: {senders: 0, pollers: 0, enders: 0}",
        "x.yaml: workload: no operation is left: give at least one of senders, pollers, enders a process and "
        "a weight",
    ),
    (
        "name: x\nfleet: {brokers: 1}",
        "x.yaml: topic.replication_factor 3 needs as many brokers, fleet.brokers is 1",
    ),
    (
        "name: x\ntopic: {replication_factor: 2, min_insync_replicas: 3}",
        "x.yaml: topic.min_insync_replicas 3 can never be met: topic.replication_factor is 2",
    ),
    (
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 1, fault: add-broker}]}",
        "x.yaml: nemesis: 1 times add-broker needs as many spare hosts, fleet.spares is 0",
    ),
    (
        "name: x\nnemesis: {random: {faults: [reassign]}}",
        "x.yaml: nemesis: reassign needs more brokers than topic.replication_factor (3): fleet.brokers is 3, "
        "and 0 are "
        "added",
    ),
    (
        "name: x\nfleet: {spares: 1}\nnemesis: {random: {faults: [add-broker]}}",
        "x.yaml: nemesis.random.faults: add-broker uses a spare host up: put it into the schedule, "
        "at its time",
    ),
    (
        "name: x\nfleet: {brokers: 8, spares: 2}",
        "x.yaml: fleet: 8 brokers and 2 spares are more than the 9 there can be",
    ),
    ("name: x\nname: y", "x.yaml: line 2, column 1: key 'name' is there twice"),
    (
        "name: x\nsystem: {{profile: kip966}}",
        "x.yaml: line 2, column 10: a key must be a word or a number; are there too many braces?",
    ),
    ("name: [", "x.yaml: line 1, column 8: a value is missing, or a bracket is never closed"),
    ("- a", "x.yaml: this is a list, not keys with values; at least `name: NAME` must be there"),
    ("", "x.yaml: it is empty; `wrackline init` writes a specification to start from"),
    (
        "name: x\nnemesis: {schedule: [{at_s: 50, duration_s: 20, fault: kill}]}",
        "x.yaml: nemesis.schedule[0]: kill ends at 70 s, but the run lasts 60 s; "
        "let it last longer or the fault begin earlier",
    ),
    (
        "name: x\ncontract: {expected: [lostwrite]}",
        "x.yaml: contract.expected: there is no anomaly 'lostwrite'; did you mean 'lost-write'? "
        "`wrackline list anomalies` lists them",
    ),
    (
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 1, fault: kill, target: leader(nolog-9)}]}",
        "x.yaml: nemesis.schedule[0].target leader(nolog-9): there is no topic 'nolog': the run's is 'log', "
        "so "
        "leader(log-0)",
    ),
    (
        "name: x\nnemesis: {random: {faults: [kill, {fault: pause, target: isr-last(log-2)}]}}",
        "x.yaml: nemesis.random.faults[1].target isr-last(log-2): log has no partition 2: topic.partitions "
        "is 2, the last "
        "is isr-last(log-1)",
    ),
    (
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 1, fault: kill, target: 'n1,n4'}]}",
        "x.yaml: nemesis.schedule[0].target n1,n4: there is no host n4; there are n1, n2, n3, c1",
    ),
    (
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 1, fault: kill, target: spare}]}",
        "x.yaml: nemesis.schedule[0].target spare: there is no spare host: fleet.spares is 0",
    ),
    (
        "name: x\ntopic: {replication_factor: 1, min_insync_replicas: 1}\n"
        "nemesis: {random: {faults: [{fault: kill, target: follower}]}}",
        "x.yaml: nemesis.random.faults[0].target follower: a partition with one replica has no follower: "
        "topic.replication_factor is 1",
    ),
    (
        "name: x\nfleet: {brokers: 2}\ntopic: {replication_factor: 2}\n"
        "nemesis: {random: {faults: [{fault: kill, target: minority}]}}",
        "x.yaml: nemesis.random.faults[0].target minority: a minority of 2 brokers is nobody: fleet.brokers "
        "must be 3 or "
        "more",
    ),
    (
        "name: x\ntopic: {configs: {min.insync.replicas: 1}}",
        "x.yaml: topic.configs.min.insync.replicas: give it as topic.min_insync_replicas, which the contract "
        "is taken from",
    ),
    (
        "name: x\nfleet: {combined: true}\nnemesis: {guided: elr-outsider}",
        "x.yaml: nemesis.guided elr-outsider needs the controllers on hosts of their own: fleet.combined "
        "must be false",
    ),
    (
        "name: x\nfleet: {controllers: 3}\nnemesis: {guided: shrink-unheard}",
        "x.yaml: nemesis.guided shrink-unheard cuts a leader from the only controller: fleet.controllers "
        "must be 1, not 3",
    ),
    (
        "name: x\ntopic: {replication_factor: 2}\nnemesis: {guided: b01-truncate-to-hw}",
        "x.yaml: nemesis.guided b01-truncate-to-hw needs 3 replicas: topic.replication_factor is 2",
    ),
    (
        "name: x\nnemesis: {guided: {name: power-cut-lossy, partition: 2}}",
        "x.yaml: nemesis.guided power-cut-lossy: log has no partition 2: topic.partitions is 2",
    ),
    (
        "name: x\nnemesis: {guided: {name: power-cut-lossy, topic: lag}}",
        "x.yaml: nemesis.guided power-cut-lossy: there is no topic 'lag', the run's is 'log'",
    ),
    (
        "name: x\nworkload: {duration_s: 3}\nnemesis: {guided: {name: power-cut-lossy, at_s: 3}}",
        "x.yaml: nemesis.guided power-cut-lossy begins at 3 s, but the run lasts 3 s: let it last longer or "
        "the schedule "
        "begin earlier",
    ),
    (
        "name: x\nworkload: {duration_s: 5}\nnemesis: {random: {faults: [kill]}}",
        "x.yaml: nemesis.random: no fault fits into the run: the first begins at 2 s and lasts 2 to 5 s, 2 s "
        "at the end "
        "are quiet, and workload.duration_s is 5: let it last longer",
    ),
    (
        "name: x\nworkload: {client: {librdkafka: {plugin.library.paths: /tmp/mine.so}}}",
        "x.yaml: workload.client.librdkafka: plugin.library.paths: it makes librdkafka load libraries or "
        "open files of "
        "this machine; leave it out",
    ),
    (
        "name: x\nseed: a\nworkload: {rate: fast}",
        "x.yaml: seed: input should be a valid integer, not 'a' (and 1 more)",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said[:50] for _, said in MISTAKES])
def test_a_mistake_is_one_line(text: str, said: str) -> None:
    with pytest.raises(SpecError) as wrong:
        parse(text, "x.yaml")
    assert str(wrong.value) == said


@pytest.mark.parametrize(
    "text",
    [
        "name: x\nnemesis: {gided: b01}",
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kil}]}",
        "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kill, target: leadr}]}",
        "name: x\nnemesis: {guided: nosuch}",
        "name: x\nnemesis: {random: {faults: []}}",
    ],
)
def test_a_mistake_about_the_nemesis_names_its_place_without_pydantics_own_words(text: str) -> None:
    with pytest.raises(SpecError, match=r"^x\.yaml: nemesis") as wrong:
        parse(text, "x.yaml")
    assert "\n" not in str(wrong.value)
    assert "Value error" not in str(wrong.value)


def test_settings_reach_any_key_and_are_checked_like_the_file() -> None:
    text = "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kill}]}"
    settings = ["workload.client.librdkafka.debug=broker", "workload.rate=12.5", "nemesis.schedule.0.at_s=9"]
    spec = parse(text, "x.yaml", settings=settings, seed=5)
    assert spec.workload.client.librdkafka == {"debug": "broker"}
    assert spec.workload.rate == 12.5
    assert spec.nemesis.schedule[0].at_s == 9
    assert spec.seed == 5


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "workload.rate",
            "--set workload.rate: give it as key.path=value, for example --set workload.rate=500",
        ),
        ("=4", "--set =4: give it as key.path=value, for example --set workload.rate=500"),
        ("name.x=4", "--set name.x=4: name is a value, nothing can be set below it"),
        (
            "nemesis.schedule.3.at_s=4",
            "--set nemesis.schedule.3.at_s=4: nemesis.schedule has 1 elements, no '3'",
        ),
        ("seed=[", "--set seed=[: line 1, column 2: a value is missing, or a bracket is never closed"),
        ("workload.nosuch=1", f"x.yaml: workload.nosuch: unknown key; known here: {LOG_KEYS}"),
    ],
)
def test_a_wrong_setting_is_one_line(setting: str, said: str) -> None:
    text = "name: x\nnemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kill}]}"
    with pytest.raises(SpecError) as wrong:
        parse(text, "x.yaml", settings=[setting])
    assert str(wrong.value) == said


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such file"):
        load(tmp_path / "x.yaml")


@pytest.mark.parametrize("path", sorted(SUITES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_specification_that_comes_with_us_is_right(path: Path) -> None:
    spec = load(path)
    assert spec.name == path.stem


def test_what_is_saved_is_complete_and_gives_the_same_run() -> None:
    spec = load(SUITES / "demo-acks-all.yaml", seed=9)
    saved = spec.to_yaml()
    assert Spec.model_validate(yaml.safe_load(saved)) == spec
    assert "catch" not in saved
    assert "message_timeout_ms: 3000" in saved


def test_the_default_number_of_clients_grows_with_the_partitions() -> None:
    def clients(text: str) -> tuple[int, int]:
        workload = parse(f"name: x\n{text}", "x.yaml").workload
        assert isinstance(workload, LogSpec)
        return workload.senders, workload.enders

    assert clients("") == (6, 2)
    assert clients("topic: {partitions: 12}") == (24, 8)
    assert clients("topic: {partitions: 12}\nworkload: {senders: 3}") == (3, 8)
    assert clients("topic: {partitions: 1}\nworkload: {name: log, enders: 0}") == (6, 0)
    assert (
        parse("name: x\ntopic: {partitions: 12}\nworkload: {name: queue}", "x.yaml").workload.name == "queue"
    )


def test_thresholds_have_names_that_are_measured() -> None:
    text = """
name: x
contract:
  thresholds:
    latency_ms: {healthy: {p50: 20, p99: 200}, faults: {p95: 3000}}
    longest_gap_s: 20
    recovery_s: 10
    left_out: 0
    records_per_s: 100
    operations_per_s: 150
"""
    limits = parse(text, "x.yaml").contract.thresholds.limits()
    assert limits == {
        "latency_ms.healthy.p50": 20,
        "latency_ms.healthy.p99": 200,
        "latency_ms.faults.p95": 3000,
        "longest_gap_s": 20,
        "recovery_s": 10,
        "left_out": 0,
        "records_per_s": 100,
        "operations_per_s": 150,
    }
    assert limits.keys() <= {*THRESHOLDS, LEFT_OUT}


def test_every_threshold_that_is_measured_can_be_set() -> None:
    names = [*THRESHOLDS, LEFT_OUT]
    settings = [f"contract.thresholds.{name}=0.5" for name in names]
    limits = parse("name: x", "x.yaml", settings=settings).contract.thresholds.limits()
    assert limits == dict.fromkeys(names, 0.5)


@pytest.mark.parametrize(
    ("threshold", "said"),
    [
        ("nope=3", "contract.thresholds.nope: unknown key; known here: latency_ms, longest_gap_s"),
        ("longest_gap=3", "contract.thresholds.longest_gap: unknown key; did you mean 'longest_gap_s'?"),
        (
            "latency_ms.healthy.p98=3",
            "contract.thresholds.latency_ms.healthy.p98: unknown key; did you mean 'p99'?",
        ),
        ("recovery_s=-1", "contract.thresholds.recovery_s: input should be greater than 0"),
        ("left_out=30", "contract.thresholds.left_out: input should be less than or equal to 1"),
    ],
)
def test_a_threshold_that_nobody_measures_is_refused(threshold: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse("name: x", "x.yaml", settings=[f"contract.thresholds.{threshold}"])
    assert said in str(refused.value)


def test_what_is_left_out_needs_a_rate() -> None:
    settings = ["workload.rate=0", "contract.thresholds.left_out=0.1"]
    with pytest.raises(SpecError, match=r"with workload\.rate 0 nothing is asked for"):
        parse("name: x", "x.yaml", settings=settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "nemesis: {guided: nosuch}",
            "nemesis.guided: no guided schedule 'nosuch'; docs/nemesis.md lists them",
        ),
        (
            "nemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kill, target: leadr}]}",
            "nemesis.schedule[0].target: target 'leadr' is no role: ",
        ),
        (
            "nemesis: {schedule: [{at_s: 1, duration_s: 2, fault: kil}]}",
            "nemesis.schedule[0].fault: there is no 'kil'; did you mean 'kill'? `wrackline list parts` lists",
        ),
        ("nemesis: {schedule: [{at_s: 1, duration_s: 2}]}", "nemesis.schedule[0]: it needs the key 'fault'"),
        (
            "workload: {name: lag}",
            "workload.name: there is no 'lag'; did you mean 'log'? known here: compact, ",
        ),
        ("nemesis: {random: {faults: [kil]}}", "nemesis.random.faults[0].fault: there is no 'kil'; did you "),
        ("nemesis: {random: {faults: []}}", "nemesis.random.faults: list should have at least 1 item, not 0"),
        ("system: {defects: trunc_hw}", "system.defects: input should be a valid list, not 'trunc_hw'"),
        ("fleet: 3", "fleet: input should be a mapping of keys to values, not 3"),
        (
            "topic: {configs: {a: 1.5}}",
            "topic.configs.a: input should be a valid string or integer or boolean, not 1.5",
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_file(text: str, said: str) -> None:
    """By the keys that were written, also in a short form; and one value that fits no type is one mistake."""
    with pytest.raises(SpecError) as wrong:
        parse(f"name: x\n{text}", "x.yaml")
    assert str(wrong.value).startswith(f"x.yaml: {said}")
    assert len(wrong.value.mistakes) == 1


@pytest.mark.parametrize("kind", ["netns", "process", "qemu", "libvirt"])
@pytest.mark.parametrize(
    ("setting", "key"),
    [("topic.partitions=201", "topic.partitions"), ("workload.duration_s=25h", "workload.duration_s")],
)
def test_hosts_that_share_this_machine_have_small_bounds(kind: str, setting: str, key: str) -> None:
    with pytest.raises(SpecError) as wrong:
        parse(f"name: x\nfleet: {{kind: {kind}}}", "x.yaml", settings=[setting])
    [line] = wrong.value.mistakes
    assert line.startswith(f"x.yaml: {key}: ")
    assert f"hosts of fleet.kind {kind} share one machine" in line
    assert "fleet.kind inventory" in line
    assert "system.kind external" in line


def test_clusters_of_others_have_the_bounds_that_they_need() -> None:
    settings = ["topic.partitions=10000", "workload.duration_s=1344h"]
    spec = parse("name: x\nsystem: {kind: external, bootstrap: ['n:1']}", "x.yaml", settings=settings)
    assert (spec.topic.partitions, spec.workload.duration_s) == (10_000, 8 * 7 * 86_400)
    assert (InventorySpec.made_here, InventorySpec.most_brokers) == (False, 100)
