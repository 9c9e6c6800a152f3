"""Lines of the nodes' own files beside incidents: of Kafka's logs, shortened, and of our broker's traces.
Words of Kafka's lines are those of 4.4.0 unless another version is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wrackline.checkers.verdict.incidents.sentences import in_full
from wrackline.harness.run.clocks import Clocks
from wrackline.harness.run.incidents.incident_logs import MOST_LINES, add_lines
from wrackline.harness.run.incidents.node_lines import WIDTH, Line, Tells
from wrackline.history.store import packed

START_NS = 1_795_446_800 * 1_000_000_000
"""2026-11-23 15:13:20 UTC."""
KAFKA = """\
[2026-11-23 15:13:19,100] INFO [UnifiedLog partition=log-0, dir=/d] Truncating to offset 0 (UnifiedLog)
[2026-11-23 15:13:32,957] INFO [UnifiedLog partition=log-0, dir=/d] Truncating to 7 has no effect (UnifiedLog)
[2026-11-23 15:13:33,050] INFO [ReplicaFetcher] Truncating partition log-0 with TruncationState(offset=7) due
[2026-11-23 15:13:33,054] INFO [UnifiedLog partition=log-0, dir=/d] Truncating to offset 7 (UnifiedLog)
[2026-11-23 15:13:33,055] INFO [UnifiedLog partition=log-1, dir=/d] Truncating to offset 3 (UnifiedLog)
[2026-11-23 15:13:33,056] INFO [UnifiedLog partition=log-00, dir=/d] Truncating to offset 3 (UnifiedLog)
[2026-11-23 15:13:36,540] INFO [Broker id=3] Leader log-0 starts at leader epoch 2 from offset 7
[2026-11-23 15:13:36,541] INFO [Broker id=3] Ignoring LeaderAndIsr: log-0 has leader epoch 2 already
"""
ENDED_EARLY = """\
[2026-11-23 15:13:35,000] INFO Completed load of Log(dir=/d/log-0, end=%d) and log-end-offset %d in
[2026-11-23 15:13:36,540] INFO [Broker id=3] Leader log-0 starts at leader epoch 2 from offset %d
"""


WHAT = "3 acknowledged records of log-0 (offsets 7 to 9) are gone"


def incident(**changes: Any) -> dict[str, Any]:
    found = {
        "id": "i-1",
        "meaning": "violation",
        "sentence": f"{WHAT} since n3 became leader at 16.5 s",
        "gone": {"what": WHAT, "also": ""},
        "mechanism": ["n2 led log-0 until 16.5 s.", "n3 led it from then on."],
        "topic": "log",
        "partition": 0,
        "first_offset": 7,
        "last_offset": 9,
        "first_ns": 10_000_000_000,
        "last_ns": 18_000_000_000,
        "at_ns": 16_500_000_000,
        "anomalies": [{"anomaly": "lost-write", "meaning": "violation", "count": 3}],
        "leader_after": {"leader": "n3", "leader_epoch": 2},
    }
    return found | changes


def verdict(one: dict[str, Any]) -> dict[str, Any]:
    return {"incidents": [one], "reasons": [in_full(one), "another reason"]}


def run_with(tmp_path: Path, files: dict[str, str], ahead_ns: dict[str, int] | None = None) -> Path:
    for name, text in files.items():
        path = tmp_path / "nodes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    Clocks(START_NS, ahead_ns or {}).write(tmp_path)
    return tmp_path


def test_lines_of_kafkas_log_about_the_partition_near_the_incident(tmp_path: Path) -> None:
    one = incident()
    said = verdict(one)
    assert add_lines(run_with(tmp_path, {"n3/broker.log": KAFKA}), said)
    assert [(line["file"], line["number"]) for line in one["lines"]] == [
        ("nodes/n3/broker.log", 3),
        ("nodes/n3/broker.log", 4),
        ("nodes/n3/broker.log", 7),
    ]
    assert [line["at_ns"] for line in one["lines"]] == [13_050_000_000, 13_054_000_000, 16_540_000_000]
    assert one["truncations"] == [{"node": "n3", "at_ns": 13_054_000_000, "to": 7, "was": None}]
    assert (
        one["sentence"] == f"{WHAT}: n3 cut its log back to offset 7 at 13.1 s, and became leader at 16.5 s"
    )
    assert len(one["mechanism"]) == 2
    assert said["reasons"] == [in_full(one), "another reason"]
    assert in_full(one).endswith("led it from then on. Evidence: 3 lost-write.")


@pytest.mark.parametrize(
    ("topic", "partition", "to"), [("log", 1, 3), ("log-1", 0, 4), ("log-1", 1, 5), ("a.log-1", 0, 6)]
)
def test_a_line_is_of_the_partition_whose_whole_name_it_has(
    tmp_path: Path, topic: str, partition: int, to: int
) -> None:
    """A topic may be called as a partition of another, and end as another."""
    names = ("log-1", "log-1-0", "log-1-1", "a.log-1-0")
    words = "[2026-11-23 15:13:33,%03d] INFO [UnifiedLog partition=%s, dir=/d] Truncating to offset %d\n"
    log = "".join(words % (50 + at, name, 3 + at) for at, name in enumerate(names))
    one = incident(topic=topic, partition=partition, first_offset=3, last_offset=9)
    add_lines(run_with(tmp_path, {"n3/broker.log": log}), verdict(one))
    assert [cut["to"] for cut in one["truncations"]] == [to]


LAST_KNOWN_LEADER = {
    "c1/broker.log": """\
