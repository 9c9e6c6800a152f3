"""What Apache Kafka has left in a run's history is asked what it decides, and the verdict says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from wrackline.harness.report.invariants import invariants_of as shown
from wrackline.harness.run import stored_state
from wrackline.harness.run.clocks import Clocks
from wrackline.harness.run.invariants import invariants_of
from wrackline.harness.run.live.cluster_history import events, quorum_events
from wrackline.history.model import NEMESIS, REPLICA, Event, Record, RunInfo, TopicInfo, Type
from wrackline.history.store.files import write_history
from wrackline.kafka_client.model import Voter
from wrackline.systems.base import DeployError
from wrackline.systems.metadata_changes import Change, Chronicle, QuorumChange, QuorumLog

INFO = RunInfo(
    "run",
    "run",
    0,
    "",
    "kafka-4.4.0",
    "log",
    "all",
    False,
    (TopicInfo("log", 1, 2, 2),),
    nodes={"1": "n1", "2": "n2"},
    features={"eligible.leader.replicas.version": 1},
)
SOURCE = "the metadata log __cluster_metadata-0"


def change(offset: int, leader: int, epoch: int, *isr: int, elr: tuple[int, ...] = ()) -> Change:
    return Change(
        offset, "n1", f"offset {offset}", "log", 0, leader, epoch, offset, replicas=(1, 2), isr=isr, elr=elr
    )


def replica(node: str, epochs: Sequence[Sequence[int]], *chunks: Sequence[int], hw: int = 4) -> list[Event]:
    rows, at = [], 0
    for number, values in enumerate(chunks, 1):
        records = tuple(Record(0, at + one, value, 0, 1) for one, value in enumerate(values))
        at += len(values)
        whole = number == len(chunks)
        extra = {"in_isr": True, "complete": whole, "hw": hw, **({"epochs": epochs} if whole else {})}
        row = Event(
            REPLICA,
            Type.OK,
            "replica",
            "log",
            0,
            0,
            node=node,
            high_watermark=4,
            records=records,
            extra=extra,
        )
        rows.append(row)
    return rows


def section_of(run_dir: Path, changes: Sequence[Change], *others: Event) -> dict[str, object]:
    told = events(Chronicle(SOURCE, tuple(changes)), Clocks(0, {}), "log")
    write_history(run_dir, INFO, [*others, *told])
    section = invariants_of(run_dir, INFO)
    assert section is not None
    return section


CHANGES = (change(0, 1, 0, 1, 2), change(1, 1, 0, 1, elr=(2,)), change(2, 1, 0, 1, 2))
ALIKE = [*replica("n1", [[0, 0]], (5, 6), (7, 8)), *replica("n2", [[0, 0]], (5, 6, 7, 8))]
CUT_OFF = Event(NEMESIS, Type.INFO, "partition", extra={"id": "f1", "phase": "begin"})
"""A fault has the name of those rows, too."""


def test_a_run_that_is_whole(tmp_path: Path) -> None:
    section = section_of(tmp_path, CHANGES, CUT_OFF, *ALIKE)
    assert section["broken"] == []
    assert (section["steps"], section["lines"]) == (5, 3 + 8)
    assert section["source"] == SOURCE
    view = shown({"invariants": section})
    assert view is not None
    assert "none was broken" in view.sentence
    assert view.limits[0].startswith("these brokers write no trace")
    assert "I14" in view.checked
    assert any("I17" in names for names, _ in view.undecided)


def test_what_is_broken_has_its_place(tmp_path: Path) -> None:
    states = (*CHANGES, change(3, 2, 0, 1, 2))
    section = section_of(tmp_path, states, *ALIKE[:2], *replica("n2", [[1, 0]], (5, 6, 9, 8)))
    found = {(one["id"], one["node"], one["place"]) for one in section["broken"]}  # type: ignore[attr-defined]
    assert found == {
        ("I13", "n1", "offset 3"),
        ("I03", "n2", "the files of log-0 on 2"),
        ("I15", "n2", "the files of log-0 on 2"),
    }


def test_a_changed_setting_and_too_many_records_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = Event(NEMESIS, Type.INFO, "change-config", extra={"id": "f1", "phase": "begin"})
    states = (*CHANGES[:1], change(1, 1, 0, 1, elr=(2,)), change(2, 1, 0, 1, 2))
    large = (*states[:2], change(2, 1, 0, 1, elr=(2,)), change(3, 1, 0, 1))
    assert section_of(tmp_path / "as it is", large, changed)["broken"] == []
    monkeypatch.setattr(stored_state, "MOST_RECORDS", 7)
    section = section_of(tmp_path / "too many", states, *ALIKE)
    assert section["steps"] == 3
    assert "more than 7 records" in str(section["blind"])


def test_nothing_is_asked_of_a_system_that_has_written_nothing_down(tmp_path: Path) -> None:
    write_history(tmp_path, INFO, events(Chronicle(""), Clocks(0, {}), "log"))
    assert invariants_of(tmp_path, INFO) is None


def test_deleted_records_have_no_epochs(tmp_path: Path) -> None:
    """A cache of epochs begins where the log does, and the file with the log start may be a minute old."""
    trimmed = [*replica("n1", [[0, 2]], (5, 6, 7, 8)), *replica("n2", [[0, 2]], (5, 6, 7, 8))]
    assert section_of(tmp_path / "nobody deleted", CHANGES, *trimmed)["broken"] != []
    drained = Event(9, Type.OK, "drain", "log", 0, 2, high_watermark=4, extra={"complete": True})
    assert section_of(tmp_path / "deleted", CHANGES, drained, *trimmed)["broken"] == []


# --- the controller quorum ----------------------------------------------------------------------------------

A, B, C = Voter(1, "a"), Voter(2, "b"), Voter(3, "c")


def quorum_log(*sets: tuple[Voter, ...]) -> QuorumLog:
    changes = tuple(
        QuorumChange(10 * number, 1, 1_000 + number, voters=one) for number, one in enumerate(sets, 1)
    )
    leader = QuorumChange(0, 1, 1_000, leader=1)
    return QuorumLog(1, "c1", 0, 99, ((1, 0),), (leader, *changes))


@dataclass
class Logged:
    logs: Sequence[QuorumLog] = ()
    error: str = ""

    def quorum_logs(self) -> Sequence[QuorumLog]:
        if self.error:
            raise DeployError(self.error)
        return self.logs


def test_the_quorums_history_is_asked_too(tmp_path: Path) -> None:
    good, bad = quorum_log((A, B), (A, B, C)), quorum_log((A, B), (B, C))
    for name, log, broken in (("good", good, []), ("bad", bad, ["Q12"])):
        rows = quorum_events(Logged([log]), Clocks(500, {}))
        section = section_of(tmp_path / name, CHANGES, *rows, *ALIKE)
        found = section["broken"]
        assert isinstance(found, list)
        assert [one["id"] for one in found] == broken
        assert [one["at_ns"] for one in found] == [502] * len(broken)
        assert {"Q01", "Q05", "Q12", "Q13", "Q14"} <= set(shown({"invariants": section}).checked)  # type: ignore[union-attr]


def test_a_quorum_that_cannot_be_read_is_said_and_nothing_is_asked_of_it(tmp_path: Path) -> None:
    rows = quorum_events(Logged(error="c1 is silent"), Clocks(0, {}))
    section = section_of(tmp_path, CHANGES, *rows, *ALIKE)
    assert section["blind"] == [f"what is not in {SOURCE}: c1 is silent"]
    assert "Q12" in section["undecided"]  # type: ignore[operator]
