"""The same seed gives the same run; defects are found, shrunk and found again by the printed command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from wrackline.history import history_files, read_info
from wrackline.history.model import FAILED, Event, Record, Type
from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.kinds import KINDS, FaultOptions
from wrackline.simulator.faults.plan import plan
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.invariants.client_view import ClientView, Violation
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import run
from wrackline.simulator.search.first_violation import search
from wrackline.simulator.search.shrink import shrink

SHORT = Setup(seed=5, seconds=6.0, idempotent=True)
DEFECT = Setup(
    seed=1,
    defects=("trunc_hw",),
    kinds=("kill", "power", "clean", "lag", "hold-alter-request"),
    invariants=False,
)


# --- determinism -------------------------------------------------------------------------------------------


def test_the_same_seed_is_the_same_run_in_one_process() -> None:
    first, second = run(SHORT, digest=True), run(SHORT, digest=True)
    assert first.digest == second.digest
    assert first.events == second.events
    assert first.steps > 500
    assert run(replace(SHORT, seed=6), digest=True).digest != first.digest


def test_the_same_seed_is_the_same_run_in_every_process_and_under_every_hash_seed() -> None:
    program = (
        "import sys; from wrackline.simulator.cli import main; "
        "sys.argv[1:] = '--seed 5 --seconds 6 --idempotent --timeline --full --lines 0 --digest'.split(); "
        "main()"
    )
    outputs = set()
    for hash_seed in ("0", "1", "31337"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            timeout=60,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    text = outputs.pop().decode()
    assert f"digest {run(SHORT, digest=True).digest}" in text
    assert text.count("\n") > 500


def test_a_fault_that_is_left_out_leaves_the_plan_of_the_others() -> None:
    setup = Setup(seed=11)
    whole = setup.plan()
    ids = tuple(fault.id for fault in whole)[::2]
    assert replace(setup, keep_faults=ids).plan() == whole[::2]
    assert [f.id for f in plan(11, 10_000, 1, FaultOptions())] == [f.id for f in whole if f.at_ms < 10_000]
    assert {fault.kind for seed in range(40) for fault in plan(seed, 60_000, 3, FaultOptions(KINDS))} == set(
        KINDS
    )


# --- clean runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20, 26))
def test_a_correct_broker_under_all_faults_is_clean(seed: int) -> None:
    result = run(Setup(seed=seed, seconds=12.0, partitions=1 + seed % 2, idempotent=seed % 2 == 0))
    assert result.violation is None, result.violation
    assert result.acked > 5
    assert len(result.faults) > 3


def test_the_history_keeps_its_own_rules() -> None:
    result = run(Setup(seed=12, seconds=10.0))
    by_process: dict[int, list[Event]] = {}
    for event in result.events:
        if event.process >= 0:
            by_process.setdefault(event.process, []).append(event)
    assert {event.f for event in result.events} >= {
        "send",
        "poll",
        "end",
        "drain",
        "replica",
        "assign",
        "phase",
    }
    for events in by_process.values():
        for before, after in pairwise(events):
            assert (before.type is Type.INVOKE) != (after.type is Type.INVOKE), (before, after)
            assert before.type is not Type.INFO, "a process goes on after an unknown outcome"
    assert [event.index for event in result.events] == list(range(len(result.events)))
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(result.events))
    values = [r.value for e in result.events if e.f == "send" and e.type is Type.INVOKE for r in e.records]
    assert len(values) == len(set(values))


# --- search, shrink, replay --------------------------------------------------------------------------------


def simulated(arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(simulate, list(arguments))


def test_a_defect_is_found_made_smaller_and_found_again_by_the_printed_command() -> None:
    total = search(DEFECT, 10)
    assert total.found is not None
    assert total.found.violation is not None
    smaller = shrink(total.found)
    assert smaller.result.violation is not None
    assert smaller.result.violation.oracle == total.found.violation.oracle
    assert smaller.faults_after < smaller.faults_before
    command = smaller.result.setup.command()
    assert command.startswith("wrackline simulate --seed")
    again = simulated([*command.split()[2:], "--no-shrink", "--lines", "30"])
    assert again.exit_code == 1, again.output
    assert f"VIOLATION {smaller.result.violation.oracle}" in again.output
    assert smaller.result.violation.text in again.output
    lines = again.output.splitlines()
    assert lines[0].startswith("    time s    step node  kind")
    assert all(len(line) <= 160 for line in lines[:31])
    assert "again: " + command in again.output
    assert run(smaller.result.setup).violation == smaller.result.violation
    assert run(replace(smaller.result.setup, defects=())).violation is None, "the fault is the defect's"


def test_exit_codes_and_messages_of_the_command() -> None:
    clean = simulated(["--seed", "1", "--seconds", "3"])
    assert clean.exit_code == 0
    assert "clean" in clean.output
    for wrong, said in (
        (["--defect", "nothing"], "no defect 'nothing'"),
        (["--profile", "zk"], "no profile 'zk'"),
        (["--faults", "rain"], "no fault rain"),
        (["--keep-faults", "x"], "no list of numbers"),
        (["--broker-setting", "colour=red"], "no setting 'colour'"),
        (["--broker-setting", "flush_ms=soon"], "'soon' is no int"),
        (["--brokers", "2"], "there are 2 brokers"),
    ):
        refused = simulated(wrong)
        assert refused.exit_code == 2, refused.output
        assert said in refused.output


def test_a_crash_of_the_core_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    from wrackline.broker.core.broker import Broker

    whole = Broker.handle

    def broken(self: Broker, event: object, now_ms: float) -> object:
        if now_ms > 2_000:
            raise KeyError("gone")
        return whole(self, event, now_ms)  # type: ignore[arg-type]

    monkeypatch.setattr(Broker, "handle", broken)
    result = run(Setup(seed=1, seconds=5.0, kinds=()))
    assert result.violation is not None
    assert result.violation.oracle == "crash"
    assert "KeyError: 'gone'" in result.violation.text


# --- the oracle of the clients -----------------------------------------------------------------------------


def sent(process: int, *records: Record, type_: Type = Type.OK) -> Event:
    return Event(process, type_, "send", "t", 0, records=records)


def polled(process: int, *records: Record) -> Event:
    return Event(process, Type.OK, "poll", "t", records=records)


def assigned(process: int, offset: int) -> Event:
    return Event(process, Type.OK, "assign", "t", extra={"positions": {"0": offset}})


def judged(*events: Event, idempotent: bool = True, loss_allowed: bool = False) -> list[str]:
    oracle = ClientView(acks=-1, idempotent=idempotent, loss_allowed=loss_allowed)
    return [violation.oracle for violation in oracle.look(events)]


def test_what_the_oracle_of_the_clients_sees() -> None:
    a0, b0, b1, c2 = Record(0, 0, 10), Record(0, 0, 11), Record(0, 1, 11), Record(0, 2, 12)
    assert judged(sent(1, a0), assigned(5, 0), polled(5, a0, b1, c2)) == []
    assert judged(sent(1, a0), sent(2, b0)) == ["inconsistent-offsets"]
    assert judged(sent(1, b0), polled(5, b1)) == ["duplicate"]
    assert judged(sent(1, b0), polled(5, b1), idempotent=False) == []
    assert judged(assigned(5, 0), polled(5, a0), polled(5, c2)) == ["poll-skip"]
    assert judged(assigned(5, 1), polled(5, a0)) == ["nonmonotonic-poll"]
    assert judged(sent(1, Record(0, FAILED, 10), type_=Type.FAIL), polled(5, a0)) == ["read-of-failed-write"]
    assert judged(sent(1, a0), sent(2, b0), loss_allowed=True) == []


def test_an_acknowledged_value_must_be_in_the_final_read() -> None:
    oracle = ClientView(acks=-1, idempotent=False, loss_allowed=False)
    oracle.look([sent(1, Record(0, 0, 10), Record(0, 1, 11))])
    assert oracle.final({0: [Record(0, 0, 10), Record(0, 1, 11)]}, {0: 0}, {}) == []
    missing = {0: [Record(0, 1, 11)]}
    found: list[Violation] = oracle.final(missing, {0: 0}, {})
    assert [violation.oracle for violation in found] == ["lost-write"]
    assert "0@0" in found[0].text
    assert oracle.final(missing, {0: 1}, {0: 1}) == []
    assert [violation.oracle for violation in oracle.final(missing, {0: 1}, {})] == ["log-start"]


def test_a_run_becomes_a_run_directory_that_the_harness_reads(tmp_path: Path) -> None:
    result = run(Setup(seed=3, seconds=4.0, invariants=False))
    write_run(result.setup, result.events, tmp_path / "r")
    assert read_info(tmp_path / "r").seed == 3
    (file,) = history_files(tmp_path / "r")
    rows = pq.read_table(file).to_pylist()
    assert [(row["index"], row["time_ns"], row["f"]) for row in rows] == [
        (event.index, event.time_ns, event.f) for event in result.events
    ]