[2026-11-23 15:13:30,100] INFO [QuorumController id=101] Fencing broker 3 at epoch 14 because its session
[2026-11-23 15:13:30,200] INFO [QuorumController id=101] Registering a new incarnation of broker 2. \
Broker epoch will become 107.
[2026-11-23 15:13:32,100] INFO [QuorumController id=101] handleBrokerUncleanShutdown: changing 1 partition(s)
[2026-11-23 15:13:32,100] INFO [QuorumController id=101] Registering a new incarnation of broker 3. Previous \
incarnation ID was A; new incarnation ID is B. Generated 1 record(s). Broker epoch will become 108.
[2026-11-23 15:13:32,101] INFO [QuorumController id=101] Replayed RegisterBrokerRecord establishing a new \
incarnation of broker 3: RegisterBrokerRecord(brokerId=3, brokerEpoch=108, endPoints=[])
[2026-11-23 15:13:36,500] INFO [QuorumController id=101] UNCLEAN partition change for log-0 with topic ID T: \
leader: -1 -> 3, leaderEpoch: 1 -> 2, partitionEpoch: 5 -> 6 (ReplicationControlManager)
""",
    "n1/broker.log": """\
[2026-11-23 15:13:36,545] INFO [Broker id=1] Follower log-0 starts at leader epoch 1 from \
offset 4 with partition epoch 3 and high watermark 0.
[2026-11-23 15:13:36,550] INFO [Broker id=1] Follower log-0 starts at leader epoch 2 from \
offset 9 with partition epoch 6 and high watermark 8.
""",
    "n3/broker.log": """\
[2026-11-23 15:13:36,540] INFO [Broker id=3] Leader log-0 with topic id Some(T) starts at leader epoch 2\
 from offset 0 with partition epoch 6, high watermark 0
