"""Deletions under load, with a client that answers as it is told to: what is asked, and what errors mean."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from pydantic import ValidationError

from tests.workloads.driving import Row, recorded
from wrackline.history import Recorder
from wrackline.history.model import Event, Record, RunInfo, TopicInfo, Type
from wrackline.plugins.capabilities import Capability
from wrackline.workloads.clients.base import ClientError, Library, RefusedSetting
from wrackline.workloads.clients.libraries import try_settings
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.group import GroupSpec
from wrackline.workloads.log import LogSpec
from wrackline.workloads.log.deletions import Deleter
from wrackline.workloads.log.processes import Context
from wrackline.workloads.pace import Slot

if TYPE_CHECKING:
    from wrackline.workloads.pace import Generator


class Answering:
    """Answers with the offset that is asked for, or with an error."""

    broken = False

    def __init__(self, *errors: str) -> None:
        self._errors = list(errors)

    def delete_records(self, topic: str, partition: int, before: int) -> int:
        assert (topic, partition) == ("log", 0)
        if self._errors:
            raise ClientError(self._errors.pop(0))
        return before

    def close(self) -> None:
        pass


def deleted(run_dir: Path, client: Answering, operations: int, keep: int = 10) -> list[Row]:
    """The rows of so many deletions, of a log of 1,000 records."""
    spec = LogSpec.model_validate({"mix": {"delete": 1}, "keep_records": keep})
    info = RunInfo("t1", "t", 1, "", "none", spec.name, "all", False, (TopicInfo("log", 1, 3, 2),))
    with Recorder(run_dir, info) as recorder:
        context = Context(
            bootstrap="",
            library=cast("Library", SimpleNamespace(admin=lambda *_: client)),
            topics={"log": 1},
            spec=spec,
            recorder=recorder,
            generator=cast("Generator", None),
            tag=bytes(8),
            stride=100,
            enter=contextlib.nullcontext,
            on_failure=pytest.fail,
        )
        context.tally.count(Event(0, Type.OK, "send", topic="log", records=(Record(0, 999, 5),)))
        deleter = Deleter(context, 7, spec)
        for number in range(operations):
            deleter.operate(Slot("delete", number, 0.0, number * 7919))
    return recorded(run_dir)


def test_the_latest_records_stay(tmp_path: Path) -> None:
    rows = deleted(tmp_path, Answering(), 40)
    asked = [row["offset"] for row in rows if row["type"] == "invoke"]
    assert len(asked) == 40
    assert max(asked) <= 990
    assert any(one > 979 for one in asked)
    assert any(one < max(asked) // 2 + 10 for one in asked), "some ask for what is deleted already"
    assert {row["process"] for row in rows} == {7}


@pytest.mark.parametrize(
    ("error", "kind", "next_process"),
    [("_TIMED_OUT", "info", 107), ("REQUEST_TIMED_OUT", "info", 107), ("OFFSET_OUT_OF_RANGE", "fail", 7)],
)
def test_what_an_error_means(tmp_path: Path, error: str, kind: str, next_process: int) -> None:
    """Where nobody knows whether records were deleted, another process goes on."""
    rows = deleted(tmp_path, Answering(error), 2)
    assert [(row["process"], row["type"], row["error"]) for row in rows if row["type"] != "invoke"] == [
        (7, kind, error),
        (next_process, "ok", None),
    ]


@pytest.mark.parametrize("kind", [LogSpec, GroupSpec])
def test_deletions_are_a_kind_of_operation_where_they_are_asked_for(kind: type[LogSpec | GroupSpec]) -> None:
    without, with_some = kind(), kind.model_validate({"mix": {"delete": 1}, "deleters": 3})
    assert "delete" not in without.shares
    assert with_some.shares["delete"] == (3, 1)
    assert "delete" in with_some.by_partition
    assert with_some.concurrency == without.concurrency + 3
    assert with_some.needs - without.needs == {Capability.DELETE_RECORDS}


def test_where_a_position_is_reset_to() -> None:
    assert (LogSpec().reset, GroupSpec().reset) == ("", "earliest")
    assert LogSpec(auto_offset_reset="by_duration:PT5S").reset == "by_duration:PT5S"
    with pytest.raises(ValidationError, match="auto_offset_reset"):
        LogSpec(auto_offset_reset="beginning")
    with pytest.raises(RefusedSetting, match=r"auto\.offset\.reset"):
        try_settings(LogSpec(auto_offset_reset="by_duration:PT5S"))
    old = ClientSettings(library="java", version="3.9.2")
    with pytest.raises(RefusedSetting, match=r"by_duration:PT5S needs kafka-clients 4\.0\.0 or newer"):
        try_settings(LogSpec(auto_offset_reset="by_duration:PT5S", client=old))
    try_settings(LogSpec(auto_offset_reset="by_duration:PT5S", client=ClientSettings(library="java")))
