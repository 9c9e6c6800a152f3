"""Control records of a metadata log, as kafka-python and kio write them, are read back; and what the server
itself formats."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.leader_change_message import v0, v1
from kio.schema.types import BrokerId
from kio.schema.voters_record.v0.data import Endpoint, KRaftVersionFeature, VotersRecord
from kio.schema.voters_record.v0.data import Voter as Member
from kio.serial import entity_writer
from kio.static.primitive import i16, u16

from tests.systems.test_segments import batch, segment, simple
from wrackline.kafka_client.model import Voter, directory_text, directory_uuid
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.quorum_log import read_quorum_log
from wrackline.systems.kafka.server import directory_of, formatted, formatted_voters, meta
from wrackline.systems.metadata_changes import QuorumLog

CONTROL = 0x20
LEADER_CHANGE, SNAPSHOT_HEADER, VOTERS = 2, 3, 6


def control(base: int, kind: int, value: bytes, *, epoch: int = 1) -> bytes:
    return batch(base, [(1_700, struct.pack(">hh", 0, kind), value)], epoch=epoch, attributes=CONTROL)


def written(entity: object) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)  # type: ignore[arg-type, type-var]
    return out.getvalue()


def leader(node_id: int, *, version: int = 1) -> bytes:
    if version == 0:
        return written(
            v0.LeaderChangeMessage(version=i16(0), leader_id=BrokerId(node_id), voters=(), granting_voters=())
        )
    return written(
        v1.LeaderChangeMessage(version=i16(1), leader_id=BrokerId(node_id), voters=(), granting_voters=())
    )


def voters(*ids: int) -> bytes:
    members = tuple(
        Member(
            voter_id=BrokerId(one),
            voter_directory_id=UUID(int=one),
            endpoints=(Endpoint(name="CONTROLLER", host="c", port=u16(9093)),),
            k_raft_version_feature=KRaftVersionFeature(
                min_supported_version=i16(0), max_supported_version=i16(1)
            ),
        )
        for one in ids
    )
    return written(VotersRecord(version=i16(0), voters=members))


def read(folder: Path) -> QuorumLog:
    return read_quorum_log(folder, node_id=101, host="c1")


def test_who_leads_and_votes_is_read_in_the_order_of_the_log(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000000-0000000000.checkpoint").write_bytes(
        control(0, SNAPSHOT_HEADER, b"x") + control(1, VOTERS, voters(101, 102))
    )
    segment(tmp_path, 0, control(0, LEADER_CHANGE, leader(101, version=0)), simple(1, epoch=1))
    segment(
        tmp_path,
        3,
        control(3, VOTERS, voters(101, 102, 104), epoch=1),
        control(4, LEADER_CHANGE, leader(102), epoch=7),
    )
    found = read(tmp_path)
    assert (found.start, found.end, found.problem) == (0, 5, "")
    assert found.epochs == ((1, 0), (7, 4))
    said = [(one.offset, one.epoch, one.leader, one.voters) for one in found.changes]
    members = {one: Voter(one, directory_text(UUID(int=one))) for one in (101, 102, 104)}
    assert said == [
        (-1, 0, None, (members[101], members[102])),
        (0, 1, 101, None),
        (3, 1, None, tuple(members.values())),
        (4, 7, 102, None),
    ]
    assert {one.at_ns for one in found.changes} == {1_700_000_000}


def test_what_is_wrong_is_said_and_what_came_before_is_kept(tmp_path: Path) -> None:
    good = control(0, LEADER_CHANGE, leader(101))
    bad = bytearray(control(1, VOTERS, voters(101)))
    bad[-1] ^= 1
    segment(tmp_path, 0, good, bytes(bad))
    found = read(tmp_path)
    assert "wrong CRC in the batch of offset 1" in found.problem
    assert [one.leader for one in found.changes] == [101]
    segment(tmp_path, 0, good, control(1, VOTERS, b"\x00"))
    assert read(tmp_path).problem.startswith("c1: ")


def test_ids_of_folders_are_kafkas_own() -> None:
    first, second = directory_of(101), directory_of(101, 1)
    assert first != second
    assert f"directory.id={second}\n" in meta(101, "A" * 22, 1)
    assert directory_uuid(first).bytes == b"wrackline-000101"
    assert directory_text(directory_uuid(second)) == second
    assert directory_text(None) == "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.mark.parametrize("version", ["4.4.0", "3.9.2"])
def test_the_server_formats_the_first_voters_and_others(version: str, tmp_path: Path) -> None:
    release = Store().find(version)
    if release is None:
        pytest.skip(f"Kafka {version} is not installed")
    named = [(one, f"198.18.0.{one}:9093", directory_of(one)) for one in (101, 102)]
    for path, data in formatted_voters(release, {}, named).items():
        (tmp_path / Path(path).name).write_bytes(data)
    [first] = read(tmp_path).changes
    assert first.voters == tuple(Voter(one, directory_of(one)) for one in (101, 102))
    assert formatted(release, {}) != formatted_voters(release, {}, named)