""",
}
NODES = {"1": "n1", "2": "n2", "3": "n3", "101": "c1"}
COULD_LEAD = {"leader": "n1", "isr": ["n1"], "elr": ["n3"]}


def test_the_moments_of_files_and_faults_stand_among_those_of_the_history(tmp_path: Path) -> None:
    leader = {"at_ns": 16_500_000_000, "node": "n3", "kind": "leader", "words": "n3 leads log-0"}
    spans = {"replicas": ["n1", "n2", "n3"]}
    one = incident(
        leader_before=COULD_LEAD | spans,
        moments=[leader],
        faults=["f1"],
        at_ns=leader["at_ns"],
    )
    power = {"id": "f1", "fault": "power-cut", "active_ns": 11_000_000_000}
    power |= {"lossy": ["n3", "n9"], "unsure": ["n2"], "damaged": {"n1": {}}}
    files = LAST_KNOWN_LEADER | {"n2/broker.log": cut("50", 7), "n1/trace.jsonl": trace(59, "truncate", to=8)}
    add_lines(run_with(tmp_path, files), verdict(one) | {"faults": [power]}, nodes=NODES)
    assert [(found["at_ns"] / 1e9, found["words"]) for found in one["moments"]] == [
        (11, "n1 has changed files"),
        (11, "n3 lost unsynced bytes"),
        (12.1, "n3 registers after an unclean shutdown"),
        (16.5, "n3 leads log-0"),
        (16.55, "n1 follows n3"),
        (30, "n2 cut log-0 at 7"),
        (59, "n1 cut log-0 at 8"),
    ]


def test_what_has_no_known_time_is_no_moment(tmp_path: Path) -> None:
    one = incident()
    run_dir = run_with(tmp_path, {"n3/broker.log": KAFKA})
    (run_dir / "clocks.json").unlink()
    add_lines(run_dir, verdict(one), "2026-11-23T15:13:20+00:00")
    assert one["moments"] == []


def test_why_a_replica_left_the_elr_with_its_epochs_and_where_the_logs_ended(tmp_path: Path) -> None:
    one = incident(leader_before=COULD_LEAD)
    add_lines(run_with(tmp_path, LAST_KNOWN_LEADER), verdict(one), nodes=NODES)
    assert one["mechanism"][2:] == [
        "n3 registered at 12.1 s in broker epoch 108, 14 before, and the controller took its shutdown for "
        "unclean.",
        "n3 led from partition epoch 6 on, after 5.",
        "When leader epoch 2 began, the log end offsets were 9 on n1 and 0 on n3.",
    ]
    cited = [(line["file"], line["number"]) for line in one["lines"]]
    assert cited[:2] == [("nodes/c1/broker.log", 3), ("nodes/c1/broker.log", 4)]


@pytest.mark.parametrize(
    "changed",
    [
        {"leader_before": {"leader": "n1", "isr": ["n1"], "elr": ["n2"]}},
        {"leader_before": COULD_LEAD, "at_ns": 11_000_000_000},
    ],
    ids=["it was in no ELR", "the leader had changed before"],
)
def test_an_unclean_shutdown_that_has_nothing_to_do_with_it_is_left_out(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    one = incident(**changed)
    add_lines(run_with(tmp_path, LAST_KNOWN_LEADER), verdict(one), nodes=NODES)
    assert not [said for said in one["mechanism"] if "unclean" in said]
    assert not [line for line in one["lines"] if "incarnation" in line["text"]]


def test_a_clean_registration_takes_nobody_out_of_the_elr(tmp_path: Path) -> None:
    clean = LAST_KNOWN_LEADER["c1/broker.log"].replace("changing 1 partition(s)", "changing 0 partition(s)")
    one = incident(leader_before=COULD_LEAD)
    add_lines(run_with(tmp_path, {**LAST_KNOWN_LEADER, "c1/broker.log": clean}), verdict(one), nodes=NODES)
    assert not [said for said in one["mechanism"] if "unclean" in said]


def test_a_packed_log_is_cited_by_the_name_that_it_has(tmp_path: Path) -> None:
    run_dir = run_with(tmp_path, {"n3/broker.log": KAFKA + " " * packed.WORTH_BYTES})
    assert packed.pack(run_dir.glob("nodes/*/*")) > 0
    one = incident()
    assert add_lines(run_dir, verdict(one))
    assert {line["file"] for line in one["lines"]} == {"nodes/n3/broker.log.zst"}
    assert all((run_dir / line["file"]).is_file() for line in one["lines"])


def test_a_host_whose_clock_is_ahead(tmp_path: Path) -> None:
    one = incident()
    add_lines(run_with(tmp_path, {"n3/broker.log": KAFKA}, {"n3": 1_000_000_000}), verdict(one))
    assert one["truncations"][0]["at_ns"] == 12_054_000_000


def test_without_the_hosts_clocks_lines_are_chosen_by_the_time_of_day_and_have_no_time(
    tmp_path: Path,
) -> None:
    one = incident()
    run_dir = run_with(tmp_path, {"n3/broker.log": KAFKA})
    (run_dir / "clocks.json").unlink()
    add_lines(run_dir, verdict(one), "2026-11-23T15:13:20+00:00")
    assert [(line["number"], line["at_ns"]) for line in one["lines"]] == [(3, None), (4, None), (7, None)]
    assert one["truncations"] == [{"node": "n3", "at_ns": None, "to": 7, "was": None}]
    assert one["sentence"] == f"{WHAT}: n3 cut its log back to offset 7, and became leader at 16.5 s"


def test_a_cut_of_unknown_time_in_another_file_explains_nothing(tmp_path: Path) -> None:
    one = incident()
    files = {
        "n3/broker.log": cut("33", 7),
        "n3/trace.jsonl": trace(16.6, "role", role="leader", leader_epoch=2),
    }
    run_dir = run_with(tmp_path, files)
    (run_dir / "clocks.json").unlink()
    add_lines(run_dir, verdict(one), "2026-11-23T15:13:20+00:00")
    assert one["sentence"] == f"{WHAT} since n3 became leader at 16.5 s"


def trace(at_s: float, kind: str, **more: Any) -> str:
    return json.dumps(
        {"time_ns": START_NS + int(at_s * 1e9), "node": 3, "kind": kind, "tp": "log-0", **more},
        separators=(",", ":"),
    )


def test_lines_of_our_brokers_trace(tmp_path: Path) -> None:
    lines = [
        trace(12.0, "append", why="truncate is no kind of this one"),
        trace(13.0, "truncate", to=7, was=10),
        trace(13.5, "truncate", to=12, was=15),
        trace(16.6, "role", role="leader", leader_epoch=2),
        '{"kind":"truncate","tp":"log-0","to":',
    ]
    one = incident()
    add_lines(run_with(tmp_path, {"n3/trace.jsonl": "\n".join(lines)}), verdict(one))
    assert [line["number"] for line in one["lines"]] == [2, 4]
    assert one["truncations"] == [{"node": "n3", "at_ns": 13_000_000_000, "to": 7, "was": 10}]
    assert one["sentence"] == f"{WHAT}: n3 cut them at 13.0 s, and became leader at 16.5 s"
    assert one["lines"][0]["text"] == "kind truncate, tp log-0, to 7, was 10"


def test_a_new_leader_whose_log_ended_early_had_cut_nothing_off(tmp_path: Path) -> None:
    one = incident()
    add_lines(run_with(tmp_path, {"n3/broker.log": ENDED_EARLY % (7, 7, 7)}), verdict(one))
    assert one["sentence"] == f"{WHAT}: n3 became leader at 16.5 s with log end offset 7"
    assert [line["number"] for line in one["lines"]] == [1, 2]
    one = incident()
    add_lines(run_with(tmp_path, {"n3/broker.log": ENDED_EARLY % (0, 0, 0)}), verdict(one))
    assert one["sentence"] == f"{WHAT}: n3 became leader at 16.5 s with an empty log"
    one = incident()
    add_lines(run_with(tmp_path, {"n3/broker.log": ENDED_EARLY % (10, 10, 10)}), verdict(one))
    assert len(one["mechanism"]) == 2
    one = incident(leader_after={"leader": "n3", "leader_epoch": 1})
    add_lines(run_with(tmp_path, {"n3/broker.log": ENDED_EARLY % (7, 7, 7)}), verdict(one))
    assert len(one["mechanism"]) == 2


def cut(at: str, to: int) -> str:
    return (
        f"[2026-11-23 15:13:{at},000] INFO [UnifiedLog partition=log-0, dir=/d] Truncating to offset {to}\n"
    )


def test_who_cuts_its_log_when_it_is_back_is_told_though_that_is_long_after(tmp_path: Path) -> None:
    files = {"n1/broker.log": cut("59", 7), "n2/broker.log": cut("50", 9) + cut("55", 7)}
    one = incident()
    add_lines(run_with(tmp_path, files), verdict(one))
    assert [(found["node"], found["to"]) for found in one["truncations"]] == [("n2", 9), ("n2", 7), ("n1", 7)]
    assert one["mechanism"][2:] == ["n1 and n2 cut their logs back to offset 7."]


def taken_over(*leaders: tuple[float, str, int, int]) -> dict[str, str]:
    """``leaders``: (when, node, leader epoch, end of its log)."""
    files: dict[str, str] = {}
    for at_s, node, epoch, end in leaders:
        line = trace(at_s, "role", role="leader", leader_epoch=epoch, leo=end)
        files[f"{node}/trace.jsonl"] = files.get(f"{node}/trace.jsonl", "") + line + "\n"
    return files


def test_where_several_led_the_first_whose_log_lacked_the_records_lost_them(tmp_path: Path) -> None:
    leaders = ((9.0, "n1", 0, 2), (19.0, "n2", 1, 12), (20.0, "n3", 2, 7), (21.0, "n1", 3, 5))
    one = incident(leader_after=None, at_ns=None)
    add_lines(run_with(tmp_path, taken_over(*leaders)), verdict(one))
    assert one["mechanism"][2:] == [
        "The records were gone when n3 took over, in leader epoch 2.",
    ]
    assert one["sentence"] == f"{WHAT}: n3 became leader at 20.0 s with log end offset 7"


@pytest.mark.parametrize(
    ("leaders", "changes"),
    [
        pytest.param([(19.0, "n2", 1, 12)], {}, id="all had them"),
        pytest.param([(19.0, "n2", 1, 8), (20.0, "n3", 2, 7)], {}, id="the first had some of them"),
        pytest.param([(17.0, "n2", 1, 7)], {}, id="they were seen later"),
        pytest.param(
            [(19.0, "n2", 1, 7)],
            {"anomalies": [{"anomaly": "stale-read", "meaning": "violation", "count": 2}]},
            id="nothing is lost",
        ),
    ],
)
def test_who_lost_the_records_is_left_out_where_it_is_not_certain(
    tmp_path: Path, leaders: list[tuple[float, str, int, int]], changes: dict[str, Any]
) -> None:
    one = incident(leader_after=None, at_ns=None, **changes)
    add_lines(run_with(tmp_path, taken_over(*leaders)), verdict(one))
    assert len(one["mechanism"]) == 2


def test_the_election_is_told_once_and_no_cut_that_came_to_nothing(tmp_path: Path) -> None:
    unclean = "UNCLEAN partition change for log-0 with topic ID 3: isr: [] -> [3], leader: -1 -> 3"
    files = {
        f"c{number}/broker.log": f"[2026-11-23 15:13:36,{number}00] INFO [QuorumController] {unclean}\n"
        for number in (1, 2, 3)
    }
    files["n1/broker.log"] = KAFKA.replace("Truncating to offset", "Truncating nothing:")
    one = incident()
    add_lines(run_with(tmp_path, files), verdict(one))
    assert [(line["file"], line["number"]) for line in one["lines"]] == [
        ("nodes/c3/broker.log", 1),
        ("nodes/n1/broker.log", 7),
    ]


def test_a_read_that_was_wrong_for_a_moment_has_no_cuts_of_later_times(tmp_path: Path) -> None:
    one = incident(anomalies=[{"anomaly": "stale-read", "meaning": "violation", "count": 1}])
    add_lines(run_with(tmp_path, {"n1/broker.log": cut("59", 7)}), verdict(one))
    assert one["truncations"] == []


def test_a_log_that_has_none_of_the_records_any_more_is_cut_for_another_reason(tmp_path: Path) -> None:
    files = {"n1/broker.log": cut("29", 2) + cut("50", 7) + cut("55", 4), "n2/broker.log": cut("50", 10)}
    one = incident()
    add_lines(run_with(tmp_path, files), verdict(one))
    assert [(found["node"], found["to"]) for found in one["truncations"]] == [("n1", 7)]


@pytest.mark.parametrize(
    ("line", "to"),
    [
        ("INFO Truncating log log-0 to offset 7. (kafka.log.Log, 0.10)", 7),
        ("INFO [Log partition=log-0, dir=/d] Truncating to offset 7 (kafka.log.Log, 2.0)", 7),
        ("WARN [LogLoader partition=log-0] Corruption found in segment 0, truncating to offset 7", 7),
        ("INFO [UnifiedLog partition=log-0] Truncate and start at offset 7, logStartOffset: 7", 7),
        ("WARN [UnifiedLog partition=log-0] Truncating log-0 to offset 7 below high watermark 9", None),
        ("WARN [ReplicaFetcher] The leader's offset 7 will be used for truncation in log-0.", None),
    ],
)
def test_how_kafka_says_that_a_log_was_cut(tmp_path: Path, line: str, to: int | None) -> None:
    one = incident()
    add_lines(run_with(tmp_path, {"n1/broker.log": f"[2026-11-23 15:13:33,000] {line}\n"}), verdict(one))
    assert [found["to"] for found in one["truncations"]] == ([] if to is None else [to])


def test_few_lines_are_kept_and_no_long_ones(tmp_path: Path) -> None:
    many = "\n".join(trace(11 + at / 10, "truncate", to=8, was=10, why="x" * 500) for at in range(50))
    one = incident()
    add_lines(run_with(tmp_path, {"n3/trace.jsonl": many}), verdict(one))
    assert len(one["lines"]) == len(one["truncations"]) == MOST_LINES
    assert {len(line["text"]) for line in one["lines"]} == {WIDTH}
    assert {line["text"][:40] for line in one["lines"]} == {"kind truncate, tp log-0, to 8, was 10, w"}


def test_runs_without_incidents_or_files_stay_as_they_are(tmp_path: Path) -> None:
    assert not add_lines(tmp_path, {"reasons": []})
    said = verdict(incident())
    assert not add_lines(tmp_path, said)
    assert said["incidents"][0]["lines"] == said["incidents"][0]["truncations"] == []


@pytest.mark.parametrize(("epoch", "said"), [(2, True), (0, False)])
def test_where_the_logs_ended_is_told_where_an_epoch_has_one_leader(
    epoch: int, said: bool, tmp_path: Path
) -> None:
    follows = trace(16.6, "role", role="follower", leader_epoch=epoch, leo=9)
    files = taken_over((16.5, "n3", epoch, 7), (30.0, "n2", epoch + (epoch > 0), 9))
    files["n1/trace.jsonl"] = follows
    one = incident(leader_after={"leader": "n3", "leader_epoch": epoch})
    add_lines(run_with(tmp_path, files), verdict(one))
    assert ("the log end offsets were 9 on n1 and 7 on n3." in " ".join(one["mechanism"])) is said


@pytest.mark.parametrize("tells", Tells)
def test_what_a_line_tells_is_a_sentence(tells: Tells) -> None:
    """With what is known, and without what is not."""
    bare = Line(tells, "raw", None, host="n3", file="nodes/n3/broker.log", number=7, label="log-0")
    full = replace(bare, end=515, was=1_519, leader_epoch=4, broker=2, broker_epoch=90)
    for line in (bare, full):
        assert line.words
        assert line.words == line.to_json()["words"]
        assert not line.words.endswith(".")
        assert ("n3" in line.words) is (tells is not Tells.REGISTERS)
    wanted = {
        Tells.CUT: "n3 cut log-0 from 1,519 to 515",
        Tells.LEADS: "n3 leads log-0 in leader epoch 4; its log ends at 515",
        Tells.REGISTERS: "broker 2 registers again in broker epoch 90",
        Tells.FENCED: "the controller on n3 fences broker 2 in broker epoch 90",
    }
    assert full.words == wanted.get(tells, full.words)
    aside = replace(bare, broker=2)
    assert "None" not in aside.words


COORDINATORS = {
    "n2/broker.log": """\
