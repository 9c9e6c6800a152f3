"""Questions about log directories, against answers of paper: no broker of ours has several."""

from __future__ import annotations

from types import SimpleNamespace as Answer

from kio.schema.errors import ErrorCode

from tests.kafka_client.test_operations import Paper
from wrackline.kafka_client.log_dirs import describe_log_dirs, move_logs
from wrackline.kafka_client.model import LogDir, StoredLog


def test_log_directories_are_described_with_what_lies_in_them() -> None:
    future = Answer(partition_index=1, is_future_key=True, offset_lag=7)
    paper = Paper(
        Answer(
            results=(
                Answer(
                    log_dir="/a",
                    error_code=ErrorCode.none,
                    topics=(Answer(name="log", partitions=(future,)),),
                ),
                Answer(log_dir="/b", error_code=ErrorCode.kafka_storage_error, topics=()),
            )
        )
    )
    assert describe_log_dirs(paper) == (
        LogDir("/a", False, (StoredLog(("log", 1), True, 7),)),
        LogDir("/b", True, ()),
    )
    assert [one.topics for one in paper.asked] == [None]


def test_replicas_move_by_the_directory_that_they_move_to() -> None:
    refused = Answer(partition_index=2, error_code=ErrorCode.log_dir_not_found)
    paper = Paper(Answer(results=(Answer(topic_name="log", partitions=(refused,)),)))
    [outcome] = move_logs(paper, {("log", 2): "/b", ("log", 0): "/a", ("txn", 1): "/b"})
    assert (outcome.place, outcome.error) == (("log", 2), ErrorCode.log_dir_not_found)
    [asked] = paper.asked
    assert [(one.path, [(t.name, t.partitions) for t in one.topics]) for one in asked.dirs] == [
        ("/a", [("log", (0,))]),
        ("/b", [("log", (2,)), ("txn", (1,))]),
    ]
