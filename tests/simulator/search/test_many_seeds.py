"""A series of seeds gives the same in one process and in two, continues from its file, and ends by Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.search.many_seeds import Row, Totals, run_one, run_seeds, varied

SHORT = Setup(seed=40, seconds=2.0, controllers=3)


def simulated(arguments: Sequence[str]) -> Result:
    return CliRunner().invoke(simulate, list(arguments))


def without_cpu(totals: Totals, rows: list[Row]) -> list[Row]:
    assert totals.seeds == len(rows)
    return sorted((replace(row, cpu_s=0.0) for row in rows), key=lambda row: row.seed)


def test_two_processes_do_the_same_seeds_as_one() -> None:
    alone: list[Row] = []
    both: list[Row] = []
    first = run_seeds(SHORT, 6, vary="vary", progress=lambda row, _: alone.append(row))
    second = run_seeds(SHORT, 6, jobs=2, vary="vary", progress=lambda row, _: both.append(row))
    assert without_cpu(first, alone) == without_cpu(second, both)
    assert [row.seed for row in without_cpu(first, alone)] == list(range(40, 46))
    assert first.violations == []
    assert first.read > 0
    assert len({varied(replace(SHORT, seed=seed)) for seed in range(40, 46)}) == 6
    assert {varied(replace(SHORT, seed=seed)).tcp for seed in range(40, 60)} == {True, False}


def test_a_series_goes_on_after_what_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "done"
    asked = ["--seed", "40", "--seconds", "2", "--done", str(file), "--search"]
    assert simulated([*asked, "2"]).exit_code == 0
    lines = file.read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines[1:]] == [40, 41]
    more = simulated([*asked, "4"])
    assert more.exit_code == 0
    assert "0 violations in 4 seeds" in more.output
    assert "(2 of them done before)" in more.output
    assert "seed     40" not in more.output
    assert "seed     43" in more.output
    other = simulated(["--partitions", "2", *asked, "4"])
    assert other.exit_code == 2
    assert "of another series" in other.output
    file.write_text(file.read_text() + "{}\n")
    broken = simulated([*asked, "4"])
    assert broken.exit_code == 2
    assert "line 6" in broken.output


def test_a_violation_ends_a_series_unless_it_is_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails_at_41(setup: Setup, **_: Any) -> Row:
        row = run_one(replace(setup, seconds=0.5))
        wrong = ("lost-write", "one is missing", setup.command())
        return row if setup.seed != 41 else replace(row, oracle=wrong[0], text=wrong[1], command=wrong[2])

    monkeypatch.setattr("wrackline.simulator.search.many_seeds.run_one", fails_at_41)
    ended = run_seeds(SHORT, 4)
    assert (ended.seeds, [row.seed for row in ended.violations]) == (2, [41])
    going_on = run_seeds(SHORT, 4, keep_going=True)
    assert (going_on.seeds, [row.seed for row in going_on.violations]) == (4, [41])
    assert "1 violation in 4 seeds" in going_on.text()


@pytest.fixture
def long_series(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Of two processes, some seeds of which are done. SIGINT is ignored when it begins, as in a background
    job."""
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "from wrackline.simulator.cli import main; main()"
    )
    file = tmp_path / "done"
    arguments = ["--search", "100000", "--jobs", "2", "--seconds", "1", "--done", str(file)]
    child = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not file.exists() or file.read_text().count("\n") < 3:
            assert child.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(0.2)
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_ctrl_c_tells_what_was_done(long_series: subprocess.Popen[str]) -> None:
    os.killpg(long_series.pid, signal.SIGINT)
    out, err = long_series.communicate(timeout=120)
    assert long_series.returncode == 130, err
    assert "0 violations in" in out
    assert "interrupted" in err


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_series(long_series: subprocess.Popen[str], which: signal.Signals) -> None:
    me = long_series.pid
    children = [int(pid) for pid in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    assert len(children) >= 2
    long_series.send_signal(which)
    long_series.wait(120)
    deadline = time.monotonic() + 120
    while left := [pid for pid in children if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"{left} live on"
        time.sleep(0.2)
    assert long_series.returncode == (130 if which is signal.SIGTERM else -signal.SIGKILL)


# --- a corpus --------------------------------------------------------------------------------------------


def failing(seed: int) -> Any:
    """In place of ``run_one``: this seed is a violation."""

    def run_or_fail(setup: Setup, **_: Any) -> Row:
        row = run_one(replace(setup, seconds=0.5))
        bad = ("lost-write", "one\nis missing", setup.command()) if setup.seed == seed else ("", "", "")
        return replace(row, oracle=bad[0], text=bad[1], command=bad[2])

    return run_or_fail


def test_what_failed_is_kept_and_run_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus, done = tmp_path / "kept" / "corpus", tmp_path / "done"
    monkeypatch.setattr("wrackline.simulator.search.many_seeds.run_one", failing(41))
    options = ["--seconds", "2", "--keep-going", "--corpus", str(corpus)]
    first = simulated(["--seed", "40", "--search", "3", *options])
    assert first.exit_code == 1
    remark, line = corpus.read_text().splitlines()
    assert remark.startswith("#")
    assert line == "wrackline simulate --seed 41 --seconds 2 # lost-write: one is missing"
    monkeypatch.setattr("wrackline.simulator.search.many_seeds.run_one", failing(71))
    again = simulated(["--seed", "70", "--search", "3", *options, "--done", str(done)])
    seeds = [text.split()[1] for text in again.output.splitlines() if text.startswith("seed ")]
    assert seeds == ["41", "70", "71", "72"]
    assert [text.split()[3] for text in corpus.read_text().splitlines()[1:]] == ["41", "71"]
    assert '"seed": 41' not in done.read_text(), "it is none of this series"


def test_a_search_ends_at_a_kept_run_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.write_text("wrackline simulate --seed 41 --seconds 2 # lost-write\n")
    monkeypatch.setattr("wrackline.simulator.search.many_seeds.run_one", failing(41))
    ended = run_seeds(SHORT, 4, first=[Setup(seed=41, seconds=2.0)])
    assert (ended.seeds, [row.seed for row in ended.violations]) == (1, [41])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("rm -rf /", "line 2: no command of `wrackline simulate`"),
        ("wrackline simulate --seed x", "line 2: Invalid value for '--seed'"),
        ("wrackline simulate --nonsense", "line 2: No such option"),
    ],
)
def test_a_line_of_a_corpus_that_is_no_run_is_named(tmp_path: Path, line: str, why: str) -> None:
    corpus = tmp_path / "corpus"
    corpus.write_text(f"# kept\n{line}\n")
    refused = simulated(["--search", "2", "--seconds", "1", "--corpus", str(corpus)])
    assert refused.exit_code == 2
    assert why in refused.output
