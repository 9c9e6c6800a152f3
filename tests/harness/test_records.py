"""What past runs left is read from any folder, and nothing that is damaged stops the reading."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from upath import UPath

from tests.harness.sample import SAMPLE, copy_sample
from wrackline.checkers.findings import Verdict
from wrackline.harness.records import METRICS, State, record, records

RUN = {
    "name": "canary",
    "seed": 7,
    "started_at": "2026-11-20T01:00:00+00:00",
    "system_kind": "apache-kafka",
    "system_version": "4.0.0",
    "workload": "log",
    "acks": "all",
    "plan": {"duration_s": 20.0, "faults": {}, "guided": "split"},
}


def _run(folder: Path, **changed: object) -> Path:
    """A judged run: the sample's verdict and metrics, with a run.json of our own."""
    return copy_sample(folder, {**RUN, **changed})


def test_a_run_says_what_it_was_and_what_came_of_it(tmp_path: Path) -> None:
    one = record(_run(tmp_path / "r1"))
    assert one.state is State.JUDGED
    assert one.verdict is Verdict.VIOLATION
    assert not one.trouble
    assert (one.name, one.seed, one.system, one.version, one.fleet) == (
        "canary",
        7,
        "apache-kafka",
        "4.0.0",
        "netns",
    )
    assert one.violations == ("inconsistent-offset", "lost-write", "vanished-read")
    assert one.signature == ("inconsistent-offset+lost-write+vanished-read", "split", "apache-kafka", "4.0.0")
    assert [fault.kind for fault in one.faults].count("partition") >= 1
    judged = orjson.loads((SAMPLE / "verdict.json").read_bytes())
    assert one.metrics["acknowledged"] == judged["counts"]["acked_records"] > 0
    assert set(one.metrics) == set(METRICS)
    assert one.seconds is not None
    assert one.seconds > judged["incidents"][0]["last_ns"] / 1e9, "the run was over after its incident"


def test_how_much_succeeded_has_the_name_that_the_judge_gives_it(tmp_path: Path) -> None:
    folder = _run(tmp_path / "r1")
    load = {"main": {"asked_per_s": 60.0, "begun_per_s": 57.2, "done_per_s": 32.4, "left_out": 0.05}}
    (folder / "metrics.json").write_bytes(orjson.dumps({"load": load}))
    assert record(folder).metrics == {
        **record(folder).metrics,
        "acknowledged_per_s": 32.4,
        "left_out": 0.05,
    }


def test_without_a_guided_schedule_the_kinds_of_faults_tell_incidents_apart(tmp_path: Path) -> None:
    one = record(_run(tmp_path / "r1", plan=None))
    assert one.signature[1] == "+".join(sorted({fault.kind for fault in one.faults}))


def test_a_night_gives_its_runs_their_names(tmp_path: Path) -> None:
    night = tmp_path / "results" / "nights" / "weekly-20261120"
    for run in ("r1", "r2"):
        _run(night / "runs" / run)
    lines = [
        {"did": "made", "task": "canary", "run": "r1"},
        {"did": "made", "task": "canary~twin", "run": "r2"},
    ]
    (night / "journal.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)) + b'\n{"did": "torn')
    _run(tmp_path / "results" / "r0", started_at="2026-11-19T01:00:00+00:00")
    found = records(tmp_path / "results")
    assert [(one.run, one.night, one.case, one.follow_up) for one in found] == [
        ("r0", "", "canary", ""),
        ("r1", "weekly-20261120", "canary", ""),
        ("r2", "weekly-20261120", "canary", "twin"),
    ]


@pytest.mark.parametrize(
    ("broken", "state", "said"),
    [
        ({"verdict.json": b'{"verdict": "vi'}, State.DAMAGED, "verdict.json"),
        ({"verdict.json": None, "history.wal": b""}, State.RECORDING, ""),
        ({"verdict.json": None}, State.NOT_JUDGED, ""),
        (
            {"verdict.json": None, "infrastructure.json": b'{"error": "n1: no SSH"}'},
            State.INFRASTRUCTURE,
            "n1: no SSH",
        ),
        ({"metrics.json": b"[1]"}, State.JUDGED, "metrics.json: not a JSON object"),
    ],
)
def test_what_is_damaged_or_missing_is_said(
    tmp_path: Path, broken: dict[str, bytes | None], state: State, said: str
) -> None:
    run = _run(tmp_path / "r1")
    for name, content in broken.items():
        (run / name).unlink(missing_ok=True)
        if content is not None:
            (run / name).write_bytes(content)
    one = record(run)
    assert one.state is state
    assert said in one.trouble
    assert bool(said) == bool(one.trouble)


def test_runs_in_object_storage_are_read_alike(tmp_path: Path) -> None:
    """fsspec's own store in memory stands for a bucket: the same calls, without a server."""
    local = _run(tmp_path / "r1")
    bucket = UPath("memory://nights-of-records")
    for file in local.iterdir():
        (bucket / "r1").mkdir(parents=True, exist_ok=True)
        (bucket / "r1" / file.name).write_bytes(file.read_bytes())
    (one,) = records("memory://nights-of-records")
    assert one.signature == record(local).signature
    assert one.metrics == record(local).metrics


def test_a_place_that_is_not_there_is_an_error_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        records(tmp_path / "nothing")
