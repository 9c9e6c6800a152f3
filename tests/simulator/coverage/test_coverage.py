"""Coverage says which rows of the golden tables runs have met, and changes nothing of the runs.

Probes stay in the process that they are put into, so what has them is a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.broker.rules import ways
from wrackline.simulator.coverage.rows import FILE, coverage
from wrackline.simulator.coverage.states import changes_of_state
from wrackline.simulator.faults.graft import graft
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run import run
from wrackline.simulator.search.many_seeds import run_seeds

WITH_PROBES = """
import json, sys
from wrackline.simulator.coverage.probes import recorder
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run import run

def digests():
    return [run(Setup(seed, seconds=2.0, profile=profile), digest=True).digest
            for seed, profile in ((1, "kip966"), (2, "kraft35"), (3, "zk08"))]

before = digests()
ways = recorder()
print(json.dumps([before, digests(), sorted(ways.take())]))
"""


@pytest.fixture(scope="module")
def with_probes() -> tuple[list[str], list[str], frozenset[str]]:
    """(digests without probes, with them, ways)."""
    done = subprocess.run(
        [sys.executable, "-c", WITH_PROBES], capture_output=True, text=True, check=True, timeout=300
    )
    before, after, found = json.loads(done.stdout)
    return before, after, frozenset(found)


def test_the_ways_of_the_golden_tables_are_those_of_the_rules_as_they_stand() -> None:
    assert ways.written() == FILE.read_text(encoding="utf-8"), "python -m tests.broker.rules.ways"


def test_every_row_has_a_way_and_tables_differ_in_theirs() -> None:
    every = FILE.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    whole, nothing = coverage(frozenset(every)), coverage(frozenset())
    assert (whole.met, nothing.met) == (whole.rows, 0)
    assert whole.rows > 500
    [one] = [table for table in whole.tables if table.name == "isr.may_join"]
    assert len(one.rows) == 14


def test_a_row_that_was_not_met_is_named(with_probes: tuple[list[str], list[str], frozenset[str]]) -> None:
    met = coverage(with_probes[2])
    assert 100 < met.met < met.rows
    lines = "\n".join(met.lines(full=True))
    assert "isr.may_join" in lines
    assert "; not met: " in lines
    without = frozenset(way for way in with_probes[2] if ".may_join" not in way)
    [table] = [one for one in coverage(without).tables if one.name == "isr.may_join"]
    assert table.met == 0


def test_probes_change_no_run(with_probes: tuple[list[str], list[str], frozenset[str]]) -> None:
    before, after, found = with_probes
    assert before == after
    assert any(way.startswith("replication.isr.IsrRules.may_join ") for way in found)
    assert any(way.startswith("zookeeper.rules.") for way in found)


def test_a_search_in_processes_counts_what_all_of_them_met(tmp_path: Path) -> None:
    setup, done = Setup(seed=3, seconds=1.0), tmp_path / "done"
    first = run_seeds(setup, 4, jobs=2, covered=True, done=done)
    again = run_seeds(setup, 4, jobs=2, covered=True, done=done)
    assert first.ways
    assert again.ways == first.ways
    assert again.resumed == 4


def test_a_changed_plan_is_repeated_by_its_numbers() -> None:
    setup = Setup(seed=7, seconds=10.0)
    plans = [setup.plan()]
    for numbers in ((3,), (3, 5), (3, 5, 8), (3, 5, 8, 13)):
        changed = Setup(seed=7, seconds=10.0, graft=numbers)
        assert changed.plan() == changed.plan()
        assert f"--graft {','.join(map(str, numbers))}" in changed.command()
        plans.append(changed.plan())
    assert all(one != other for one, other in pairwise(plans))
    for plan in plans:
        ids = [fault.id for fault in plan]
        assert len(set(ids)) == len(ids)
        assert [fault.at_ms for fault in plan] == sorted(fault.at_ms for fault in plan)


def test_every_change_of_a_plan_is_drawn() -> None:
    setup = Setup(seed=7, seconds=10.0)
    sizes = {len(graft(7, (number,), setup.plan(), lambda _: setup.plan())) for number in range(40)}
    assert min(sizes) < len(setup.plan()) < max(sizes)
    assert graft(7, (1, 2), [], lambda _: []) == []


def test_states_of_partitions_are_told_as_they_change() -> None:
    changes = list(changes_of_state(run(Setup(seed=4, seconds=4.0)).events))
    assert changes
    assert all(one != other for one, other in pairwise(changes))
    assert any(text.endswith("> isr 3/3 elr 0 led") for text in changes)


GUIDED = ("--search", "12", "--seconds", "2", "--seed", "5", "--swarm", "--guided")


def test_a_guided_search_changes_plans_and_repeats_what_it_finds() -> None:
    def simulated(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wrackline.harness.cli.entry", "simulate", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    first, again = simulated(*GUIDED), simulated(*GUIDED)
    seeds = [line.split()[1] for line in first.stdout.splitlines() if line.startswith("seed ")]
    assert len(seeds) == 12
    assert len(set(seeds)) < 12, "some runs have the seed of an earlier one, and another plan"
    assert first.stdout.splitlines()[:12] == again.stdout.splitlines()[:12]
    refused = simulated(*GUIDED, "--jobs", "2")
    assert (refused.returncode, "leave --jobs and --done out" in refused.stderr) == (2, True)