[2026-11-23 15:13:36,500] INFO [Broker id=2] Leader __consumer_offsets-3 with topic id Some(U) starts at\
 leader epoch 5 from offset 128 with partition epoch 9, high watermark 127, ISR [1,2], adding replicas [] .
[2026-11-23 15:13:36,530] INFO [GroupCoordinator id=2] Finished loading of metadata from\
 __consumer_offsets-3 with epoch 5 in 7ms. Loaded 128 records.
[2026-11-23 15:13:36,540] INFO [GroupCoordinator id=2] Finished loading of metadata from\
 __consumer_offsets-1 with epoch 5 in 7ms. Loaded 0 records.
""",
    "n3/broker.log": """\
[2026-11-23 15:13:39,908] INFO [Broker id=3] Follower __consumer_offsets-3 starts at leader epoch 5 from\
 offset 131 with partition epoch 9 and high watermark 128. Current leader is 2.
[2026-11-23 15:13:39,956] INFO [GroupCoordinator id=3] Finished unloading metadata\
 for __consumer_offsets-3 with epoch OptionalInt[5].
[2026-11-23 15:13:39,969] INFO [UnifiedLog partition=__consumer_offsets-3] Truncating to offset 128 (U)
""",
}
OF_392 = {
    "n3/broker.log": """\
