"""A client's answer after the final read of its partition began makes that read no evidence of loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checkers.histories import History
from wrackline.checkers.inputs.final_reads import FinalRead
from wrackline.checkers.inputs.row_groups import splits_of
from wrackline.checkers.inputs.runs import Run, load_run, open_run, scanned, scanned_split
from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, TopicInfo, Type, value_of

A, B, C, D = (value_of(process, 0) for process in (1, 2, 3, 4))
TWO = (TopicInfo("log", 2, 3, 2),)


def history() -> History:
    return History(topics=TWO).send(1, (A, 0))


def final(run: Run, partition: int = 0) -> FinalRead:
    return run.final["log", partition]


def test_clients_that_had_stopped_leave_the_final_read_as_evidence(tmp_path: Path) -> None:
    run = load_run(history().drain((0, A)).write(tmp_path))
    assert (final(run).late_ns, final(run).is_evidence) == (None, True)


@pytest.mark.parametrize("offset", [1, ACKED_WITHOUT_OFFSET])
def test_an_acknowledgement_behind_the_beginning_of_the_final_read(tmp_path: Path, offset: int) -> None:
    made = history().invoke_send(2, B).drain((0, A)).complete_send(2, (B, offset))
    run = load_run(made.write(tmp_path))
    assert final(run).late_ns == made.clock_ns
    assert final(run).complete
    assert not final(run).is_evidence


def test_an_answer_is_late_once_the_final_read_has_been_invoked(tmp_path: Path) -> None:
    """Not only behind the whole read."""
    made = history()
    made.event(900, Type.INVOKE, "drain", topic="log", partition=0)
    made.send(2, (B, 1))
    late = made.clock_ns
    extra = {"complete": True}
    made.event(900, Type.OK, "drain", topic="log", partition=0, offset=0, high_watermark=1, extra=extra)
    assert final(load_run(made.write(tmp_path))).late_ns == late


def test_a_late_unknown_outcome_leaves_the_final_read_as_evidence(tmp_path: Path) -> None:
    made = history().invoke_send(2, B).drain((0, A)).complete_send(2, (B, UNKNOWN), kind=Type.INFO)
    assert final(load_run(made.write(tmp_path))).is_evidence


def test_one_record_of_several_may_have_been_acknowledged(tmp_path: Path) -> None:
    made = history().invoke_send(2, B, C).drain((0, A))
    made.complete_send(2, (B, 1), (C, UNKNOWN), kind=Type.INFO)
    assert not final(load_run(made.write(tmp_path))).is_evidence


def test_a_late_poll_or_end_offset_makes_the_final_read_no_evidence(tmp_path: Path) -> None:
    polled = history().drain((0, A)).poll(3, (0, A), (1, B))
    assert not final(load_run(polled.write(tmp_path / "polled"))).is_evidence
    told = history().drain((0, A)).end(3, 2)
    assert not final(load_run(told.write(tmp_path / "told"))).is_evidence


def test_a_late_answer_affects_the_final_read_of_its_own_partition_only(tmp_path: Path) -> None:
    made = history().drain((0, A)).drain(partition=1).send(2, (B, 0), partition=1)
    run = load_run(made.write(tmp_path))
    assert final(run, 0).is_evidence
    assert not final(run, 1).is_evidence


def test_a_history_in_many_splits_is_no_less_strict(tmp_path: Path) -> None:
    """The final read is in one split, the acknowledgement in a later one, which does not know of it."""
    made = history().drain((0, A)).send(2, (B, 1)).send(3, (C, 2))
    run = open_run(made.write(tmp_path, row_group=1))
    splits = splits_of(0, run.files[0], events=1)
    assert len(splits) == len(made.events)
    assert not final(scanned(run, [scanned_split(split) for split in splits])).is_evidence


def test_a_healthy_history_in_many_splits(tmp_path: Path) -> None:
    made = history().send(2, (B, 1)).drain((0, A), (1, B)).drain(partition=1)
    run = open_run(made.write(tmp_path, row_group=1))
    found = scanned(run, [scanned_split(split) for split in splits_of(0, run.files[0], events=1)])
    assert final(found).is_evidence
