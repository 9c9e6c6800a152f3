"""The log of a real ZooKeeper tells every state of every node.

``golden/log.1`` was written by a ZooKeeper server, and is cut behind its last entry. Of two clients /t was
created, set twice, and set in one transaction with a new node; a write with a wrong version was refused; the
session that had made the ephemeral /t/leader ended, and so did that which made it next.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from wrackline.fleets.base import Host
from wrackline.systems.base import Node
from wrackline.zookeeper.core.znodes import TOPICS
from wrackline.zookeeper.systems.kafka import state
from wrackline.zookeeper.systems.servers.transactions import Written, gaps, load, of_log, save, states
from wrackline.zookeeper.systems.wrackline import znodes

LOG = (Path(__file__).parent / "golden" / "log.1").read_bytes()
T0_MS = 1_795_428_006_461


def test_every_state_of_every_node_is_there_with_its_time() -> None:
    assert [(one.zxid, one.path, one.data, one.version) for one in of_log(LOG)] == [
        (3, "/t", b"one", 0),
        (4, "/t", b"two", 1),
        (5, "/t", b"three", 2),
        (6, "/t/leader", b"1", 0),
        (7, "/t/gone", b"x", 0),
        (8, "/t/gone", None, 0),
        (9, "/t/isr", b"1,2", 0),
        (9, "/t", b"four", 3),
        (11, "/t/leader", None, 0),
        (12, "/t/leader", b"2", 0),
        (13, "/t/leader", None, 0),
    ]
    assert [one.at_ms - T0_MS for one in of_log(LOG)] == [0, 15, 18, 19, 20, 22, 26, 26, 31, 533, 537]


def test_who_wrote_and_what_goes_with_its_session_is_told() -> None:
    first, second = (session for one in of_log(LOG) if one.ephemeral for session in [one.session])
    writers = {one.zxid: one.session for one in of_log(LOG)}
    assert 0 not in (first, second)
    assert first != second
    assert writers[12] == second
    assert [writers[zxid] for zxid in (11, 13)] == [0, 0], "they went with their sessions"
    assert all(writers[zxid] for zxid in (3, 4, 5, 7, 8, 9))


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    host = Host("z1", "198.18.0.9")
    server = Node(201, host, frozenset({"zookeeper"}), 2181)
    save(of_log(LOG), server, tmp_path / "transactions.jsonl")
    assert load(tmp_path / "transactions.jsonl") == of_log(LOG)
    [line, *_] = (tmp_path / "transactions.jsonl").read_bytes().splitlines()
    assert line.startswith(b'{"time_ns":%d,' % (T0_MS * 1_000_000)), "as a trace begins"


def test_a_file_that_is_cut_short_is_read_up_to_there() -> None:
    whole = of_log(LOG)
    lengths = [len(of_log(LOG[:end])) for end in range(len(LOG))]
    assert lengths == sorted(lengths)
    assert lengths[-1] == len(whole)
    assert of_log(b"") == of_log(b"something else") == []


def test_nodes_are_known_as_they_were_and_what_is_missing_is_named() -> None:
    seen = [sorted(nodes) for _, nodes in states(of_log(LOG), "/t")]
    assert seen[4] == ["/t", "/t/gone", "/t/leader"]
    assert seen[-1] == ["/t", "/t/isr"]
    assert list(gaps(of_log(LOG), "/t")) == []
    without = [one for one in of_log(LOG) if one.zxid not in (4, 5)]
    assert list(gaps(without, "/t")) == ["/t: its versions 1 to 2"]
    assert list(gaps(without, "/t/leader")) == []


def kafka(version: int, leader: int, epoch: int, isr: list[int]) -> Written:
    said = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": epoch, "isr": isr}
    path = state.state_path("log", 0)
    return Written(10 + version, 1_000 + version, path, orjson.dumps(said), version)


def test_kafkas_state_nodes_are_changes_of_a_partition() -> None:
    topic = orjson.dumps({"version": 1, "partitions": {"0": [1, 2, 3]}})
    written = [
        Written(1, 1, state.topic_path("log"), topic, 0),
        Written(2, 2, state.topic_path("logs"), topic, 0),
        kafka(0, 1, 0, [1, 2, 3]),
        kafka(2, 2, 1, [2]),
    ]
    found = state.chronicle(written, "z1", "log")
    told = [
        (one.leader, one.leader_epoch, one.partition_epoch, one.isr, one.replicas) for one in found.changes
    ]
    assert told == [(1, 0, 0, (1, 2, 3), (1, 2, 3)), (2, 1, 2, (2,), (1, 2, 3))]
    assert (found.changes[1].at_ns, found.changes[1].place) == (1_002_000_000, "zxid 0xc")
    [missing] = found.missing
    assert "versions 1 to 1" in missing


def test_the_nodes_of_the_first_design_are_changes_too_and_a_lost_session_is_no_leader() -> None:
    at = f"{TOPICS}/log/0"
    written = [
        Written(1, 1, f"{at}/replicas", b"1,2,3", 0),
        Written(2, 2, f"{at}/leader", b"1", 0),
        Written(3, 3, f"{at}/ISR", b"1,3", 0),
        Written(4, 4, f"{at}/CUR", b"2", 0),
        Written(5, 5, f"{at}/leader", None, 0),
    ]
    found = znodes.chronicle(written, "z1", "log")
    assert [(one.at_ns // 1_000_000, one.leader, one.isr) for one in found.changes] == [
        (1, -1, ()),
        (2, 1, ()),
        (3, 1, (1, 3)),
        (5, -1, (1, 3)),
    ]
    assert found.missing == ()