[2026-11-23 15:13:36,530] INFO [GroupMetadataManager] Finished loading offsets and group\
 metadata from __consumer_offsets-3 in 12 milliseconds for epoch 5.
[2026-11-23 15:13:39,956] INFO [GroupMetadataManager brokerId=3] Finished unloading __consumer_offsets-3 for\
 coordinator epoch OptionalInt[5]. Removed 4 cached offsets and 1 cached groups.
""",
}


def of_a_group(anomaly: str) -> dict[str, Any]:
    return incident(
        sentence="Process 4 asked", gone=None, mechanism=[], leader_after=None, at_ns=None,
        first_ns=15_000_000_000, last_ns=17_000_000_000, coordinator_log="__consumer_offsets-3",
        anomalies=[{"anomaly": anomaly, "meaning": "violation", "count": 1}],
    )  # fmt: skip


def test_lines_of_the_coordinators_of_a_group_say_what_they_had_loaded_and_until_when(tmp_path: Path) -> None:
    one = of_a_group("hidden-commit")
    told = verdict(one)
    assert add_lines(run_with(tmp_path, COORDINATORS), told)
    assert [(line["file"], line["number"], line["words"]) for line in one["lines"]] == [
        (
            "nodes/n2/broker.log",
            1,
            "n2 leads __consumer_offsets-3 in leader epoch 5; its log ends at 128, its high watermark is 127",
        ),
        ("nodes/n2/broker.log", 2, "n2 has loaded the groups of __consumer_offsets-3, and coordinates them"),
        (
            "nodes/n3/broker.log",
            1,
            "n3 follows the leader of __consumer_offsets-3 in leader epoch 5; its log ends at 131",
        ),
        ("nodes/n3/broker.log", 2, "n3 has unloaded the groups of __consumer_offsets-3"),
        ("nodes/n3/broker.log", 3, "n3 cut __consumer_offsets-3 to 128"),
    ]
    assert one["mechanism"] == [
        "n2 began to lead __consumer_offsets-3 at 16.5 s with the log end offset 128 and the high watermark "
        "127.",
        "n3 coordinated the groups of __consumer_offsets-3 until 20.0 s.",
    ]
    assert [moment["node"] for moment in one["moments"]] == ["n2", "n3"]
    assert told["reasons"][0] == in_full(one)


def test_lines_of_a_coordinator_before_kip_848(tmp_path: Path) -> None:
    one = of_a_group("deposed-answer")
    assert add_lines(run_with(tmp_path, OF_392), verdict(one))
    assert [line["words"] for line in one["lines"]] == [
        "n3 has loaded the groups of __consumer_offsets-3, and coordinates them",
        "n3 has unloaded the groups of __consumer_offsets-3",
    ]
    assert one["mechanism"] == ["n3 coordinated the groups of __consumer_offsets-3 until 20.0 s."]
